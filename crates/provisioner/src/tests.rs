//! Short stories of claims and volumes, told as objects.

mod acting;
mod attachments;
mod capacities;
mod cloning;
mod conditions;
mod expansion;
mod metadata;
mod modification;
mod requests;
mod snapshots;
mod unfinished;

use std::{collections::BTreeSet, sync::Arc};

use serde_json::{Value, json};

use crate::{ClaimFinalizers, Config, DriverFacts, Effect, Event, Failure, Job, Outcome, Provisioner};
use corten_meta::{Key, Time};

const DRIVER: &str = "local.corten.dev";

const BEGUN: &str = "Normal Provisioning: External provisioner is provisioning volume for claim \"default/data\"";

const GROWS: &str = "Normal Resizing: External resizer is resizing volume pvc-c1";

struct World {
    provisioner: Provisioner,
    now: Time,
    /// No driver answers how much is left.
    is_capacity_silent: bool,
}

impl World {
    fn new() -> Self {
        let mut world = Self {
            provisioner: Provisioner::new(Config { node_name: "n1".into(), identity: "1700-4".into() }),
            now: Time::from_unix_seconds(0),
            is_capacity_silent: false,
        };
        let facts = DriverFacts {
            name: DRIVER.into(),
            provisions: true,
            expands: true,
            node_expands: true,
            tells_capacity: true,
            snapshots: true,
            clones: true,
            topology: [("kubernetes.io/hostname".to_owned(), "n1".to_owned())].into(),
            ..DriverFacts::default()
        };
        world.tell(Event::Drivers(vec![facts]));
        world.tell(Event::Class(Arc::new(serde_json::from_value(crate::default_class(DRIVER)).expect("a class"))));
        world
    }

    fn tell(&mut self, event: Event) -> Vec<String> {
        let mut effects = self.provisioner.step(event, self.now);
        let asked = effects.iter().filter_map(|it| match it {
            Effect::PublishCapacity(it) => Some(crate::capacity_name(&it.driver, &it.class, self.provisioner.config())),
            _ => None,
        });
        let answers: Vec<String> = asked.filter(|_| !self.is_capacity_silent).collect();
        for name in answers {
            effects.extend(self.provisioner.step(Event::CapacityTold(name), self.now));
        }
        effects.iter().map(show).filter(|it| !it.is_empty()).collect()
    }

    fn claim(&mut self, patch: Value) -> Vec<String> {
        let claim = serde_json::from_value(claim(patch)).expect("a claim");
        self.tell(Event::Claim(Arc::new(claim)))
    }

    fn volume(&mut self, volume: Value) -> Vec<String> {
        self.tell(Event::Volume(Arc::new(serde_json::from_value(volume).expect("a volume"))))
    }

    /// One of others, with a controller, whose Pods are known; and what is done once all is.
    fn add_driver(&mut self, change: impl FnOnce(&mut DriverFacts)) -> Vec<String> {
        let mut facts = DriverFacts {
            name: "sample".into(),
            provisions: true,
            attaches: true,
            socket: Some("/var/lib/kubelet/plugins/sample/csi.sock".into()),
            ..DriverFacts::default()
        };
        change(&mut facts);
        self.tell(Event::Drivers(vec![facts]));
        self.tell(Event::Leads([crate::leases::of_driver("sample")].into()));
        self.tell(Event::PodsSynced);
        self.tell(Event::NodesSynced);
        self.tell(Event::Synced)
    }

    fn attachment(&mut self, patch: Value) -> Vec<String> {
        let mut attachment = json!({
            "metadata": { "name": "csi-1", "uid": "a1", "resourceVersion": "9" },
            "spec": { "attacher": "sample", "nodeName": "n1", "source": { "persistentVolumeName": "pv1" } },
        });
        merge(&mut attachment, patch);
        self.tell(Event::Attachment(Arc::new(serde_json::from_value(attachment).expect("an attachment"))))
    }

    fn wait(&mut self, seconds: i64) -> Vec<String> {
        self.now = self.now.after_seconds(seconds);
        self.tell(Event::Tick)
    }
}

fn merge(target: &mut Value, patch: Value) {
    match (target, patch) {
        (Value::Object(target), Value::Object(patch)) => {
            for (name, value) in patch {
                merge(target.entry(name).or_insert(Value::Null), value);
            }
        }
        (target, patch) => *target = patch,
    }
}

fn claim(patch: Value) -> Value {
    let mut claim = json!({
        "metadata": {
            "name": "data", "namespace": "default", "uid": "c1", "resourceVersion": "7",
            "annotations": { "volume.kubernetes.io/storage-provisioner": DRIVER },
        },
        "spec": {
            "storageClassName": "local", "accessModes": ["ReadWriteOnce"], "volumeMode": "Filesystem",
            "resources": { "requests": { "storage": "1Gi" } },
        },
    });
    merge(&mut claim, patch);
    claim
}

fn selected() -> Value {
    json!({ "metadata": { "annotations": { "volume.kubernetes.io/selected-node": "n1" } } })
}

fn show(effect: &Effect) -> String {
    match effect {
        Effect::Do(job) => match &**job {
            Job::Provision { request, source, .. } => {
                let held = source.as_ref().map(|it| format!(" and {}", held(it))).unwrap_or_default();
                let of = request.source.as_ref().map(|it| format!(" of {it:?}")).unwrap_or_default();
                format!("provision {} {} {}{of}{held}", request.name, request.bytes, request.is_block)
            }
            Job::Select { claim, node, .. } => format!("select {node} for {claim}"),
            Job::Reschedule { claim, source_node: Some(node), .. } => format!("reschedule {claim} to {node}"),
            Job::Reschedule { claim, .. } => format!("reschedule {claim}"),
            Job::Remove { volume, handle, finalizers, .. } => match finalizers.len() {
                1 => format!("remove {volume} {handle}"),
                _ => format!("remove {volume} {handle} and {}", finalizers[1..].join(" ")),
            },
            Job::LetGo { volume, finalizer } => format!("let go {volume} {finalizer}"),
            Job::Attach(it) => {
                format!("attach {} {:?} {}", it.attachment, it.volume.as_ref().map(|it| &it.handle), it.is_asked)
            }
            Job::Detach(it) => format!("detach {} {:?}", it.attachment, it.volume.as_ref().map(|it| &it.handle)),
            Job::Expand(it) => format!("expand {} {} {}", it.volume, it.told.handle, it.bytes),
            Job::ExpandOnNode(it) => format!("expand on node {} {}", it.volume, it.bytes),
            Job::TakeSnapshot(it) => {
                format!("take {} of {} {:?}{}", it.name, it.volume, it.parameters, with_secret(it.secret.as_ref()))
            }
            Job::RemoveSnapshot { content, handle, secret, .. } => {
                format!("remove {content} {}{}", handle.clone().unwrap_or_default(), with_secret(secret.as_ref()))
            }
            Job::Modify(it) => {
                format!("modify {} {} {:?}{}", it.handle, it.class, it.parameters, with_secret(it.secret.as_ref()))
            }
            Job::FindSnapshot(it) => format!("find {} of {}{}", it.handle, it.content, with_secret(it.secret.as_ref())),
            Job::WriteStatus { status, .. } => format!("status {status}"),
            Job::LookAtLease { claim, lease, .. } => format!("look at {lease} for {claim}"),
            Job::WriteFinalizers(it) => held(it),
        },
        Effect::Event { event_type, reason, message, .. } => format!("{} {reason}: {message}", event_type.as_str()),
        Effect::PublishCapacity(it) => format!("capacity {}", it.class),
        Effect::WithdrawCapacity { .. } => "withdraw".into(),
        Effect::AskAttached { driver, places } => format!("ask {driver} where {places:?}"),
        Effect::AskConditions { driver, handles } => format!("ask {driver} of {handles:?}"),
        Effect::WakeAt(_) => String::new(),
    }
}

fn held(it: &ClaimFinalizers) -> String {
    format!("hold {} {} by {}", it.claim, it.version, it.finalizers.join(" "))
}

fn with_secret(secret: Option<&Key>) -> String {
    secret.map(|it| format!(" with {it}")).unwrap_or_default()
}

fn provisioned(result: Result<(), Failure>) -> Event {
    let (claim, volume) = (Key::new("default", "data"), "pvc-c1".to_owned());
    Event::Done(Outcome::Provisioned { claim, volume, driver: DRIVER.into(), result })
}

fn failure(message: &str, is_exhausted: bool) -> Failure {
    Failure { message: message.into(), is_exhausted, ..Failure::default() }
}

#[test]
fn a_claim_is_given_a_volume_on_the_selected_node() {
    let mut world = World::new();
    assert_eq!(world.claim(selected()), [""; 0], "not before all is known");
    assert_eq!(world.tell(Event::Synced), [BEGUN, "provision pvc-c1 1073741824 false", "capacity local",]);
    assert_eq!(world.claim(selected()), [""; 0], "it is under way");
    let done = world.tell(provisioned(Ok(())));
    assert_eq!(done, ["Normal ProvisioningSucceeded: Successfully provisioned volume pvc-c1"]);
    assert_eq!(world.wait(1), ["capacity local"], "what is left is told once for all that comes together");
    world.volume(json!({ "metadata": { "name": "pvc-c1" }, "spec": {} }));
    assert_eq!(world.claim(selected()), [""; 0], "it is there");
}

#[test]
fn claims_of_others_are_left_alone() {
    let mut world = World::new();
    world.tell(Event::Synced);
    let elsewhere = json!({ "metadata": { "annotations": { "volume.kubernetes.io/selected-node": "n2" } } });
    let of_other = json!({ "metadata": { "annotations": { "volume.kubernetes.io/storage-provisioner": "x" } } });
    let bound = json!({ "spec": { "volumeName": "pv1" } });
    let no_class = json!({ "spec": { "storageClassName": "other" } });
    for patch in [json!({}), elsewhere, of_other, bound, no_class] {
        assert_eq!(world.claim(patch.clone()), [""; 0], "{patch}");
    }
}

#[test]
fn what_fails_is_tried_again_and_what_has_no_room_goes_elsewhere() {
    let mut world = World::new();
    world.tell(Event::Synced);
    world.claim(selected());
    assert_eq!(
        world.tell(provisioned(Err(failure("rpc error: code = Internal desc = mkfs broke", false)))),
        [
            "Warning ProvisioningFailed: failed to provision volume with StorageClass \"local\": rpc error: code = Internal \
          desc = mkfs broke"
        ]
    );
    assert_eq!(world.claim(selected()), [""; 0], "after a pause");
    assert_eq!(world.wait(1).last().map(String::as_str), Some("provision pvc-c1 1073741824 false"));
    let full = world.tell(provisioned(Err(failure("no room", true))));
    assert_eq!(full[1], "reschedule default/data");
    let claim = Key::new("default", "data");
    world.tell(Event::Done(Outcome::Rescheduled { claim, result: Ok(()) }));
    assert_eq!(world.claim(json!({ "metadata": { "annotations": { "x": "y" } } })), [""; 0], "no node is selected");
}

#[test]
fn one_node_makes_the_volume_of_a_claim_that_no_scheduler_selects_a_node_for() {
    let mut world = World::new();
    world.tell(Event::Synced);
    let class = json!({ "metadata": { "name": "at-once" }, "provisioner": DRIVER, "volumeBindingMode": "Immediate" });
    world.tell(Event::Class(Arc::new(serde_json::from_value(class).expect("a class"))));
    let now = |patch: Value| {
        let mut claim = json!({ "spec": { "storageClassName": "at-once" } });
        merge(&mut claim, patch);
        claim
    };
    let select = "select n1 for default/data";
    let provisions = |told: Vec<String>| told.last().is_some_and(|it| it.starts_with("provision pvc-c1 "));
    let done = |version: &str| {
        let claim = Key::new("default", "data");
        Event::Done(Outcome::Selected { claim, version: version.into(), result: Ok(()) })
    };
    let at = |version: &str, mut patch: Value| {
        merge(&mut patch, json!({ "metadata": { "resourceVersion": version } }));
        now(patch)
    };
    assert_eq!(world.claim(at("7", json!({}))), [select]);
    // Somebody else changed it before.
    assert_eq!(world.claim(at("8", json!({}))), [""; 0], "the answer is not there yet");
    assert_eq!(world.tell(done("7")), [select]);
    assert_eq!(world.tell(done("8")), [""; 0], "it is not seen yet");
    assert!(provisions(world.claim(at("9", selected()))));
    let full = world.tell(provisioned(Err(failure("no room", true))));
    assert!(full.contains(&"reschedule default/data".to_owned()), "{full:?}");
    assert_eq!(world.claim(at("10", json!({}))), [""; 0]);
    let claim = Key::new("default", "data");
    world.tell(Event::Done(Outcome::Rescheduled { claim, result: Ok(()) }));
    assert_eq!(world.claim(at("11", json!({}))), [""; 0], "others are first");
    assert!(world.wait(1).contains(&select.to_owned()));
    // Another node was first.
    world.tell(done("11"));
    let other = json!({ "metadata": { "annotations": { "volume.kubernetes.io/selected-node": "n2" } } });
    assert_eq!(world.claim(at("12", other)), [""; 0]);
    assert!(world.wait(20).iter().all(|it| it.starts_with("capacity ")));
}

#[test]
fn what_cannot_be_made_says_why() {
    let mut world = World::new();
    world.tell(Event::Synced);
    let mut patch = selected();
    merge(&mut patch, json!({ "spec": { "selector": { "matchLabels": { "a": "b" } } } }));
    let prefix = "Warning ProvisioningFailed: failed to provision volume with StorageClass \"local\": ";
    assert_eq!(world.claim(patch), [BEGUN, &format!("{prefix}claim Selector is not supported")]);
}

fn released(policy: &str, by: &str, host: &str) -> Value {
    json!({
        "metadata": {
            "name": "pvc-c1",
            "annotations": { "pv.kubernetes.io/provisioned-by": by },
            "finalizers": ["kubernetes.io/pv-protection", "external-provisioner.volume.kubernetes.io/finalizer"],
        },
        "spec": {
            "csi": { "driver": DRIVER, "volumeHandle": "pvc-c1" },
            "persistentVolumeReclaimPolicy": policy,
            "capacity": { "storage": "1Gi" },
            "nodeAffinity": { "required": { "nodeSelectorTerms": [{ "matchExpressions": [
                { "key": "kubernetes.io/hostname", "operator": "In", "values": [host] },
            ] }] } },
        },
        "status": { "phase": "Released" },
    })
}

#[test]
fn a_released_volume_is_removed_by_who_made_it() {
    let mut world = World::new();
    world.tell(Event::Synced);
    assert_eq!(world.volume(released("Retain", "other", "n1")), [""; 0]);
    assert_eq!(world.volume(released("Delete", "other", "n1")), [""; 0]);
    assert_eq!(world.volume(released("Delete", DRIVER, "n2")), [""; 0]);
    let removal = "remove pvc-c1 pvc-c1";
    assert_eq!(world.volume(released("Delete", DRIVER, "n1")), [removal]);
    let ended = |result| Event::Done(Outcome::Removed { volume: "pvc-c1".into(), driver: DRIVER.into(), result });
    let busy = world.tell(ended(Err(failure("volume pvc-c1 is in use", false))));
    assert_eq!(busy, ["Warning VolumeFailedDelete: volume pvc-c1 is in use"]);
    assert_eq!(world.wait(2), [removal]);
    assert_eq!(world.tell(ended(Ok(()))), ["capacity local"]);
    // It goes, and is told of as it was on the way.
    let mut going = released("Delete", DRIVER, "n1");
    going["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
    assert_eq!(world.volume(going.clone()), [""; 0]);
    assert_eq!(world.wait(600), ["capacity local"]);
    // Another by its name is another.
    world.tell(Event::VolumeGone("pvc-c1".into()));
    assert_eq!(world.volume(going), [removal]);
}

fn required(terms: &Value) -> Value {
    json!({ "required": { "nodeSelectorTerms": terms } })
}

/// Of one that was made by hand, too: its affinity need not be as provisioners write it.
#[test]
fn whose_a_volume_is_its_whole_affinity_says() {
    let label = |key, operator, values: &[&str]| json!([{ "matchExpressions": [{ "key": key, "operator": operator, "values": values }] }]);
    let name = |operator, node| json!([{ "matchFields": [{ "key": "metadata.name", "operator": operator, "values": [node] }] }]);
    let host = "kubernetes.io/hostname";
    for (terms, is_own) in [
        (label(host, "In", &["n1", "n2"]), true),
        (label(host, "In", &["n2"]), false),
        (label(host, "NotIn", &["n2"]), true),
        (label(host, "NotIn", &["n1"]), false),
        (label(host, "Exists", &[]), true),
        (label(host, "DoesNotExist", &[]), false),
        (label("zone", "Exists", &[]), false),
        (name("In", "n1"), true),
        (name("In", "n2"), false),
        (name("NotIn", "n2"), true),
        (json!([{}]), false),
    ] {
        let mut world = World::new();
        world.tell(Event::Synced);
        let mut volume = released("Delete", DRIVER, "n1");
        volume["spec"]["nodeAffinity"] = required(&terms);
        assert_eq!(!world.volume(volume.clone()).is_empty(), is_own, "{terms}");
        let mut grows = World::new();
        grows.tell(Event::Synced);
        volume["status"]["phase"] = json!("Bound");
        grows.volume(volume);
        assert_eq!(!grows.claim(bound("2Gi", "1Gi", json!({}))).is_empty(), is_own, "{terms}");
    }
}

/// Places of a driver of others are told apart by its own keys: what else is asked for keeps nobody from what is to be done.
#[test]
fn who_leads_acts_for_volumes_that_ask_for_more_than_a_place() {
    let zone = |values: Value| json!({ "key": "zone", "operator": "In", "values": values });
    let host = json!({ "key": "kubernetes.io/hostname", "operator": "In", "values": ["n7"] });
    let is_removed = |terms: &Value, leads: &str| {
        let mut world = World::new();
        world.add_driver(|it| it.topology = [("zone".to_owned(), "a".to_owned())].into());
        world.tell(Event::Leads([leads.to_owned()].into()));
        let mut volume = released("Delete", "sample", "n1");
        volume["spec"]["csi"]["driver"] = json!("sample");
        volume["spec"]["nodeAffinity"] = required(terms);
        !world.volume(volume).is_empty()
    };
    let everywhere = crate::leases::of_driver("sample");
    let here = crate::leases::of_place("sample", &[("zone".to_owned(), "a".to_owned())].into());
    for (terms, by_all, by_place) in [
        (json!([{ "matchExpressions": [host] }]), true, false),
        (json!([{ "matchFields": [{ "key": "metadata.name", "operator": "In", "values": ["n7"] }] }]), true, false),
        (json!([{ "matchExpressions": [zone(json!(["a", "b"])), host] }]), false, true),
        (json!([{ "matchExpressions": [zone(json!(["b"])), host] }]), false, false),
    ] {
        assert_eq!((is_removed(&terms, &everywhere), is_removed(&terms, &here)), (by_all, by_place), "{terms}");
    }
}

/// The object of a volume that is kept goes when it is deleted, and not before somebody takes a finalizer away by hand.
#[test]
fn a_volume_that_is_kept_is_held_by_no_finalizer() {
    let mut world = World::new();
    world.tell(Event::Synced);
    let mut volume = released("Retain", DRIVER, "n1");
    assert_eq!(world.volume(volume.clone()), ["let go pvc-c1 external-provisioner.volume.kubernetes.io/finalizer"]);
    assert_eq!(world.tell(Event::Done(Outcome::LetGo { volume: "pvc-c1".into(), result: Ok(()) })), [""; 0]);
    volume["metadata"]["finalizers"] = json!(["kubernetes.io/pv-protection"]);
    assert_eq!(world.volume(volume), [""; 0]);
}

fn bound(asked: &str, has: &str, more: Value) -> Value {
    let mut patch = json!({
        "spec": { "volumeName": "pvc-c1", "resources": { "requests": { "storage": asked } } },
        "status": { "phase": "Bound", "capacity": { "storage": has } },
    });
    merge(&mut patch, more);
    patch
}

#[test]
fn a_claim_that_asks_for_more_is_grown() {
    let mut world = World::new();
    world.tell(Event::Synced);
    let mut volume = released("Delete", DRIVER, "n1");
    volume["status"] = json!({ "phase": "Bound" });
    world.volume(volume.clone());
    assert_eq!(world.claim(bound("1Gi", "1Gi", json!({}))), [""; 0]);
    assert_eq!(world.claim(bound("2Gi", "1Gi", json!({}))), [GROWS, "expand pvc-c1 pvc-c1 2147483648"]);
    let (claim, volume_name, driver) = (Key::new("default", "data"), "pvc-c1".to_owned(), DRIVER.to_owned());
    let ended = |result| {
        let (claim, volume, driver) = (claim.clone(), volume_name.clone(), driver.clone());
        Event::Done(Outcome::Expanded { claim, volume, driver, bytes: 2 << 30, result })
    };
    let failed = world.tell(ended(Err(failure("no room", true))));
    assert_eq!(
        failed,
        ["Warning VolumeResizeFailed: resize volume \"pvc-c1\" by resizer \"local.corten.dev\" failed: no room"]
    );
    // It is infeasible, as far as the claim says: room may be made, or less asked for.
    let infeasible = json!({ "status": {
        "allocatedResources": { "storage": "2Gi" },
        "allocatedResourceStatuses": { "storage": "ControllerResizeInfeasible" },
    } });
    assert_eq!(world.claim(bound("2Gi", "1Gi", infeasible.clone())), [""; 0], "after a pause");
    assert_eq!(world.wait(1)[1], "expand pvc-c1 pvc-c1 2147483648");
    world.tell(ended(Err(failure("no room", true))));
    assert_eq!(world.claim(bound("1536Mi", "1Gi", infeasible.clone())), [GROWS, "expand pvc-c1 pvc-c1 1610612736"]);
    let done = world.tell(ended(Ok(false)));
    assert_eq!(done[0], "Normal VolumeResizeSuccessful: Resize volume succeeded");
    let called_off = world.claim(bound("1Gi", "1Gi", infeasible));
    assert!(
        called_off[0].starts_with("status {\"capacity\":{\"storage\":\"1Gi\"},\"allocatedResources\":null"),
        "{called_off:?}"
    );
}

#[test]
fn the_nodes_part_is_done_after_the_drivers() {
    let mut world = World::new();
    world.tell(Event::Synced);
    let mut volume = released("Delete", DRIVER, "n1");
    volume["status"] = json!({ "phase": "Bound" });
    volume["spec"]["capacity"]["storage"] = "2Gi".into();
    world.volume(volume);
    let pending = json!({ "status": {
        "allocatedResources": { "storage": "2Gi" },
        "allocatedResourceStatuses": { "storage": "NodeResizePending" },
    } });
    assert_eq!(world.claim(bound("2Gi", "1Gi", pending)), ["expand on node pvc-c1 2147483648"]);
}

#[test]
fn a_volume_says_whose_it_is_and_where() {
    let claim = serde_json::from_value(claim(selected())).expect("a claim");
    let class = serde_json::from_value(crate::default_class(DRIVER)).expect("a class");
    let request = crate::Request {
        driver: DRIVER.into(),
        name: "pvc-c1".into(),
        bytes: 1 << 30,
        access_modes: vec!["ReadWriteOnce".into()],
        ..crate::Request::default()
    };
    let created = crate::Created {
        handle: "pvc-c1".into(),
        bytes: 1 << 30,
        topology: vec![[("kubernetes.io/hostname".to_owned(), "n1".to_owned())].into()],
        fs_type: "ext4".into(),
        ..crate::Created::default()
    };
    let made = crate::volume_object(&claim, &class, &request, &created);
    assert_eq!(made["spec"]["capacity"]["storage"], "1Gi");
    assert_eq!(made["spec"]["claimRef"]["uid"], "c1");
    assert_eq!(made["spec"]["persistentVolumeReclaimPolicy"], "Delete");
    assert_eq!(made["spec"]["csi"]["fsType"], "ext4");
    let term = &made["spec"]["nodeAffinity"]["required"]["nodeSelectorTerms"][0]["matchExpressions"][0];
    assert_eq!(term, &json!({ "key": "kubernetes.io/hostname", "operator": "In", "values": ["n1"] }));
}

fn sample_volume(patch: Value) -> Value {
    let mut volume = json!({
        "metadata": { "name": "pv1", "annotations": { "pv.kubernetes.io/provisioned-by": "sample" } },
        "spec": {
            "accessModes": ["ReadWriteOnce"], "persistentVolumeReclaimPolicy": "Delete",
            "csi": { "driver": "sample", "volumeHandle": "vol-1" },
        },
        "status": { "phase": "Bound" },
    });
    merge(&mut volume, patch);
    volume
}

#[test]
fn the_drivers_secrets_are_those_of_the_class() {
    let mut world = World::new();
    world.add_driver(|_| {});
    let class = json!({
        "metadata": { "name": "local" }, "provisioner": "sample",
        "parameters": {
            "csi.storage.k8s.io/provisioner-secret-name": "s", "csi.storage.k8s.io/provisioner-secret-namespace": "x",
            "csi.storage.k8s.io/node-stage-secret-name": "${pvc.name}",
            "csi.storage.k8s.io/node-stage-secret-namespace": "${pvc.namespace}",
            "csi.storage.k8s.io/controller-modify-secret-name": "${pv.name}",
            "csi.storage.k8s.io/controller-modify-secret-namespace": "y",
        },
    });
    let class: corten_api::storage::v1::StorageClass = serde_json::from_value(class).expect("a class");
    let claim = claim(json!({}));
    let claim = serde_json::from_value(claim).expect("a claim");
    let facts = DriverFacts { name: "sample".into(), ..DriverFacts::default() };
    let request = crate::provision::request(&claim, &class, &facts, Vec::new(), None, None).expect("asked");
    let volume = crate::volume_object(&claim, &class, &request, &crate::Created::default());
    assert_eq!(volume["spec"]["csi"]["nodeStageSecretRef"], json!({ "name": "data", "namespace": "default" }));
    let annotations = &volume["metadata"]["annotations"];
    assert_eq!(annotations["volume.kubernetes.io/provisioner-deletion-secret-name"], "s");
    assert_eq!(annotations["volume.kubernetes.io/controller-modify-secret-name"], "pvc-c1");
    assert_eq!(annotations["volume.kubernetes.io/controller-modify-secret-namespace"], "y");
    let mut unknown = class;
    unknown.parameters = Some([("csi.storage.k8s.io/x".to_owned(), String::new())].into());
    let error =
        crate::provision::request(&claim, &unknown, &facts, Vec::new(), None, None).expect_err("nobody reads it");
    assert!(error.contains("reserved namespace"), "{error}");
}

#[test]
fn of_nodes_with_one_driver_the_leader_acts() {
    let mut world = World::new();
    world.add_driver(|it| it.topology = [("zone".to_owned(), "a".to_owned())].into());
    world.tell(Event::Leads(BTreeSet::new()));
    let class = json!({ "metadata": { "name": "sample" }, "provisioner": "sample" });
    world.tell(Event::Class(Arc::new(serde_json::from_value(class).expect("a class"))));
    let volume = |place: Value| {
        json!({
            "metadata": { "name": "pv1", "annotations": { "pv.kubernetes.io/provisioned-by": "sample" } },
            "spec": {
                "csi": { "driver": "sample", "volumeHandle": "h1" },
                "persistentVolumeReclaimPolicy": "Delete",
                "nodeAffinity": place,
            },
            "status": { "phase": "Released" },
        })
    };
    let of_sample = json!({
        "metadata": { "annotations": { "volume.kubernetes.io/storage-provisioner": "sample" } },
        "spec": { "storageClassName": "sample" },
    });
    assert!(world.claim(of_sample.clone()).is_empty());
    assert!(world.attachment(json!({})).is_empty());
    let zone = json!({ "key": "zone", "operator": "In", "values": ["a"] });
    let zone = json!({ "required": { "nodeSelectorTerms": [{ "matchExpressions": [zone] }] } });
    world.tell(Event::AttachmentGone("csi-1".into()));
    assert!(world.volume(volume(zone)).is_empty());
    // Of its zone's volumes, and of no more.
    let place = [("zone".to_owned(), "a".to_owned())].into();
    let told = world.tell(Event::Leads([crate::leases::of_place("sample", &place)].into()));
    assert_eq!(told, ["remove pv1 h1 and external-attacher/sample"]);
    let told = world.tell(Event::Leads([crate::leases::of_driver("sample")].into()));
    assert!(told.iter().any(|it| it.starts_with("provision pvc-c1")), "{told:?}");
    assert!(world.attachment(json!({}))[0].starts_with("attach csi-1"));
}
