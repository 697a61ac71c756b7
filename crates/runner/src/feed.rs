//! Keeps one controller's view what its informers say, and tells which keys that wakes.

use std::{
    collections::{BTreeSet, HashSet},
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
    task::{Context, Poll},
};

use corten_client::Failing;
use corten_meta::{Key, ObjectMeta, Resource, Time};
use corten_reconcile::{Controller, Origin, Subject, Table, View, Wake, Watch};

use crate::shared_informers::{self, Change, SharedInformers, Subscription};

/// One watch of a controller and what feeds it.
struct Feed {
    watch: Watch,
    /// Nothing while it is not needed, by the view as it is.
    subscription: Option<Subscription>,
    /// How often the resource had been listed as the view holds it.
    n_lists: u64,
    /// It is not of the view's revision.
    is_behind: bool,
    /// Up to where it has come, where that is not the view's revision: the server does not tell how resources compare.
    version: Option<u64>,
    /// What another watch leads to.
    is_led_to: bool,
    /// It cannot be listed, and the mind knows.
    is_borne_gap: bool,
}

impl Feed {
    fn new(watch: Watch, is_led_to: bool) -> Self {
        Self { watch, subscription: None, n_lists: 0, is_behind: false, version: None, is_led_to, is_borne_gap: false }
    }

    fn is_synced(&self) -> bool {
        self.n_lists > 0 && !self.is_behind || self.subscription.is_none()
    }

    /// Nobody waits for it.
    fn is_there(&self) -> bool {
        self.watch.origin != Origin::Here || self.is_synced() || self.is_borne_gap
    }

    fn has_borne_gap(&self) -> bool {
        let cannot_be_listed = || self.subscription.as_ref().is_some_and(Subscription::cannot_be_listed);
        self.watch.bears_gaps && !self.is_synced() && cannot_be_listed()
    }
}

pub(crate) struct Feeds {
    informers: SharedInformers,
    feeds: Vec<Feed>,
    /// Of everything the view holds.
    revision: u64,
    /// A thought holds on to it, and sees no change. It may lack what it leads to: who decides asks for
    /// [`Feeds::whole_view`].
    pub(crate) view: Arc<View>,
}

/// What a batch of events brought.
#[derive(Default)]
pub(crate) struct FeedChanges {
    pub(crate) woken: Vec<Key>,
    pub(crate) gone: Vec<(Resource, Key)>,
}

impl Feeds {
    pub(crate) fn new(informers: &SharedInformers, controller: &dyn Controller) -> Self {
        let mut view = View::default();
        let feeds = controller.watches().into_iter().map(|watch| {
            declare(&mut view, &watch);
            Feed::new(watch, false)
        });
        let feeds = feeds.collect();
        let mut feeds = Self { informers: informers.clone(), feeds, revision: 0, view: Arc::new(view) };
        feeds.subscribe_to_what_is_needed();
        feeds
    }

    /// To be changed. Whoever holds on to what it was keeps that.
    pub(crate) fn view_mut(&mut self) -> &mut View {
        Arc::make_mut(&mut self.view)
    }

    /// Where resources are seen as they come, what was found when an object was asked for is soon old.
    pub(crate) fn outdate_answers(&mut self, now: Time) {
        if self.informers.are_apart() {
            self.view_mut().outdate_answers(Some(now));
        }
    }

    /// The view, once it is whole: of one revision, and lacking nothing that is needed. What definitions describe counts as
    /// soon as the view holds the definition: a kind is not without objects because it has not been listed yet.
    pub(crate) fn whole_view(&self) -> Option<Arc<View>> {
        self.is_synced().then(|| self.view.clone())
    }

    fn is_synced(&self) -> bool {
        self.feeds.iter().all(Feed::is_there)
    }

    /// What the view lacks to be whole because the server does not give it, and what that says.
    pub(crate) fn failing(&self) -> Vec<(Resource, Failing)> {
        let lacking = self.feeds.iter().filter(|it| !it.is_there());
        lacking.filter_map(|it| Some((it.watch.resource.clone(), it.subscription.as_ref()?.failing()?))).collect()
    }

    /// Up to where the view holds this resource; `None` where it is not watched. Versions of another server's objects are
    /// not compared: a view of them is never too old.
    pub(crate) fn version(&self, resource: &Resource) -> Option<u64> {
        let version = |it: &Feed| match it.watch.origin {
            Origin::Here if it.n_lists > 0 && !it.is_behind => it.version.unwrap_or(self.revision),
            Origin::Here => 0,
            Origin::Elsewhere { .. } | Origin::Discovery => u64::MAX,
        };
        self.of(resource).map(version).min()
    }

    /// How often this resource has been listed; `None` where it is not watched.
    pub(crate) fn n_lists(&self, resource: &Resource) -> Option<u64> {
        self.of(resource).map(|it| it.n_lists).min()
    }

    fn of<'a>(&'a self, resource: &Resource) -> impl Iterator<Item = &'a Feed> {
        self.feeds.iter().filter(move |it| it.watch.resource == *resource && it.subscription.is_some())
    }

    /// Lists a resource again, since the view may have missed something. Gives the number of lists at which the view
    /// holds one that was begun after this call.
    pub(crate) fn relist(&self, resource: &Resource) -> u64 {
        let subscriptions = self.of(resource).filter_map(|it| it.subscription.as_ref());
        subscriptions.map(Subscription::relist).max().unwrap_or(0)
    }

    /// Every key that any object in the view wakes.
    pub(crate) fn all_keys(&self) -> BTreeSet<Key> {
        let mut keys = Vec::new();
        for Feed { watch, .. } in &self.feeds {
            for object in self.view.table(&watch.resource).into_iter().flat_map(Table::iter) {
                woken(watch, &self.view, object.meta(), &mut keys);
            }
        }
        keys.into_iter().collect()
    }

    /// Takes in what is new; ready where that was anything.
    pub(crate) fn poll(&mut self, context: &Context<'_>, news: &mut FeedChanges) -> Poll<()> {
        let mut told = Vec::new();
        {
            // All at one revision. What it wakes is asked of the mind afterwards: that may take long.
            let shown = self.informers.shown();
            self.revision = *shown;
            for (feed, Feed { subscription, .. }) in self.feeds.iter().enumerate() {
                if let Some(Poll::Ready(it)) = subscription.as_ref().map(|it| it.poll(context)) {
                    told.push((feed, it));
                }
            }
        }
        if told.is_empty() {
            return Poll::Pending;
        }
        let view = Arc::make_mut(&mut self.view);
        let mut taken = Vec::new();
        for (feed, shared_informers::InboxChanges { state, changes }) in told {
            let Feed { watch, n_lists, is_behind, version, .. } = &mut self.feeds[feed];
            (*n_lists, *is_behind, *version) = (state.n_lists, state.is_behind, state.version);
            let is_everything = changes.is_none();
            taken.push((feed, is_everything, take(view, &watch.resource, state.table, changes)));
        }
        // Whom a change wakes is found in the view as it is now, as a whole.
        let mut is_led_anew = false;
        for (feed, is_everything, changes) in taken {
            let watch = &self.feeds[feed].watch;
            let is_news = |it: &Change| match (&it.old, &it.new) {
                (Some(old), Some(new)) => is_everything || watch.is_news(old, new),
                _ => true,
            };
            changes.iter().filter(|it| is_news(it)).for_each(|it| tell(view, watch, it, news));
            is_led_anew |= watch.leads_to.is_some();
        }
        // Before anybody can be shown this view: what it leads to is missing from now on until it has been listed.
        if is_led_anew {
            self.follow();
        }
        self.subscribe_to_what_is_needed();
        self.look_for_gaps();
        Poll::Ready(())
    }

    fn look_for_gaps(&mut self) {
        let mut gaps = BTreeSet::new();
        for feed in &mut self.feeds {
            feed.is_borne_gap = feed.has_borne_gap();
            if feed.is_borne_gap {
                gaps.insert(feed.watch.resource.clone());
            }
        }
        // Nearly always there is none.
        if self.view.cannot_be_listed() != &gaps {
            self.view_mut().set_gaps(gaps);
        }
    }

    /// Watches what the view leads to now, and no longer what it led to before.
    fn follow(&mut self) {
        let led_to = self.feeds.iter().filter_map(|it| it.watch.leads_to);
        let wanted: Vec<Watch> = led_to.flat_map(|it| it(&self.view)).collect();
        // There may be thousands, and this is done for each definition that comes.
        let subjects: HashSet<Subject> = wanted.iter().map(Watch::subject).collect();
        let is_gone = |it: &Feed| it.is_led_to && !subjects.contains(&it.watch.subject());
        let gone: Vec<Feed> = self.feeds.extract_if(.., |it| is_gone(it)).collect();
        let known: HashSet<Subject> = self.feeds.iter().map(|it| it.watch.subject()).collect();
        let view = Arc::make_mut(&mut self.view);
        gone.iter().for_each(|it| view.withdraw(&it.watch.resource));
        for watch in wanted.into_iter().filter(|it| !known.contains(&it.subject())) {
            declare(view, &watch);
            self.feeds.push(Feed::new(watch, true));
        }
    }

    fn subscribe_to_what_is_needed(&mut self) {
        for Feed { watch, subscription, is_led_to, .. } in &mut self.feeds {
            if subscription.is_none() && watch.needed.is_none_or(|it| it(&self.view)) {
                let subscribe = if *is_led_to { SharedInformers::subscribe_led_to } else { SharedInformers::subscribe };
                *subscription = Some(subscribe(&self.informers, watch));
            }
        }
    }
}

/// What is here and has no objects has an empty table. Of what is elsewhere that is not known before it has been listed.
fn declare(view: &mut View, watch: &Watch) {
    if watch.origin == Origin::Here {
        view.declare_with(&watch.resource, watch.table());
    }
}

/// Puts a table into the view. Gives what may have changed with it.
fn take(view: &mut View, resource: &Resource, table: Table, changes: Option<Vec<Change>>) -> Vec<Change> {
    let changes = changes.unwrap_or_else(|| {
        let old = view.table(resource).cloned().unwrap_or_default();
        let keys: BTreeSet<&Key> = old.keys().chain(table.keys()).collect();
        let change = |key: &Key| Change { old: old.get(key).cloned(), new: table.get(key).cloned() };
        keys.into_iter().map(change).collect()
    });
    let keys: Vec<Key> = changes.iter().map(|it| it.meta().key()).collect();
    view.advance(resource, table, keys.iter());
    changes
}

fn tell(view: &View, watch: &Watch, change: &Change, news: &mut FeedChanges) {
    for object in change.old.iter().chain(&change.new) {
        woken(watch, view, object.meta(), &mut news.woken);
    }
    if change.new.is_none() {
        news.gone.push((watch.resource.clone(), change.meta().key()));
    }
}

fn woken(watch: &Watch, view: &View, meta: &ObjectMeta, keys: &mut Vec<Key>) {
    // Of a mind: where it breaks, one object wakes nobody until the next resync.
    let mut ask = |keys_of: &dyn Fn() -> Vec<Key>| match catch_unwind(AssertUnwindSafe(keys_of)) {
        Ok(woken) => keys.extend(woken),
        Err(_) => {
            tracing::error!(object = %meta.key(), "whom a change wakes cannot be told: the controller panicked")
        }
    };
    match watch.wake {
        Wake::Itself => keys.push(meta.key()),
        Wake::Controller(kind) => {
            let owner = meta.controller().filter(|it| it.kind == kind);
            keys.extend(owner.map(|it| Key::new(&*meta.namespace, &*it.name)));
        }
        Wake::With(keys_of) => ask(&|| keys_of(view, meta)),
        Wake::WithResource(keys_of) => ask(&|| keys_of(view, &watch.resource, meta)),
        Wake::Nobody => {}
    }
}

#[cfg(test)]
mod tests;
