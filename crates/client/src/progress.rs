//! How far a whole cluster has come: what makes streams of many resources comparable.
//!
//! A stream that is quiet does not say whether it has nothing to say or has not arrived. Corten's servers tell at `/progress`
//! up to which revision all can be seen, and when each resource was changed last.
//!
//! Other servers have no such path (404), or nobody gave this caller the right to it (403): that is said once, and asked again now and
//! then without a word. A server of Corten's that begins may refuse it for a moment, before its roles are there: who refuses is asked
//! for its version.

use std::{
    collections::BTreeMap,
    pin::Pin,
    task::{Context, Poll, ready},
    time::Duration,
};

use corten_api::version::is_own;
use corten_meta::Resource;
use futures_util::StreamExt;
use serde::Deserialize;
use tokio::time::{Instant, Sleep};

use crate::{Backoff, BoxFuture, Client, Error, Watch, WatchEvent, backoff::seed_of, version_number};

const BACKOFF_FIRST: Duration = Duration::from_millis(50);
const BACKOFF_MAX: Duration = Duration::from_secs(5);
/// The server ends each stream after a minute. One that lasts longer is a connection that nobody hears any more.
const LIFETIME_MAX: Duration = Duration::from_secs(90);
/// For so long a server of Corten's may refuse it (403) that has just begun.
const REFUSED_PATIENCE: Duration = Duration::from_secs(8);
/// How often a server that does not tell is asked again: another one may have come in its place.
const UNSERVED_RETRY: Duration = Duration::from_secs(60);

/// See the module's documentation. It runs only while it is polled; it never ends.
pub struct Progress {
    client: Client,
    state: State,
    backoff: Backoff,
    revision: u64,
    /// Places of resources in `changed`, by their names.
    places: BTreeMap<String, usize>,
    /// When each was changed last, as far as the server has told.
    changed: Vec<Option<u64>>,
    /// Since when nothing but 403 was answered.
    refused_since: Option<Instant>,
    is_unserved: bool,
}

/// A resource as [`Progress`] knows it: what is asked often is not looked up by name each time.
#[derive(Clone, Copy, Debug)]
pub struct ResourceIndex(usize);

enum State {
    Connecting(BoxFuture<'static, Result<Watch, Refusal>>),
    /// Until the time at which the stream must have ended.
    Reading(Watch, Pin<Box<Sleep>>),
    Waiting(Pin<Box<Sleep>>),
}

/// There is no stream.
struct Refusal {
    error: Error,
    /// The server has said that it is not of Corten.
    is_foreign: bool,
}

#[derive(Deserialize)]
struct Line {
    revision: String,
    changed: BTreeMap<String, String>,
}

impl Progress {
    pub fn new(client: Client) -> Self {
        let state = State::connect(&client);
        let backoff = Backoff::new(BACKOFF_FIRST, BACKOFF_MAX, seed_of("progress"));
        Self {
            client,
            state,
            backoff,
            revision: 0,
            places: BTreeMap::new(),
            changed: Vec::new(),
            refused_since: None,
            is_unserved: false,
        }
    }

    /// The server does not tell: its streams cannot be compared.
    pub fn is_unserved(&self) -> bool {
        self.is_unserved
    }

    pub fn place(&mut self, resource: &Resource) -> ResourceIndex {
        ResourceIndex(self.place_of(resource.qualified()))
    }

    fn place_of(&mut self, name: String) -> usize {
        let next = self.changed.len();
        let place = *self.places.entry(name).or_insert(next);
        if place == next {
            self.changed.push(None);
        }
        place
    }

    /// Up to which revision a stream of all objects of a resource is whole that has delivered everything up to `version`.
    pub fn of(&self, resource: ResourceIndex, version: u64) -> u64 {
        match self.changed[resource.0] {
            Some(changed) if version >= changed => version.max(self.revision),
            _ => version,
        }
    }

    /// Ready where it has moved on, or where it is known now that the server does not tell.
    pub fn poll(&mut self, context: &mut Context<'_>) -> Poll<()> {
        loop {
            self.state = match &mut self.state {
                State::Connecting(watch) => match ready!(watch.as_mut().poll(context)) {
                    Ok(watch) => State::Reading(watch, Box::pin(tokio::time::sleep(LIFETIME_MAX))),
                    Err(refusal) => {
                        let was_unserved = self.is_unserved;
                        self.state = self.refused(&refusal);
                        if self.is_unserved == was_unserved {
                            continue;
                        }
                        return Poll::Ready(());
                    }
                },
                State::Reading(watch, end) => match watch.poll_next_unpin(context) {
                    Poll::Pending => {
                        ready!(end.as_mut().poll(context));
                        self.failed(&"the stream has not ended in time")
                    }
                    Poll::Ready(Some(Ok(WatchEvent::Bookmark(line)))) => match self.read(&line) {
                        Ok(()) => return Poll::Ready(()),
                        Err(error) => self.failed(&error),
                    },
                    Poll::Ready(None) => State::connect(&self.client),
                    Poll::Ready(Some(Ok(_))) => self.failed(&"an event that is no bookmark"),
                    Poll::Ready(Some(Err(error))) => self.failed(&error),
                },
                State::Waiting(until) => {
                    ready!(until.as_mut().poll(context));
                    State::connect(&self.client)
                }
            };
        }
    }

    fn read(&mut self, line: &[u8]) -> Result<(), Error> {
        let line = crate::decode::<Line>(line)?;
        self.revision = version_number(&line.revision).unwrap_or(self.revision);
        for (name, changed) in line.changed {
            if let Some(changed) = version_number(&changed) {
                let place = self.place_of(name);
                self.changed[place] = Some(changed);
            }
        }
        self.backoff.reset();
        self.refused_since = None;
        if std::mem::take(&mut self.is_unserved) {
            tracing::info!("the server tells its progress now: resources are seen together");
        }
        Ok(())
    }

    /// No stream was begun.
    fn refused(&mut self, Refusal { error, is_foreign }: &Refusal) -> State {
        match error.status().map(|it| it.code) {
            Some(404) => self.unserved(error),
            Some(403) if *is_foreign => self.unserved(error),
            Some(403) => {
                let since = *self.refused_since.get_or_insert_with(Instant::now);
                if since.elapsed() < REFUSED_PATIENCE {
                    return State::wait(self.backoff.delay());
                }
                self.unserved(error)
            }
            // That is another server's, or nobody's: it says nothing about the path.
            _ if self.is_unserved => State::wait(UNSERVED_RETRY),
            _ => {
                self.refused_since = None;
                self.failed(error)
            }
        }
    }

    fn unserved(&mut self, error: &Error) -> State {
        if !std::mem::replace(&mut self.is_unserved, true) {
            let code = error.status().map(|it| it.code);
            tracing::info!(code, "the server does not tell its progress: each resource is seen as it comes");
        }
        State::wait(UNSERVED_RETRY)
    }

    /// Tells why, and tries again later.
    fn failed(&mut self, error: &dyn std::fmt::Display) -> State {
        tracing::warn!(%error, failures = self.backoff.failures() + 1, "cannot read /progress");
        State::wait(self.backoff.delay())
    }
}

impl State {
    fn connect(client: &Client) -> Self {
        let client = client.clone();
        Self::Connecting(Box::pin(async move {
            match client.stream("/progress").await {
                Ok(stream) => Ok(stream),
                Err(error) => {
                    let is_refused = error.status().is_some_and(|it| it.code == 403);
                    Err(Refusal { is_foreign: is_refused && is_foreign(&client).await, error })
                }
            }
        }))
    }

    fn wait(delay: Duration) -> Self {
        Self::Waiting(Box::pin(tokio::time::sleep(delay)))
    }
}

/// Does the server say that it is not of Corten? One that says nothing may be.
async fn is_foreign(client: &Client) -> bool {
    client.server_version().await.is_ok_and(|it| !is_own(&it))
}

#[cfg(test)]
mod tests {
    use corten_api::resources::{NODES, PODS};
    use serde_json::json;

    use super::*;
    use crate::script::{Answer, Script, event};

    #[tokio::test(start_paused = true)]
    async fn a_quiet_stream_has_come_as_far_as_all_if_it_has_told_the_last_change() {
        let line = |revision: &str, pods: &str| {
            event("BOOKMARK", &json!({ "revision": revision, "changed": { "pods": pods } }))
        };
        let script = Script::new(vec![Answer::Open(vec![line("10", "7"), line("20", "12")])]);
        let mut progress = Progress::new(script.client());
        let [pods, nodes] = [&PODS, &NODES].map(|it| progress.place(it));
        assert_eq!(progress.of(pods, 7), 7, "nothing is known yet");
        std::future::poll_fn(|context| progress.poll(context)).await;
        assert_eq!([6, 7, 9, 11].map(|it| progress.of(pods, it)), [6, 10, 10, 11]);
        assert_eq!(progress.of(nodes, 9), 9, "never heard of");
        std::future::poll_fn(|context| progress.poll(context)).await;
        assert_eq!([7, 12].map(|it| progress.of(pods, it)), [7, 20]);
    }

    fn status(code: u16) -> Answer {
        Answer::Json(code, json!({ "kind": "Status", "code": code, "message": "no" }))
    }

    #[tokio::test(start_paused = true)]
    async fn another_server_has_no_such_path() {
        let line = event("BOOKMARK", &json!({ "revision": "10", "changed": {} }));
        let script = Script::new(vec![status(404), status(404), Answer::Lost, Answer::Open(vec![line])]);
        let mut progress = Progress::new(script.client());
        std::future::poll_fn(|context| progress.poll(context)).await;
        assert!(progress.is_unserved());
        let begun = Instant::now();
        std::future::poll_fn(|context| progress.poll(context)).await;
        assert_eq!((progress.is_unserved(), begun.elapsed()), (false, 3 * UNSERVED_RETRY), "one that tells came");
    }

    #[tokio::test(start_paused = true)]
    async fn a_server_without_its_roles_is_asked_again() {
        let line = event("BOOKMARK", &json!({ "revision": "10", "changed": {} }));
        let begins = vec![Answer::Json(503, json!({})), status(403), status(403), Answer::Open(vec![line])];
        let mut progress = Progress::new(Script::new(begins).client());
        std::future::poll_fn(|context| progress.poll(context)).await;
        assert!(!progress.is_unserved(), "it has only begun");

        let refuses = Script::new((0..100).map(|_| status(403)).collect());
        let mut progress = Progress::new(refuses.client());
        let begun = Instant::now();
        std::future::poll_fn(|context| progress.poll(context)).await;
        assert!(progress.is_unserved() && begun.elapsed() >= REFUSED_PATIENCE);
        assert!(refuses.asked().len() < 30, "with a back-off");

        let version = Answer::Json(200, json!({ "gitVersion": "v1.20.2" }));
        let mut progress = Progress::new(Script::new(vec![status(403), version]).client());
        let begun = Instant::now();
        std::future::poll_fn(|context| progress.poll(context)).await;
        assert_eq!((progress.is_unserved(), begun.elapsed()), (true, Duration::ZERO), "it says that it is another's");
    }
}
