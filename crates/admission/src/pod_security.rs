//! Holds Pods to the level of the Pod Security Standards that their namespace's labels ask for.
//!
//! Templates in workloads are only warned of and noted in the audit log (`ValidatePodController`); what refuses is the Pod's creation.

use std::collections::BTreeMap;

use corten_api::resources::{NAMESPACES, PODS};
use corten_cacher::{body::BoxFuture, watch_cache::Stored};
use corten_kinds::Subresource;
use corten_meta::{Resource, Status};
use corten_policies::pod_security::{Level, LevelVersion, Policy, Refusal, detail, reason, refusals};
use serde_json::{Value, json};

use super::{Admission, Attributes, Operation, host_ports, refusal::forbidden};

pub(crate) struct PodSecurity;

const PREFIX: &str = "pod-security.kubernetes.io/";
/// So many Pods are looked at when a namespace gets stricter.
const PODS_MAX: usize = 3000;
const SECCOMP_POD: &str = "seccomp.security.alpha.kubernetes.io/pod";
const SECCOMP_CONTAINER: &str = "container.seccomp.security.alpha.kubernetes.io/";

impl Admission for PodSecurity {
    fn name(&self) -> &'static str {
        "PodSecurity"
    }

    fn validate<'a>(&'a self, request: &'a Attributes<'a>, object: &'a Value) -> BoxFuture<'a, Result<(), Status>> {
        Box::pin(async move {
            if !matches!(request.operation, Operation::Create | Operation::Update) {
                return Ok(());
            }
            let resource = &request.kind.resource;
            if *resource == NAMESPACES {
                return if request.subresource.is_none() { namespace(request, object) } else { Ok(()) };
            }
            if *resource == PODS {
                return pod(request, object);
            }
            if request.subresource.is_none()
                && let Some(template) = template(resource, object)
                && let Some(policy) = policy(request)
            {
                let template = host_ports::completed(request, template);
                tell(request, policy, &template["metadata"], &template["spec"]);
            }
            Ok(())
        })
    }
}

/// The Pod template of a workload.
fn template<'v>(resource: &Resource, object: &'v Value) -> Option<&'v Value> {
    let template = match (&*resource.group, &*resource.plural) {
        ("", "podtemplates") => &object["template"],
        ("", "replicationcontrollers")
        | ("apps", "daemonsets" | "deployments" | "replicasets" | "statefulsets")
        | ("batch", "jobs") => &object["spec"]["template"],
        ("batch", "cronjobs") => &object["spec"]["jobTemplate"]["spec"]["template"],
        _ => return None,
    };
    template.is_object().then_some(template)
}

/// What the namespace asks for; `None` where that is nothing.
fn policy(request: &Attributes<'_>) -> Option<Policy> {
    let namespaces = request.cluster.caches().get(&NAMESPACES).expect("namespaces are a row of the table");
    let namespace = namespaces.get("", request.namespace)?;
    if !namespace.labels().keys().any(|it| it.starts_with(PREFIX)) {
        return None;
    }
    let (policy, _) = Policy::of(&json!({ "metadata": { "labels": namespace.labels() } }));
    Some(policy).filter(|it| !it.is_privileged())
}

fn pod(request: &Attributes<'_>, pod: &Value) -> Result<(), Status> {
    let is_looked_at =
        matches!(request.subresource, None | Some(Subresource::EphemeralContainers | Subresource::Resize));
    if !is_looked_at || request.old.is_some_and(|old| !is_significant(pod, old)) {
        return Ok(());
    }
    let Some(policy) = policy(request) else { return Ok(()) };
    let (metadata, spec) = (&pod["metadata"], &pod["spec"]);
    request.notes.annotate(&format!("{PREFIX}enforce-policy"), policy.enforce.to_string());
    let refused = refusals(policy.enforce, metadata, spec);
    if refused.is_empty() {
        tell(request, policy, metadata, spec);
        return Ok(());
    }
    note_audit(request, policy.audit, &refusals(policy.audit, metadata, spec));
    Err(forbidden(request, pod, &format!("violates PodSecurity \"{}\": {}", policy.enforce, detail(&refused))))
}

fn tell(request: &Attributes<'_>, policy: Policy, metadata: &Value, spec: &Value) {
    note_audit(request, policy.audit, &refusals(policy.audit, metadata, spec));
    let refused = refusals(policy.warn, metadata, spec);
    if !refused.is_empty() {
        request.notes.warn(format!("would violate PodSecurity \"{}\": {}", policy.warn, detail(&refused)));
    }
}

fn note_audit(request: &Attributes<'_>, level: LevelVersion, refused: &[Refusal]) {
    if !refused.is_empty() {
        let text = format!("would violate PodSecurity \"{level}\": {}", detail(refused));
        request.notes.annotate(&format!("{PREFIX}audit-violations"), text);
    }
}

/// May an update have made the Pod less safe? Only images, annotations and ephemeral containers can.
fn is_significant(pod: &Value, old: &Value) -> bool {
    let annotation = |pod: &Value, key: &str| pod["metadata"]["annotations"][key].clone();
    let list = |pod: &Value, name: &str| pod["spec"][name].as_array().cloned().unwrap_or_default();
    annotation(pod, SECCOMP_POD) != annotation(old, SECCOMP_POD)
        || ["containers", "initContainers", "ephemeralContainers"].iter().any(|name| {
            let (new, before) = (list(pod, name), list(old, name));
            new.len() != before.len()
                || new.iter().zip(&before).any(|(new, before)| {
                    let key = format!("{SECCOMP_CONTAINER}{}", new["name"].as_str().unwrap_or_default());
                    new["image"] != before["image"] || annotation(pod, &key) != annotation(old, &key)
                })
        })
}

/// Labels must be readable where they are new; a stricter level warns of the Pods that are there.
fn namespace(request: &Attributes<'_>, namespace: &Value) -> Result<(), Status> {
    let (policy, wrong) = Policy::of(namespace);
    let before = request.old.map(Policy::of);
    if !wrong.is_empty() && before.as_ref().is_none_or(|(_, before)| *before != wrong) {
        return Err(Status::invalid(&NAMESPACES, request.name_of(namespace), &wrong));
    }
    let Some((before, _)) = before else { return Ok(()) };
    let (new, old) = (policy.enforce, before.enforce);
    let is_no_stricter = new.version == old.version && new.level <= old.level;
    if new != old && new.level != Level::Privileged && !is_no_stricter {
        for warning in of_existing(request, new) {
            request.notes.warn(warning);
        }
    }
    Ok(())
}

fn of_existing(request: &Attributes<'_>, enforce: LevelVersion) -> Vec<String> {
    let pods = request.cluster.caches().get(&PODS).expect("pods are a row of the table").snapshot();
    let all: Vec<_> = pods.range(request.name, None).collect();
    // By reason: how many, and the first of them.
    let mut found: BTreeMap<String, (usize, &Stored)> = BTreeMap::new();
    for stored in all.iter().take(PODS_MAX) {
        let pod = stored.parse();
        let refused = refusals(enforce, &pod["metadata"], &pod["spec"]);
        if !refused.is_empty() {
            found.entry(reason(&refused)).or_insert((0, stored)).0 += 1;
        }
    }
    let mut warnings = Vec::new();
    if all.len() > PODS_MAX {
        warnings.push(format!(
            "new PodSecurity enforce level only checked against the first {PODS_MAX} of {} existing pods",
            all.len()
        ));
    }
    if !found.is_empty() {
        warnings.push(format!(
            "existing pods in namespace {:?} violate the new PodSecurity enforce level \"{enforce}\"",
            request.name
        ));
    }
    warnings.extend(found.into_iter().map(|(reason, (count, first))| match count {
        1 => format!("{}: {reason}", first.name()),
        2 => format!("{} (and 1 other pod): {reason}", first.name()),
        more => format!("{} (and {} other pods): {reason}", first.name(), more - 1),
    }));
    warnings
}
