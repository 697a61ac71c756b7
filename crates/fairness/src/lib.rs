//! Whose request is answered next where more come than are answered at once: API Priority and Fairness, done.
//!
//! Who waits is woken by whoever gives seats back. FlowSchemas and PriorityLevelConfigurations are read anew when one of them has
//! changed; the seats are divided between the levels every ten seconds.

#![expect(
    clippy::result_large_err,
    reason = "a Status is made once for each refused request; a box would burden every signature"
)]

mod counters;
mod dump;
mod flow;
mod level;
mod limits;

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    sync::Arc,
    time::Duration,
};

use corten_api::resources::{FLOW_SCHEMAS, PRIORITY_LEVEL_CONFIGURATIONS};
use corten_cacher::{
    derived::{Derived, Made},
    watch_cache::{Caches, Snapshot},
};
use corten_flowcontrol::{Allotment, CATCH_ALL, EXEMPT, FlowSchema, PriorityLevel, RequestDigest, allot, nominal};
use corten_kinds::flow_control;
use corten_meta::Resource;
use corten_metrics::Registry;
use tokio::{sync::watch, time::Instant};

use counters::Measures;
pub use dump::{Dump, WaitingRequest};
use flow::Flow;
pub use flow::{Classified, Underway};
use level::Level;
pub use limits::{Budget, Limits, Permit};

static SCHEMAS: Resource = FLOW_SCHEMAS;
static LEVELS: Resource = PRIORITY_LEVEL_CONFIGURATIONS;

/// How often the seats are divided anew.
const DIVIDED_EVERY: Duration = Duration::from_secs(10);

pub struct Fairness {
    seats: u32,
    seed: u64,
    configured: Derived<Configured, 2>,
    measures: Measures,
}

/// What the objects say.
struct Configured {
    /// In the order they are asked.
    flows: Vec<Arc<Flow>>,
    levels: BTreeMap<String, Arc<Level>>,
}

impl Fairness {
    /// So many seats are shared by all levels; `seed` is secret, and says which queues a flow has.
    pub fn new(seats: u32, seed: u64, registry: &Registry) -> Self {
        let measures = Measures::new(registry);
        let configured = Derived::new(Configured::built_in(seats, &measures));
        Self { seats, seed, configured, measures }
    }

    pub fn classify(&self, caches: &Caches, asked: &RequestDigest<'_>) -> Classified {
        let configured = self.configured(caches);
        // What is mandatory matches everything: something is found.
        let matching = configured.flows.iter().find(|it| it.schema.matches(asked));
        let flow = matching.or(configured.flows.last()).expect("the mandatory ones are always there");
        Classified::of(flow.clone(), self.seed, asked)
    }

    /// What goes on now, as a table.
    pub fn dump(&self, caches: &Caches, what: Dump) -> String {
        what.table(&self.configured(caches))
    }

    /// What the objects say now.
    fn configured(&self, caches: &Caches) -> Arc<Made<Configured, 2>> {
        self.configured.get(
            || Objects::now(caches),
            |before, objects| before.with(self.seats, &objects, &self.measures),
            |before, next| {
                // What a level was that is no more, nobody comes to. Who waits there begins.
                let gone = before.levels.iter().filter(|it| !next.levels.contains_key(it.0));
                for (name, level) in gone {
                    level.open();
                    self.measures.forget_level(name);
                }
                self.forget_flows(before, next);
            },
        )
    }

    /// Counts no more by the names of what is gone.
    fn forget_flows(&self, before: &Configured, next: &Configured) {
        fn pairs(of: &Configured) -> BTreeSet<(&str, &str)> {
            of.flows.iter().map(|it| (&*it.schema.name, it.level.name())).collect()
        }
        for (schema, level) in pairs(before).difference(&pairs(next)) {
            self.measures.forget(schema, level);
        }
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
        let configured = self.configured.last();
        let levels: Vec<&Arc<Level>> = configured.levels.values().filter(|it| !it.is_exempt()).collect();
        let wanted: Vec<Allotment> = levels.iter().map(|it| it.turn(self.seats)).collect();
        for (level, seats) in levels.iter().zip(allot(self.seats, &wanted)) {
            level.set_seats(seats);
            self.measures.set_limit(level.name(), seats);
        }
    }
}

/// The FlowSchemas and PriorityLevelConfigurations, as the caches hold them.
#[derive(Default)]
struct Objects {
    schemas: Option<Arc<Snapshot>>,
    levels: Option<Arc<Snapshot>>,
}

impl Objects {
    /// With their revisions.
    fn now(caches: &Caches) -> ([u64; 2], Self) {
        let [schemas, levels] = [&SCHEMAS, &LEVELS].map(|it| caches.get(it).map(|it| it.snapshot()));
        let revisions = [&schemas, &levels].map(|it| it.as_ref().map_or(0, |it| it.revision));
        (revisions, Self { schemas, levels })
    }
}

impl Configured {
    /// What holds before any object is there: the mandatory ones.
    fn built_in(seats: u32, measures: &Measures) -> Self {
        let nothing = Self { flows: Vec::new(), levels: BTreeMap::new() };
        nothing.with(seats, &Objects::default(), measures)
    }

    fn with(&self, seats: u32, objects: &Objects, measures: &Measures) -> Self {
        let levels = self.levels(seats, objects, measures);
        let flows = self.flows(objects, &levels, measures);
        Self { flows, levels }
    }

    fn levels(&self, seats: u32, objects: &Objects, measures: &Measures) -> BTreeMap<String, Arc<Level>> {
        let stored = objects.levels.iter().map(|it| &**it).flat_map(Snapshot::iter);
        let read = stored.filter_map(|it| PriorityLevel::read(it.value()));
        let mut configured: BTreeMap<String, PriorityLevel> = read.map(|it| (it.name.clone(), it)).collect();
        for name in [EXEMPT, CATCH_ALL] {
            let built_in = || built_in(flow_control::priority_levels(), name, PriorityLevel::read);
            configured.entry(name.into()).or_insert_with(built_in);
        }
        let all_shares = configured.values().map(|it| u64::from(it.shares)).sum();
        configured
            .into_iter()
            .map(|(name, it)| {
                let nominal = nominal(seats, it.shares, all_shares);
                let level = match self.levels.get(&name) {
                    Some(level) => level.clone(),
                    None => {
                        measures.set_limit(&name, nominal);
                        Arc::new(Level::new(&it, nominal))
                    }
                };
                level.configure(it, nominal);
                measures.set_nominal(&name, nominal);
                (name, level)
            })
            .collect()
    }

    /// What has not changed stays what it is: of thousands of flow schemas one is read when one has changed.
    fn flows(&self, objects: &Objects, levels: &BTreeMap<String, Arc<Level>>, measures: &Measures) -> Vec<Arc<Flow>> {
        let known: HashMap<&str, &Arc<Flow>> = self.flows.iter().map(|it| (&*it.schema.name, it)).collect();
        let stored = objects.schemas.iter().map(|it| &**it).flat_map(Snapshot::iter);
        let mut schemas: Vec<(Arc<FlowSchema>, u64)> = stored
            .filter_map(|it| match known.get(it.name()) {
                Some(flow) if flow.revision == it.revision() => Some((flow.schema.clone(), flow.revision)),
                _ => Some((Arc::new(FlowSchema::read(it.value())?), it.revision())),
            })
            .collect();
        for name in [EXEMPT, CATCH_ALL] {
            if !schemas.iter().any(|it| it.0.name == name) {
                let schema = built_in(flow_control::flow_schemas(), name, FlowSchema::read);
                schemas.push((Arc::new(schema), 0));
            }
        }
        schemas.sort_by(|one, other| one.0.order().cmp(&other.0.order()));
        // One without its level is passed over; its status says so.
        let led = schemas.into_iter().filter_map(|(schema, revision)| {
            let level = levels.get(&schema.level)?;
            Some(match known.get(&*schema.name) {
                Some(flow) if flow.is_current(&schema, revision, level) => Arc::clone(flow),
                _ => Arc::new(Flow::new(schema, revision, level.clone(), measures)),
            })
        });
        led.collect()
    }
}

fn built_in<T>(objects: Vec<serde_json::Value>, name: &str, read: fn(&[u8]) -> Option<T>) -> T {
    let object = objects.into_iter().find(|it| it["metadata"]["name"] == name);
    let read = object.and_then(|it| read(it.to_string().as_bytes()));
    read.expect("what is mandatory is in the table, and can be read")
}
