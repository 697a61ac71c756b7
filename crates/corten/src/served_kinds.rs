//! What an API server of whatever version serves, as its discovery tells, and what of the controllers can run over it.

use std::collections::BTreeSet;

use corten_api::{
    resources::{API_SERVICES, CUSTOM_RESOURCE_DEFINITIONS},
    version::{is_own, minor},
};
use corten_client::{Client, Error, ListParams, ServedGroup, ServedResource};
use corten_controllers::{CONTROLLERS, Settings};
use corten_meta::{ObjectMeta, Resource};
use corten_reconcile::{Controller, DEFINED, Verb};
use serde::Deserialize;

/// Loops of what upstream has in its API server, or in its etcd: the server does it itself.
pub(crate) const OF_SERVER: [&str; 4] =
    ["cluster-network", "event-expiry", "leader-election", "lease-candidate-expiry"];
/// The one loop about kinds that definitions describe. Of other such kinds others made the definition, who look after the objects.
const SNAPSHOTS: &str = "volume-snapshot";

/// What one server serves.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct ServedKinds {
    /// What it stores itself, each in one version, where that can be listed, watched and deleted.
    pub(crate) kinds: Vec<Resource>,
    /// The controllers that can run.
    pub(crate) controllers: BTreeSet<&'static str>,
    /// Those that cannot, since what they are about, or what they make, is not served.
    pub(crate) left_out: BTreeSet<&'static str>,
    /// It is of Corten.
    pub(crate) is_own: bool,
    /// It gives a Pod the token of a Secret that its account names, and takes no Pod of an account without one: Kubernetes before v1.24.
    pub(crate) wants_token_secrets: bool,
}

impl ServedKinds {
    /// # Errors
    /// Not all of it is told.
    pub(crate) async fn of(client: &Client) -> Result<Self, Error> {
        let version = client.server_version().await?;
        let found = Discovered::of(client).await?;
        let mut this = Self {
            kinds: found.kinds(),
            is_own: is_own(&version),
            wants_token_secrets: minor(&version).is_some_and(|it| it < (1, 24)),
            ..Self::default()
        };
        for controller in CONTROLLERS.iter().map(|make| make(&Settings::default())) {
            let name = controller.name();
            if OF_SERVER.contains(&name) {
                continue;
            }
            let can_run = needed(&*controller).iter().all(|it| found.has(it, name == SNAPSHOTS));
            if can_run { &mut this.controllers } else { &mut this.left_out }.insert(name);
        }
        Ok(this)
    }
}

/// What a controller is about, and what it makes.
fn needed(controller: &dyn Controller) -> Vec<Resource> {
    let made = controller.writes().iter().filter(|it| it.verb == Verb::Create && it.resource != DEFINED);
    made.map(|it| it.resource.clone()).chain(controller.about()).collect()
}

/// What discovery says: in the order of the server's groups and versions, each group's preferred version first.
#[derive(Default)]
struct Discovered {
    /// Of the server itself, each with whether its objects can be listed, watched and deleted.
    own: Vec<(Resource, bool)>,
    /// Of definitions.
    defined: Vec<Resource>,
}

impl Discovered {
    async fn of(client: &Client) -> Result<Self, Error> {
        let groups = client.served_groups().await?;
        let services: Vec<Service> = list(client, &API_SERVICES).await?;
        let elsewhere: BTreeSet<(String, String)> = services.into_iter().filter_map(Service::elsewhere).collect();
        // Of groups that definitions name a version may be told of that is not served yet, or never will be.
        let groups_defined: BTreeSet<String> =
            names(client, &CUSTOM_RESOURCE_DEFINITIONS).await?.iter().filter_map(|it| group_of(it)).collect();
        let mut versions = vec![(String::new(), "v1".to_owned())];
        versions.extend(groups.into_iter().flat_map(versions_of));
        let mut served = Vec::new();
        for (group, version) in versions.into_iter().filter(|it| !elsewhere.contains(it)) {
            match resources(client, &group, &version).await {
                Err(error) if error.is_not_found() && groups_defined.contains(&group) => {}
                found => served.extend(found?),
            }
        }
        // After what they describe: one that comes meanwhile is not taken for the server's own.
        let definitions: BTreeSet<String> = names(client, &CUSTOM_RESOURCE_DEFINITIONS).await?;
        let (defined, own) = served.into_iter().partition::<Vec<_>, _>(|it| definitions.contains(&it.0.qualified()));
        Ok(Self { own, defined: defined.into_iter().map(|it| it.0).collect() })
    }

    fn has(&self, wanted: &Resource, also_defined: bool) -> bool {
        let is_it =
            |it: &Resource| (&it.group, &it.version, &it.plural) == (&wanted.group, &wanted.version, &wanted.plural);
        self.own.iter().any(|it| is_it(&it.0)) || also_defined && self.defined.iter().any(is_it)
    }

    /// Each in the version that is known here, where that is served, so that one informer serves all who look at it.
    fn kinds(&self) -> Vec<Resource> {
        let known: BTreeSet<Resource> =
            CONTROLLERS.iter().flat_map(|make| make(&Settings::default()).watches()).map(|it| it.resource).collect();
        let mut kinds: Vec<Resource> = Vec::new();
        let candidates = || self.own.iter().filter(|it| it.1).map(|it| &it.0);
        for it in candidates().filter(|it| known.contains(*it)).chain(candidates()) {
            // Ingresses once had another group, which shows the same objects.
            let is_it =
                |known: &Resource| known.plural == it.plural && (known.group == it.group || it.group == "extensions");
            if !kinds.iter().any(is_it) {
                kinds.push(it.clone());
            }
        }
        kinds
    }
}

/// Of a definition's name, `PLURAL.GROUP`.
fn group_of(definition: &str) -> Option<String> {
    definition.split_once('.').map(|it| it.1.to_owned())
}

async fn resources(client: &Client, group: &str, version: &str) -> Result<Vec<(Resource, bool)>, Error> {
    let named = |it: ServedResource| {
        let can_all = ["list", "watch", "delete"].iter().all(|verb| it.verbs.iter().any(|has| has == verb));
        let resource = Resource {
            group: group.to_owned().into(),
            version: version.to_owned().into(),
            kind: it.kind.into(),
            plural: it.name.into(),
            namespaced: it.namespaced,
        };
        (resource, can_all)
    };
    Ok(client.served_resources(group, version).await?.into_iter().map(named).collect())
}

/// A server that does not serve such objects has none.
async fn list<T: serde::de::DeserializeOwned>(client: &Client, resource: &Resource) -> Result<Vec<T>, Error> {
    match client.list_as(resource, &ListParams::default()).await {
        Err(error) if error.is_not_found() => Ok(Vec::new()),
        listed => listed,
    }
}

async fn names(client: &Client, resource: &Resource) -> Result<BTreeSet<String>, Error> {
    let listed = match client.list_metadata(resource, &ListParams::default()).await {
        Err(error) if error.is_not_found() => return Ok(BTreeSet::new()),
        listed => listed?,
    };
    listed.items.iter().map(|it| Ok(corten_client::decode_projection::<Named>(it)?.metadata.name)).collect()
}

fn versions_of(group: ServedGroup) -> impl Iterator<Item = (String, String)> {
    let ServedGroup { name, versions } = group;
    versions.into_iter().map(move |it| (name.clone(), it))
}

#[derive(Deserialize)]
struct Named {
    metadata: ObjectMeta,
}

#[derive(Deserialize)]
struct Service {
    spec: ServiceSpec,
}

#[derive(Deserialize)]
struct ServiceSpec {
    #[serde(default)]
    group: String,
    version: String,
    /// Without one the server itself serves it.
    service: Option<serde::de::IgnoredAny>,
}

impl Service {
    fn elsewhere(self) -> Option<(String, String)> {
        self.spec.service.map(|_| (self.spec.group, self.spec.version))
    }
}

#[cfg(test)]
mod tests;
