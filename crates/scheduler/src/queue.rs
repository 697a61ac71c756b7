//! Which pod is tried next, and when.
//!
//! ```text
//!            activate                     pop             (placed)
//!   new pod ---------> active -------------------> in flight ------> gone
//!                       ^  ^                          | park
//!        time has come  |  | wake, back-off is over   v
//!                    backoff <--- wake, too early --- parked
//! ```
//!
//! Where no pod is active, pods are taken amid their back-off (`SchedulerPopFromBackoffQ`): those that were woken, not those that
//! back off after an error. After such a try in vain the back-off is waited out, so that a pod that something wakes in vain all the
//! time is tried twice in each back-off at most.

use std::{
    cmp::Reverse,
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};

use corten_meta::{Key, Time};

use crate::{
    PodInfo,
    observer::{Fact, Moment, Observer, Pending, PluginSet, PodQueue, QueueEvent, Unobserved},
    parked::{Parked, ParkedGroup, RefusedBy},
};

/// Of so many pods at once it is told that they are tried again in a moment.
const TOLD_MAX: usize = 256;

type Rank = (Reverse<i32>, Time, u64);

pub(crate) struct Queue {
    entries: BTreeMap<Key, Entry>,
    active: BTreeMap<Rank, Key>,
    backoff: BTreeSet<(Time, Key)>,
    /// Those of them that may be taken before their time, in the order in which they are: by the second in which it comes, and
    /// those of one second as active ones are.
    early: BTreeMap<(Time, Rank), Key>,
    pub(crate) parked: Parked,
    /// Pods that were woken amid their back-off and wait it out, and why, since that was last asked.
    backing_off: Vec<(Key, QueueEvent)>,
    /// Parked pods by when they are tried again whatever happens.
    parked_until: BTreeSet<(Time, Key)>,
    n_passive: usize,
    /// Pods that may not come in yet, and for whom.
    gated: BTreeMap<Key, Refusal>,
    n_seen: u64,
    backoff_initial: Duration,
    backoff_max: Duration,
    unschedulable_retry: Duration,
    observer: Arc<dyn Observer>,
    /// Why pods come in or are woken now.
    cause: QueueEvent,
}

/// A pod that is being tried.
#[derive(Clone, Copy)]
pub(crate) struct Try {
    /// The first has the number 1.
    pub(crate) number: u32,
    /// When the pod came in.
    pub(crate) entered: Time,
    pub(crate) began: Moment,
    /// When all that its node has for it was given to it.
    pub(crate) reserved: Moment,
}

struct Entry {
    /// Priority first, then age: when it last became worth a try, then the order of arrival.
    rank: Rank,
    n_attempts: u32,
    /// When it came in for the first time.
    entered: Time,
    began: Moment,
    reserved: Moment,
    /// Not to be tried before this, unless nobody else is.
    ready_at: Time,
    /// It was taken before that when it was tried last.
    was_early: bool,
    retry_at: Time,
    stage: Stage,
    /// The number of its group, where it is parked.
    group: u64,
    /// Who turned it down when it was tried last. Nothing from when it is tried again.
    refusal: Option<Refusal>,
}

/// The plugins that turned a pod down. It names the profile as the pod did then.
struct Refusal {
    pod: Arc<PodInfo>,
    plugins: PluginSet,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Stage {
    Active,
    Backoff,
    Parked,
    /// As parked, and nothing that happens to nodes or other pods helps it: it waits for others of its gang.
    Passive,
    InFlight,
}

impl Entry {
    fn begin(&mut self, now: Time, moment: Moment) {
        self.stage = Stage::InFlight;
        self.n_attempts = self.n_attempts.saturating_add(1);
        self.was_early = self.ready_at > now;
        (self.began, self.reserved) = (moment, moment);
    }

    /// Its place among those that are taken amid their back-off.
    fn early_place(&self) -> (Time, Rank) {
        (self.ready_at.whole_seconds(), self.rank)
    }
}

impl Queue {
    pub(crate) fn new(backoff_initial: Duration, backoff_max: Duration, unschedulable_retry: Duration) -> Self {
        Self {
            entries: BTreeMap::new(),
            active: BTreeMap::new(),
            backoff: BTreeSet::new(),
            early: BTreeMap::new(),
            parked: Parked::default(),
            backing_off: Vec::new(),
            parked_until: BTreeSet::new(),
            n_passive: 0,
            gated: BTreeMap::new(),
            n_seen: 0,
            backoff_initial,
            backoff_max,
            unschedulable_retry,
            observer: Arc::new(Unobserved),
            cause: QueueEvent::ForceActivate,
        }
    }

    pub(crate) fn observed_by(&mut self, observer: Arc<dyn Observer>) {
        self.observer = observer;
    }

    /// Says why pods come in or are woken from now on.
    pub(crate) fn because(&mut self, cause: QueueEvent) {
        self.cause = cause;
    }

    pub(crate) fn cause(&self) -> QueueEvent {
        self.cause
    }

    pub(crate) fn pending(&self) -> Pending {
        Pending {
            active: self.active.len(),
            backoff: self.backoff.len(),
            unschedulable: self.parked_until.len(),
            gated: self.gated.len(),
        }
    }

    fn tell(&self, queue: PodQueue, event: QueueEvent) {
        self.observer.tell(&Fact::Queued { queue, event });
    }

    pub(crate) fn contains(&self, key: &Key) -> bool {
        self.entries.contains_key(key)
    }

    /// A pod that is new, or changed so that another try may end differently.
    pub(crate) fn activate(&mut self, key: &Key, priority: i32, now: Time) {
        self.take_out(key);
        self.refused_no_more(key);
        let rank = self.rank(priority, now);
        let old = self.entries.get(key);
        let entry = Entry {
            rank,
            n_attempts: old.map_or(0, |it| it.n_attempts),
            entered: old.map_or(now, |it| it.entered),
            began: Moment::default(),
            reserved: Moment::default(),
            ready_at: now,
            was_early: false,
            retry_at: now,
            stage: Stage::Active,
            group: 0,
            refusal: None,
        };
        let is_there = old.is_some_and(|it| it.stage == Stage::Active);
        self.active.insert(rank, key.clone());
        self.entries.insert(key.clone(), entry);
        if !is_there {
            self.tell(PodQueue::Active, self.cause);
        }
    }

    /// A pod that may not come in yet, or no more, for this plugin.
    pub(crate) fn gate(&mut self, info: &Arc<PodInfo>, plugin: usize) {
        let key = &info.key;
        let is_new = !self.gated.contains_key(key);
        self.take_out(key);
        self.refused_no_more(key);
        self.entries.remove(key);
        let refusal = self.refused(info, PluginSet::from_iter([plugin]));
        self.gated.insert(key.clone(), refusal);
        if is_new {
            self.tell(PodQueue::Unschedulable, self.cause);
        }
    }

    fn refused(&self, info: &Arc<PodInfo>, plugins: PluginSet) -> Refusal {
        self.observer.tell(&Fact::Refused { plugins, profile: &info.scheduler_name });
        Refusal { pod: Arc::clone(info), plugins }
    }

    /// Others turn a parked pod down by now than when it was tried.
    pub(crate) fn refused_by(&mut self, key: &Key, plugins: PluginSet) {
        let Some(refusal) = self.entries.get_mut(key).and_then(|it| it.refusal.as_mut()) else { return };
        let before = std::mem::replace(&mut refusal.plugins, plugins);
        if before != plugins {
            let profile = &*refusal.pod.scheduler_name;
            self.observer.tell(&Fact::RefusedNoMore { plugins: before, profile });
            self.observer.tell(&Fact::Refused { plugins, profile });
        }
    }

    /// The pod is tried anew or gone: who turned it down says so no more.
    fn refused_no_more(&mut self, key: &Key) {
        let of_entry = self.entries.get_mut(key).and_then(|it| it.refusal.take());
        for Refusal { pod, plugins } in of_entry.into_iter().chain(self.gated.remove(key)) {
            self.observer.tell(&Fact::RefusedNoMore { plugins, profile: &pod.scheduler_name });
        }
    }

    /// Does it wait for its turn, or for what helps it?
    pub(crate) fn is_waiting(&self, key: &Key) -> bool {
        self.entries.get(key).is_some_and(|it| it.stage != Stage::InFlight)
    }

    /// Is it being tried?
    pub(crate) fn is_in_flight(&self, key: &Key) -> bool {
        self.entries.get(key).is_some_and(|it| it.stage == Stage::InFlight)
    }

    pub(crate) fn trying(&self, key: &Key) -> Option<Try> {
        let it = self.entries.get(key).filter(|it| it.stage == Stage::InFlight)?;
        Some(Try { number: it.n_attempts, entered: it.entered, began: it.began, reserved: it.reserved })
    }

    pub(crate) fn remove(&mut self, key: &Key) {
        self.take_out(key);
        self.refused_no_more(key);
        self.entries.remove(key);
    }

    /// The pod was given all that its node has for it, until this moment.
    pub(crate) fn reserved(&mut self, key: &Key, at: Moment) {
        if let Some(entry) = self.entries.get_mut(key) {
            entry.reserved = at;
        }
    }

    /// The pod is bound.
    pub(crate) fn done(&mut self, key: &Key) {
        self.remove(key);
    }

    /// Is no pod to be tried that waits for nothing but its turn?
    pub(crate) fn is_idle(&self) -> bool {
        self.active.is_empty()
    }

    /// The next active pod.
    pub(crate) fn pop(&mut self, now: Time) -> Option<Key> {
        let key = self.active.pop_first()?.1;
        self.begin(&key, now);
        Some(key)
    }

    /// As above, and where there is none, the pod whose back-off ends next of those that are taken amid it.
    pub(crate) fn pop_early(&mut self, now: Time) -> Option<Key> {
        if let Some(key) = self.pop(now) {
            return Some(key);
        }
        let key = self.early.first_key_value()?.1.clone();
        self.take_out(&key);
        self.tell(PodQueue::Active, QueueEvent::PopFromBackoffQ);
        self.begin(&key, now);
        Some(key)
    }

    fn begin(&mut self, key: &Key, now: Time) {
        let entry = self.entries.get_mut(key).expect("a pod in a queue has an entry");
        entry.begin(now, self.observer.moment());
        if entry.refusal.is_some() {
            self.refused_no_more(key);
        }
    }

    /// No node fits, for these plugins: wait for something that could help.
    pub(crate) fn park(&mut self, info: &Arc<PodInfo>, refused_by: RefusedBy, plugins: PluginSet, now: Time) {
        self.rest(&info.key, info.priority, now, Stage::Parked);
        let group = self.parked.insert(info, refused_by);
        let refusal = (!plugins.is_empty()).then(|| self.refused(info, plugins));
        if let Some(entry) = self.entries.get_mut(&info.key) {
            (entry.group, entry.refusal) = (group, refusal);
        }
    }

    /// A parked pod has changed, or more is known of who turned it down. Gives what is known of that now; nothing where it is not
    /// parked.
    pub(crate) fn regroup(&mut self, info: &Arc<PodInfo>, also_by: RefusedBy) -> Option<RefusedBy> {
        let entry = self.entries.get_mut(&info.key).filter(|it| it.stage == Stage::Parked)?;
        let refused_by = self.parked.refused_by(entry.group).or(also_by);
        self.parked.remove(entry.group, &info.key);
        entry.group = self.parked.insert(info, refused_by);
        Some(refused_by)
    }

    /// The pods that fit nowhere: those that are alike together, under a number.
    pub(crate) fn parked(&self) -> impl Iterator<Item = (u64, &ParkedGroup)> {
        self.parked.groups()
    }

    /// A plugin that looks beyond the node turns these groups down by now.
    pub(crate) fn refuse_among(&mut self, groups: &[u64]) {
        groups.iter().for_each(|it| self.parked.refuse_among(*it));
    }

    /// Others of its gang do not fit: it is tried with them. The plugin is the one that says so.
    pub(crate) fn park_passively(&mut self, info: &Arc<PodInfo>, plugin: usize, now: Time) {
        self.rest(&info.key, info.priority, now, Stage::Passive);
        let refusal = self.refused(info, PluginSet::from_iter([plugin]));
        if let Some(entry) = self.entries.get_mut(&info.key) {
            entry.refusal = Some(refusal);
        }
    }

    /// Does any pod wait for others of its gang that do not fit?
    pub(crate) fn has_passive(&self) -> bool {
        self.n_passive > 0
    }

    /// Tries a pod again that waits for others of its gang.
    pub(crate) fn wake_passive(&mut self, key: &Key, now: Time) {
        if self.entries.get(key).is_some_and(|it| it.stage == Stage::Passive) {
            self.unpark(key, self.cause, now);
        }
    }

    /// A pod is tried along with another, if it is to be tried at all.
    pub(crate) fn take(&mut self, key: &Key, now: Time) -> bool {
        self.take_out(key);
        let Some(entry) = self.entries.get_mut(key) else { return false };
        if entry.stage != Stage::InFlight {
            entry.begin(now, self.observer.moment());
        }
        self.refused_no_more(key);
        true
    }

    /// Something failed that may work the next time.
    pub(crate) fn back_off(&mut self, key: &Key, priority: i32, now: Time) {
        self.rest(key, priority, now, Stage::Backoff);
    }

    fn rest(&mut self, key: &Key, priority: i32, now: Time, stage: Stage) {
        let (n_attempts, entered, was_early) =
            self.entries.get(key).map_or((1, now, false), |it| (it.n_attempts, it.entered, it.was_early));
        self.take_out(key);
        self.refused_no_more(key);
        let (ready_at, retry_at) = (now.after(self.pause(n_attempts)), now.after(self.unschedulable_retry));
        let rank = self.rank(priority, now);
        let (began, reserved) = (Moment::default(), Moment::default());
        let refusal = None;
        let group = 0;
        let entry =
            Entry { rank, n_attempts, entered, began, reserved, ready_at, was_early, retry_at, stage, group, refusal };
        self.entries.insert(key.clone(), entry);
        self.n_passive += usize::from(stage == Stage::Passive);
        let queue = match stage {
            Stage::Parked | Stage::Passive => {
                self.parked_until.insert((retry_at, key.clone()));
                PodQueue::Unschedulable
            }
            _ => {
                self.backoff.insert((ready_at, key.clone()));
                PodQueue::Backoff
            }
        };
        self.tell(queue, QueueEvent::ScheduleAttemptFailure);
    }

    /// 1 s, 2 s, 4 s … up to the most.
    fn pause(&self, n_attempts: u32) -> Duration {
        let factor = 1_u32.checked_shl(n_attempts.saturating_sub(1)).unwrap_or(u32::MAX);
        self.backoff_initial.saturating_mul(factor).min(self.backoff_max)
    }

    /// Tries those groups of parked pods again that `helped` picks, at once or when their back-off is over.
    pub(crate) fn wake(&mut self, mut helped: impl FnMut(&ParkedGroup) -> bool, now: Time) {
        let groups = self.parked.groups().map(|it| it.1).filter(|it| helped(it));
        let woken: Vec<Key> = groups.flat_map(|it| &it.keys).cloned().collect();
        woken.iter().for_each(|it| self.unpark(it, self.cause, now));
    }

    /// As above, one pod, be it one that waits for others of its gang.
    pub(crate) fn wake_one(&mut self, key: &Key, now: Time) {
        if self.entries.get(key).is_some_and(|it| matches!(it.stage, Stage::Parked | Stage::Passive)) {
            self.unpark(key, self.cause, now);
        }
    }

    /// The pods that were woken since the last look and wait for their back-off to end: for which event, and until when.
    pub(crate) fn take_backing_off(&mut self) -> Vec<(Key, QueueEvent, Time)> {
        let woken = std::mem::take(&mut self.backing_off);
        let until = |key: &Key| self.entries.get(key).filter(|it| it.stage == Stage::Backoff).map(|it| it.ready_at);
        woken.into_iter().filter_map(|(key, cause)| until(&key).map(|it| (key, cause, it))).collect()
    }

    fn unpark(&mut self, key: &Key, cause: QueueEvent, now: Time) {
        self.take_out(key);
        let entry = self.entries.get_mut(key).expect("a parked pod has an entry");
        let queue = if entry.ready_at > now {
            entry.stage = Stage::Backoff;
            self.backoff.insert((entry.ready_at, key.clone()));
            if !entry.was_early {
                self.early.insert(entry.early_place(), key.clone());
            } else if self.backing_off.len() < TOLD_MAX {
                self.backing_off.push((key.clone(), cause));
            }
            PodQueue::Backoff
        } else {
            entry.stage = Stage::Active;
            self.active.insert(entry.rank, key.clone());
            PodQueue::Active
        };
        self.tell(queue, cause);
    }

    /// Moves on whatever time alone moves on.
    pub(crate) fn flush(&mut self, now: Time) {
        while let Some((_, key)) = self.parked_until.first().filter(|it| it.0 <= now).cloned() {
            self.unpark(&key, QueueEvent::UnschedulableTimeout, now);
        }
        while let Some((_, key)) = self.backoff.first().filter(|it| it.0 <= now).cloned() {
            self.take_out(&key);
            let entry = self.entries.get_mut(&key).expect("a pod in back-off has an entry");
            entry.stage = Stage::Active;
            self.active.insert(entry.rank, key);
            self.tell(PodQueue::Active, QueueEvent::BackoffComplete);
        }
    }

    /// When the next pod can be tried.
    pub(crate) fn next_at(&self, now: Time) -> Option<Time> {
        if !self.active.is_empty() || !self.early.is_empty() {
            return Some(now);
        }
        let times = [self.backoff.first(), self.parked_until.first()];
        times.into_iter().flatten().map(|it| it.0).min()
    }

    fn rank(&mut self, priority: i32, now: Time) -> Rank {
        self.n_seen += 1;
        (Reverse(priority), now, self.n_seen)
    }

    /// Out of the list of its stage; its entry stays.
    fn take_out(&mut self, key: &Key) {
        let Some(entry) = self.entries.get(key) else { return };
        self.n_passive -= usize::from(entry.stage == Stage::Passive);
        match entry.stage {
            Stage::Active => drop(self.active.remove(&entry.rank)),
            Stage::Backoff => {
                self.backoff.remove(&(entry.ready_at, key.clone()));
                self.early.remove(&entry.early_place());
            }
            Stage::Parked | Stage::Passive => {
                self.parked.remove(entry.group, key);
                self.parked_until.remove(&(entry.retry_at, key.clone()));
            }
            Stage::InFlight => {}
        }
    }
}
