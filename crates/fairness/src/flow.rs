//! A flow schema and the level it leads to, as requests meet them.

use std::{sync::Arc, time::Duration};

use corten_flowcontrol::{FlowSchema, RequestDigest, width_max};
use corten_meta::Status;
use tokio::time::Instant;

use crate::{
    counters::{Counters, Measures},
    level::{Level, Seats},
    reads_and_writes::Phase,
    request::DescribedRequest,
};

const RETRY_AFTER_SECONDS: u32 = 1;

/// Made when one of its two objects has changed, so that a request copies nothing of them.
pub(crate) struct Flow {
    pub(crate) schema: Arc<FlowSchema>,
    /// At which the schema was read; 0 for a built-in one.
    pub(crate) revision: u64,
    pub(crate) level: Arc<Level>,
    pub(crate) level_uid: String,
    pub(crate) is_exempt: bool,
    pub(crate) nominal: u32,
    pub(crate) counters: Counters,
}

impl Flow {
    pub(crate) fn new(schema: Arc<FlowSchema>, revision: u64, level: Arc<Level>, measures: &Measures) -> Self {
        let counters = measures.counters(&schema.name, level.name());
        let (level_uid, is_exempt, nominal) = level.described();
        Self { schema, revision, level, level_uid, is_exempt, nominal, counters }
    }

    /// Would one that is made now be the same?
    pub(crate) fn is_current(&self, schema: &FlowSchema, revision: u64, level: &Arc<Level>) -> bool {
        self.revision == revision
            && self.schema.name == schema.name
            && Arc::ptr_eq(&self.level, level)
            && level.described() == (self.level_uid.clone(), self.is_exempt, self.nominal)
    }
}

/// To which flow a request belongs.
pub struct Classified {
    pub(crate) flow: Arc<Flow>,
    pub(crate) hash: u64,
}

impl Classified {
    pub(crate) fn of(flow: Arc<Flow>, seed: u64, asked: &RequestDigest<'_>) -> Self {
        let hash = flow.schema.flow(seed, asked);
        Self { flow, hash }
    }

    pub fn schema_uid(&self) -> &str {
        &self.flow.schema.uid
    }

    pub fn level_uid(&self) -> &str {
        &self.flow.level_uid
    }

    pub fn is_exempt(&self) -> bool {
        self.flow.is_exempt
    }

    /// The most that one request of the level takes.
    pub fn width_max(&self) -> u32 {
        width_max(self.flow.nominal)
    }

    /// The name of the flow schema, and what tells this flow from its others.
    pub fn flow_of<'a>(&self, asked: &RequestDigest<'a>) -> (&str, &'a str) {
        let schema = &self.flow.schema;
        (&schema.name, schema.distinguisher_of(asked))
    }

    /// So many watch what the request is to write. They are counted, and cost it no seats.
    pub fn watched(&self, n_watchers: usize) {
        self.flow.counters.watched(n_watchers);
    }

    /// Waits for seats, no longer than `patience`. Who looks meanwhile, and while it is answered, is shown the `request`.
    ///
    /// # Errors
    /// 429 where there is no room to wait in, or the time is over.
    pub async fn begin(&self, width: u32, patience: Duration, request: DescribedRequest) -> Result<Underway, Status> {
        let Self { flow, hash } = self;
        flow.counters.estimated(width);
        let (is_mutating, request) = (request.is_mutating(), Arc::new(request));
        let seats = if flow.is_exempt {
            flow.level.begin_exempt(width, request)
        } else {
            match flow.level.begin(*hash, width, patience, &flow.counters, request).await {
                Ok(seats) => seats,
                Err(refusal) => {
                    flow.counters.refused(refusal);
                    let message = "Too many requests, please try again later.";
                    return Err(Status::too_many_requests(message, RETRY_AFTER_SECONDS));
                }
            }
        };
        Ok(Underway::begin(flow.clone(), width, is_mutating, seats))
    }
}

/// A request that is being answered. It is counted, and its seats are given back when this is dropped.
pub struct Underway {
    flow: Arc<Flow>,
    width: u32,
    is_mutating: bool,
    since: Instant,
    _seats: Seats,
}

impl Underway {
    fn begin(flow: Arc<Flow>, width: u32, is_mutating: bool, seats: Seats) -> Self {
        flow.counters.dispatched.inc();
        flow.counters.executing.inc();
        flow.counters.seats.add(width.into());
        flow.counters.requests.begin(Phase::Executing, is_mutating);
        Self { flow, width, is_mutating, since: Instant::now(), _seats: seats }
    }
}

impl Drop for Underway {
    fn drop(&mut self) {
        self.flow.counters.executing.dec();
        self.flow.counters.seats.sub(self.width.into());
        self.flow.counters.requests.end(Phase::Executing, self.is_mutating);
        self.flow.counters.executed(self.since.elapsed());
    }
}
