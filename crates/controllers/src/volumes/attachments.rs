//! Says which volumes are attached to a node: those that its pods use, of CSI drivers that attach.
//!
//! A volume is taken from a node when no pod there wants it and the node does not use it any more; from a node that is broken
//! or gone after six minutes, and at once from one that is out of service (KEP-2268). After attach_detach_controller.go.
//!
//! Its keys are nodes; of a volume that may be on one node alone the volume is one, too ([`exclusive`]).

mod exclusive;

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use corten_api::{
    resources,
    volumes::{attachment_name, is_multi_attach_allowed},
};
use corten_meta::{Key, ObjectMeta, Resource, Time};
use corten_reconcile::{
    Controller, Effect, EventType, Plan, Projection, Propagation, Verb, View, Wake, Watch, Write, go_on_after_failed,
    status::exact_patch,
};
use serde_json::json;

use super::projections::{Attachment, Claim, CsiDriver, Volume};
use crate::projections::{AttachedVolume, Node, Pod, reference};

/// As upstream's `maxWaitForUnmountDuration`.
const UNMOUNT_PATIENCE: Duration = Duration::from_secs(6 * 60);
/// What becomes possible without a change of what is watched here is looked for again.
const LOOK_AGAIN: Duration = Duration::from_secs(2);
/// Since when nobody has wanted an attachment that its node still uses.
const UNWANTED_SINCE: &str = "corten.dev/unwanted-since";

pub struct AttachDetach;

impl Controller for AttachDetach {
    fn name(&self) -> &'static str {
        "attachdetach"
    }

    fn watches(&self) -> Vec<Watch> {
        vec![
            Watch::new::<Node>(Wake::Itself),
            Watch::new::<Pod>(Wake::With(keys_of_pod)),
            Watch::new::<Attachment>(Wake::With(keys_of_attachment)),
            Watch::new::<CsiDriver>(Wake::Nobody),
            Watch::new::<Volume>(Wake::With(exclusive::key_of_volume)),
            Watch::new::<Claim>(Wake::With(exclusive::key_of_claim)),
        ]
    }

    fn writes(&self) -> &'static [Write] {
        const {
            &[
                Write { verb: Verb::Create, resource: resources::VOLUME_ATTACHMENTS, fields: &[] },
                Write { verb: Verb::Patch, resource: resources::VOLUME_ATTACHMENTS, fields: &["metadata.annotations"] },
                Write { verb: Verb::Delete, resource: resources::VOLUME_ATTACHMENTS, fields: &[] },
                Write { verb: Verb::Patch, resource: resources::NODES, fields: &["status.volumesAttached"] },
            ]
        }
    }

    /// A node is fine while volumes come and go; who waits for one says so itself.
    fn about(&self) -> Option<Resource> {
        None
    }

    fn subject(&self, _view: &View, _key: &Key) -> Option<(Resource, Key)> {
        None
    }

    fn is_made_up(&self, key: &Key) -> bool {
        exclusive::is_key(key)
    }

    fn reconcile(&self, view: &View, key: &Key, now: Time) -> Plan {
        if exclusive::is_key(key) {
            return exclusive::reconcile(view, key, now);
        }
        let (mut plan, node) = (Plan::default(), view.get::<Node>(key));
        let wanted = wanted(view, &key.name, now, &mut plan);
        let held: BTreeMap<&str, &Attachment> =
            view.found_by::<Attachment>(&key.name).filter(|it| is_own(it)).map(|it| (&*it.metadata.name, it)).collect();
        let (kept, unwanted): (Vec<&Attachment>, Vec<&Attachment>) =
            held.values().partition(|it| wanted.contains_key(&*it.metadata.name));
        let (leaving, in_use): (Vec<&Attachment>, Vec<&Attachment>) =
            unwanted.into_iter().partition(|it| may_leave(view, node, it, now, &mut plan));
        tell_pods(node, &kept, &wanted, &mut plan);
        // What is about to be taken away is first not told.
        tell_node(view, node, kept.iter().chain(&in_use).copied(), &mut plan);
        let n_told = plan.effects.len();
        plan.effects.extend(leaving.into_iter().filter(|it| !it.metadata.is_deleting()).map(delete));
        for it in kept.iter().filter(|it| it.metadata.annotations.contains_key(UNWANTED_SINCE)) {
            plan.effects.push(mark(it, None));
        }
        // Of the others each has one place: where it is, is decided about the volume, not about the nodes.
        let is_missing = |it: &(&String, &Use<'_>)| !held.contains_key(&**it.0) && !is_exclusive(it.1.volume);
        let missing = wanted.iter().filter(|it| node.is_some() && is_missing(it));
        plan.effects.extend(missing.map(|(name, it)| create(&key.name, name, it.volume)));
        if kept.iter().any(|it| it.metadata.is_deleting()) {
            look_again(&mut plan, now.after(LOOK_AGAIN));
        }
        go_on_after_failed(&mut plan.effects[n_told..], view.failure(key));
        plan
    }
}

/// What others have made for themselves has a name of its own, and is theirs to take away.
fn is_own(attachment: &Attachment) -> bool {
    let hash = attachment.metadata.name.strip_prefix("csi-");
    hash.is_some_and(|it| it.len() == 64 && it.bytes().all(|it| it.is_ascii_hexdigit()))
}

/// A volume that is wanted on a node, and by whom.
struct Use<'a> {
    volume: &'a Volume,
    pods: Vec<&'a Pod>,
}

/// By the attachment's name. A pod that is being deleted may still write.
fn wanted<'a>(view: &'a View, node: &str, now: Time, plan: &mut Plan) -> BTreeMap<String, Use<'a>> {
    let mut wanted: BTreeMap<String, Use<'a>> = BTreeMap::new();
    for pod in view.on_node::<Pod>(node).filter(|it| !it.is_finished()) {
        for name in pod.claims() {
            let claim = view.get::<Claim>(&Key::new(&*pod.metadata.namespace, name));
            // A pod that came past the scheduler may be here before its claims are bound.
            let Some(claim) = claim.filter(|it| it.is_completed()) else {
                look_again(plan, now.after(LOOK_AGAIN));
                continue;
            };
            let volume = view.get::<Volume>(&Key::cluster(&*claim.spec.volume_name));
            let Some((volume, name)) = volume.and_then(|it| Some((it, name_of(view, it, node)?))) else {
                continue;
            };
            wanted.entry(name).or_insert_with(|| Use { volume, pods: Vec::new() }).pods.push(pod);
        }
    }
    wanted
}

/// Nothing where the driver attaches nothing. One that has no CSIDriver object does.
fn name_of(view: &View, volume: &Volume, node: &str) -> Option<String> {
    let csi = volume.spec.csi.as_ref()?;
    let driver = view.get::<CsiDriver>(&Key::cluster(&*csi.driver));
    let attaches = driver.is_none_or(|it| it.spec.attach_required != Some(false));
    attaches.then(|| attachment_name(&csi.volume_handle, &csi.driver, node))
}

fn is_exclusive(volume: &Volume) -> bool {
    !is_multi_attach_allowed(&volume.spec.access_modes)
}

fn create(node: &str, name: &str, volume: &Volume) -> Effect {
    let csi = volume.spec.csi.as_ref().expect("only such volumes are wanted");
    let source = json!({ "persistentVolumeName": volume.metadata.name });
    let object = json!({
        "apiVersion": Attachment::RESOURCE.api_version(),
        "kind": Attachment::RESOURCE.kind,
        "metadata": { "name": name },
        "spec": { "attacher": csi.driver, "nodeName": node, "source": source },
    });
    Effect::Create { resource: Attachment::RESOURCE, object }
}

/// May an attachment that nobody wants go now? Marks since when that has been asked, where the node still uses the volume.
fn may_leave(view: &View, node: Option<&Node>, attachment: &Attachment, now: Time, plan: &mut Plan) -> bool {
    if attachment.metadata.is_deleting() {
        return true;
    }
    let is_out_of_service = |it: &Node| it.spec.taints.iter().any(|it| it.key == "node.kubernetes.io/out-of-service");
    match node {
        Some(node) if is_out_of_service(node) || !uses(view, node, attachment) => return true,
        _ => {}
    }
    let since = attachment.metadata.annotations.get(UNWANTED_SINCE).and_then(|it| it.parse::<Time>().ok());
    let Some(since) = since else {
        plan.effects.push(mark(attachment, Some(now)));
        return false;
    };
    let forced_at = since.after(UNMOUNT_PATIENCE);
    let is_healthy = node.is_some_and(|it| it.ready() == Some("True"));
    if !is_healthy && now < forced_at {
        look_again(plan, forced_at);
    }
    // A node that is healthy will come to it.
    !is_healthy && now >= forced_at
}

/// Has the node mounted the volume, or is it about to? Of a volume that is gone only the driver is known.
fn uses(view: &View, node: &Node, attachment: &Attachment) -> bool {
    let volume = view.get::<Volume>(&Key::cluster(&*attachment.spec.source.persistent_volume_name));
    let prefix = format!("kubernetes.io/csi/{}^", attachment.spec.attacher);
    let mut in_use = node.status.volumes_in_use.iter();
    match volume.and_then(unique_name) {
        Some(name) => in_use.any(|it| **it == *name),
        None => in_use.any(|it| it.starts_with(&*prefix)),
    }
}

fn unique_name(volume: &Volume) -> Option<String> {
    let csi = volume.spec.csi.as_ref()?;
    Some(format!("kubernetes.io/csi/{}^{}", csi.driver, csi.volume_handle))
}

/// How it went with the volumes that pods want.
fn tell_pods(node: Option<&Node>, kept: &[&Attachment], wanted: &BTreeMap<String, Use<'_>>, plan: &mut Plan) {
    let Some(node) = node else { return };
    for attachment in kept {
        let (use_, status) = (&wanted[&attachment.metadata.name], &attachment.status);
        let volume_name = &use_.volume.metadata.name;
        let is_told = || {
            let name = unique_name(use_.volume).unwrap_or_default();
            node.status.volumes_attached.iter().any(|it| *it.name == *name)
        };
        let (event_type, reason, message) = match &status.attach_error {
            Some(error) if !status.attached => {
                let message = format!("AttachVolume.Attach failed for volume {volume_name:?} : {}", error.message);
                (EventType::Warning, "FailedAttachVolume", message)
            }
            _ if status.attached && !attachment.metadata.is_deleting() && !is_told() => {
                let message = format!("AttachVolume.Attach succeeded for volume {volume_name:?} ");
                (EventType::Normal, "SuccessfulAttachVolume", message)
            }
            _ => continue,
        };
        plan.effects.extend(use_.pods.iter().map(|it| event(it, event_type, reason, message.clone())));
    }
}

/// Writes what is attached into the node's status, where the kubelet finds it.
fn tell_node<'a>(view: &View, node: Option<&Node>, staying: impl Iterator<Item = &'a Attachment>, plan: &mut Plan) {
    let Some(node) = node else { return };
    let volume = |it: &Attachment| view.get::<Volume>(&Key::cluster(&*it.spec.source.persistent_volume_name));
    let attached = staying.filter(|it| it.status.attached && !it.metadata.is_deleting());
    let names: BTreeSet<String> = attached.filter_map(|it| unique_name(volume(it)?)).collect();
    let is_csi = |it: &&AttachedVolume| it.name.starts_with("kubernetes.io/csi/");
    let others = node.status.volumes_attached.iter().filter(|it| !is_csi(it)).cloned();
    let own = names.into_iter().map(|it| AttachedVolume { name: it.into(), device_path: "".into() });
    let told: Vec<AttachedVolume> = others.chain(own).collect();
    if told != node.status.volumes_attached {
        let told = if told.is_empty() { json!(null) } else { json!(told) };
        plan.effects.push(Effect::Patch {
            resource: Node::RESOURCE,
            key: Key::cluster(&*node.metadata.name),
            subresource: Some("status"),
            patch: json!({ "metadata": { "uid": node.metadata.uid }, "status": { "volumesAttached": told } }),
        });
    }
}

fn mark(attachment: &Attachment, since: Option<Time>) -> Effect {
    let patch = json!({ "metadata": { "annotations": { UNWANTED_SINCE: since } } });
    exact_patch(Attachment::RESOURCE, &attachment.metadata, patch)
}

fn delete(attachment: &Attachment) -> Effect {
    Effect::Delete {
        resource: Attachment::RESOURCE,
        key: attachment.metadata.key(),
        uid: attachment.metadata.uid.clone(),
        propagation: Propagation::Background,
        grace_seconds: None,
    }
}

fn event(pod: &Pod, event_type: EventType, reason: &'static str, message: String) -> Effect {
    Effect::Event { about: reference(pod), event_type, reason, message }
}

fn look_again(plan: &mut Plan, at: Time) {
    plan.wake_at = Some(plan.wake_at.map_or(at, |it| it.min(at)));
}

/// Where a pod that is gone was nobody knows any more: any node with attachments may be the one.
fn keys_of_pod(view: &View, pod: &ObjectMeta) -> Vec<Key> {
    let Some(pod) = view.get::<Pod>(&pod.key()) else {
        let nodes: BTreeSet<&str> = view.list::<Attachment>().map(|it| &*it.spec.node_name).collect();
        return nodes.into_iter().map(Key::cluster).collect();
    };
    let node = &*pod.spec.node_name;
    if node.is_empty() {
        return Vec::new();
    }
    let of = |name: String| view.get::<Claim>(&Key::new(&*pod.metadata.namespace, name));
    let volumes = pod.claims().filter_map(|it| exclusive::key_of_claim(view, &of(it)?.metadata).pop());
    let node = pod.claims().next().map(|_| Key::cluster(node));
    node.into_iter().chain(volumes).collect()
}

fn keys_of_attachment(view: &View, attachment: &ObjectMeta) -> Vec<Key> {
    let Some(attachment) = view.get::<Attachment>(&attachment.key()) else { return Vec::new() };
    let volume = view.get::<Volume>(&Key::cluster(&*attachment.spec.source.persistent_volume_name));
    let volume = volume.and_then(exclusive::key);
    volume.into_iter().chain([Key::cluster(&*attachment.spec.node_name)]).collect()
}

#[cfg(test)]
mod tests;
