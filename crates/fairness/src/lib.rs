//! Whose request is answered next where more come than are answered at once: API Priority and Fairness, done.
//!
//! Who waits is woken by whoever gives seats back. FlowSchemas and PriorityLevelConfigurations are read anew when one of them has
//! changed; the seats are divided between the levels every ten seconds.

#![expect(
    clippy::result_large_err,
    reason = "a Status is made once for each refused request; a box would burden every signature"
)]

mod level;
mod limits;

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use arc_swap::ArcSwap;
use corten_api::resources::{FLOW_SCHEMAS, PRIORITY_LEVEL_CONFIGURATIONS};
use corten_cacher::watch_cache::{Caches, Snapshot};
use corten_flowcontrol::{
    Allotment, Asked, CATCH_ALL, EXEMPT, FlowSchema, PriorityLevel, Refusal, allot, nominal, width_max,
};
use corten_kinds::flow_control;
use corten_meta::{Resource, Status};
use parking_lot::Mutex;
use tokio::{sync::watch, time::Instant};

use level::Level;
pub use level::Seats;
pub use limits::{Budget, Held, Limits};

static SCHEMAS: Resource = FLOW_SCHEMAS;
static LEVELS: Resource = PRIORITY_LEVEL_CONFIGURATIONS;

/// How often the seats are divided anew.
const DIVIDED_EVERY: Duration = Duration::from_secs(10);
const RETRY_AFTER_SECONDS: u32 = 1;

pub struct Fairness {
    seats: u32,
    newest: ArcSwap<Configured>,
    changing: Mutex<()>,
}

/// What the objects say, and the revisions that they said it at.
struct Configured {
    revisions: [u64; 2],
    /// In the order they are asked.
    schemas: Vec<(FlowSchema, Arc<Level>)>,
    levels: BTreeMap<String, Arc<Level>>,
}

/// To which flow a request belongs.
pub struct Classified {
    level: Arc<Level>,
    flow: u64,
    pub schema: String,
    pub schema_uid: String,
}

impl Classified {
    pub fn level_uid(&self) -> String {
        self.level.uid()
    }

    pub fn is_exempt(&self) -> bool {
        self.level.is_exempt()
    }

    /// The most that one request of the level takes.
    pub fn width_max(&self) -> u32 {
        width_max(self.level.nominal())
    }

    /// Waits for seats, no longer than `patience`.
    ///
    /// # Errors
    /// 429 where there is no room to wait in, or the time is over.
    pub async fn begin(self, width: u32, patience: Duration) -> Result<Seats, Status> {
        let too_many =
            |_: Refusal| Status::too_many_requests("Too many requests, please try again later.", RETRY_AFTER_SECONDS);
        Level::begin(self.level, &self.schema, self.flow, width, patience).await.map_err(too_many)
    }
}

impl Fairness {
    /// So many seats are shared by all levels.
    pub fn new(seats: u32) -> Self {
        Self { seats, newest: ArcSwap::from_pointee(Configured::built_in(seats)), changing: Mutex::new(()) }
    }

    pub fn classify(&self, caches: &Caches, asked: &Asked<'_>) -> Classified {
        let configured = self.configured(caches);
        // What is mandatory matches everything: something is found.
        let matching = configured.schemas.iter().find(|it| it.0.matches(asked));
        let (schema, level) = matching.or(configured.schemas.last()).expect("the mandatory ones are always there");
        Classified {
            level: level.clone(),
            flow: schema.flow(asked),
            schema: schema.name.clone(),
            schema_uid: schema.uid.clone(),
        }
    }

    /// What the objects say now.
    fn configured(&self, caches: &Caches) -> Arc<Configured> {
        let newest = self.newest.load_full();
        if newest.revisions == Objects::now(caches).revisions {
            return newest;
        }
        let _one = self.changing.lock();
        // Looked at again: who waited for the lock could have seen less than who had it, and would put back what was before.
        let objects = Objects::now(caches);
        let before = self.newest.load_full();
        if before.revisions == objects.revisions {
            return before;
        }
        let next = Arc::new(before.with(self.seats, &objects));
        self.newest.store(next.clone());
        // What a level was that is no more, nobody comes to. Who waits there begins.
        let gone = before.levels.iter().filter(|it| !next.levels.contains_key(it.0));
        gone.for_each(|it| it.1.open());
        next
    }

    /// Divides the seats again and again until the server ends.
    pub async fn run(self: Arc<Self>, mut ended: watch::Receiver<bool>) {
        let mut ticks = tokio::time::interval_at(Instant::now() + DIVIDED_EVERY, DIVIDED_EVERY);
        loop {
            tokio::select! {
                biased;
                _ = ended.wait_for(|it| *it) => return,
                _ = ticks.tick() => self.divide(),
            }
        }
    }

    fn divide(&self) {
        let configured = self.newest.load_full();
        let levels: Vec<&Arc<Level>> = configured.levels.values().filter(|it| !it.is_exempt()).collect();
        let wanted: Vec<Allotment> = levels.iter().map(|it| it.turn(self.seats)).collect();
        for (level, seats) in levels.iter().zip(allot(self.seats, &wanted)) {
            level.set_seats(seats);
        }
    }

    /// The Prometheus text format.
    pub fn write_metrics(&self, out: &mut String) -> std::fmt::Result {
        let configured = self.newest.load_full();
        level::write_metrics(out, configured.levels.values().map(|it| &**it))
    }
}

/// The FlowSchemas and PriorityLevelConfigurations, as the caches hold them.
#[derive(Default)]
struct Objects {
    revisions: [u64; 2],
    schemas: Option<Arc<Snapshot>>,
    levels: Option<Arc<Snapshot>>,
}

impl Objects {
    fn now(caches: &Caches) -> Self {
        let [schemas, levels] = [&SCHEMAS, &LEVELS].map(|it| caches.get(it).map(|it| it.snapshot()));
        let revisions = [&schemas, &levels].map(|it| it.as_ref().map_or(0, |it| it.revision));
        Self { revisions, schemas, levels }
    }
}

impl Configured {
    /// What holds before any object is there: the mandatory ones.
    fn built_in(seats: u32) -> Self {
        let nothing = Self { revisions: [0; 2], schemas: Vec::new(), levels: BTreeMap::new() };
        nothing.with(seats, &Objects::default())
    }

    fn with(&self, seats: u32, objects: &Objects) -> Self {
        let stored = objects.levels.iter().map(|it| &**it).flat_map(Snapshot::iter);
        let read = stored.filter_map(|it| PriorityLevel::read(it.value()));
        let mut configured: BTreeMap<String, PriorityLevel> = read.map(|it| (it.name.clone(), it)).collect();
        for name in [EXEMPT, CATCH_ALL] {
            let built_in = || built_in(flow_control::priority_levels(), name, PriorityLevel::read);
            configured.entry(name.into()).or_insert_with(built_in);
        }
        let all_shares = configured.values().map(|it| u64::from(it.shares)).sum();
        let levels: BTreeMap<String, Arc<Level>> = configured
            .into_iter()
            .map(|(name, it)| {
                let nominal = nominal(seats, it.shares, all_shares);
                let level = match self.levels.get(&name) {
                    Some(level) => level.clone(),
                    None => Arc::new(Level::new(&it, nominal)),
                };
                level.configure(it, nominal);
                (name, level)
            })
            .collect();
        let stored = objects.schemas.iter().map(|it| &**it).flat_map(Snapshot::iter);
        let mut read: Vec<FlowSchema> = stored.filter_map(|it| FlowSchema::read(it.value())).collect();
        for name in [EXEMPT, CATCH_ALL] {
            if !read.iter().any(|it| it.name == name) {
                read.push(built_in(flow_control::flow_schemas(), name, FlowSchema::read));
            }
        }
        read.sort_by(|one, other| one.order().cmp(&other.order()));
        // One without its level is passed over; its status says so.
        let led = read.into_iter().filter_map(|it| levels.get(&it.level).cloned().map(|level| (it, level)));
        Self { revisions: objects.revisions, schemas: led.collect(), levels }
    }
}

fn built_in<T>(objects: Vec<serde_json::Value>, name: &str, read: fn(&[u8]) -> Option<T>) -> T {
    let object = objects.into_iter().find(|it| it["metadata"]["name"] == name);
    let read = object.and_then(|it| read(it.to_string().as_bytes()));
    read.expect("what is mandatory is in the table, and can be read")
}
