//! Which objects an informer is about, and how it asks for them.

use std::time::Duration;

use corten_meta::Resource;

use crate::{Keeping, backoff::seed_of};

/// What to keep informed about.
#[derive(Clone, Debug)]
pub struct InformerParams {
    pub resource: Resource,
    /// Empty: every namespace.
    pub namespace: String,
    pub label_selector: String,
    pub field_selector: String,
    /// A server that does not know its field (400) is asked for all objects: whoever reads them looks at the field itself.
    pub is_field_selector_hint: bool,
    /// Say soon after every change in the cluster that everything up to it has been delivered: see [`WatchParams::progress`].
    pub progress: bool,
    /// What is in the objects is not wanted. Of custom resources that is to be had without their conversion webhook.
    pub metadata_only: bool,
    /// What is listed.
    pub listed: ListItems,
    /// There is no watch: it is listed this often.
    pub polled: Option<Duration>,
    /// A list or a watch of more is given up, and begun again with a back-off.
    pub objects_max: usize,
    /// Who comes back after a failure may be another server, with other versions: it is listed, and no watch goes on.
    pub lists_after_failure: bool,
    /// A server that does not serve it (404) has none of it. Else its list is an error, and nobody acts before it comes.
    pub is_optional: bool,
    /// What is kept of it for a start while no server answers, where the client keeps anything.
    pub keeping: Option<Keeping>,
    /// Of the jitter in back-offs and watch lengths.
    pub seed: u64,
}

/// What the items of a list are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ListItems {
    /// The objects of a resource.
    Objects,
    /// What groups serve: see [`Client::list_groups`].
    Groups,
}

impl InformerParams {
    pub fn all(resource: Resource) -> Self {
        let seed = seed_of(&resource.qualified());
        let (namespace, label_selector, field_selector) = (String::new(), String::new(), String::new());
        Self {
            resource,
            namespace,
            label_selector,
            field_selector,
            is_field_selector_hint: false,
            progress: false,
            metadata_only: false,
            listed: ListItems::Objects,
            polled: None,
            objects_max: usize::MAX,
            lists_after_failure: false,
            is_optional: false,
            keeping: None,
            seed,
        }
    }
}

impl InformerParams {
    /// With another seed, so that two informers about one resource do not move in step.
    #[must_use]
    pub fn seeded_by(mut self, name: &str) -> Self {
        self.seed ^= seed_of(name).rotate_left(1);
        self
    }

    /// What it is kept under.
    pub(crate) fn kept_name(&self) -> String {
        let Self { resource, namespace, label_selector, field_selector, .. } = self;
        let by = self.keeping.map_or("", |it| it.by);
        format!("{by}: {} {namespace} {label_selector} {field_selector}", resource.qualified())
    }
}
