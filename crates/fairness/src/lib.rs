//! Whose request is answered next where more come than are answered at once: API Priority and Fairness, done.
//!
//! Who waits is woken by whoever gives seats back. FlowSchemas and PriorityLevelConfigurations are read anew when one of them has
//! changed; the seats are divided between the levels every ten seconds.

#![expect(
    clippy::result_large_err,
    reason = "a Status is made once for each refused request; a box would burden every signature"
)]

mod configured;
mod counters;
mod dump;
mod executing;
mod flow;
mod level;
mod limits;
mod reads_and_writes;
mod refusals;
mod request;
mod timed_ratio;
mod utilization;

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use corten_cacher::{
    derived::{Derived, Made},
    watch_cache::Caches,
};
use corten_flowcontrol::{Allotment, RequestDigest, allot};
use corten_meta::Time;
use corten_metrics::{MetricFamily, Registry};
use tokio::{sync::watch, time::Instant};

use configured::{Configured, Objects};
use counters::Measures;
pub use dump::Dump;
pub use flow::{Classified, Underway};
use level::Level;
pub use limits::{Budget, Limits, Permit, SMALL_BODY_BYTES, Sender};
pub use refusals::RefusingLevel;
pub use request::{DescribedRequest, RequestWords};

/// How often the seats are divided anew.
const DIVIDED_EVERY: Duration = Duration::from_secs(10);

pub struct Fairness {
    seats: u32,
    seed: u64,
    configured: Derived<Configured, 2>,
    measures: Measures,
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

    /// The levels that turned requests away lately.
    pub fn refusing(&self, now: Time) -> Vec<RefusingLevel> {
        self.configured.last().levels.values().filter_map(|it| it.refusing(now)).collect()
    }

    /// What only a look tells: for how long each level was how full.
    pub fn measured(&self) -> Vec<MetricFamily> {
        let configured = self.configured.last();
        let levels: Vec<_> = configured.levels.iter().map(|(name, it)| (&**name, it.measured())).collect();
        utilization::families(&levels, self.measures.requests())
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
        let division = allot(self.seats, &wanted);
        self.measures.set_fair_fraction(division.fair_fraction);
        for ((level, wanted), seats) in levels.iter().zip(&wanted).zip(division.seats) {
            level.set_seats(seats);
            self.measures.set_limit(level.name(), seats);
            self.measures.set_allotment(level.name(), wanted);
        }
    }
}
