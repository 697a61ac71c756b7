//! Keeps one controller's view what its sight says, and tells which keys that wakes.

use std::{
    collections::BTreeSet,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
    task::{Context, Poll},
};

use corten_meta::{Key, ObjectMeta, Resource};
use corten_reconcile::{Controller, Table, View, Wake, Watch};

use crate::sight::{self, Sight, Subscription};

/// One watch of a controller and what feeds it.
struct Feed {
    watch: Watch,
    /// Nothing while it is not needed.
    subscription: Option<Subscription>,
    /// Up to where the view holds the resource, and how often it had been listed then.
    version: u64,
    n_lists: u64,
}

pub(crate) struct Feeds {
    sight: Sight,
    feeds: Vec<Feed>,
    /// A thought holds on to it, and sees no change.
    pub(crate) view: Arc<View>,
}

/// What a batch of events brought.
#[derive(Default)]
pub(crate) struct News {
    pub(crate) woken: Vec<Key>,
    pub(crate) gone: Vec<(Resource, Key)>,
}

impl Feeds {
    pub(crate) fn new(sight: &Sight, controller: &dyn Controller) -> Self {
        let mut view = View::default();
        let feeds = controller.watches().into_iter().map(|watch| {
            view.declare(&watch.resource);
            let subscription = watch.needed.is_none().then(|| sight.subscribe(&watch));
            Feed { watch, subscription, version: 0, n_lists: 0 }
        });
        let feeds = feeds.collect();
        Self { sight: sight.clone(), feeds, view: Arc::new(view) }
    }

    /// To be changed. Whoever holds on to what it was keeps that.
    pub(crate) fn view_mut(&mut self) -> &mut View {
        Arc::make_mut(&mut self.view)
    }

    /// Has every resource been listed that is needed?
    pub(crate) fn is_synced(&self) -> bool {
        self.feeds.iter().all(|it| it.n_lists > 0 || it.subscription.is_none())
    }

    /// Up to where the view holds this resource; `None` where it is not watched.
    pub(crate) fn version(&self, resource: &Resource) -> Option<u64> {
        self.of(resource).map(|it| it.version).min()
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
                woken(watch.wake, &self.view, object.meta(), &mut keys);
            }
        }
        keys.into_iter().collect()
    }

    /// Takes in what is new; ready where that was anything.
    pub(crate) fn poll(&mut self, context: &Context<'_>, news: &mut News) -> Poll<()> {
        let mut poll = Poll::Pending;
        for Feed { watch, subscription, version, n_lists } in &mut self.feeds {
            if subscription.is_none() && watch.needed.is_some_and(|it| it(&self.view)) {
                *subscription = Some(self.sight.subscribe(watch));
            }
            let Some(subscription) = subscription else { continue };
            let Poll::Ready(sight::News { state, changes }) = subscription.poll(context) else { continue };
            poll = Poll::Ready(());
            (*version, *n_lists) = (state.version, state.n_lists);
            let view = Arc::make_mut(&mut self.view);
            match changes {
                Some(changes) => take(view, watch, state.table, &changes, news),
                None => take_all(view, watch, state.table, news),
            }
        }
        poll
    }
}

fn take(view: &mut View, watch: &Watch, table: Table, changes: &[sight::Change], news: &mut News) {
    let keys: Vec<Key> = changes.iter().map(|it| it.meta().key()).collect();
    view.advance(&watch.resource, table, keys.iter());
    for (change, key) in changes.iter().zip(keys) {
        if let (Some(old), Some(new)) = (&change.old, &change.new)
            && !watch.is_news(old, new)
        {
            continue;
        }
        for object in change.old.iter().chain(&change.new) {
            woken(watch.wake, view, object.meta(), &mut news.woken);
        }
        if change.new.is_none() {
            news.gone.push((watch.resource.clone(), key));
        }
    }
}

/// Takes a table in of which anything may have changed.
fn take_all(view: &mut View, watch: &Watch, table: Table, news: &mut News) {
    let resource = &watch.resource;
    let old = view.table(resource).cloned().unwrap_or_default();
    view.advance(resource, table.clone(), old.keys().chain(table.keys()));
    for object in old.iter().chain(table.iter()) {
        woken(watch.wake, view, object.meta(), &mut news.woken);
    }
    let gone = old.keys().filter(|it| table.get(it).is_none());
    news.gone.extend(gone.map(|it| (resource.clone(), it.clone())));
}

fn woken(wake: Wake, view: &View, meta: &ObjectMeta, keys: &mut Vec<Key>) {
    match wake {
        Wake::Itself => keys.push(meta.key()),
        Wake::Controller(kind) => {
            let owner = meta.controller().filter(|it| it.kind == kind);
            keys.extend(owner.map(|it| Key::new(&*meta.namespace, &*it.name)));
        }
        // Of a mind, too: where it breaks, one object wakes nobody until the next resync.
        Wake::With(keys_of) => match catch_unwind(AssertUnwindSafe(|| keys_of(view, meta))) {
            Ok(woken) => keys.extend(woken),
            Err(_) => {
                tracing::error!(object = %meta.key(), "whom a change wakes cannot be told: the controller panicked")
            }
        },
        Wake::Nobody => {}
    }
}

#[cfg(test)]
mod tests;
