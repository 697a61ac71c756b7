//! What a pod's spec asks for and this kubelet cannot do yet. Left out, it would make the pod another one or weaken its
//! walls; so the pod stays Pending and says which field stands in the way.
//!
//! Not here, because leaving it out does no harm: preferences of every kind ask for nothing that must be.

use std::collections::BTreeSet;

use corten_api::core::v1::{Pod, SELinuxOptions, WindowsSecurityContextOptions};
use corten_meta::Time;
use corten_reconcile::EventType::Warning;

use crate::{
    pod::{container_record::ContainerRecord, context::Context, machine::PodMachine},
    spec::{
        huge_pages::is_of_huge_pages,
        pod::{all_containers, spec_of},
    },
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
        // What runs goes on: an older kubelet may have begun it.
        if self.container_records.values().any(ContainerRecord::is_alive) {
            return true;
        }
        let refusals = refusals(&pod);
        if refusals.is_empty() {
            if self.sandboxes.is_empty() {
                let has_se_linux = cx.facts.is_some_and(|it| it.se_linux);
                meaningless(&pod, has_se_linux).into_iter().for_each(|it| self.warn("NotEnforced", it, cx));
            }
        } else {
            self.support.refused_since.get_or_insert(cx.now);
            refusals.iter().for_each(|it| self.warn("Unsupported", it.clone(), cx));
        }
        self.support.refusals = refusals;
        self.support.refusals.is_empty()
    }

    /// Once for each message.
    pub(crate) fn warn(&mut self, reason: &'static str, message: String, cx: &mut Context<'_>) {
        if self.support.told.insert(message.clone()) {
            cx.event(&self.who, "", Warning, reason, message);
        }
    }
}

/// Everything in the way, each as one sentence that begins with its field and ends with what to do.
fn refusals(pod: &Pod) -> Vec<String> {
    let mut found = UnsupportedFields::default();
    found.in_pod(pod);
    found.0
}

/// What this machine has no means for, and upstream passes over where there are none.
fn meaningless(pod: &Pod, has_se_linux: bool) -> Vec<String> {
    let of_pod = spec_of(pod).security_context.as_ref();
    let own = || all_containers(pod).filter_map(|it| it.security_context.as_ref());
    let se_linux = |it: &Option<SELinuxOptions>| it.as_ref().is_some_and(|it| *it != SELinuxOptions::default());
    let wants_label =
        of_pod.is_some_and(|it| se_linux(&it.se_linux_options)) || own().any(|it| se_linux(&it.se_linux_options));
    let windows = |it: &Option<WindowsSecurityContextOptions>| it.is_some();
    let is_windows =
        of_pod.is_some_and(|it| windows(&it.windows_options)) || own().any(|it| windows(&it.windows_options));
    let label = "seLinuxOptions has no effect: this machine has no SELinux";
    let found =
        [(wants_label && !has_se_linux, label), (is_windows, "windowsOptions has no effect: this node runs Linux")];
    found.into_iter().filter(|it| it.0).map(|it| it.1.to_owned()).collect()
}

fn sentence(field: &str, advice: &str) -> String {
    format!("{field} is not supported by this node yet: {advice}")
}

#[derive(Default)]
struct UnsupportedFields(Vec<String>);

impl UnsupportedFields {
    fn add(&mut self, is_set: bool, field: impl AsRef<str>, advice: &str) {
        if is_set {
            self.0.push(sentence(field.as_ref(), advice));
        }
    }

    fn in_pod(&mut self, pod: &Pod) {
        let spec = spec_of(pod);
        for (idx, volume) in spec.volumes.iter().flatten().enumerate() {
            let medium = volume.empty_dir.as_ref().and_then(|it| it.medium.as_deref()).unwrap_or_default();
            let field = format!("spec.volumes[{idx}].emptyDir.medium: {medium}");
            let is_known = matches!(medium, "" | "Memory") || is_of_huge_pages(medium);
            self.add(!is_known, field, "use Memory or HugePages, or leave it out");
        }
    }
}
