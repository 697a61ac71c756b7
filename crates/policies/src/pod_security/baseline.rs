//! Baseline: no known way to gain privileges. By name, which is the order of upstream's messages.

use corten_validation::read::{items, text};
use serde_json::Value;

use super::check::{
    Check, Names, Pod, Refusal, is_allowed_profile, listed, name, plural, quoted, refusal, setters, uses,
};

pub(super) const CHECKS: &[Check] = &[
    Check { name: "appArmorProfile", since: 0, replaces: None, run: app_armor_profile },
    Check { name: "capabilities_baseline", since: 0, replaces: None, run: capabilities },
    Check { name: "hostNamespaces", since: 0, replaces: None, run: host_namespaces },
    Check { name: "hostPathVolumes", since: 0, replaces: None, run: host_path_volumes },
    Check { name: "hostPorts", since: 0, replaces: None, run: host_ports },
    Check { name: "hostProbesAndHostLifecycle", since: 34, replaces: None, run: host_probes },
    Check { name: "privileged", since: 0, replaces: None, run: privileged },
    Check { name: "procMount", since: 0, replaces: None, run: proc_mount },
    Check { name: "seLinuxOptions", since: 0, replaces: None, run: se_linux_options },
    Check { name: "seccompProfile_baseline", since: 0, replaces: None, run: seccomp_profile },
    Check { name: "sysctls", since: 0, replaces: None, run: sysctls },
    Check { name: "windowsHostProcess", since: 0, replaces: None, run: windows_host_process },
];

const APP_ARMOR: &str = "container.apparmor.security.beta.kubernetes.io/";

fn app_armor_profile(pod: &Pod<'_>) -> Option<Refusal> {
    let mut values = Names::new();
    let mut setters = pod.setters(|context| {
        let profile = &context["appArmorProfile"];
        let kind = text(profile, "/type");
        let bad = profile.is_object() && !is_allowed_profile(kind);
        if bad {
            values.insert(kind);
        }
        bad
    });
    let annotations = pod.metadata["annotations"].as_object().into_iter().flatten();
    let is_allowed = |it: &str| matches!(it, "" | "runtime/default") || it.starts_with("localhost/");
    let mut forbidden: Vec<String> = annotations
        .map(|(key, value)| (key, value.as_str().unwrap_or_default()))
        .filter(|(key, value)| key.starts_with(APP_ARMOR) && !is_allowed(value))
        .map(|(key, value)| format!("{key}={value:?}"))
        .collect();
    forbidden.sort();
    if !forbidden.is_empty() {
        let noun = format!("annotation{}", plural(forbidden.len()));
        setters = if setters.is_empty() { noun } else { format!("{setters} and {noun}") };
    }
    if setters.is_empty() {
        return None;
    }
    let values: Vec<&str> = values.into_iter().chain(forbidden.iter().map(|it| &**it)).collect();
    let reason = if values.len() == 1 { "forbidden AppArmor profile" } else { "forbidden AppArmor profiles" };
    refusal(reason, format!("{setters} must not set AppArmor profile type to {}", quoted(values)))
}

const CAPABILITIES: [&str; 13] = [
    "AUDIT_WRITE",
    "CHOWN",
    "DAC_OVERRIDE",
    "FOWNER",
    "FSETID",
    "KILL",
    "MKNOD",
    "NET_BIND_SERVICE",
    "SETFCAP",
    "SETGID",
    "SETPCAP",
    "SETUID",
    "SYS_CHROOT",
];

fn capabilities(pod: &Pod<'_>) -> Option<Refusal> {
    let mut forbidden = Names::new();
    let bad = pod.where_container(|it| {
        let added = items(it, "/securityContext/capabilities/add").iter().filter_map(Value::as_str);
        let extra: Vec<&str> = added.filter(|it| !CAPABILITIES.contains(it)).collect();
        forbidden.extend(&extra);
        !extra.is_empty()
    });
    if bad.is_empty() {
        return None;
    }
    let detail = format!(
        "{} must not include {} in securityContext.capabilities.add",
        listed("container", &bad),
        quoted(forbidden)
    );
    refusal("non-default capabilities", detail)
}

fn host_namespaces(pod: &Pod<'_>) -> Option<Refusal> {
    let shared = ["hostNetwork", "hostPID", "hostIPC"].into_iter().filter(|it| pod.spec[*it] == true);
    let shared: Vec<String> = shared.map(|it| format!("{it}=true")).collect();
    if shared.is_empty() { None } else { refusal("host namespaces", shared.join(", ")) }
}

fn host_path_volumes(pod: &Pod<'_>) -> Option<Refusal> {
    let volumes: Vec<&str> =
        items(pod.spec, "/volumes").iter().filter(|it| it["hostPath"].is_object()).map(name).collect();
    if volumes.is_empty() { None } else { refusal("hostPath volumes", listed("volume", &volumes)) }
}

fn host_ports(pod: &Pod<'_>) -> Option<Refusal> {
    let port = |it: &Value| it["hostPort"].as_i64().filter(|it| *it != 0).map(|it| it.to_string());
    let ports = |it: &Value| items(it, "/ports").iter().filter_map(port).collect::<Vec<_>>();
    let bad = pod.where_container(|it| !ports(it).is_empty());
    if bad.is_empty() {
        return None;
    }
    // Sorted as text, as `hostPorts_1_0` sorts them.
    let mut all: Vec<String> = pod.containers().flat_map(ports).collect();
    all.sort();
    all.dedup();
    let detail =
        format!("{} {} hostPort{} {}", listed("container", &bad), uses(bad.len()), plural(all.len()), all.join(", "));
    refusal("hostPort", detail)
}

fn host_probes(pod: &Pod<'_>) -> Option<Refusal> {
    let mut hosts = Names::new();
    let mut bad = Names::new();
    for container in pod.containers() {
        let probes = ["livenessProbe", "readinessProbe", "startupProbe"].map(|it| &container[it]);
        let hooks = ["postStart", "preStop"].map(|it| &container["lifecycle"][it]);
        for handler in probes.into_iter().chain(hooks) {
            for host in ["/httpGet/host", "/tcpSocket/host"].map(|it| text(handler, it)) {
                if !host.is_empty() {
                    bad.insert(name(container));
                    hosts.insert(host);
                }
            }
        }
    }
    if bad.is_empty() {
        return None;
    }
    let (bad, count): (Vec<&str>, usize) = (bad.into_iter().collect(), hosts.len());
    let detail = format!(
        "{} {} probe or lifecycle host{} {}",
        listed("container", &bad),
        uses(bad.len()),
        plural(count),
        quoted(hosts)
    );
    refusal("probe or lifecycle host", detail)
}

fn privileged(pod: &Pod<'_>) -> Option<Refusal> {
    let bad = pod.where_container(|it| it["securityContext"]["privileged"] == true);
    if bad.is_empty() {
        return None;
    }
    refusal("privileged", format!("{} must not set securityContext.privileged=true", listed("container", &bad)))
}

fn proc_mount(pod: &Pod<'_>) -> Option<Refusal> {
    if pod.has_own_users() { None } else { default_proc_mount(pod) }
}

pub(super) fn default_proc_mount(pod: &Pod<'_>) -> Option<Refusal> {
    let mut kinds = Names::new();
    let bad = pod.where_container(|it| {
        let kind = it["securityContext"]["procMount"].as_str().filter(|it| *it != "Default");
        kinds.extend(kind);
        kind.is_some()
    });
    if bad.is_empty() {
        return None;
    }
    let detail = format!("{} must not set securityContext.procMount to {}", listed("container", &bad), quoted(kinds));
    refusal("procMount", detail)
}

fn se_linux_options(pod: &Pod<'_>) -> Option<Refusal> {
    let (mut kinds, mut user, mut role) = (Names::new(), false, false);
    let newer = pod.version.is_at_least(31);
    let setters = pod.setters(|context| {
        let options = &context["seLinuxOptions"];
        let kind = text(options, "/type");
        let known = matches!(kind, "" | "container_t" | "container_init_t" | "container_kvm_t");
        let bad_kind = !(known || (newer && kind == "container_engine_t"));
        if bad_kind {
            kinds.insert(kind);
        }
        let (has_user, has_role) = (!text(options, "/user").is_empty(), !text(options, "/role").is_empty());
        user |= has_user;
        role |= has_role;
        bad_kind || has_user || has_role
    });
    if setters.is_empty() {
        return None;
    }
    let count = kinds.len();
    let kinds = (count > 0).then(|| format!("type{} {}", plural(count), quoted(kinds)));
    let user = user.then(|| "user may not be set".to_owned());
    let role = role.then(|| "role may not be set".to_owned());
    let data: Vec<String> = kinds.into_iter().chain(user).chain(role).collect();
    let detail = format!("{setters} set forbidden securityContext.seLinuxOptions: {}", data.join("; "));
    refusal("seLinuxOptions", detail)
}

const SECCOMP_POD: &str = "seccomp.security.alpha.kubernetes.io/pod";
const SECCOMP_CONTAINER: &str = "container.seccomp.security.alpha.kubernetes.io/";

fn seccomp_profile(pod: &Pod<'_>) -> Option<Refusal> {
    if !pod.version.is_at_least(19) {
        return seccomp_annotations(pod);
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
    if setters.is_empty() {
        return None;
    }
    let detail = format!("{setters} must not set securityContext.seccompProfile.type to {}", quoted(kinds));
    refusal("seccompProfile", detail)
}

/// How it was said before there was a field.
fn seccomp_annotations(pod: &Pod<'_>) -> Option<Refusal> {
    let mut forbidden = Names::new();
    let mut is_bad = |key: &str| {
        let value = pod.metadata["annotations"][key].as_str()?;
        let allowed = matches!(value, "runtime/default" | "docker/default") || value.starts_with("localhost/");
        (!allowed).then(|| forbidden.insert(value))
    };
    let of_pod = is_bad(SECCOMP_POD).is_some();
    let bad = pod.where_container(|it| is_bad(&format!("{SECCOMP_CONTAINER}{}", name(it))).is_some());
    if forbidden.is_empty() {
        return None;
    }
    let mut keys: Vec<String> = bad.iter().map(|it| format!("{SECCOMP_CONTAINER}{it}")).collect();
    keys.extend(of_pod.then(|| SECCOMP_POD.to_owned()));
    keys.sort();
    let written = keys.iter().map(|it| format!("{it}={}", pod.metadata["annotations"][&**it]));
    let noun = format!("forbidden annotation{}", plural(keys.len()));
    refusal("seccompProfile", format!("{noun} {}", written.collect::<Vec<_>>().join(", ")))
}

/// With the policy version that first allowed them.
const SYSCTLS: [(&str, u32); 14] = [
    ("kernel.shm_rmid_forced", 0),
    ("net.ipv4.ip_local_port_range", 0),
    ("net.ipv4.tcp_syncookies", 0),
    ("net.ipv4.ping_group_range", 0),
    ("net.ipv4.ip_unprivileged_port_start", 0),
    ("net.ipv4.ip_local_reserved_ports", 27),
    ("net.ipv4.tcp_keepalive_time", 29),
    ("net.ipv4.tcp_fin_timeout", 29),
    ("net.ipv4.tcp_keepalive_intvl", 29),
    ("net.ipv4.tcp_keepalive_probes", 29),
    ("net.ipv4.tcp_rmem", 32),
    ("net.ipv4.tcp_wmem", 32),
    ("net.ipv4.tcp_slow_start_after_idle", 37),
    ("net.ipv4.tcp_notsent_lowat", 37),
];

fn sysctls(pod: &Pod<'_>) -> Option<Refusal> {
    let is_allowed = |name: &str| SYSCTLS.iter().any(|(it, since)| *it == name && pod.version.is_at_least(*since));
    let forbidden: Vec<&str> =
        items(pod.security_context(), "/sysctls").iter().map(name).filter(|it| !is_allowed(it)).collect();
    if forbidden.is_empty() { None } else { refusal("forbidden sysctls", forbidden.join(", ")) }
}

fn windows_host_process(pod: &Pod<'_>) -> Option<Refusal> {
    let is_set = |context: &Value| context["windowsOptions"]["hostProcess"] == true;
    let setters = setters(is_set(pod.security_context()), &pod.where_container(|it| is_set(&it["securityContext"])));
    if setters.is_empty() {
        return None;
    }
    refusal("hostProcess", format!("{setters} must not set securityContext.windowsOptions.hostProcess=true"))
}
