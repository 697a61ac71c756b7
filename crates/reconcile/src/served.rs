//! Which kinds are served beside those that are built in: what definitions, registrations of API servers and discovery say.

use std::collections::{BTreeMap, BTreeSet};

use corten_api::{resources, snapshots::APP_MANAGED_BY};
use corten_meta::{ObjectMeta, Resource, Time};
use serde::{Deserialize, Deserializer, Serialize, de::IgnoredAny};

use crate::{
    API_GROUPS, Origin, View, Wake, Watch,
    projection::{bare, or_default},
};

/// A definition, as far as it says which resource its objects are.
#[derive(Deserialize)]
pub struct Definition {
    #[serde(deserialize_with = "bare_and_managed")]
    pub metadata: ObjectMeta,
    spec: DefinitionSpec,
    #[serde(default)]
    pub status: DefinitionStatus,
}
crate::projection!(Definition, resources::CUSTOM_RESOURCE_DEFINITIONS);

#[derive(Deserialize)]
struct DefinitionSpec {
    group: String,
    scope: String,
    versions: Vec<DefinedVersion>,
}

#[derive(Deserialize)]
struct DefinedVersion {
    name: String,
    served: bool,
    storage: bool,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct DefinitionStatus {
    /// Kubernetes' server writes `null` before there is any.
    #[serde(deserialize_with = "or_default")]
    pub conditions: Vec<DefinitionCondition>,
    accepted_names: AcceptedNames,
}

/// Whole: who writes one writes the others again.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct DefinitionCondition {
    pub r#type: Box<str>,
    pub status: Box<str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_transition_time: Option<Time>,
    pub reason: Box<str>,
    pub message: Box<str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct AcceptedNames {
    plural: String,
    kind: String,
}

/// What a definition says of objects that may be stored.
enum Described {
    /// They are watched.
    Served(Resource),
    /// Its names are accepted, and objects may be made from now on; that it is established is not seen yet, and they are not
    /// watched. That none is seen says nothing.
    NotYet(Resource),
    /// It has no objects.
    Nothing,
}

impl Definition {
    fn holds(&self, kind: &str) -> bool {
        self.status.conditions.iter().any(|it| &*it.r#type == kind && &*it.status == "True")
    }

    /// The version that objects are stored in.
    pub fn stored_as(&self) -> Option<&str> {
        self.spec.versions.iter().find(|it| it.storage).map(|it| &*it.name)
    }

    /// What is known of its objects.
    fn described(&self, elsewhere: &Elsewhere<'_>) -> Described {
        match self.resource(elsewhere) {
            Some(it) if self.holds("Established") => Described::Served(it),
            Some(it) if self.holds("NamesAccepted") => Described::NotYet(it),
            _ => Described::Nothing,
        }
    }

    /// The resource of its objects in the version that is stored, where that is served. What another server answers for is not
    /// the definition's: its own objects are hidden, as they are from discovery.
    fn resource(&self, elsewhere: &Elsewhere<'_>) -> Option<Resource> {
        let is_hidden = |version: &str| elsewhere.0.contains(&(&*self.spec.group, version));
        let served = || self.spec.versions.iter().filter(|it| it.served && !is_hidden(&it.name));
        let version = served().find(|it| it.storage).or_else(|| served().next())?;
        Some(Resource {
            group: self.spec.group.clone().into(),
            version: version.name.clone().into(),
            kind: self.status.accepted_names.kind.clone().into(),
            plural: self.status.accepted_names.plural.clone().into(),
            namespaced: self.spec.scope == "Namespaced",
        })
    }
}

/// The groups and versions for which other servers answer.
struct Elsewhere<'a>(BTreeSet<(&'a str, &'a str)>);

impl<'a> Elsewhere<'a> {
    fn of(view: &'a View) -> Self {
        Self(registered_elsewhere(view).map(|it| (&*it.spec.group, &*it.spec.version)).collect())
    }
}

/// The resources that definitions in the view describe, but for those that another server answers for: nobody waits for these.
/// Who watches them watches [`registrations`], too.
pub fn defined(view: &View) -> impl Iterator<Item = Resource> {
    let elsewhere = Elsewhere::of(view);
    view.list::<Definition>().filter_map(move |it| match it.described(&elsewhere) {
        Described::Served(resource) => Some(resource),
        Described::NotYet(_) | Described::Nothing => None,
    })
}

/// As [`defined`], of one kind: there may be thousands of others.
pub fn defined_as<'a>(view: &'a View, group: &'a str, kind: &'a str) -> impl Iterator<Item = Resource> + use<'a> {
    let is_it = move |it: &&Definition| it.spec.group == group && it.status.accepted_names.kind == kind;
    let elsewhere = Elsewhere::of(view);
    view.list::<Definition>().filter(is_it).filter_map(move |it| match it.described(&elsewhere) {
        Described::Served(resource) => Some(resource),
        Described::NotYet(_) | Described::Nothing => None,
    })
}

/// The resources of which objects may be stored that are not in the view: who lets something go, or counts, waits for them.
pub fn not_known_yet(view: &View) -> impl Iterator<Item = Resource> {
    let elsewhere = Elsewhere::of(view);
    view.list::<Definition>().filter_map(move |it| match it.described(&elsewhere) {
        Described::NotYet(resource) => Some(resource),
        Described::Served(_) | Described::Nothing => None,
    })
}

/// As [`bare`], with the label that says who looks after the object.
fn bare_and_managed<'de, D: Deserializer<'de>>(deserializer: D) -> Result<ObjectMeta, D::Error> {
    let meta = ObjectMeta::deserialize(deserializer)?;
    let labels = meta.labels.into_iter().filter(|it| it.0 == APP_MANAGED_BY).collect();
    Ok(ObjectMeta { labels, annotations: BTreeMap::new(), ..meta })
}

/// A registration, as far as it says which server serves a version, and whether that answers.
#[derive(Deserialize)]
pub struct ApiService {
    #[serde(deserialize_with = "bare")]
    pub metadata: ObjectMeta,
    pub spec: ApiServiceSpec,
    #[serde(default)]
    status: ApiServiceStatus,
}
crate::projection!(ApiService, resources::API_SERVICES);

#[derive(Deserialize)]
pub struct ApiServiceSpec {
    #[serde(default)]
    pub group: String,
    #[serde(default)]
    pub version: String,
    /// Without one this server itself serves it.
    service: Option<IgnoredAny>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct ApiServiceStatus {
    conditions: Vec<Available>,
}

#[derive(Deserialize)]
pub struct Available {
    r#type: String,
    pub status: String,
    #[serde(default)]
    pub message: String,
}

impl ApiService {
    pub fn is_elsewhere(&self) -> bool {
        self.spec.service.is_some()
    }

    pub fn available(&self) -> Option<&Available> {
        self.status.conditions.iter().find(|it| it.r#type == "Available")
    }
}

/// A group, as discovery tells of it.
#[derive(Deserialize)]
pub struct ApiGroup {
    #[serde(deserialize_with = "bare")]
    pub metadata: ObjectMeta,
    #[serde(default)]
    pub versions: Vec<ApiVersion>,
}
crate::projection!(ApiGroup, API_GROUPS);

#[derive(Deserialize)]
pub struct ApiVersion {
    pub version: String,
    /// `Current` or `Stale`.
    #[serde(default)]
    pub freshness: String,
    #[serde(default)]
    pub resources: Vec<ApiResource>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ApiResource {
    pub resource: String,
    #[serde(default)]
    pub response_kind: ResponseKind,
    pub scope: String,
    #[serde(default)]
    verbs: Vec<String>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
pub struct ResponseKind {
    pub kind: String,
}

impl ApiResource {
    pub fn has(&self, verb: &str) -> bool {
        self.verbs.iter().any(|it| it == verb)
    }
}

/// The watch that says what is served; nobody asks where all of it is served here.
pub fn groups(wake: Wake) -> Watch {
    Watch::new::<ApiGroup>(wake).from(Origin::Discovery).once(|view| registered_elsewhere(view).next().is_some())
}

/// The watch that says which versions other servers answer for. Which kinds of definitions are watched is found out anew when
/// that changes.
pub fn registrations(wake: Wake) -> Watch {
    Watch::new::<ApiService>(wake).leading_to(|_| Vec::new())
}

/// The registrations of versions that other servers serve.
pub fn registered_elsewhere(view: &View) -> impl Iterator<Item = &ApiService> {
    view.list::<ApiService>().filter(|it| it.is_elsewhere())
}
