//! What the scheduler is told, and what it wants done.

use corten_meta::{Key, ObjectReference, Resource, Retry, Time};
use corten_reconcile::{Decision, EventType};
use serde_json::Value;

use crate::{
    Advice, ClaimRelease, ClaimReservation, ClusterObject, Consultation, ExtendedClaimWrite, ExtenderFailure, Node,
    Pod, StorageObject,
};

/// What happened.
#[derive(Clone, Debug)]
pub enum Event {
    /// A node is new or changed.
    Node(Box<Node>),
    NodeGone(String),
    /// A pod is new or changed; any pod, whoever schedules it.
    Pod(Box<Pod>),
    PodGone(Key),
    /// An object of storage is new or changed.
    Storage(Box<StorageObject>),
    StorageGone(Resource, Key),
    /// One of the patches of an [`Effect::BindVolumes`] was not taken.
    VolumesFailed {
        pod: Key,
        uid: String,
        message: String,
    },
    /// An [`Effect::Reserve`] was not taken.
    ReserveFailed {
        pod: Key,
        uid: String,
        message: String,
    },
    /// Something else that bears on placement is new or changed.
    Cluster(Box<ClusterObject>),
    ClusterGone(Resource, Key),
    /// Custom resources that are PodGroups are served from now on, or no more.
    LabelledGroupsServed(bool),
    /// What came of an [`Effect::Consult`].
    Advised {
        pod: Key,
        id: u64,
        answer: Result<Advice, ExtenderFailure>,
    },
    /// The API server took an [`Effect::Evict`].
    Evicted {
        eviction: Box<Eviction>,
    },
    /// It did not.
    EvictionFailed {
        eviction: Box<Eviction>,
        message: String,
    },
    /// The API server took a [`Effect::Bind`].
    Bound {
        pod: Key,
        uid: String,
        node: String,
    },
    /// It did not: another scheduler had bound the pod, to this node.
    BoundByAnother {
        pod: Key,
        uid: String,
        node: String,
    },
    /// It did not. `message` is the API server's.
    BindFailed {
        pod: Key,
        uid: String,
        retry: Retry,
        message: String,
    },
    /// The time asked for with [`Effect::WakeAt`] has come. More ticks than asked for do no harm.
    Tick,
}

/// A pod that leaves its node for one of higher priority.
#[derive(Clone, Debug, PartialEq)]
pub struct Eviction {
    /// The pod that the room is for.
    pub preemptor: Key,
    /// `pod`, or `podgroup` where it is one of a gang: then the uid is the group's.
    pub preemptor_kind: &'static str,
    pub preemptor_uid: String,
    pub victim: ObjectReference,
    pub node: String,
    /// A strategic merge patch of the victim's `status`, carrying its uid.
    pub patch: Value,
}

impl Eviction {
    pub fn victim_key(&self) -> Key {
        Key::new(&*self.victim.namespace, &*self.victim.name)
    }
}

/// What to do. Binds may run at the same time as each other and as further steps; each is answered by one event.
#[derive(Clone, Debug, PartialEq)]
pub enum Effect {
    /// Reserves the pod's claims for devices, in this order, makes the one for its extended resources, then creates its `binding`,
    /// with `metadata.uid` so that a namesake is never bound. What was made is taken back where the pod is not bound to the node.
    Bind {
        pod: Key,
        uid: String,
        node: String,
        claims: Vec<ClaimReservation>,
        extended: Option<ExtendedClaimWrite>,
        /// It creates the binding in the scheduler's stead.
        extender: Option<usize>,
    },
    /// As [`Effect::Bind`], and does not bind yet: the drivers make the devices ready first. That they are is seen.
    Reserve {
        pod: Key,
        uid: String,
        claims: Vec<ClaimReservation>,
        extended: Option<ExtendedClaimWrite>,
    },
    /// Takes from claims of the pod the devices that did not become ready. That it is done is seen.
    ReleaseClaims {
        pod: Key,
        claims: Vec<ClaimRelease>,
    },
    /// Deletes a claim that was made for the extended resources of a pod, of which it keeps these finalizers. That it is done is seen.
    DeleteClaim {
        pod: Key,
        claim: Key,
        uid: String,
        finalizers: Vec<String>,
    },
    /// Merge patches, in this order, that give a pod's claims their volumes, or have them made. That they are done is seen.
    BindVolumes {
        pod: Key,
        uid: String,
        patches: Vec<(Resource, Key, Value)>,
    },
    /// A JSON merge patch of the pod's `status`, carrying the uid. Its failure needs no answer: the next attempt writes it again.
    PatchCondition {
        pod: Key,
        patch: Value,
    },
    /// A strategic merge patch of a PodGroup's `status`, carrying the uid. Its failure needs no answer.
    PatchGroup {
        group: Key,
        patch: Value,
    },
    /// Says in the status of a pod of lower priority why it goes, and deletes it.
    Evict(Box<Eviction>),
    /// Asks extenders about a pod. It is always answered, whatever they do, within their timeouts.
    Consult(Box<Consultation>),
    Event {
        about: ObjectReference,
        event_type: EventType,
        reason: &'static str,
        message: String,
    },
    /// For the journal of the pod.
    Record {
        pod: Key,
        decision: Decision,
    },
    /// Send [`Event::Tick`] at this time; a time that is not after now means: as soon as what is known has been told.
    WakeAt(Time),
}
