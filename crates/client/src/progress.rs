//! How far a whole cluster has come: what makes streams of many resources comparable.
//!
//! A stream that is quiet does not say whether it has nothing to say or has not arrived. Corten's servers tell at `/progress`
//! up to which revision all can be seen, and when each resource was changed last.

use std::{
    collections::BTreeMap,
    pin::Pin,
    task::{Context, Poll, ready},
    time::Duration,
};

use corten_meta::Resource;
use futures_util::StreamExt;
use serde::Deserialize;
use tokio::time::Sleep;

use crate::{Backoff, BoxFuture, Client, Error, Watch, WatchEvent, backoff::seed_of, version_number};

const BACKOFF_FIRST: Duration = Duration::from_millis(50);
const BACKOFF_MAX: Duration = Duration::from_secs(5);
/// The server ends each stream after a minute. One that lasts longer is a connection that nobody hears any more.
const LIFETIME_MAX: Duration = Duration::from_secs(90);

/// See the module's documentation. It runs only while it is polled; it never ends.
pub struct Progress {
    client: Client,
    state: State,
    backoff: Backoff,
    revision: u64,
    changed: BTreeMap<String, u64>,
}

enum State {
    Connecting(BoxFuture<'static, Result<Watch, Error>>),
    /// Until the time at which the stream must have ended.
    Reading(Watch, Pin<Box<Sleep>>),
    Waiting(Pin<Box<Sleep>>),
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
        Self { client, state, backoff, revision: 0, changed: BTreeMap::new() }
    }

    /// Up to which revision a stream of all objects of `resource` is whole that has delivered everything up to `version`.
    pub fn of(&self, resource: &Resource, version: u64) -> u64 {
        match self.changed.get(&resource.qualified()) {
            Some(changed) if version >= *changed => version.max(self.revision),
            _ => version,
        }
    }

    /// Ready where it has moved on.
    pub fn poll(&mut self, context: &mut Context<'_>) -> Poll<()> {
        loop {
            self.state = match &mut self.state {
                State::Connecting(watch) => match ready!(watch.as_mut().poll(context)) {
                    Ok(watch) => State::Reading(watch, Box::pin(tokio::time::sleep(LIFETIME_MAX))),
                    Err(error) => self.failed(&error),
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
        let changed = line.changed.iter().filter_map(|(name, it)| Some((name.clone(), version_number(it)?)));
        self.changed.extend(changed);
        self.backoff.reset();
        Ok(())
    }

    /// Tells why, and tries again later.
    fn failed(&mut self, error: &dyn std::fmt::Display) -> State {
        tracing::warn!(%error, failures = self.backoff.failures() + 1, "cannot read /progress");
        State::Waiting(Box::pin(tokio::time::sleep(self.backoff.delay())))
    }
}

impl State {
    fn connect(client: &Client) -> Self {
        let client = client.clone();
        Self::Connecting(Box::pin(async move { client.stream("/progress").await }))
    }
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
        assert_eq!(progress.of(&PODS, 7), 7, "nothing is known yet");
        std::future::poll_fn(|context| progress.poll(context)).await;
        assert_eq!([6, 7, 9, 11].map(|it| progress.of(&PODS, it)), [6, 10, 10, 11]);
        assert_eq!(progress.of(&NODES, 9), 9, "never heard of");
        std::future::poll_fn(|context| progress.poll(context)).await;
        assert_eq!([7, 12].map(|it| progress.of(&PODS, it)), [7, 20]);
    }
}
