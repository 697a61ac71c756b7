//! What a scheduler tells of its work while it is at it. Who observes it counts that, and times it by a clock of its own; nothing that
//! the scheduler decides depends on it.

use std::{fmt, time::Duration};

/// A time of the observer's clock. It says nothing to the scheduler, which tells it along with what began or ended then.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Moment(pub u64);

/// See the module's documentation. It is asked and told amid the work: what it does takes next to no time.
pub trait Observer: Send + Sync {
    fn moment(&self) -> Moment;
    fn tell(&self, fact: &Fact<'_>);

    /// Shall it be told what each plugin takes in the try that begins? That is asked once a try, and costs it some.
    fn times_plugins(&self) -> bool {
        false
    }
}

/// Nobody observes.
pub(crate) struct Unobserved;

impl Observer for Unobserved {
    fn moment(&self) -> Moment {
        Moment::default()
    }

    fn tell(&self, _fact: &Fact<'_>) {}
}

/// Tells that a point has run; gives when it had.
pub(crate) fn ran(
    observer: &dyn Observer,
    (point, status): (ExtensionPoint, PointStatus),
    profile: &str,
    from: Moment,
) -> Moment {
    let to = observer.moment();
    observer.tell(&Fact::Ran { point, status, profile, span: Span { from, to } });
    to
}

/// What has happened.
#[derive(Debug, PartialEq)]
pub enum Fact<'a> {
    /// All plugins of a profile that have something to say at this point did.
    Ran { point: ExtensionPoint, status: PointStatus, profile: &'a str, span: Span },
    /// These plugins had their say at this point of a try. (Upstream counts each node that one is asked about.)
    Evaluated { point: ExtensionPoint, plugins: PluginSet, profile: &'a str },
    /// One plugin ran once, in a try of which that is told: a filter or a score of a node by itself on one node.
    PluginRan { plugin: usize, point: ExtensionPoint, status: PointStatus, span: Span },
    /// These plugins keep a pod from all nodes, or out of the queue.
    Refused { plugins: PluginSet, profile: &'a str },
    /// The pod of which that was told is tried again, or is none of the scheduler's any more.
    RefusedNoMore { plugins: PluginSet, profile: &'a str },
    /// A node was found for a pod, or that there is none, and what helps it.
    Searched(Span),
    /// A try to schedule a pod has ended.
    Tried { result: TryResult, profile: &'a str, span: Span },
    /// A pod is bound, at this try, so long after it first came to the queue.
    Scheduled { n_tries: u32, waited: Duration },
    /// A pod has come to a queue because of this.
    Queued { queue: PodQueue, event: QueueEvent },
    /// Pods were looked for that leave their nodes for one that fits nowhere, or for a gang.
    SoughtVictims,
    /// So many of them are asked to.
    ChoseVictims { n_pods: usize },
}

/// Some of [`crate::PLUGINS`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PluginSet(u32);

/// A set has a bit for each plugin.
pub(crate) const PLUGINS_MAX: usize = 32;

impl PluginSet {
    /// By their places in the table.
    pub fn iter(self) -> impl Iterator<Item = usize> {
        (0..PLUGINS_MAX).filter(move |it| self.contains(*it))
    }

    pub(crate) fn contains(self, place: usize) -> bool {
        self.0 & (1 << place) != 0
    }

    pub(crate) fn is_empty(self) -> bool {
        self.0 == 0
    }
}

impl FromIterator<usize> for PluginSet {
    fn from_iter<T: IntoIterator<Item = usize>>(places: T) -> Self {
        Self(places.into_iter().fold(0, |set, it| set | (1 << it)))
    }
}

/// From when to when something took.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    pub from: Moment,
    pub to: Moment,
}

macro_rules! words {
    ($(#[$about:meta])* $name:ident { $($word:ident = $text:literal,)* }) => {
        $(#[$about])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum $name {
            $($word,)*
        }

        impl $name {
            pub const ALL: &'static [Self] = &[$(Self::$word,)*];

            /// In Kubernetes's words.
            pub fn as_str(self) -> &'static str {
                match self {
                    $(Self::$word => $text,)*
                }
            }
        }
    };
}

words! {
    /// The points of the framework that there are here, in the order in which they run.
    ExtensionPoint {
        PreEnqueue = "PreEnqueue",
        PreFilter = "PreFilter",
        Filter = "Filter",
        PostFilter = "PostFilter",
        Score = "Score",
        Reserve = "Reserve",
        PreBind = "PreBind",
        Bind = "Bind",
    }
}

words! {
    /// What all plugins of a point came to.
    PointStatus {
        Success = "Success",
        Unschedulable = "Unschedulable",
        UnschedulableAndUnresolvable = "UnschedulableAndUnresolvable",
        Error = "Error",
    }
}

words! {
    TryResult {
        Scheduled = "scheduled",
        Unschedulable = "unschedulable",
        Error = "error",
    }
}

words! {
    /// Where pods wait to be tried. Gated ones come to the last, as upstream counts them.
    PodQueue {
        Active = "active",
        Backoff = "backoff",
        Unschedulable = "unschedulable",
    }
}

words! {
    /// What an event is about, as upstream's `EventResource`.
    Subject {
        UnschedulablePod = "UnschedulablePod",
        AssignedPod = "AssignedPod",
        Node = "Node",
        Claim = "PersistentVolumeClaim",
        Volume = "PersistentVolume",
        StorageClass = "storage.k8s.io/StorageClass",
        CsiDriver = "storage.k8s.io/CSIDriver",
        CsiNode = "storage.k8s.io/CSINode",
        Attachment = "storage.k8s.io/VolumeAttachment",
        StorageCapacity = "storage.k8s.io/CSIStorageCapacity",
        DeviceClaim = "resource.k8s.io/ResourceClaim",
        DeviceSlice = "resource.k8s.io/ResourceSlice",
        DeviceClass = "resource.k8s.io/DeviceClass",
        PodGroup = "scheduling.k8s.io/PodGroup",
        Namespace = "Namespace",
    }
}

words! {
    /// What became of it, as upstream's `ActionType`.
    Change {
        Add = "Add",
        Update = "Update",
        Delete = "Delete",
        NodeAllocatable = "UpdateNodeAllocatable",
        NodeLabel = "UpdateNodeLabel",
        NodeTaint = "UpdateNodeTaint",
        NodeDeclaredFeature = "UpdateNodeDeclaredFeature",
        PodLabel = "UpdatePodLabel",
        PodScaleDown = "UpdatePodScaleDown",
        PodGatesEliminated = "UpdatePodSchedulingGatesEliminated",
    }
}

/// Why a pod comes to a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QueueEvent {
    ScheduleAttemptFailure,
    BackoffComplete,
    PopFromBackoffQ,
    UnschedulableTimeout,
    ForceActivate,
    Of(Subject, Change),
}

impl QueueEvent {
    const SPECIAL: [Self; 5] = [
        Self::ScheduleAttemptFailure,
        Self::BackoffComplete,
        Self::PopFromBackoffQ,
        Self::UnschedulableTimeout,
        Self::ForceActivate,
    ];
    /// There are no more than so many.
    pub const COUNT: usize = Self::SPECIAL.len() + Subject::ALL.len() * Change::ALL.len();

    /// Its place among all, below [`QueueEvent::COUNT`].
    pub fn index(self) -> usize {
        match self {
            Self::ScheduleAttemptFailure => 0,
            Self::BackoffComplete => 1,
            Self::PopFromBackoffQ => 2,
            Self::UnschedulableTimeout => 3,
            Self::ForceActivate => 4,
            Self::Of(subject, change) => Self::SPECIAL.len() + subject as usize * Change::ALL.len() + change as usize,
        }
    }

    /// All, in the order of their places.
    pub fn all() -> impl Iterator<Item = Self> {
        let of = Subject::ALL.iter().flat_map(|subject| Change::ALL.iter().map(|change| Self::Of(*subject, *change)));
        Self::SPECIAL.into_iter().chain(of)
    }
}

impl fmt::Display for QueueEvent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Of(subject, change) => write!(f, "{}{}", subject.as_str(), change.as_str()),
            special => fmt::Debug::fmt(special, f),
        }
    }
}

/// How many pods wait to be tried.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Pending {
    pub active: usize,
    pub backoff: usize,
    /// Tried, and no node fits.
    pub unschedulable: usize,
    /// Never tried: something keeps them out of the queue.
    pub gated: usize,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_are_called_as_upstream_calls_them_and_each_has_its_place() {
        let all: Vec<QueueEvent> = QueueEvent::all().collect();
        assert_eq!(all.len(), QueueEvent::COUNT);
        assert!(all.iter().enumerate().all(|(at, it)| it.index() == at));
        let called = |it: QueueEvent| it.to_string();
        assert_eq!(called(QueueEvent::BackoffComplete), "BackoffComplete");
        assert_eq!(called(QueueEvent::Of(Subject::UnschedulablePod, Change::Add)), "UnschedulablePodAdd");
        assert_eq!(called(QueueEvent::Of(Subject::Node, Change::NodeTaint)), "NodeUpdateNodeTaint");
        assert_eq!(called(QueueEvent::Of(Subject::CsiNode, Change::Update)), "storage.k8s.io/CSINodeUpdate");
    }
}
