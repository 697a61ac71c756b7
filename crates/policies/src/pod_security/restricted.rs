//! Restricted: what hardened Pods say of themselves, beside all of baseline.

use corten_validation::read::{items, text};
use serde_json::Value;

use super::{
    baseline::default_proc_mount,
    check::{Check, Names, Pod, Refusal, is_allowed_profile, listed, name, plural, quoted, refusal, setters, uses},
};

pub(super) const CHECKS: &[Check] = &[
    Check { name: "allowPrivilegeEscalation", since: 8, replaces: None, run: allow_privilege_escalation },
    Check { name: "capabilities_restricted", since: 22, replaces: Some("capabilities_baseline"), run: capabilities },
    Check { name: "procMount_restricted", since: 35, replaces: Some("procMount"), run: default_proc_mount },
    Check { name: "restrictedVolumes", since: 0, replaces: Some("hostPathVolumes"), run: volumes },
    Check { name: "runAsNonRoot", since: 0, replaces: None, run: run_as_non_root },
    Check { name: "runAsUser", since: 23, replaces: None, run: run_as_user },
    Check {
        name: "seccompProfile_restricted",
        since: 19,
        replaces: Some("seccompProfile_baseline"),
        run: seccomp_profile,
    },
];

/// Since then the rules of Linux are not asked of Windows.
fn is_exempt(pod: &Pod<'_>) -> bool {
    pod.version.is_at_least(25) && pod.is_windows()
}

fn allow_privilege_escalation(pod: &Pod<'_>) -> Option<Refusal> {
    let bad = pod.where_container(|it| it["securityContext"]["allowPrivilegeEscalation"] != false);
    if bad.is_empty() || is_exempt(pod) {
        return None;
    }
    let detail = format!("{} must set securityContext.allowPrivilegeEscalation=false", listed("container", &bad));
    refusal("allowPrivilegeEscalation != false", detail)
}

fn capabilities(pod: &Pod<'_>) -> Option<Refusal> {
    if is_exempt(pod) {
        return None;
    }
    let keeps = pod.where_container(|it| !items(it, "/securityContext/capabilities/drop").iter().any(|it| it == "ALL"));
    let mut forbidden = Names::new();
    let adds = pod.where_container(|it| {
        let added = items(it, "/securityContext/capabilities/add").iter().filter_map(Value::as_str);
        let extra: Vec<&str> = added.filter(|it| *it != "NET_BIND_SERVICE").collect();
        forbidden.extend(&extra);
        !extra.is_empty()
    });
    let mut details = Vec::new();
    if !keeps.is_empty() {
        details.push(format!("{} must set securityContext.capabilities.drop=[\"ALL\"]", listed("container", &keeps)));
    }
    if !adds.is_empty() {
        details.push(format!(
            "{} must not include {} in securityContext.capabilities.add",
            listed("container", &adds),
            quoted(forbidden)
        ));
    }
    if details.is_empty() { None } else { refusal("unrestricted capabilities", details.join("; ")) }
}

const VOLUMES: [&str; 9] = [
    "configMap",
    "csi",
    "downwardAPI",
    "emptyDir",
    "ephemeral",
    "image",
    "persistentVolumeClaim",
    "projected",
    "secret",
];

const OTHER_VOLUMES: [&str; 21] = [
    "hostPath",
    "gcePersistentDisk",
    "awsElasticBlockStore",
    "gitRepo",
    "nfs",
    "iscsi",
    "glusterfs",
    "rbd",
    "flexVolume",
    "cinder",
    "cephfs",
    "flocker",
    "fc",
    "azureFile",
    "vsphereVolume",
    "quobyte",
    "azureDisk",
    "photonPersistentDisk",
    "portworxVolume",
    "scaleIO",
    "storageos",
];

fn volumes(pod: &Pod<'_>) -> Option<Refusal> {
    let bad: Vec<&Value> =
        items(pod.spec, "/volumes").iter().filter(|volume| !VOLUMES.iter().any(|it| volume[*it].is_object())).collect();
    if bad.is_empty() {
        return None;
    }
    let kind = |volume: &Value| OTHER_VOLUMES.into_iter().find(|it| volume[*it].is_object()).unwrap_or("unknown");
    let kinds: Names<'_> = bad.iter().map(|it| kind(it)).collect();
    let names: Vec<&str> = bad.iter().map(|it| name(it)).collect();
    let detail = format!(
        "{} {} restricted volume type{} {}",
        listed("volume", &names),
        uses(names.len()),
        plural(kinds.len()),
        quoted(kinds)
    );
    refusal("restricted volume types", detail)
}

fn run_as_non_root(pod: &Pod<'_>) -> Option<Refusal> {
    const REASON: &str = "runAsNonRoot != true";
    if pod.has_own_users() {
        return None;
    }
    let said = |context: &Value| context["runAsNonRoot"].as_bool();
    let of_pod = said(pod.security_context());
    let explicit = pod.where_container(|it| said(&it["securityContext"]) == Some(false));
    let setters = setters(of_pod == Some(false), &explicit);
    if !setters.is_empty() {
        return refusal(REASON, format!("{setters} must not set securityContext.runAsNonRoot=false"));
    }
    let silent = pod.where_container(|it| said(&it["securityContext"]).is_none());
    if of_pod == Some(true) || silent.is_empty() {
        return None;
    }
    refusal(REASON, format!("pod or {} must set securityContext.runAsNonRoot=true", listed("container", &silent)))
}

fn run_as_user(pod: &Pod<'_>) -> Option<Refusal> {
    let setters = pod.setters(|context| context["runAsUser"].as_i64() == Some(0));
    if setters.is_empty() || pod.has_own_users() {
        return None;
    }
    refusal("runAsUser=0", format!("{setters} must not set runAsUser=0"))
}

fn seccomp_profile(pod: &Pod<'_>) -> Option<Refusal> {
    const REASON: &str = "seccompProfile";
    if is_exempt(pod) {
        return None;
    }
    let mut kinds = Names::new();
    let setters = pod.setters(|context| {
        let profile = &context["seccompProfile"];
        let bad = profile.is_object() && !is_allowed_profile(text(profile, "/type"));
        if bad {
            kinds.insert(text(profile, "/type"));
        }
        bad
    });
    if !setters.is_empty() {
        let detail = format!("{setters} must not set securityContext.seccompProfile.type to {}", quoted(kinds));
        return refusal(REASON, detail);
    }
    let is_silent = |context: &Value| !context["seccompProfile"].is_object();
    let silent = pod.where_container(|it| is_silent(&it["securityContext"]));
    if silent.is_empty() || !is_silent(pod.security_context()) {
        return None;
    }
    let detail = format!(
        "pod or {} must set securityContext.seccompProfile.type to \"RuntimeDefault\" or \"Localhost\"",
        listed("container", &silent)
    );
    refusal(REASON, detail)
}
