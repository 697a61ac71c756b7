//! One informer, what has come of it, what of that is shown, and who looks at it.

use std::{
    collections::VecDeque,
    hash::{DefaultHasher, Hash, Hasher},
    sync::{
        Arc, Weak,
        atomic::{AtomicBool, Ordering},
    },
    task::{Context, Poll, Wake},
    time::Duration,
};

use corten_client::{
    Client, Error, Identity, Informer, InformerEvent, InformerParams, ListItems, Progress, ResourceIndex,
    version_number,
};
use corten_meta::Key;
use corten_reconcile::{Object, Origin, Subject, Table, Watch};
use futures_util::task::AtomicWaker;
use parking_lot::Mutex;
use tokio::time::Instant;

use super::inbox::{Change, Inbox, State};

/// Events of one source that are taken in before another one's turn.
const BATCH: usize = 256;
/// How long all others wait for a stream that has not come as far as they have.
pub(super) const HOLD: Duration = Duration::from_secs(2);
/// How often what cannot be watched is listed.
const POLL: Duration = Duration::from_secs(10);
/// Of one resource of another server so many objects are kept, and one of its answers is so long: others do not use up what
/// this process has. Where it holds more, that is logged, and it is as if it could not be listed.
const ELSEWHERE_OBJECTS_MAX: usize = 100_000;
const ELSEWHERE_BYTES_MAX: usize = 64 << 20;
/// A stream that has not come along for this long is suspected, and listed again; then after twice as long, and so on.
const SUSPECTED_AFTER: Duration = Duration::from_secs(10);
const SUSPECTED_STEP_MAX: Duration = Duration::from_secs(300);

/// One informer and all who look at its table.
pub(super) struct Source {
    pub(super) subject: Subject,
    pub(super) held: Mutex<HeldInformer>,
    pub(super) waker: Arc<SourceWaker>,
}

/// Marks a source that may have something to say. There is a source for each kind, and most have nothing to say most of the
/// time: they are not polled.
pub(super) struct SourceWaker {
    pub(super) is_woken: AtomicBool,
    pub(super) informers: Arc<AtomicWaker>,
}

impl Wake for SourceWaker {
    fn wake(self: Arc<Self>) {
        if !self.is_woken.swap(true, Ordering::AcqRel) {
            self.informers.wake();
        }
    }
}

pub(super) struct HeldInformer {
    pub(super) informer: Informer<Object>,
    /// Of its resource.
    place: ResourceIndex,
    /// Up to where everything has come; nothing before the first list.
    version: Option<u64>,
    /// What everybody sees.
    pub(super) state: State,
    /// What has come and is not shown yet, in the order of versions.
    coming: VecDeque<Coming>,
    /// Events without a version of their own: they count once the one after them has come.
    open: Vec<InformerEvent<Object>>,
    /// Since when others have come further, where they have.
    pub(super) lag: Option<Lag>,
    /// It is not waited for.
    pub(super) is_late: bool,
    /// Everybody was told that it cannot be listed.
    pub(super) cannot_be_listed: bool,
    /// Its revisions are another server's.
    is_elsewhere: bool,
    /// Its revisions cannot be compared with those of others: what comes is shown at once, and nobody waits for it.
    is_apart: bool,
    /// It is here for what a definition describes: when nobody looks at it any more, it goes.
    pub(super) is_led_to: bool,
    pub(super) inboxes: Vec<Weak<Mutex<Inbox>>>,
    /// It is not asked before.
    pub(super) rests_until: Option<Instant>,
}

/// What one look at an informer brought.
pub(super) struct Polled {
    pub(super) has_news: bool,
    /// It has nothing more.
    pub(super) is_drained: bool,
    /// It has come further than it had, by news or a bookmark.
    pub(super) has_moved: bool,
}

/// An event, up to which version it brings its table, and how many lists were whole with it.
struct Coming {
    event: InformerEvent<Object>,
    version: u64,
    n_lists: u64,
}

/// A stream behind the others.
pub(super) struct Lag {
    /// How far the foremost had come then.
    target: u64,
    pub(super) since: Instant,
    suspected_after: Duration,
}

impl Lag {
    /// When it is next to be looked at, though nothing happens.
    pub(super) fn look_at(&self, now: Instant) -> Instant {
        let late = self.since + HOLD;
        if now < late { late } else { self.since + self.suspected_after }
    }
}

/// `is_optional`: where the server does not serve it, there is none.
pub(super) fn informer(client: Client, watch: Watch, is_optional: bool) -> Informer<Object> {
    let is_elsewhere = watch.origin != Origin::Here;
    let params = InformerParams {
        field_selector: watch.field_selector.clone(),
        progress: !watch.field_selector.is_empty(),
        metadata_only: watch.metadata_only,
        listed: if watch.origin == Origin::Discovery { ListItems::Groups } else { ListItems::Objects },
        polled: matches!(watch.origin, Origin::Discovery | Origin::Elsewhere { is_watched: false }).then_some(POLL),
        lists_after_failure: is_elsewhere,
        objects_max: if is_elsewhere { ELSEWHERE_OBJECTS_MAX } else { usize::MAX },
        is_optional: is_optional && !is_elsewhere,
        ..InformerParams::all(watch.resource.clone())
    };
    let client = if is_elsewhere { client.with_answers_up_to(ELSEWHERE_BYTES_MAX) } else { client };
    Informer::decoding(client, params.seeded_by("informers"), move |bytes| {
        let object = watch.decode(&bytes).map_err(|error| Error::Decode(error.to_string()))?;
        let mut identity = Identity::of(object.meta());
        if watch.origin == Origin::Discovery {
            identity.version = version_of(&bytes);
        }
        Ok((identity, object))
    })
}

/// What discovery says has no version of its own.
fn version_of(bytes: &[u8]) -> String {
    let mut hasher = DefaultHasher::new();
    bytes.hash(&mut hasher);
    format!("{:016x}", hasher.finish())
}

impl HeldInformer {
    pub(super) fn new(informer: Informer<Object>, place: ResourceIndex, watch: &Watch) -> Self {
        let is_elsewhere = watch.origin != Origin::Here;
        let state = State { table: watch.table(), ..State::default() };
        Self {
            informer,
            place,
            version: None,
            state,
            coming: VecDeque::new(),
            open: Vec::new(),
            lag: None,
            is_late: false,
            cannot_be_listed: false,
            is_elsewhere,
            is_apart: is_elsewhere,
            is_led_to: false,
            inboxes: Vec::new(),
            rests_until: None,
        }
    }

    /// The server tells, or does not tell, how far it has come.
    pub(super) fn set_apart(&mut self, is_apart: bool) {
        self.is_apart = is_apart || self.is_elsewhere;
        if self.is_apart {
            (self.is_late, self.lag) = (false, None);
        }
    }

    /// Up to where its own table is shown, where it is not of the revision of all.
    fn own_version(&self) -> Option<u64> {
        self.version.filter(|_| self.is_apart && !self.is_elsewhere)
    }

    /// Is there anything to show that nobody else waits for?
    pub(super) fn has_own_news(&self) -> bool {
        self.is_apart && (!self.coming.is_empty() || self.own_version() != self.state.version || self.state.is_behind)
    }

    /// What every controller watches that begins stays, though one that crashed has not begun again.
    pub(super) fn is_needed(&self) -> bool {
        !self.is_led_to || self.inboxes.is_empty() || self.inboxes.iter().any(|it| it.strong_count() > 0)
    }

    /// Takes in what the informer has.
    pub(super) fn poll(&mut self, context: &mut Context<'_>) -> Polled {
        let before = (self.version, self.informer.n_lists(), self.cannot_be_listed);
        let (has_news, is_drained) = self.poll_events(context);
        // Bookmarks move it on, too.
        self.version = (self.informer.n_lists() > 0).then(|| version_number(self.informer.version()).unwrap_or(0));
        let after = (self.version, self.informer.n_lists(), self.cannot_be_listed);
        Polled { has_news, is_drained, has_moved: has_news || before != after }
    }

    /// Was there anything, and is there nothing more?
    fn poll_events(&mut self, context: &mut Context<'_>) -> (bool, bool) {
        for n in 0..BATCH {
            let polled = self.informer.poll_event(context);
            self.tell_whether_listed();
            let Poll::Ready(event) = polled else { return (n > 0, true) };
            self.open.push(event);
            if self.informer.is_amid_list() {
                continue;
            }
            let version = version_number(self.informer.version()).unwrap_or(0);
            let n_lists = self.informer.n_lists();
            self.coming.extend(self.open.drain(..).map(|event| Coming { event, version, n_lists }));
        }
        (true, false)
    }

    /// Who can go on without is told, though there is no news to see.
    fn tell_whether_listed(&mut self) {
        if self.cannot_be_listed != self.informer.cannot_list() {
            self.cannot_be_listed = self.informer.cannot_list();
            self.inboxes.iter().filter_map(Weak::upgrade).for_each(|it| it.lock().put(&[], &self.state));
        }
    }

    /// Up to which revision everything has come; nothing before the first list, or where the revisions are others.
    pub(super) fn reached(&self, progress: &Progress) -> Option<u64> {
        if self.is_apart {
            return None;
        }
        // Of changes to what it is not about a stream of some objects tells nothing: it gets a bookmark after each.
        // A kind that is not served is at no revision, and nothing of it is to come.
        self.version.filter(|it| *it > 0).map(|version| progress.of(self.place, version))
    }

    /// Measures how long it has been behind the foremost. Is that so long that it is to be listed again?
    pub(super) fn is_suspected(&mut self, reached: u64, foremost: u64, now: Instant) -> bool {
        let has_caught_up = |it: &Lag| reached >= if now < it.since + HOLD { it.target } else { foremost };
        if self.lag.as_ref().is_some_and(has_caught_up) {
            self.lag = None;
        }
        if reached >= foremost {
            return false;
        }
        let lag = self.lag.get_or_insert(Lag { target: foremost, since: now, suspected_after: SUSPECTED_AFTER });
        let is_suspected = now >= lag.since + lag.suspected_after;
        while now >= lag.since + lag.suspected_after {
            lag.suspected_after = lag.suspected_after.saturating_mul(2).min(lag.suspected_after + SUSPECTED_STEP_MAX);
        }
        is_suspected
    }

    /// Was it listed again at a later version? What the list brings may have come before `revision` or after it: between the
    /// last version before the list and that of the list nobody knows its state.
    pub(super) fn jumps_over(&self, revision: u64) -> bool {
        !self.is_apart && self.state.n_lists > 0 && is_unknown_at(&self.coming, self.state.n_lists, revision)
    }

    pub(super) fn has_come(&self, revision: u64) -> bool {
        self.coming.front().is_some_and(|it| self.is_apart || it.version <= revision)
    }

    /// Moves the table on to `revision` and tells all who look at it.
    pub(super) fn show(&mut self, revision: u64) {
        let version = self.own_version();
        if !self.has_come(revision) && self.is_late == self.state.is_behind && version == self.state.version {
            return;
        }
        (self.state.is_behind, self.state.version) = (self.is_late, version);
        let mut changes = Vec::new();
        while self.has_come(revision)
            && let Some(Coming { event, n_lists, .. }) = self.coming.pop_front()
        {
            changes.extend(self.state.table.take(event));
            self.state.n_lists = n_lists;
        }
        self.inboxes.retain(|it| it.upgrade().map(|it| it.lock().put(&changes, &self.state)).is_some());
    }
}

/// Is the first list that is not shown yet, after `n_lists`, of a version after `revision`, and what comes before it of one before?
fn is_unknown_at(coming: &VecDeque<Coming>, n_lists: u64, revision: u64) -> bool {
    let at = coming.partition_point(|it| it.n_lists <= n_lists);
    let known = at.checked_sub(1).and_then(|it| coming.get(it)).map_or(0, |it| it.version);
    coming.get(at).is_some_and(|it| known < revision && revision < it.version)
}

/// What an informer's event does to a table.
trait Take {
    fn take(&mut self, event: InformerEvent<Object>) -> Option<Change>;
}

impl Take for Table {
    fn take(&mut self, event: InformerEvent<Object>) -> Option<Change> {
        match event {
            InformerEvent::Applied(object, _) => Some(Change { old: self.insert(object.clone()), new: Some(object) }),
            InformerEvent::Deleted(meta) => {
                self.remove(&Key::new(&*meta.namespace, &*meta.name)).map(|it| Change { old: Some(it), new: None })
            }
            InformerEvent::Synced(_) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn before_a_list_only_what_came_until_then_is_known() {
        let coming = |all: &[(u64, u64)]| -> VecDeque<Coming> {
            let one = |&(version, n_lists): &(u64, u64)| {
                let event = InformerEvent::Synced(version.to_string());
                Coming { event, version, n_lists }
            };
            all.iter().map(one).collect()
        };
        let listed = coming(&[(9, 2), (9, 2), (12, 2)]);
        assert_eq!([3, 8, 9, 11].map(|it| is_unknown_at(&listed, 1, it)), [true, true, false, false]);
        // What the watch had brought before is known up to its last version.
        let after_changes = coming(&[(4, 1), (5, 1), (9, 2), (12, 2)]);
        assert_eq!([3, 4, 5].map(|it| is_unknown_at(&after_changes, 1, it)), [false; 3]);
        assert_eq!([6, 8].map(|it| is_unknown_at(&after_changes, 1, it)), [true; 2]);
        assert_eq!([9, 12].map(|it| is_unknown_at(&after_changes, 1, it)), [false; 2]);
        assert!(!is_unknown_at(&coming(&[(4, 1)]), 1, 6));
    }
}
