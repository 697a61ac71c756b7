//! Says which volumes are attached to a node: those that its pods use, of CSI drivers that attach.
//!
//! A volume is taken from a node when no pod there wants it and the node does not use it any more; from a node that is broken
//! or gone after six minutes, and at once from one that is out of service (KEP-2268). After attach_detach_controller.go.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use aws_lc_rs::digest::{SHA256, digest};
use corten_api::resources;
use corten_meta::{Key, ObjectMeta, Resource, Time};
use corten_reconcile::{Controller, Effect, EventType, Plan, Projection, Propagation, Verb, View, Wake, Watch, Write};
use serde_json::json;

use super::projections::{Attachment, Claim, CsiDriver, Volume};
use crate::{
    projections::{AttachedVolume, Node, Pod, reference},
    status::exact_patch,
};

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
            Watch::new::<Pod>(Wake::With(node_of_pod)),
            Watch::new::<Attachment>(Wake::With(node_of_attachment)),
            Watch::new::<CsiDriver>(Wake::Nobody),
            Watch::new::<Volume>(Wake::Nobody),
            Watch::new::<Claim>(Wake::Nobody),
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

    fn reconcile(&self, view: &View, key: &Key, now: Time) -> Plan {
        let (mut plan, node) = (Plan::default(), view.get::<Node>(key));
        let wanted = wanted(view, &key.name, now, &mut plan);
        let held: BTreeMap<&str, &Attachment> =
            view.found_by::<Attachment>(&key.name).map(|it| (&*it.metadata.name, it)).collect();
        let (kept, unwanted): (Vec<&Attachment>, Vec<&Attachment>) =
            held.values().partition(|it| wanted.contains_key(&*it.metadata.name));
        let (leaving, in_use): (Vec<&Attachment>, Vec<&Attachment>) =
            unwanted.into_iter().partition(|it| may_leave(view, node, it, now, &mut plan));
        tell_pods(node, &kept, &wanted, &mut plan);
        // What is about to be taken away is first not told.
        tell_node(view, node, kept.iter().chain(&in_use).copied(), &mut plan);
        plan.effects.extend(leaving.into_iter().filter(|it| !it.metadata.is_deleting()).map(delete));
        for it in kept.iter().filter(|it| it.metadata.annotations.contains_key(UNWANTED_SINCE)) {
            plan.effects.push(mark(it, None));
        }
        for (name, use_) in wanted.iter().filter(|it| node.is_some() && !held.contains_key(&**it.0)) {
            attach(view, &key.name, name, use_, now, &mut plan);
        }
        if kept.iter().any(|it| it.metadata.is_deleting()) {
            look_again(&mut plan, now.after(LOOK_AGAIN));
        }
        plan
    }
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
            let Some((volume, name)) = volume.and_then(|it| Some((it, attachment_name(view, it, node)?))) else {
                continue;
            };
            wanted.entry(name).or_insert_with(|| Use { volume, pods: Vec::new() }).pods.push(pod);
        }
    }
    wanted
}

/// Of handle, driver and node (`getAttachmentName`); nothing where the driver attaches nothing. One that has no CSIDriver
/// object does.
fn attachment_name(view: &View, volume: &Volume, node: &str) -> Option<String> {
    let csi = volume.spec.csi.as_ref()?;
    let driver = view.get::<CsiDriver>(&Key::cluster(&*csi.driver));
    if driver.is_some_and(|it| it.spec.attach_required == Some(false)) {
        return None;
    }
    let hash = digest(&SHA256, format!("{}{}{node}", csi.volume_handle, csi.driver).as_bytes());
    Some(hash.as_ref().iter().fold("csi-".to_owned(), |name, it| format!("{name}{it:02x}")))
}

/// Makes the attachment, unless the volume is on another node and may be on one alone.
fn attach(view: &View, node: &str, name: &str, use_: &Use<'_>, now: Time, plan: &mut Plan) {
    let (volume, csi) = (use_.volume, use_.volume.spec.csi.as_ref().expect("only such volumes are wanted"));
    let volume_name = &volume.metadata.name;
    let is_shared = volume.spec.access_modes.iter().any(|it| matches!(&**it, "ReadOnlyMany" | "ReadWriteMany"));
    let mut others = view.list::<Attachment>();
    let is_elsewhere =
        |it: &Attachment| it.spec.source.persistent_volume_name == *volume_name && it.spec.node_name != node;
    if !is_shared && others.any(is_elsewhere) {
        let message = format!(
            "Multi-Attach error for volume {volume_name:?} Volume is already exclusively attached to one node and can't \
             be attached to another"
        );
        plan.effects
            .extend(use_.pods.iter().map(|it| event(it, EventType::Warning, "FailedAttachVolume", message.clone())));
        return look_again(plan, now.after(LOOK_AGAIN));
    }
    let object = json!({
        "apiVersion": Attachment::RESOURCE.api_version(),
        "kind": Attachment::RESOURCE.kind,
        "metadata": { "name": name },
        "spec": { "attacher": csi.driver, "nodeName": node, "source": { "persistentVolumeName": volume_name } },
    });
    plan.effects.push(Effect::Create { resource: Attachment::RESOURCE, object });
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
fn node_of_pod(view: &View, pod: &ObjectMeta) -> Vec<Key> {
    let Some(pod) = view.get::<Pod>(&pod.key()) else {
        let nodes: BTreeSet<&str> = view.list::<Attachment>().map(|it| &*it.spec.node_name).collect();
        return nodes.into_iter().map(Key::cluster).collect();
    };
    let node = &*pod.spec.node_name;
    Vec::from_iter((!node.is_empty() && pod.claims().next().is_some()).then(|| Key::cluster(node)))
}

fn node_of_attachment(view: &View, attachment: &ObjectMeta) -> Vec<Key> {
    let attachment = view.get::<Attachment>(&attachment.key());
    attachment.map(|it| Key::cluster(&*it.spec.node_name)).into_iter().collect()
}
