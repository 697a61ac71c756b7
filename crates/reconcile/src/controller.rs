//! A controller: what it is called, what it watches, what it may write, and the one function that decides.

use std::{any::TypeId, sync::Arc};

use corten_meta::{Key, ObjectMeta, Resource, Time};

use crate::{
    Plan, Projection, Table, View,
    view::{Object, as_type},
};

/// A loop that is asked about one key at a time. See the crate's documentation.
pub trait Controller: Send + Sync + 'static {
    /// The lower-case, dashed name: journal, metrics and logs use it. The loop's identity at the API server is that of
    /// [`Controller::account`].
    fn name(&self) -> &'static str;

    /// The service account in `kube-system` as which it writes.
    fn account(&self) -> String {
        format!("{}-controller", self.name())
    }

    /// What its events name as their source.
    fn component(&self) -> String {
        format!("{}-controller", self.name())
    }

    fn watches(&self) -> Vec<Watch>;

    /// What its plans may do; the runner refuses anything else.
    fn writes(&self) -> &'static [Write];

    /// The resource whose objects its keys name; its decisions stand in their journals. By default that of the first
    /// watch that wakes itself; a controller with other keys (the garbage collector's are uids) has none.
    fn about(&self) -> Option<Resource> {
        self.watches().into_iter().find(|it| matches!(it.wake, Wake::Itself)).map(|it| it.resource)
    }

    /// The object in whose journal a decision about `key` stands. By default the one the key names, of [`Controller::about`].
    fn subject(&self, _view: &View, key: &Key) -> Option<(Resource, Key)> {
        Some((self.about()?, key.clone()))
    }

    /// Is what it remembers of an object shown to it once more when the object is gone? It then forgets it itself, by a note
    /// of null.
    fn remembers_what_is_gone(&self) -> bool {
        false
    }

    /// Does the key name no object of the API? What is remembered of such a key is kept until the controller forgets it itself, by
    /// a note of null.
    fn is_made_up(&self, _key: &Key) -> bool {
        false
    }

    /// Decides about `key`. Called whenever something that maps to the key changed, at [`Plan::wake_at`], after an
    /// effect failed (with back-off) and at every resync. Never called while the view lacks what the last plan wrote.
    fn reconcile(&self, view: &View, key: &Key, now: Time) -> Plan;
}

/// Which keys a change of an object wakes. An update wakes for the old and the new object.
#[derive(Clone, Copy)]
pub enum Wake {
    /// The object's own key.
    Itself,
    /// The object's controlling owner, where that is of this kind (`"ReplicaSet"`), in the same namespace.
    Controller(&'static str),
    /// Anything else. The view already holds the change.
    With(fn(&View, &ObjectMeta) -> Vec<Key>),
    /// As [`Wake::With`], for who looks at many resources by one rule.
    WithResource(fn(&View, &Resource, &ObjectMeta) -> Vec<Key>),
    /// The object is read but wakes nobody.
    Nobody,
}

/// A resource to be kept in the view, through a projection, and whom its changes wake.
#[derive(Clone)]
pub struct Watch {
    pub resource: Resource,
    /// Limits the watch at the server, for example `spec.nodeName=n1`. Empty: everything.
    pub field_selector: String,
    pub wake: Wake,
    /// Not before this holds of the view for the first time is the resource watched: what only matters to clusters that use
    /// something costs others nothing. Nobody may decide by its absence before.
    pub needed: Option<fn(&View) -> bool>,
    /// What else is watched because of the objects of this resource: definitions say which resources there are. It is asked
    /// after every change of them.
    pub leads_to: Option<fn(&View) -> Vec<Watch>>,
    /// The projection reads metadata alone: no more is asked for.
    pub metadata_only: bool,
    pub origin: Origin,
    /// The mind is asked though the resource cannot be listed: [`View::cannot_be_listed`] tells it so.
    pub bears_gaps: bool,
    /// Objects are found by their labels: see [`View::selected`].
    by_labels: bool,
    projection: TypeId,
    decode: Decode,
    same: Option<fn(&Object, &Object) -> bool>,
}

/// Whose the objects are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Origin {
    /// Of the API server itself: a view shows all of them as they were at one revision.
    Here,
    /// Of another server behind this one. It has revisions of its own, may be slow or dead, and nobody waits for it: the view
    /// holds no table of its objects before they have been listed once. `is_watched`: else they are listed again and again.
    Elsewhere { is_watched: bool },
    /// What is served, by this server and by others: [`API_GROUPS`]. As uncertain as what is elsewhere.
    Discovery,
}

/// What two watches must have in common to be fed as one.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Subject {
    pub resource: Resource,
    pub field_selector: String,
    projection: TypeId,
    /// A kind that another server takes over is listed otherwise, and waited for by nobody.
    origin: Origin,
}

type Decode = fn(&[u8]) -> Result<Object, serde_json::Error>;

impl Watch {
    pub fn new<T: Projection>(wake: Wake) -> Self {
        Self::of::<T>(T::RESOURCE, wake)
    }

    /// As [`Watch::new`], for one projection that serves many resources.
    pub fn of<T>(resource: Resource, wake: Wake) -> Self
    where
        T: corten_meta::Named + serde::de::DeserializeOwned + Send + Sync + 'static,
    {
        fn decode<T>(bytes: &[u8]) -> Result<Object, serde_json::Error>
        where
            T: corten_meta::Named + serde::de::DeserializeOwned + Send + Sync + 'static,
        {
            let object: T = corten_meta::projected(bytes)?;
            Ok(Arc::new(object))
        }
        Self {
            resource,
            field_selector: String::new(),
            wake,
            needed: None,
            leads_to: None,
            metadata_only: false,
            origin: Origin::Here,
            bears_gaps: false,
            by_labels: false,
            projection: TypeId::of::<T>(),
            decode: decode::<T>,
            same: None,
        }
    }

    #[must_use]
    pub fn once(self, needed: fn(&View) -> bool) -> Self {
        Self { needed: Some(needed), ..self }
    }

    #[must_use]
    pub fn of_metadata(self) -> Self {
        Self { metadata_only: true, ..self }
    }

    #[must_use]
    pub fn from(self, origin: Origin) -> Self {
        Self { origin, ..self }
    }

    #[must_use]
    pub fn bearing_gaps(self) -> Self {
        Self { bears_gaps: true, ..self }
    }

    /// Objects are looked for by labels. It costs memory for every label of every object; without it every object is looked at.
    #[must_use]
    pub fn by_labels(self) -> Self {
        Self { by_labels: true, ..self }
    }

    #[must_use]
    pub fn leading_to(self, more: fn(&View) -> Vec<Self>) -> Self {
        Self { leads_to: Some(more), ..self }
    }

    /// Changes that the projection does not show wake nobody. For it to tell, its equality leaves out what always changes,
    /// such as `metadata.resourceVersion` (which it must have: caches go by it).
    #[must_use]
    pub fn telling_changes_of<T: PartialEq + 'static>(mut self) -> Self {
        self.same = Some(|a, b| matches!((as_type::<T>(a), as_type::<T>(b)), (Some(a), Some(b)) if a == b));
        self
    }

    /// Does `new` say anything that `old` did not?
    pub fn is_news(&self, old: &Object, new: &Object) -> bool {
        self.same.is_none_or(|same| !same(old, new))
    }

    /// An empty table with the indexes that are wanted.
    pub fn table(&self) -> Table {
        if self.by_labels { Table::by_labels() } else { Table::default() }
    }

    pub fn subject(&self) -> Subject {
        let Self { resource, field_selector, projection, origin, .. } = self;
        let (resource, field_selector) = (resource.clone(), field_selector.clone());
        Subject { resource, field_selector, projection: *projection, origin: *origin }
    }

    /// Decodes the JSON of one object into this watch's projection.
    ///
    /// # Errors
    /// The object does not have the projection's shape.
    pub fn decode(&self, bytes: &[u8]) -> Result<Object, serde_json::Error> {
        (self.decode)(bytes)
    }
}

/// What an effect does, as far as declarations go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verb {
    Create,
    Patch,
    Delete,
}

/// The groups that are served, each with its versions and their resources: what discovery says, as if it were objects.
pub const API_GROUPS: Resource =
    Resource::cluster("apidiscovery.k8s.io", "v2", "APIGroupDiscovery", "apigroupdiscoveries");

/// Stands in a [`Write`] for every resource that a definition describes, or another server serves.
pub const DEFINED: Resource = Resource::cluster("*", "*", "*", "*");

/// One thing a controller may do to one resource; for a patch, the top-level paths it may touch.
#[derive(Clone, Debug)]
pub struct Write {
    pub verb: Verb,
    pub resource: Resource,
    /// `["status"]`, `["spec.replicas", "metadata.annotations"]`; only for patches. `["*"]` for any.
    pub fields: &'static [&'static str],
}
