//! A client's cache, kept by one watch that goes on after every kill where it was cut off.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use anyhow::{Context, Result, bail};
use bytes::Bytes;
use corten_testbed::Connection;
use http_body_util::BodyExt;
use hyper::{Method, StatusCode};
use parking_lot::Mutex;
use serde::Deserialize;
use serde_json::value::RawValue;

use super::{
    CONFIG_MAPS,
    oracle::{List, Metadata, Object, Version, is_ours},
};

#[derive(Clone)]
pub(crate) struct Watcher {
    cache: Arc<Mutex<Cache>>,
    /// After each piece that it reads.
    rest: Duration,
    /// A server may be there and not able to serve.
    is_tolerant: bool,
}

struct Cache {
    objects: BTreeMap<String, Version>,
    /// The newest it was told of.
    revision: u64,
    seen: WatchedChanges,
    n_relists: usize,
}

/// What a watcher was told.
#[derive(Clone, Default)]
pub(crate) struct WatchedChanges {
    pub(crate) puts: BTreeMap<u64, (String, String)>,
    /// From after which revision up to which it was told everything.
    spans: Vec<(u64, u64)>,
}

impl WatchedChanges {
    /// `answered`: what was put, into what, by revision.
    pub(crate) fn check(&self, answered: &BTreeMap<u64, (String, String)>) -> Result<()> {
        for (from, to) in &self.spans {
            for (revision, (name, value)) in answered.range(*from..=*to).filter(|it| it.0 > from) {
                match self.puts.get(revision) {
                    Some((seen_name, seen_value)) if seen_name == name && seen_value == value => {}
                    other => bail!("revision {revision} put {value} into {name}, and a watcher saw {other:?}"),
                }
            }
        }
        Ok(())
    }
}

#[derive(Deserialize)]
struct Event<'a> {
    r#type: &'a str,
    #[serde(borrow)]
    object: &'a RawValue,
}

#[derive(Deserialize)]
struct OnlyMeta {
    metadata: Metadata,
}

impl Watcher {
    pub(crate) fn new(list: List, rest: Duration) -> Self {
        let seen = WatchedChanges { puts: BTreeMap::new(), spans: vec![(list.revision, list.revision)] };
        let cache = Cache { objects: list.objects, revision: list.revision, seen, n_relists: 0 };
        Self { cache: Arc::new(Mutex::new(cache)), rest, is_tolerant: false }
    }

    /// As [`Self::new`], of servers that may not be able to serve for a while.
    pub(crate) fn tolerant(list: List, rest: Duration) -> Self {
        Self { is_tolerant: true, ..Self::new(list, rest) }
    }

    pub(crate) fn n_relists(&self) -> usize {
        self.cache.lock().n_relists
    }

    pub(crate) fn seen(&self) -> WatchedChanges {
        self.cache.lock().seen.clone()
    }

    /// Watches on from where it is until the connection ends.
    pub(crate) async fn watch(self, connection: Connection) -> Result<()> {
        self.follow(connection, self.rest, |_| false).await
    }

    pub(crate) fn holds(&self, list: &List) -> bool {
        self.cache.lock().holds(list, self.is_tolerant)
    }

    /// Watches on, and rests no more, until it holds what `list` holds: how far a slow one is behind is no fault of the server's.
    pub(crate) async fn until(self, connection: Connection, list: &List) -> Result<()> {
        if self.holds(list) {
            return Ok(());
        }
        self.follow(connection, Duration::ZERO, |it| it.holds(list, self.is_tolerant)).await
    }

    async fn follow(
        &self,
        mut connection: Connection,
        rest: Duration,
        is_enough: impl Fn(&Cache) -> bool,
    ) -> Result<()> {
        loop {
            let revision = self.cache.lock().revision;
            let path = format!("{CONFIG_MAPS}?watch=true&allowWatchBookmarks=true&resourceVersion={revision}");
            let Ok((status, mut body)) = connection.begin(Method::GET, &path, Bytes::new()).await else {
                return Ok(());
            };
            if self.is_tolerant && (status.is_server_error() || status == StatusCode::TOO_MANY_REQUESTS) {
                return Ok(());
            }
            if status != StatusCode::OK {
                bail!("a watch was answered {status}");
            }
            let mut unread = Vec::new();
            loop {
                let Some(Ok(frame)) = body.frame().await else { return Ok(()) };
                let Ok(data) = frame.into_data() else { continue };
                unread.extend_from_slice(&data);
                let Some(end) = unread.iter().rposition(|it| *it == b'\n') else { continue };
                let lines: Vec<u8> = unread.drain(..=end).collect();
                match self.take(&lines, &is_enough)? {
                    Next::Enough => return Ok(()),
                    Next::More => tokio::time::sleep(rest).await,
                    Next::List => break,
                }
            }
            // Its end may still be on the way: a connection with an answer that nobody reads on asks nothing more.
            drop(body);
            let Ok(list) = connection.get(CONFIG_MAPS).await else { return Ok(()) };
            let mut cache = self.cache.lock();
            cache.list_again(List::read(&list)?);
            if is_enough(&cache) {
                return Ok(());
            }
        }
    }

    fn take(&self, lines: &[u8], is_enough: impl Fn(&Cache) -> bool) -> Result<Next> {
        let mut cache = self.cache.lock();
        for line in lines.split(|it| *it == b'\n').filter(|it| !it.is_empty()) {
            if !cache.take(line)? {
                return Ok(Next::List);
            }
        }
        Ok(if is_enough(&cache) { Next::Enough } else { Next::More })
    }

    /// Nothing it was told may be missing from what is there.
    pub(crate) fn check_against(&self, list: &List) -> Result<()> {
        let cache = self.cache.lock();
        if cache.revision > list.revision {
            bail!("a watcher was told of revision {}, and the store is at {} again", cache.revision, list.revision);
        }
        for (name, told) in &cache.objects {
            match list.objects.get(name) {
                Some(found) if found.revision < told.revision || (found.revision == told.revision && found != told) => {
                    bail!("a watcher was told that {name} is {told:?}, and it is {found:?}");
                }
                _ => {}
            }
        }
        Ok(())
    }

    pub(crate) fn difference(&self, list: &List) -> String {
        let cache = self.cache.lock();
        let names = cache.objects.keys().chain(list.objects.keys());
        let different = names.filter(|it| cache.objects.get(*it) != list.objects.get(*it));
        let lines: Vec<String> = different
            .map(|it| format!("{it}: told {:?}, is {:?}", cache.objects.get(it), list.objects.get(it)))
            .collect();
        format!("at {} of {}: {}", cache.revision, list.revision, lines.join("; "))
    }
}

enum Next {
    Enough,
    More,
    /// The server no longer knows where the watch was.
    List,
}

impl Cache {
    /// Does it say what the list says? A write whose answer was lost may have come meanwhile.
    fn holds(&self, list: &List, or_newer: bool) -> bool {
        let is_newer = |(name, listed): (&String, &Version)| {
            self.objects.get(name).is_some_and(|it| it.revision >= listed.revision)
        };
        self.objects == list.objects || or_newer && list.objects.iter().all(is_newer)
    }

    fn list_again(&mut self, list: List) {
        self.n_relists += 1;
        self.revision = list.revision;
        self.objects = list.objects;
        self.seen.spans.push((list.revision, list.revision));
    }

    /// Takes one event in. False where the server says that the watch cannot go on.
    fn take(&mut self, line: &[u8]) -> Result<bool> {
        let event: Event = serde_json::from_slice(line).context("reading an event")?;
        let json = event.object.get().as_bytes();
        if event.r#type == "ERROR" {
            return Ok(false);
        }
        if event.r#type == "BOOKMARK" {
            let bookmark: OnlyMeta = serde_json::from_slice(json)?;
            self.advance(bookmark.metadata.resource_version.parse()?, "a bookmark")?;
            return Ok(true);
        }
        let (name, version) = Object::read(json)?;
        if version.revision <= self.revision {
            bail!("{} of {name} at {} came after {}", event.r#type, version.revision, self.revision);
        }
        self.advance(version.revision, &name)?;
        if !is_ours(&name) {
            return Ok(true);
        }
        let was_there = self.objects.contains_key(&name);
        match (event.r#type, was_there) {
            ("ADDED", false) | ("MODIFIED", true) => {
                self.seen.puts.insert(version.revision, (name.clone(), version.value.clone()));
                self.objects.insert(name, version);
            }
            ("DELETED", true) => drop(self.objects.remove(&name)),
            (other, _) => bail!("{other} of {name}, which was {}there", if was_there { "" } else { "not " }),
        }
        Ok(true)
    }

    fn advance(&mut self, revision: u64, what: &str) -> Result<()> {
        if revision < self.revision {
            bail!("{what} at {revision} came after {}", self.revision);
        }
        self.revision = revision;
        if let Some(span) = self.seen.spans.last_mut() {
            span.1 = revision;
        }
        Ok(())
    }
}
