//! Keeps one controller's view what its informers say, and tells which keys that wakes.

use std::{
    collections::BTreeSet,
    task::{Context, Poll},
};

use corten_client::{Client, Error, Identity, Informer, InformerEvent, InformerParams, version_number};
use corten_meta::{Key, ObjectMeta, Resource};
use corten_reconcile::{Controller, Object, View, Wake, Watch};

/// Events of one resource that are taken in before another one's turn.
const BATCH: usize = 256;

/// One watch of a controller and what feeds it.
struct Feed {
    watch: Watch,
    informer: Informer<Object>,
}

pub(crate) struct Feeds {
    feeds: Vec<Feed>,
    pub(crate) view: View,
}

/// What a batch of events brought.
#[derive(Default)]
pub(crate) struct News {
    pub(crate) woken: Vec<Key>,
    pub(crate) gone: Vec<(Resource, Key)>,
}

impl Feeds {
    pub(crate) fn new(client: &Client, controller: &dyn Controller) -> Self {
        let mut view = View::default();
        let feeds = controller.watches().into_iter().map(|watch| {
            view.declare(&watch.resource);
            let params = InformerParams {
                field_selector: watch.field_selector.clone(),
                ..InformerParams::all(watch.resource.clone())
            };
            let params = params.seeded_by(controller.name());
            let decoder = watch.clone();
            let informer = Informer::decoding(client.clone(), params, move |bytes| {
                let object = decoder.decode(&bytes).map_err(|error| Error::Decode(error.to_string()))?;
                Ok((Identity::of(object.meta()), object))
            });
            Feed { watch, informer }
        });
        let feeds = feeds.collect();
        Self { feeds, view }
    }

    /// Has every resource been listed?
    pub(crate) fn is_synced(&self) -> bool {
        self.feeds.iter().all(|it| it.informer.n_lists() > 0)
    }

    /// Up to where the view holds this resource; `None` where it is not watched.
    pub(crate) fn version(&self, resource: &Resource) -> Option<u64> {
        let versions = self.of(resource).map(|it| version_number(it.informer.version()).unwrap_or(0));
        versions.min()
    }

    /// How often this resource has been listed; `None` where it is not watched.
    pub(crate) fn n_lists(&self, resource: &Resource) -> Option<u64> {
        self.of(resource).map(|it| it.informer.n_lists()).min()
    }

    fn of<'a>(&'a self, resource: &Resource) -> impl Iterator<Item = &'a Feed> {
        self.feeds.iter().filter(move |it| it.watch.resource == *resource)
    }

    /// Lists a resource again, since the view may have missed something. Gives the number of lists at which the view
    /// holds one that was begun after this call.
    pub(crate) fn relist(&mut self, resource: &Resource) -> u64 {
        let feeds = self.feeds.iter_mut().filter(|it| it.watch.resource == *resource);
        feeds.map(|it| it.informer.relist()).max().unwrap_or(0)
    }

    /// Every key that any object in the view wakes.
    pub(crate) fn all_keys(&self) -> BTreeSet<Key> {
        let mut keys = Vec::new();
        for feed in &self.feeds {
            let (resource, wake) = (&feed.watch.resource, feed.watch.wake);
            for (_, meta) in self.view.all_meta().filter(|it| it.0 == resource) {
                woken(wake, &self.view, meta, &mut keys);
            }
        }
        keys.into_iter().collect()
    }

    /// Takes in what the informers have; ready where that was anything.
    pub(crate) fn poll(&mut self, context: &mut Context<'_>, news: &mut News) -> Poll<()> {
        let mut poll = Poll::Pending;
        for Feed { watch, informer } in &mut self.feeds {
            for _ in 0..BATCH {
                let Poll::Ready(event) = informer.poll_event(context) else { break };
                poll = Poll::Ready(());
                take(&mut self.view, watch, event, news);
            }
        }
        poll
    }
}

fn take(view: &mut View, watch: &Watch, event: InformerEvent<Object>, news: &mut News) {
    let resource = &watch.resource;
    match event {
        InformerEvent::Applied(object, _) => {
            if let Some(old) = view.insert(resource, object.clone()) {
                woken(watch.wake, view, old.meta(), &mut news.woken);
            }
            woken(watch.wake, view, object.meta(), &mut news.woken);
        }
        InformerEvent::Deleted(meta) => {
            let key = meta.key();
            let last = view.remove(resource, &key);
            let meta = last.as_ref().map_or(&meta, |it| it.meta());
            woken(watch.wake, view, meta, &mut news.woken);
            news.gone.push((resource.clone(), key));
        }
        InformerEvent::Synced(_) => {}
    }
}

fn woken(wake: Wake, view: &View, meta: &ObjectMeta, keys: &mut Vec<Key>) {
    match wake {
        Wake::Itself => keys.push(meta.key()),
        Wake::Controller(kind) => {
            let owner = meta.controller().filter(|it| it.kind == kind);
            keys.extend(owner.map(|it| Key::new(&*meta.namespace, &*it.name)));
        }
        Wake::With(keys_of) => keys.extend(keys_of(view, meta)),
        Wake::Nobody => {}
    }
}
