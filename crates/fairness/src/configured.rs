//! What FlowSchemas and PriorityLevelConfigurations say, read anew when one of them has changed.

use std::{
    collections::{BTreeMap, HashMap},
    sync::Arc,
};

use corten_api::resources::{FLOW_SCHEMAS, PRIORITY_LEVEL_CONFIGURATIONS};
use corten_cacher::watch_cache::{Caches, Snapshot};
use corten_flowcontrol::{CATCH_ALL, EXEMPT, FlowSchema, PriorityLevel, nominal};
use corten_kinds::flow_control;
use corten_meta::Resource;

use crate::{counters::Measures, flow::Flow, level::Level};

static SCHEMAS: Resource = FLOW_SCHEMAS;
static LEVELS: Resource = PRIORITY_LEVEL_CONFIGURATIONS;

/// What the objects say.
pub(crate) struct Configured {
    /// In the order they are asked.
    pub(crate) flows: Vec<Arc<Flow>>,
    pub(crate) levels: BTreeMap<String, Arc<Level>>,
}

/// The FlowSchemas and PriorityLevelConfigurations, as the caches hold them.
#[derive(Default)]
pub(crate) struct Objects {
    schemas: Option<Arc<Snapshot>>,
    levels: Option<Arc<Snapshot>>,
}

impl Objects {
    /// With their revisions.
    pub(crate) fn now(caches: &Caches) -> ([u64; 2], Self) {
        let [schemas, levels] = [&SCHEMAS, &LEVELS].map(|it| caches.get(it).map(|it| it.snapshot()));
        let revisions = [&schemas, &levels].map(|it| it.as_ref().map_or(0, |it| it.revision));
        (revisions, Self { schemas, levels })
    }
}

impl Configured {
    /// What holds before any object is there: the mandatory ones.
    pub(crate) fn built_in(seats: u32, measures: &Measures) -> Self {
        let nothing = Self { flows: Vec::new(), levels: BTreeMap::new() };
        nothing.with(seats, &Objects::default(), measures)
    }

    pub(crate) fn with(&self, seats: u32, objects: &Objects, measures: &Measures) -> Self {
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
        let nominal = |of: &PriorityLevel| nominal(seats, of.shares, all_shares);
        let room = |of: &PriorityLevel| {
            let queuing = of.limited.and_then(|it| it.queuing);
            queuing.map_or(0, |it| u64::from(it.queues).saturating_mul(it.queue_length_limit.into()))
        };
        measures.requests().set_limits(
            configured.values().map(room).fold(0, u64::saturating_add),
            configured.values().map(|it| u64::from(nominal(it))).sum(),
        );
        configured
            .into_iter()
            .map(|(name, it)| {
                let nominal = nominal(&it);
                let level = match self.levels.get(&name) {
                    Some(level) => level.clone(),
                    None => {
                        measures.set_limit(&name, nominal);
                        Arc::new(Level::new(&it, nominal, seats))
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
