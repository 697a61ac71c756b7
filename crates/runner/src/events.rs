//! Tells users what happened, as Event objects: repetitions are counted into one, and nobody can flood the API.
//!
//! Telling is best effort: it never holds up what it tells of, and what cannot be told in a few tries is dropped.

#[cfg(test)]
mod tests;

use std::{
    collections::{BTreeMap, VecDeque},
    task::{Context, Poll},
    time::Duration,
};

use corten_api::resources::EVENTS;
use corten_client::{BoxFuture, Client, Error, PatchType};
use corten_meta::{Key, ObjectReference, Retry, Time};
use corten_reconcile::EventType;
use serde_json::{Value, json};

const QUEUE_MAX: usize = 512;
const REMEMBERED_MAX: usize = 4096;
/// Of one message: what others say stands in it, and many are remembered.
const MESSAGE_CHARS_MAX: usize = 8 << 10;
const TRIES: u32 = 3;
const RETRY_DELAY: Duration = Duration::from_secs(1);
/// client-go's `defaultSpamBurst` and `defaultSpamQPS`: a source may tell this much of one object at once, and then one
/// more every five minutes.
const BURST: u32 = 25;
const REFILL: Duration = Duration::from_secs(300);
/// client-go's `EventAggregator`: the tenth message for one reason about one object stands for itself and all that follow,
/// until nothing was told for this reason for so long.
const SIMILAR_MAX: usize = 10;
const SIMILAR_FOR: Duration = Duration::from_secs(600);

/// One component's way to tell. It sends only while it is polled.
pub struct EventRecorder {
    client: Client,
    source: Source,
    queue: VecDeque<LastReport>,
    sending: Option<BoxFuture<'static, Sent>>,
    /// What has been told, to be counted on: the oldest are forgotten first.
    told: BTreeMap<Identity, Count>,
    order: VecDeque<Identity>,
    buckets: BTreeMap<String, Bucket>,
    n_told: i64,
}

/// Who tells.
#[derive(Clone, Debug)]
struct Source {
    component: String,
    /// Empty for what is not of one node.
    host: String,
}

/// What makes two events the same one.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Identity {
    about: ObjectReference,
    event_type: &'static str,
    reason: String,
    /// `None`: whatever is told for that reason, as there is too much of it.
    message: Option<String>,
}

struct LastReport {
    identity: Identity,
    at: Time,
}

struct Count {
    key: Key,
    count: u32,
    last: Time,
}

struct Bucket {
    left: u32,
    filled: Time,
}

struct Sent {
    identity: Identity,
    /// Where it stands now; `None` where it could not be told.
    count: Option<Count>,
}

impl EventRecorder {
    /// `component` is what users see as the source: `deployment-controller`, `default-scheduler`, `kubelet`.
    pub fn new(client: Client, component: impl Into<String>) -> Self {
        Self::on_node(client, component, "")
    }

    /// As [`EventRecorder::new`], for a component of one node.
    pub fn on_node(client: Client, component: impl Into<String>, node: &str) -> Self {
        Self {
            client,
            source: Source { component: component.into(), host: node.to_owned() },
            queue: VecDeque::new(),
            sending: None,
            told: BTreeMap::new(),
            order: VecDeque::new(),
            buckets: BTreeMap::new(),
            n_told: 0,
        }
    }

    /// Queues one event; it is sent while [`EventRecorder::poll`] or [`EventRecorder::run`] is polled.
    pub fn record(&mut self, about: &ObjectReference, event_type: EventType, reason: &str, message: &str, at: Time) {
        if self.queue.len() >= QUEUE_MAX || !self.may_tell(about, at) {
            tracing::debug!(reason, message, "too many events, one is dropped");
            return;
        }
        let about = ObjectReference { resource_version: String::new(), ..about.clone() };
        let message = message.chars().take(MESSAGE_CHARS_MAX).collect();
        let (reason, message) = (reason.to_owned(), Some(message));
        let identity = Identity { about, event_type: event_type.as_str(), reason, message };
        self.queue.push_back(LastReport { identity, at });
    }

    /// Sends what is queued, for ever.
    pub async fn run(&mut self) {
        std::future::poll_fn(|context| self.poll(context)).await;
    }

    /// Sends on; never ready.
    pub fn poll(&mut self, context: &mut Context<'_>) -> Poll<()> {
        loop {
            if self.sending.is_none() {
                let Some(told) = self.queue.pop_front() else { return Poll::Pending };
                self.sending = Some(self.send(told));
            }
            if let Some(sending) = &mut self.sending {
                let sent = std::task::ready!(sending.as_mut().poll(context));
                self.sending = None;
                self.remember(sent);
            }
        }
    }

    fn may_tell(&mut self, about: &ObjectReference, at: Time) -> bool {
        if self.buckets.len() >= REMEMBERED_MAX {
            self.buckets.retain(|_, it| at.since(it.filled) < REFILL.saturating_mul(BURST));
        }
        if self.buckets.len() >= REMEMBERED_MAX {
            self.buckets.pop_first();
        }
        let id = if about.uid.is_empty() { format!("{}/{}", about.namespace, about.name) } else { about.uid.clone() };
        let bucket = self.buckets.entry(id).or_insert(Bucket { left: BURST, filled: at });
        let refills = u32::try_from(at.since(bucket.filled).as_secs() / REFILL.as_secs()).unwrap_or(BURST);
        if refills > 0 {
            bucket.left = bucket.left.saturating_add(refills).min(BURST);
            bucket.filled = at;
        }
        let may = bucket.left > 0;
        bucket.left = bucket.left.saturating_sub(1);
        may
    }

    fn send(&mut self, told: LastReport) -> BoxFuture<'static, Sent> {
        let client = self.client.clone();
        let LastReport { mut identity, at } = told;
        let mut message = identity.message.clone().unwrap_or_default();
        if self.is_one_too_many(&identity, at) {
            identity.message = None;
            message = format!("(combined from similar events): {message}");
        }
        let again = self.told.get(&identity).map(|it| (it.key.clone(), it.count + 1));
        self.n_told += 1;
        // Two events of one moment still need two names.
        let moment = at.0.as_nanosecond() + i128::from(self.n_told);
        let name = event_name(&identity.about.name, moment);
        let event = event_object(&self.source, &identity, &message, &name, at);
        Box::pin(async move {
            let mut count = None;
            for attempt in 1..=TRIES {
                match tell(&client, &event, again.as_ref(), at).await {
                    Ok(told) => {
                        count = Some(told);
                        break;
                    }
                    Err(error) if attempt < TRIES && error.retry() == Retry::After => {
                        tokio::time::sleep(error.retry_after().unwrap_or(RETRY_DELAY)).await;
                    }
                    Err(error) => {
                        tracing::debug!(%error, event = %event["message"], "an event could not be told");
                        break;
                    }
                }
            }
            Sent { identity, count }
        })
    }

    /// Was enough told for its reason that its own words are not worth an event?
    fn is_one_too_many(&self, identity: &Identity, at: Time) -> bool {
        let first = Identity { message: None, ..identity.clone() };
        let similar =
            self.told.range(&first..).take_while(|(it, _)| Identity { message: None, ..(*it).clone() } == first);
        let recent = similar.filter(|(it, count)| it.message.is_some() && at.since(count.last) <= SIMILAR_FOR);
        !self.told.contains_key(identity) && recent.count() + 1 >= SIMILAR_MAX
    }

    fn remember(&mut self, Sent { identity, count }: Sent) {
        let Some(count) = count else {
            return;
        };
        if self.told.insert(identity.clone(), count).is_none() {
            self.order.push_back(identity);
        }
        if self.order.len() > REMEMBERED_MAX
            && let Some(oldest) = self.order.pop_front()
        {
            self.told.remove(&oldest);
        }
    }
}

/// Counts an event that has been told before; tells it anew where it is gone meanwhile.
async fn tell(client: &Client, event: &Value, again: Option<&(Key, u32)>, at: Time) -> Result<Count, Error> {
    if let Some((key, count)) = again {
        let patch = json!({"count": count, "lastTimestamp": at, "message": event["message"]});
        match client.patch(&EVENTS, key, "", &PatchType::Merge, &patch).await {
            Ok(_) => return Ok(Count { key: key.clone(), count: *count, last: at }),
            Err(error) if !error.is_not_found() => return Err(error),
            Err(_) => {}
        }
    }
    let text = |field: &str| event["metadata"][field].as_str().unwrap_or_default().to_owned();
    let key = Key::new(text("namespace"), text("name"));
    match client.create(&EVENTS, &key.namespace, event).await {
        // The answer to an earlier try was lost.
        Err(error) if !error.is_already_exists() => Err(error),
        _ => Ok(Count { key, count: 1, last: at }),
    }
}

/// As in `makeEvent`, but that the name of what has a long one is cut, where client-go takes another.
fn event_name(about: &str, moment: i128) -> String {
    const NAME_BYTES_MAX: usize = 253;
    let suffix = format!("{moment:x}");
    let room = NAME_BYTES_MAX - 1 - suffix.len();
    let about = about.get(..room).unwrap_or(about).trim_end_matches(['-', '.']);
    format!("{about}.{suffix}")
}

fn event_object(from: &Source, identity: &Identity, message: &str, name: &str, at: Time) -> Value {
    let about = &identity.about;
    let mut source = json!({"component": from.component});
    if !from.host.is_empty() {
        source["host"] = from.host.as_str().into();
    }
    // As in `makeEvent`: what is about a cluster-scoped object stands in the default namespace.
    let namespace = if about.namespace.is_empty() { "default" } else { &about.namespace };
    json!({
        "kind": "Event",
        "apiVersion": "v1",
        "metadata": {"name": name, "namespace": namespace},
        "involvedObject": about,
        "reason": identity.reason,
        "message": message,
        "source": source,
        "firstTimestamp": at,
        "lastTimestamp": at,
        "count": 1,
        "type": identity.event_type,
        "eventTime": null,
        "reportingComponent": from.component,
        "reportingInstance": from.host,
    })
}
