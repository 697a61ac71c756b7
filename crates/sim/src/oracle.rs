//! The whole truth: every commit of the store in its order, and the rules no moment of it may break.

use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    time::Duration,
};

use corten_meta::Quantity;
use corten_store::Change;
use serde_json::Value;
use tokio::time::Instant;

use crate::{
    fights::{Fights, is_over},
    node,
    one_revision::States,
    successes::Successes,
    terms::Terms,
};

/// How far behind a loop's view may be when it acts: watches that are cut, back-offs, slow requests.
const STALENESS: Duration = Duration::from_secs(180);

#[derive(Default)]
pub(crate) struct Oracle {
    /// What each key holds now.
    pub(crate) objects: BTreeMap<String, Value>,
    /// Every revision, with the keys it changed.
    pub(crate) log: BTreeMap<u64, Vec<String>>,
    /// What a set of pods (by the key of its owner) was meant to hold at most, and since when.
    wanted: BTreeMap<String, VecDeque<(Instant, i64)>>,
    /// Pods whose maker had given up on them when they were stored, and may have made others.
    late_pods: BTreeSet<String>,
    successes: Successes,
    pub(crate) fights: Fights,
    pub(crate) states: States,
    pub(crate) terms: Terms,
    pub(crate) revision: u64,
    /// Of everything that was ever stored, and when.
    pub(crate) hash: u64,
    pub(crate) violation: Option<String>,
}

impl Oracle {
    pub(crate) fn take(&mut self, changes: Vec<Change>, elapsed: Duration) {
        for change in changes {
            if let Err(violation) = self.change(&change, elapsed) {
                let at = format!("at {:.3} s, revision {}: {violation}", elapsed.as_secs_f64(), change.revision);
                self.violation.get_or_insert(at);
            }
        }
    }

    fn change(&mut self, change: &Change, elapsed: Duration) -> Result<(), String> {
        let key = String::from_utf8_lossy(&change.key).into_owned();
        let value = change.entry.as_ref().map(|it| it.value.clone()).unwrap_or_default();
        self.mix(&change.revision.to_le_bytes());
        self.mix(&elapsed.as_micros().to_le_bytes());
        self.mix(key.as_bytes());
        self.mix(&value);
        if change.revision < self.revision {
            return Err(format!("the revision went back from {}", self.revision));
        }
        self.revision = change.revision;
        self.log.entry(change.revision).or_default().push(key.clone());
        self.states.note(&key, change.revision, change.entry.is_none());
        if change.entry.is_none() {
            self.objects.remove(&key);
            self.fights.gone(&key);
            return self.terms.stored(&key, change.revision, None);
        }
        let new: Value = serde_json::from_slice(&value).map_err(|error| format!("{key} is no JSON: {error}"))?;
        self.terms.stored(&key, change.revision, Some(&new))?;
        let old = self.objects.insert(key.clone(), new.clone());
        if self.terms.authors.take_late(change.revision) && old.is_none() && key.starts_with("/registry/pods/") {
            self.late_pods.insert(key.clone());
        }
        let kind = key.split('/').nth(2).unwrap_or_default();
        match kind {
            "pods" => {
                self.successes.note(&new, controller(&new));
                self.fights.stored(&key, old.as_ref(), &new, STALENESS)?;
                self.pod(&key, old.as_ref(), &new)
            }
            "jobs" => self.successes.check(&key, &new),
            "replicasets" => self.replica_set(&key, old.as_ref(), &new),
            "deployments" => {
                self.want(&key, most_pods(&new));
                Ok(())
            }
            _ => Ok(()),
        }
    }

    fn pod(&mut self, key: &str, old: Option<&Value>, new: &Value) -> Result<(), String> {
        let controllers = owners(new).filter(|it| it["controller"] == true).count();
        if controllers > 1 {
            return Err(format!("{key} has {controllers} controlling owners"));
        }
        let node = new["spec"]["nodeName"].as_str().unwrap_or_default();
        let same = old.filter(|it| it["metadata"]["uid"] == new["metadata"]["uid"]);
        let before = same.and_then(|it| it["spec"]["nodeName"].as_str()).unwrap_or_default();
        if !before.is_empty() && before != node {
            return Err(format!("{key} was bound to {before} and then to {node:?}"));
        }
        if before.is_empty() && !node.is_empty() {
            self.node_has_room(node)?;
        }
        if same.is_none()
            && let Some(owner) = controller(new)
        {
            self.no_surplus(key, owner, new)?;
        }
        Ok(())
    }

    fn node_has_room(&self, node: &str) -> Result<(), String> {
        let on_node = |it: &&Value| it["spec"]["nodeName"] == node && !is_over(it);
        let pods: Vec<&Value> = self.of("pods").map(|it| it.1).filter(on_node).collect();
        let cpu: i64 = pods.iter().map(|it| cpu_millis(it)).sum();
        if cpu > node::CPU_MILLIS {
            return Err(format!("{node} is given {cpu}m of {}m CPU", node::CPU_MILLIS));
        }
        if i64::try_from(pods.len()).is_ok_and(|it| it > node::PODS_MAX) {
            return Err(format!("{node} is given {} of {} pods", pods.len(), node::PODS_MAX));
        }
        Ok(())
    }

    /// A new pod was wanted, at least by the latest state that its maker may have seen.
    fn no_surplus(&mut self, key: &str, owner: &Value, pod: &Value) -> Result<(), String> {
        let namespace = pod["metadata"]["namespace"].as_str().unwrap_or_default();
        let set = format!("/registry/replicasets/{namespace}/{}", owner["name"].as_str().unwrap_or_default());
        let Some(wanted) = self.most_wanted(&set) else { return Ok(()) };
        let owner = owner["uid"].as_str().unwrap_or_default();
        let active = self.active_pods_but(owner, |key| self.late_pods.contains(key));
        if active > wanted {
            return Err(format!("{key} is pod {active} of {set}, which never wanted more than {wanted}"));
        }
        Ok(())
    }

    fn replica_set(&mut self, key: &str, old: Option<&Value>, new: &Value) -> Result<(), String> {
        let replicas = |it: &Value| it["spec"]["replicas"].as_i64().unwrap_or(1);
        self.want(key, replicas(new));
        let same = old.filter(|it| it["metadata"]["uid"] == new["metadata"]["uid"]);
        if replicas(new) <= same.map_or(0, replicas) {
            return Ok(());
        }
        let Some(owner) = controller(new) else { return Ok(()) };
        let namespace = new["metadata"]["namespace"].as_str().unwrap_or_default();
        let deployment = format!("/registry/deployments/{namespace}/{}", owner["name"].as_str().unwrap_or_default());
        let Some(wanted) = self.most_wanted(&deployment) else { return Ok(()) };
        let sets = self
            .of("replicasets")
            .map(|it| it.1)
            .filter(|it| controller(it).is_some_and(|it| it["uid"] == owner["uid"]));
        let total: i64 = sets.map(replicas).sum();
        if total > wanted {
            return Err(format!(
                "the sets of {deployment} are scaled up to {total}, it never wanted more than {wanted}"
            ));
        }
        Ok(())
    }

    fn want(&mut self, key: &str, n: i64) {
        let now = Instant::now();
        let wanted = self.wanted.entry(key.to_owned()).or_default();
        wanted.push_back((now, n));
        // The one before the oldest that still counts held until then, so it counts too.
        while wanted.get(1).is_some_and(|it| now - it.0 > STALENESS) {
            wanted.pop_front();
        }
    }

    fn most_wanted(&mut self, key: &str) -> Option<i64> {
        let now = Instant::now();
        let wanted = self.wanted.get_mut(key)?;
        while wanted.get(1).is_some_and(|it| now - it.0 > STALENESS) {
            wanted.pop_front();
        }
        wanted.iter().map(|it| it.1).max()
    }

    // ---- looking ----

    /// All objects of one plural, by key.
    pub(crate) fn of(&self, plural: &str) -> impl Iterator<Item = (&str, &Value)> {
        let prefix = format!("/registry/{plural}/");
        let from = self.objects.range(prefix.clone()..);
        from.take_while(move |it| it.0.starts_with(&prefix)).map(|(key, value)| (&**key, value))
    }

    pub(crate) fn active_pods(&self, owner: &str) -> i64 {
        self.active_pods_but(owner, |_| false)
    }

    fn active_pods_but(&self, owner: &str, is_left_out: impl Fn(&str) -> bool) -> i64 {
        let active = |it: &&Value| !is_over(it) && it["metadata"]["deletionTimestamp"].is_null();
        let pods = self.of("pods").filter(|it| !is_left_out(it.0)).map(|it| it.1).filter(active);
        let owned = pods.filter(|it| controller(it).is_some_and(|it| it["uid"] == owner));
        i64::try_from(owned.count()).unwrap_or(i64::MAX)
    }

    /// The revisions that changed a plural after `from`, up to `to`.
    pub(crate) fn revisions(&self, plural: &str, from: u64, to: u64) -> Vec<u64> {
        let prefix = format!("/registry/{plural}/");
        let range = self.log.range(from + 1..=to);
        range.filter(|it| it.1.iter().any(|key| key.starts_with(&prefix))).map(|it| *it.0).collect()
    }

    fn mix(&mut self, bytes: &[u8]) {
        self.hash = corten_meta::stable_hash_from(self.hash, bytes);
    }
}

fn owners(object: &Value) -> impl Iterator<Item = &Value> {
    object["metadata"]["ownerReferences"].as_array().into_iter().flatten()
}

pub(crate) fn controller(object: &Value) -> Option<&Value> {
    owners(object).find(|it| it["controller"] == true)
}

fn cpu_millis(pod: &Value) -> i64 {
    let containers = pod["spec"]["containers"].as_array().into_iter().flatten();
    let cpu = containers.filter_map(|it| it["resources"]["requests"]["cpu"].as_str()?.parse::<Quantity>().ok());
    cpu.map(Quantity::milli_value).sum()
}

/// `replicas + maxSurge`.
fn most_pods(deployment: &Value) -> i64 {
    let spec = &deployment["spec"];
    let replicas = spec["replicas"].as_i64().unwrap_or(1);
    let surge = &spec["strategy"]["rollingUpdate"]["maxSurge"];
    let percent = surge.as_str().and_then(|it| it.strip_suffix('%')?.parse::<i64>().ok());
    replicas + surge.as_i64().or(percent.map(|it| (replicas * it + 99) / 100)).unwrap_or(0)
}

#[cfg(test)]
mod tests;
