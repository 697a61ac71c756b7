//! What a pod's spec asks for and this kubelet cannot do yet. Left out, it would make the pod another one or weaken its
//! walls; so the pod stays Pending and says which field stands in the way.
//!
//! Not here, because leaving it out does no harm: `fsGroupChangePolicy: OnRootMismatch` only allows to skip work that is
//! always done; `recursiveReadOnly: IfPossible` and preferences of every kind ask for nothing that must be.

use std::collections::BTreeSet;

use corten_api::core::v1::{AppArmorProfile, Container, Pod, SecurityContext};
use corten_meta::Time;
use corten_reconcile::EventType::Warning;

use crate::{
    containers::Track,
    context::Context,
    pod::{PodMachine, spec_of},
};

/// How a pod's spec and what this node can do go together.
#[derive(Debug, Default)]
pub(crate) struct Support {
    /// What is in the way of its start, and since when.
    pub(crate) refusals: Vec<String>,
    pub(crate) refused_since: Option<Time>,
    /// What was told already.
    told: BTreeSet<String>,
}

impl PodMachine {
    /// Can this node do all that the spec asks for? What it cannot do is told, once.
    pub(crate) fn is_supported(&mut self, cx: &mut Context<'_>) -> bool {
        let pod = self.pod.clone();
        ephemeral(&pod).for_each(|(_, message)| self.warn("Unsupported", message, cx));
        // What runs goes on: an older kubelet may have begun it.
        if self.tracks.values().any(Track::is_alive) {
            return true;
        }
        let refusals = refusals(&pod);
        if refusals.is_empty() {
            if self.sandboxes.is_empty() {
                unenforced(&pod).into_iter().for_each(|it| self.warn("NotEnforced", it, cx));
            }
        } else {
            self.support.refused_since.get_or_insert(cx.now);
            refusals.iter().for_each(|it| self.warn("Unsupported", it.clone(), cx));
        }
        self.support.refusals = refusals;
        self.support.refusals.is_empty()
    }

    fn warn(&mut self, reason: &'static str, message: String, cx: &mut Context<'_>) {
        if self.support.told.insert(message.clone()) {
            cx.event(&self.who, "", Warning, reason, message);
        }
    }
}

/// Everything in the way, each as one sentence that begins with its field and ends with what to do.
fn refusals(pod: &Pod) -> Vec<String> {
    let mut found = Found::default();
    found.in_pod(pod);
    let spec = spec_of(pod);
    for (list, containers) in
        [("initContainers", spec.init_containers.as_ref()), ("containers", Some(&spec.containers))]
    {
        for (idx, container) in containers.into_iter().flatten().enumerate() {
            found.in_container(container, &format!("spec.{list}[{idx}]"));
        }
    }
    found.0
}

/// Limits that are not watched yet. Upstream evicts a pod that passes them: until it does, nothing differs.
fn unenforced(pod: &Pod) -> Vec<String> {
    let spec = spec_of(pod);
    let mut fields = Vec::new();
    for (idx, volume) in spec.volumes.iter().flatten().enumerate() {
        let limited = volume.empty_dir.as_ref().filter(|it| it.size_limit.is_some());
        if limited.is_some_and(|it| it.medium.as_deref() != Some("Memory")) {
            fields.push(format!("spec.volumes[{idx}].emptyDir.sizeLimit"));
        }
    }
    for (idx, container) in spec.containers.iter().enumerate() {
        let limits = container.resources.as_ref().and_then(|it| it.limits.as_ref());
        if limits.is_some_and(|it| it.contains_key("ephemeral-storage")) {
            fields.push(format!("spec.containers[{idx}].resources.limits[ephemeral-storage]"));
        }
    }
    let sentence = "is not enforced by this node yet: a pod that passes it is not evicted";
    fields.into_iter().map(|it| format!("{it} {sentence}")).collect()
}

/// Containers added to a pod that may be running: they do not start, the pod goes on. Names and sentences.
pub(crate) fn ephemeral(pod: &Pod) -> impl Iterator<Item = (&str, String)> {
    spec_of(pod).ephemeral_containers.iter().flatten().enumerate().map(|(idx, it)| {
        let advice = "use exec in a container of the pod";
        (it.name.as_str(), sentence(&format!("spec.ephemeralContainers[{idx}]"), advice))
    })
}

fn sentence(field: &str, advice: &str) -> String {
    format!("{field} is not supported by this node yet: {advice}")
}

#[derive(Default)]
struct Found(Vec<String>);

impl Found {
    fn add(&mut self, is_set: bool, field: impl AsRef<str>, advice: &str) {
        if is_set {
            self.0.push(sentence(field.as_ref(), advice));
        }
    }

    fn in_pod(&mut self, pod: &Pod) {
        let spec = spec_of(pod);
        let is_private = spec.host_users == Some(false);
        self.add(is_private, "spec.hostUsers: false", "leave it out to run in the node's user namespace");
        let resources = spec.resources.as_ref();
        let has_resources = resources.is_some_and(|it| it.requests.is_some() || it.limits.is_some());
        self.add(has_resources, "spec.resources", "set requests and limits of the containers instead");
        let claims = spec.resource_claims.as_ref().is_some_and(|it| !it.is_empty());
        self.add(claims, "spec.resourceClaims", "the node has no devices to give, leave it out");
        for (idx, volume) in spec.volumes.iter().flatten().enumerate() {
            let medium = volume.empty_dir.as_ref().and_then(|it| it.medium.as_deref()).unwrap_or_default();
            let field = format!("spec.volumes[{idx}].emptyDir.medium: {medium}");
            self.add(!matches!(medium, "" | "Memory"), field, "use Memory or leave it out");
        }
        if let Some(context) = &spec.security_context {
            let at = "spec.securityContext";
            self.app_armor(context.app_armor_profile.as_ref(), at);
            let selinux = context.se_linux_options.as_ref().is_some_and(|it| *it != Default::default());
            self.add(selinux, format!("{at}.seLinuxOptions"), NO_SELINUX);
            let windows = context.windows_options.as_ref().is_some_and(|it| *it != Default::default());
            self.add(windows, format!("{at}.windowsOptions"), NO_WINDOWS);
            let is_strict = context.supplemental_groups_policy.as_deref() == Some("Strict");
            let advice = "use Merge, which adds the groups of the image";
            self.add(is_strict, format!("{at}.supplementalGroupsPolicy: Strict"), advice);
        }
        // The old form of the field: what it asks for is the same.
        for (name, profile) in pod.metadata.annotations.iter().flatten() {
            let is_set = name.starts_with("container.apparmor.security.beta.kubernetes.io/");
            self.add(is_set && profile != "unconfined", format!("metadata.annotations[{name}]"), NO_APP_ARMOR);
        }
    }

    fn in_container(&mut self, container: &Container, at: &str) {
        if let Some(context) = &container.security_context {
            self.in_context(context, &format!("{at}.securityContext"));
        }
        if let Some(resources) = &container.resources {
            let lists = [("requests", &resources.requests), ("limits", &resources.limits)];
            for (list, quantities) in lists {
                for name in quantities.iter().flat_map(|it| it.keys()).filter(|it| it.starts_with("hugepages-")) {
                    let advice = "the container's cgroup has no such limit, leave it out";
                    self.add(true, format!("{at}.resources.{list}[{name}]"), advice);
                }
            }
            let claims = resources.claims.as_ref().is_some_and(|it| !it.is_empty());
            self.add(claims, format!("{at}.resources.claims"), "the node has no devices to give, leave it out");
        }
        let devices = container.volume_devices.as_ref().is_some_and(|it| !it.is_empty());
        self.add(devices, format!("{at}.volumeDevices"), "use volumeMounts");
        for (idx, mount) in container.volume_mounts.iter().flatten().enumerate() {
            let is_enabled = mount.recursive_read_only.as_deref() == Some("Enabled");
            let field = format!("{at}.volumeMounts[{idx}].recursiveReadOnly: Enabled");
            self.add(is_enabled, field, "use IfPossible or Disabled");
        }
        let signal = container.lifecycle.as_ref().is_some_and(|it| it.stop_signal.is_some());
        self.add(signal, format!("{at}.lifecycle.stopSignal"), "set the signal in the image");
        for (idx, rule) in container.restart_policy_rules.iter().flatten().enumerate() {
            let field = format!("{at}.restartPolicyRules[{idx}].action: {}", rule.action);
            self.add(rule.action != "Restart", field, "use Restart");
        }
    }

    fn in_context(&mut self, context: &SecurityContext, at: &str) {
        self.app_armor(context.app_armor_profile.as_ref(), at);
        let selinux = context.se_linux_options.as_ref().is_some_and(|it| *it != Default::default());
        self.add(selinux, format!("{at}.seLinuxOptions"), NO_SELINUX);
        let windows = context.windows_options.as_ref().is_some_and(|it| *it != Default::default());
        self.add(windows, format!("{at}.windowsOptions"), NO_WINDOWS);
    }

    /// `RuntimeDefault` too: whether the runtime has AppArmor is not known here, and it is not told to use it. As
    /// upstream's on a node without AppArmor, such a pod does not start; who sets nothing gets what the runtime gives.
    fn app_armor(&mut self, profile: Option<&AppArmorProfile>, at: &str) {
        if let Some(profile) = profile.filter(|it| it.type_ != "Unconfined") {
            self.add(true, format!("{at}.appArmorProfile.type: {}", profile.type_), NO_APP_ARMOR);
        }
    }
}

const NO_APP_ARMOR: &str = "leave it out, or use Unconfined, to run the pod without an AppArmor profile of its own";
const NO_SELINUX: &str = "leave it out to run with the label the runtime gives";
const NO_WINDOWS: &str = "the node runs Linux, leave it out";
