//! PodGroups that Pods name by a label. Whether there are any says the definition of their kind: nobody lists what is not served.

use std::{
    task::{Context, Poll},
    time::Duration,
};

use corten_api::resources::CUSTOM_RESOURCE_DEFINITIONS;
use corten_client::{Client, Identity, Informer, InformerEvent, InformerParams, decode_projection};
use corten_meta::{Named, ObjectMeta};
use corten_reconcile::Projection;
use corten_scheduler::{Event, LABELLED_GROUPS_DEFINITION, LabelledGroup};
use serde::Deserialize;

use super::{informer, taken_in};

/// For so long a server may refuse what its roles, which are not there yet, will allow.
const REFUSED_PATIENCE: Duration = Duration::from_secs(8);

pub(super) struct LabelledGroups {
    client: Client,
    definition: Informer<Definition>,
    /// While the definition is served.
    groups: Option<Informer<LabelledGroup>>,
    /// The scheduler knows it.
    are_told: bool,
}

#[derive(Deserialize)]
struct Definition {
    metadata: ObjectMeta,
    #[serde(default)]
    spec: DefinitionSpec,
    #[serde(default)]
    status: DefinitionStatus,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct DefinitionSpec {
    versions: Vec<Version>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Version {
    name: String,
    served: bool,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct DefinitionStatus {
    conditions: Vec<Condition>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Condition {
    r#type: String,
    status: String,
}

impl Named for Definition {
    fn meta(&self) -> &ObjectMeta {
        &self.metadata
    }
}

impl Definition {
    fn is_served(&self) -> bool {
        let is_established = |it: &Condition| it.r#type == "Established" && it.status == "True";
        let is_ours = |it: &Version| it.served && LabelledGroup::RESOURCE.version == it.name;
        !self.metadata.is_deleting()
            && self.status.conditions.iter().any(is_established)
            && self.spec.versions.iter().any(is_ours)
    }
}

impl LabelledGroups {
    pub(super) fn new(client: &Client) -> Self {
        let params = InformerParams {
            field_selector: format!("metadata.name={LABELLED_GROUPS_DEFINITION}"),
            ..InformerParams::all(CUSTOM_RESOURCE_DEFINITIONS).seeded_by("scheduler")
        };
        let definition = Informer::decoding(client.clone(), params, |bytes| {
            let definition: Definition = decode_projection(&bytes)?;
            Ok((Identity::of(definition.meta()), definition))
        });
        Self { client: client.clone(), definition, groups: None, are_told: false }
    }

    /// A server that cannot say which groups there are holds nobody up, nor does one that goes on refusing to tell of definitions: upstream's
    /// role of schedulers leaves them out.
    pub(super) fn is_synced(&self) -> bool {
        let are_listed = |it: &Informer<LabelledGroup>| it.n_lists() > 0 || it.cannot_list();
        let has_refused = || self.definition.failing().is_some_and(|it| it.since.elapsed() >= REFUSED_PATIENCE);
        let is_told = self.definition.n_lists() > 0 || self.definition.is_forbidden() && has_refused();
        is_told && self.groups.as_ref().is_none_or(are_listed)
    }

    /// Takes in what is new; says whether there is nothing more.
    pub(super) fn poll(&mut self, context: &mut Context<'_>, events: &mut Vec<Event>) -> bool {
        while let Poll::Ready(event) = self.definition.poll_event(context) {
            let is_served = match event {
                InformerEvent::Applied(definition, _) => definition.is_served(),
                InformerEvent::Deleted(_) => false,
                InformerEvent::Synced(_) => continue,
            };
            if is_served && self.groups.is_none() {
                self.groups = Some(informer(&self.client, LabelledGroup::RESOURCE, false));
            } else if !is_served && self.groups.take().is_some() && std::mem::take(&mut self.are_told) {
                events.push(Event::LabelledGroupsServed(false));
            }
        }
        let Some(groups) = &mut self.groups else { return true };
        let is_drained =
            taken_in(groups, context, events, |it| Event::Cluster(Box::new(it.into())), Event::ClusterGone);
        if groups.n_lists() > 0 && !self.are_told {
            self.are_told = true;
            events.push(Event::LabelledGroupsServed(true));
        }
        is_drained
    }
}
