//! Volumes that may be attached to one node alone: which node that is.
//!
//! The key is the volume, as its driver names it. Nodes are asked about side by side, each by a view that does not hold yet what was
//! decided for another; of one key there is one plan at a time, made by a view that holds what the plan before it wrote. A server that
//! begins to lead lists anew, and nothing of the one before it is committed any more.

use std::{collections::BTreeMap, time::Duration};

use corten_meta::{Key, ObjectMeta, Time};
use corten_reconcile::{Effect, EventType, Plan, View};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::{LOOK_AGAIN, create, event, is_exclusive, look_again, name_of};
use crate::{
    projections::{Node, Pod},
    volumes::projections::{Attachment, Claim, Volume},
};

/// Tells the keys of volumes from those of nodes, which have no namespace.
const NAMESPACE: &str = "volumes";
/// As upstream's `exponentialbackoff`.
const FIRST_PAUSE: Duration = Duration::from_millis(500);
const PAUSE_MAX: Duration = Duration::from_secs(122);

pub(super) fn is_key(key: &Key) -> bool {
    key.namespace == NAMESPACE
}

/// `None`: it may be on many nodes, or no driver has it.
pub(super) fn key(volume: &Volume) -> Option<Key> {
    let csi = volume.spec.csi.as_ref().filter(|_| is_exclusive(volume))?;
    Some(Key::new(NAMESPACE, format!("{}^{}", csi.driver, csi.volume_handle)))
}

/// As [`key`] would say, of very many.
fn is_of(volume: &Volume, key: &Key) -> bool {
    let csi = volume.spec.csi.as_ref().filter(|_| is_exclusive(volume));
    csi.is_some_and(|it| key.name.split_once('^') == Some((&*it.driver, &*it.volume_handle)))
}

pub(super) fn key_of_volume(view: &View, volume: &ObjectMeta) -> Vec<Key> {
    view.get::<Volume>(&volume.key()).and_then(key).into_iter().collect()
}

pub(super) fn key_of_claim(view: &View, claim: &ObjectMeta) -> Vec<Key> {
    let claim = view.get::<Claim>(&claim.key()).filter(|it| it.is_completed());
    let volume = claim.and_then(|it| view.get::<Volume>(&Key::cluster(&*it.spec.volume_name)));
    volume.and_then(key).into_iter().collect()
}

/// What pods of one node want.
struct Use<'a> {
    volume: &'a Volume,
    pods: Vec<&'a Pod>,
}

/// How often a pod was told that it waits, and when it is told again.
#[derive(Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
struct Told {
    times: u32,
    /// Milliseconds since 1970.
    next_ms: i64,
}

pub(super) fn reconcile(view: &View, volume_key: &Key, now: Time) -> Plan {
    // Two PersistentVolumes may stand for one volume.
    let volumes: Vec<&Volume> = view.list::<Volume>().filter(|it| is_of(it, volume_key)).collect();
    let mut uses: BTreeMap<&str, Use<'_>> = BTreeMap::new();
    for volume in &volumes {
        for pod in users(view, volume) {
            let of = Use { volume, pods: Vec::new() };
            uses.entry(&*pod.spec.node_name).or_insert(of).pods.push(pod);
        }
    }
    let is_here =
        |it: &&Attachment| volumes.iter().any(|volume| volume.metadata.name == it.spec.source.persistent_volume_name);
    let attachments: Vec<&Attachment> = view.list::<Attachment>().filter(is_here).collect();
    let holders: Vec<&str> = attachments.iter().map(|it| &*it.spec.node_name).collect();
    let mut plan = Plan::default();
    if holders.is_empty() {
        attach(view, &uses, now, &mut plan);
        return without_note(view, volume_key, plan);
    }
    // Nobody is told of an attachment that is gone which volume it was of.
    if !uses.is_empty() && attachments.iter().any(|it| it.metadata.is_deleting()) {
        look_again(&mut plan, now.after(LOOK_AGAIN));
    }
    let is_waiting = |it: &(&str, Use<'_>)| !holders.contains(&it.0) && name_of(view, it.1.volume, it.0).is_some();
    let (waiting, served): (Vec<_>, Vec<_>) = uses.into_iter().partition(is_waiting);
    if waiting.is_empty() {
        return without_note(view, volume_key, plan);
    }
    let users: Vec<&Pod> = served.into_iter().flat_map(|it| it.1.pods).collect();
    tell(view, volume_key, &waiting, &users, now, &mut plan);
    look_again(&mut plan, now.after(LOOK_AGAIN));
    plan
}

/// The pods with a node that use it through the claim it is bound to.
fn users<'a>(view: &'a View, volume: &'a Volume) -> impl Iterator<Item = &'a Pod> {
    let claim = volume.claim().and_then(|it| view.get::<Claim>(&it));
    let claim = claim.filter(|it| it.is_completed() && it.spec.volume_name == volume.metadata.name);
    claim.into_iter().flat_map(|claim| {
        let uses = move |it: &&Pod| it.claims().any(|it| it == claim.metadata.name);
        let pods = view.in_namespace::<Pod>(&claim.metadata.namespace);
        pods.filter(|it| !it.spec.node_name.is_empty() && !it.is_finished()).filter(uses)
    })
}

/// Gives the volume to the node whose pod has waited longest.
fn attach(view: &View, uses: &BTreeMap<&str, Use<'_>>, now: Time, plan: &mut Plan) {
    let is_there = |it: &(&&str, &Use<'_>)| view.get::<Node>(&Key::cluster(*it.0)).is_some();
    let since = |it: &Use<'_>| it.pods.iter().map(|it| it.metadata.creation_timestamp).min();
    let first = uses.iter().filter(is_there).min_by_key(|it| (since(it.1), *it.0));
    match first.and_then(|(node, it)| Some((*node, name_of(view, it.volume, node)?, it.volume))) {
        Some((node, name, volume)) => plan.effects.push(create(node, &name, volume)),
        // A node may be about to say that it is there.
        None if first.is_none() && !uses.is_empty() => look_again(plan, now.after(LOOK_AGAIN)),
        None => {}
    }
}

/// Says to each pod that waits why it does, again and again, and ever more rarely.
fn tell(view: &View, key: &Key, waiting: &[(&str, Use<'_>)], users: &[&Pod], now: Time, plan: &mut Plan) {
    let before: BTreeMap<String, Told> =
        view.note(key).and_then(|it| serde_json::from_value(it.clone()).ok()).unwrap_or_default();
    let mut after = BTreeMap::new();
    for (_, Use { volume, pods }) in waiting {
        for pod in pods {
            let mut told = before.get(&*pod.metadata.uid).copied().unwrap_or_default();
            if told.next_ms <= now.unix_millis() {
                let message =
                    format!("Multi-Attach error for volume {:?} {}", volume.metadata.name, who_has_it(pod, users));
                plan.effects.push(event(pod, EventType::Warning, "FailedAttachVolume", message));
                let pause = FIRST_PAUSE.saturating_mul(1 << told.times.min(16)).min(PAUSE_MAX);
                told = Told { times: told.times.saturating_add(1), next_ms: now.after(pause).unix_millis() };
            }
            look_again(plan, Time::from_unix_millis(told.next_ms));
            after.insert(pod.metadata.uid.clone(), told);
        }
    }
    if after != before {
        plan.effects.push(Effect::Remember { note: json!(after) });
    }
}

/// In upstream's words (`reportMultiAttachError`). Names of another namespace are not for everybody.
fn who_has_it(pod: &Pod, users: &[&Pod]) -> String {
    let (own, others): (Vec<&Pod>, Vec<&Pod>) =
        users.iter().partition(|it| it.metadata.namespace == pod.metadata.namespace);
    let names = own.iter().map(|it| &*it.metadata.name).collect::<Vec<_>>().join(", ");
    let n_others = others.len();
    match (own.is_empty(), n_others) {
        (true, 0) => "Volume is already exclusively attached to one node and can't be attached to another".to_owned(),
        (true, _) => format!("Volume is already used by {n_others} pod(s) in different namespaces"),
        (false, 0) => format!("Volume is already used by pod(s) {names}"),
        (false, _) => format!("Volume is already used by pod(s) {names} and {n_others} pod(s) in different namespaces"),
    }
}

fn without_note(view: &View, key: &Key, mut plan: Plan) -> Plan {
    plan.effects.extend(view.note(key).map(|_| Effect::Remember { note: Value::Null }));
    plan
}
