//! Counts what the objects of a namespace cost its quotas. Admission charges what comes; this is for what goes, and for
//! quotas that come after the objects they count.
//!
//! Nothing is held of what quotas count before there is a quota in the cluster.

mod beside;
mod counted;

use std::time::Duration;

use corten_api::resources;
use corten_meta::{Key, ObjectMeta, Resource, Time};
use corten_policies::quota::{self, Amounts};
use corten_reconcile::{Actor, Controller, Effect, Plan, Verb, View, Wait, Wake, Watch, Write, served};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::{
    everything::with_namespaced,
    projections::{Bare, Definition, defined, not_known_yet, projection},
};
use beside::{Beside, DeviceClass};
use counted::Counted;

macro_rules! list {
    ([$($resource:ident)*]) => {
        const NAMESPACED: &[Resource] = &[$(resources::$resource),*];
    };
}
with_namespaced! { list }

/// What costs more than its number: it is looked into.
const LOOKED_INTO: [Resource; 4] =
    [resources::PERSISTENT_VOLUME_CLAIMS, resources::PODS, resources::RESOURCE_CLAIMS, resources::SERVICES];

/// When it is looked again whether what a quota counts is known.
const COUNTS_AGAIN: Duration = Duration::from_secs(1);
/// The same of what the server cannot list, which may stay so for days.
const LISTED_AGAIN: Duration = Duration::from_secs(10);

#[derive(Deserialize)]
struct Quota {
    metadata: ObjectMeta,
    #[serde(default)]
    spec: Value,
    #[serde(default)]
    status: QuotaStatus,
}
projection!(Quota, resources::RESOURCE_QUOTAS);

#[derive(Default, Deserialize)]
#[serde(default)]
struct QuotaStatus {
    hard: Map<String, Value>,
    used: Map<String, Value>,
}

/// A charge changes what is used, and is right: it calls for no count.
impl PartialEq for Quota {
    fn eq(&self, other: &Self) -> bool {
        self.metadata.uid == other.metadata.uid && self.spec == other.spec && self.status.hard == other.status.hard
    }
}

pub struct ResourceQuotas;

impl Controller for ResourceQuotas {
    fn name(&self) -> &'static str {
        "resourcequota"
    }

    fn watches(&self) -> Vec<Watch> {
        let is_any = |view: &View| view.list::<Quota>().next().is_some();
        let counted = NAMESPACED.iter().filter(|it| **it != resources::RESOURCE_QUOTAS).map(|resource| {
            let watch = if LOOKED_INTO.contains(resource) {
                Watch::of::<Counted>(resource.clone(), Wake::With(quotas_of))
            } else {
                Watch::of::<Bare>(resource.clone(), Wake::With(quotas_of)).bearing_gaps()
            };
            watch.once(is_any)
        });
        let definitions = Watch::new::<Definition>(Wake::Nobody).leading_to(defined_counted);
        let quotas = Watch::new::<Quota>(Wake::With(quotas_beside)).telling_changes_of::<Quota>();
        let classes = Watch::new::<DeviceClass>(Wake::With(quotas_of_devices)).telling_changes_of::<DeviceClass>();
        let registrations = served::registrations(Wake::Nobody);
        [quotas, definitions, registrations, classes.once(is_any)].into_iter().chain(counted).collect()
    }

    fn writes(&self) -> &'static [Write] {
        const {
            &[Write {
                verb: Verb::Patch,
                resource: resources::RESOURCE_QUOTAS,
                fields: &["status.hard", "status.used"],
            }]
        }
    }

    fn about(&self) -> Option<Resource> {
        Some(resources::RESOURCE_QUOTAS)
    }

    fn reconcile(&self, view: &View, key: &Key, now: Time) -> Plan {
        let Some(quota) = view.get::<Quota>(key).filter(|it| !it.metadata.is_deleting()) else {
            return Plan::default();
        };
        if let Some(kind) = uncounted(view, quota) {
            let message = format!("{kind} cannot be counted before their definition is established");
            let wait = Wait::new("KindNotEstablished", message, Actor::Cluster);
            let name = format!("{}.{}", kind.plural, kind.group);
            let wait = wait.on("CustomResourceDefinition", &name);
            return Plan { waits: vec![wait], wake_at: Some(now.after(COUNTS_AGAIN)), ..Plan::default() };
        }
        if let Some(kind) = unreadable(view, quota) {
            let message = format!("{kind} cannot be counted: they cannot be listed");
            let wait = Wait::new("ContentUnreadable", message, Actor::Operator);
            let is_defined = defined(view).any(|it| it == *kind);
            let wait = if is_defined { wait.on("CustomResourceDefinition", &kind.qualified()) } else { wait };
            return Plan { waits: vec![wait], wake_at: Some(now.after(LISTED_AGAIN)), ..Plan::default() };
        }
        let used = used(view, quota, now);
        let no_limits = Map::new();
        let hard = quota.spec["hard"].as_object().unwrap_or(&no_limits);
        let is_same = quota::amounts(&json!(quota.status.used)) == used && quota.status.hard == *hard;
        let effects = if is_same { Vec::new() } else { vec![patch(quota, hard, &used)] };
        Plan { effects, ..Plan::default() }
    }
}

/// What is counted of what definitions describe: its number.
fn defined_counted(view: &View) -> Vec<Watch> {
    let is_any = |view: &View| view.list::<Quota>().next().is_some();
    let resources = defined(view).filter(|it| it.namespaced);
    let watch = |it| Watch::of::<Bare>(it, Wake::With(quotas_of)).of_metadata().bearing_gaps().once(is_any);
    resources.map(watch).collect()
}

/// A quota counts for itself, and other quotas may count quotas.
fn quotas_beside(view: &View, quota: &ObjectMeta) -> Vec<Key> {
    let others = view.in_namespace::<Quota>(&quota.namespace).map(|it| it.metadata.key());
    others.chain([quota.key()]).collect()
}

/// What a class names decides what claims for its devices cost.
fn quotas_of_devices(view: &View, _class: &ObjectMeta) -> Vec<Key> {
    let counts = |it: &&Quota| {
        let names = it.spec["hard"].as_object().into_iter().flat_map(Map::keys);
        names.into_iter().any(|it| quota::counts(it, &resources::RESOURCE_CLAIMS))
    };
    view.list::<Quota>().filter(counts).map(|it| it.metadata.key()).collect()
}

/// What comes has been charged; what goes, or has ended, must be counted off.
fn quotas_of(view: &View, object: &ObjectMeta) -> Vec<Key> {
    let key = object.key();
    let held =
        LOOKED_INTO.iter().filter_map(|it| view.get_in::<Counted>(it, &key)).find(|it| it.metadata.uid == object.uid);
    let is_still_there = match held {
        Some(held) => !held.may_have_become_cheaper(),
        None => view.resources().any(|it| view.meta(it, &key).is_some_and(|it| it.uid == object.uid)),
    };
    if is_still_there {
        return Vec::new();
    }
    view.in_namespace::<Quota>(&object.namespace).map(|it| it.metadata.key()).collect()
}

/// What it counts, and nobody can: what has been charged for them is right until then.
fn uncounted(view: &View, quota: &Quota) -> Option<Resource> {
    let hard = quota.spec["hard"].as_object()?;
    not_known_yet(view).find(|kind| kind.namespaced && hard.keys().any(|it| quota::counts(it, kind)))
}

/// What it counts, and the server cannot list: other quotas are counted all the same.
fn unreadable<'v>(view: &'v View, quota: &Quota) -> Option<&'v Resource> {
    let hard = quota.spec["hard"].as_object()?;
    let is_counted = |kind: &&Resource| hard.keys().any(|it| quota::counts(it, kind));
    view.cannot_be_listed().iter().filter(|it| it.namespaced).find(is_counted)
}

fn used(view: &View, quota: &Quota, now: Time) -> Amounts {
    let (namespace, beside) = (&*quota.metadata.namespace, Beside::of(view));
    // Every name that something is counted by, at zero.
    let mut used = quota::used(&quota.spec, [], now, &beside);
    let names: Vec<String> = used.keys().cloned().collect();
    for resource in view.resources().filter(|it| it.namespaced && names.iter().any(|name| quota::counts(name, it))) {
        let mut count = |object: &Value, n| {
            quota::count(&mut used, &quota.spec, (resource, object), n, now, &beside);
        };
        if LOOKED_INTO.contains(resource) {
            view.in_namespace_of::<Counted>(resource, namespace).for_each(|it| count(&it.value(), 1));
        } else {
            let n = view.table(resource).map_or(0, |it| it.in_namespace(namespace).count());
            count(&Value::Null, i64::try_from(n).unwrap_or(i64::MAX));
        }
    }
    used
}

/// Only onto what was seen: a charge in between makes the count wrong.
fn patch(quota: &Quota, hard: &Map<String, Value>, used: &Amounts) -> Effect {
    let Value::Object(used) = quota::written(used) else { unreachable!("amounts are written as an object") };
    let meta = &quota.metadata;
    let patch = json!({
        "metadata": { "uid": meta.uid, "resourceVersion": meta.resource_version },
        "status": { "hard": replacing(&quota.status.hard, hard), "used": replacing(&quota.status.used, &used) },
    });
    let (resource, key) = (resources::RESOURCE_QUOTAS, meta.key());
    Effect::Patch { resource, key, subresource: Some("status"), patch }
}

/// A merge patch cannot put one object in another's place: what only the old one has must be named.
fn replacing(old: &Map<String, Value>, new: &Map<String, Value>) -> Value {
    let gone = old.keys().filter(|it| !new.contains_key(*it)).map(|it| (it.clone(), Value::Null));
    let all = new.iter().map(|(name, value)| (name.clone(), value.clone()));
    Value::Object(gone.chain(all).collect())
}
