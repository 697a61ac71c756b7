//! PodGroups by the convention of the scheduler plugins: custom resources that Pods name by a label. They are honoured where their
//! definition is installed; else the label says nothing.

use corten_meta::{Key, Named, ObjectMeta, Resource};
use corten_reconcile::Projection;
use serde::Deserialize;

/// The name of their definition.
pub const DEFINITION: &str = "podgroups.scheduling.x-k8s.io";
const RESOURCE: Resource = Resource::namespaced("scheduling.x-k8s.io", "v1alpha1", "PodGroup", "podgroups");
/// The label that names a Pod's group, and what it was called before.
const LABELS: [&str; 2] = ["scheduling.x-k8s.io/pod-group", "pod-group.scheduling.sigs.k8s.io"];
/// No PodGroup of `scheduling.k8s.io` has such a name.
const PREFIX: &str = "scheduling.x-k8s.io/";

/// The fields of such a PodGroup that the scheduler reads.
#[derive(Clone, Debug, Default, Deserialize)]
pub struct LabelledGroup {
    pub metadata: ObjectMeta,
    #[serde(default)]
    pub(crate) spec: LabelledGroupSpec,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct LabelledGroupSpec {
    pub(crate) min_member: usize,
}

impl Named for LabelledGroup {
    fn meta(&self) -> &ObjectMeta {
        &self.metadata
    }
}
impl Projection for LabelledGroup {
    const RESOURCE: Resource = RESOURCE;
}

/// The group that the labels of a Pod name, as a key among those of PodGroups of both kinds.
pub(crate) fn named_by(pod: &ObjectMeta) -> Option<Key> {
    let name = LABELS.iter().find_map(|it| pod.labels.get(*it)).filter(|it| !it.is_empty())?;
    Some(key_of(&Key::new(&*pod.namespace, &**name)))
}

pub(crate) fn key_of(group: &Key) -> Key {
    Key::new(&*group.namespace, format!("{PREFIX}{}", group.name))
}

pub(crate) fn is_labelled(key: &Key) -> bool {
    key.name.starts_with(PREFIX)
}

/// The name that its object has.
pub(crate) fn plain_name(key: &Key) -> &str {
    key.name.strip_prefix(PREFIX).unwrap_or(&key.name)
}
