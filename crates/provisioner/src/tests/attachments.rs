//! Attachments, from the first wish to the last.

use corten_meta::Key;
use serde_json::{Value, json};

use super::{World, failure, merge, sample_volume};
use crate::{Event, Outcome};

const ATTACHER: &str = "external-attacher/sample";

#[test]
fn a_volume_is_attached_until_nobody_wants_it() {
    let mut world = World::new();
    world.add_driver(|_| {});
    // Its volume is not known yet: the attachment says so.
    let missing = world.attachment(json!({}));
    assert_eq!(missing, ["attach csi-1 Err(\"persistentvolume \\\"pv1\\\" not found\") true"]);
    let ended = |result| Event::Done(Outcome::Attached { attachment: "csi-1".into(), result });
    world.tell(ended(Err(failure("not found", false))));
    world.volume(sample_volume(json!({})));
    assert_eq!(world.wait(1)[0], "attach csi-1 Ok(\"vol-1\") true");
    world.tell(ended(Ok(())));
    let done = json!({ "metadata": { "finalizers": [ATTACHER] }, "status": { "attached": true } });
    assert_eq!(world.attachment(done.clone()), [""; 0]);
    // What a node has is not removed, whoever let it go.
    let held = json!({ "metadata": { "finalizers": [ATTACHER] }, "status": { "phase": "Released" } });
    let told = "Normal VolumeDelete: persistentvolume pv1 is still attached to node n1";
    assert_eq!(world.volume(sample_volume(held.clone())), [told]);
    let mut leaving = done;
    merge(&mut leaving, json!({ "metadata": { "deletionTimestamp": "1970-01-01T00:00:00Z" } }));
    assert_eq!(world.attachment(leaving), ["detach csi-1 Ok(\"vol-1\")"]);
    world.tell(ended(Ok(())));
    assert_eq!(world.tell(Event::AttachmentGone("csi-1".into())), ["remove pv1 vol-1 and external-attacher/sample"]);
    let removed = Outcome::Removed { volume: "pv1".into(), driver: "sample".into(), result: Ok(()) };
    world.tell(Event::Done(removed));
    let mut leaving = held;
    merge(
        &mut leaving,
        json!({ "metadata": { "deletionTimestamp": "1970-01-01T00:00:00Z" }, "status": { "phase": "Bound" } }),
    );
    world.wait(11);
    assert_eq!(world.volume(sample_volume(leaving)), ["let go pv1 external-attacher/sample"]);
}

fn attachment_to(name: &str, node: &str) -> Value {
    json!({ "metadata": { "name": name, "uid": name }, "spec": { "nodeName": node } })
}

/// However two attachments came to be: the driver is asked for one, until that is gone.
#[test]
fn a_volume_for_one_node_is_attached_to_one_though_there_are_two_attachments() {
    let mut world = World::new();
    world.add_driver(|_| {});
    world.volume(sample_volume(json!({ "spec": { "accessModes": ["ReadWriteOnce"] } })));
    assert_eq!(world.attachment(attachment_to("csi-2", "n2")), ["attach csi-2 Ok(\"vol-1\") true"]);
    // Its name comes first, and it is as old: what is under way counts.
    let why = "the volume is exclusively attached to node \\\"n2\\\" and can't be attached to another";
    let refused = format!("attach csi-1 Err(\"{why}\") true");
    assert_eq!(world.attachment(attachment_to("csi-1", "n1")), [&*refused]);
    let ended = |name: &str, result| Event::Done(Outcome::Attached { attachment: name.into(), result });
    world.tell(ended("csi-1", Err(failure(why, false))));
    world.tell(ended("csi-2", Ok(())));
    let mut held = attachment_to("csi-2", "n2");
    merge(&mut held, json!({ "metadata": { "finalizers": [ATTACHER] }, "status": { "attached": true } }));
    assert_eq!(world.attachment(held), [""; 0]);
    assert_eq!(world.wait(1)[0], refused, "whatever has become of it");
    world.tell(ended("csi-1", Err(failure(why, false))));
    // No pause is waited for once the other is gone.
    let told = world.tell(Event::AttachmentGone("csi-2".into()));
    assert_eq!(told, ["attach csi-1 Ok(\"vol-1\") true"]);
}

#[test]
fn a_volume_for_many_nodes_is_attached_to_each() {
    let mut world = World::new();
    world.add_driver(|_| {});
    world.volume(sample_volume(json!({ "spec": { "accessModes": ["ReadWriteOnce", "ReadWriteMany"] } })));
    assert_eq!(world.attachment(attachment_to("csi-1", "n1")), ["attach csi-1 Ok(\"vol-1\") true"]);
    assert_eq!(world.attachment(attachment_to("csi-2", "n2")), ["attach csi-2 Ok(\"vol-1\") true"]);
}

#[test]
fn drivers_with_nothing_to_attach_are_not_asked_and_those_of_sidecars_left_alone() {
    let mut world = World::new();
    world.add_driver(|it| (it.attaches, it.attaches_nothing) = (false, true));
    world.volume(sample_volume(json!({})));
    assert_eq!(world.attachment(json!({})), ["attach csi-1 Ok(\"vol-1\") false"]);
    // It attached volumes before: whether the node still has this one is not known.
    let held = json!({
        "metadata": {
            "annotations": { "csi.corten.dev/attach-asked": "true" },
            "finalizers": [ATTACHER], "deletionTimestamp": "2026-01-01T00:00:00Z",
        },
        "status": { "attached": true },
    });
    let refused = "detach csi-1 Err(\"driver sample was asked to attach the volume, and no longer says that it attaches any: it cannot be asked to detach it\")";
    world.tell(Event::Done(Outcome::Attached { attachment: "csi-1".into(), result: Ok(()) }));
    assert_eq!(world.attachment(held), [refused]);

    let mut world = World::new();
    world.add_driver(|_| {});
    world.volume(sample_volume(json!({})));
    let container = crate::PodContainer { image: "csi-attacher:v4".into(), program: String::new() };
    let folders = vec!["/var/lib/kubelet/plugins/sample".to_owned()];
    let pod = crate::DriverPod { node: "n1".into(), folders, containers: vec![container], is_finished: false };
    world.tell(Event::Pod(Key::new("x", "controller"), pod));
    assert_eq!(world.attachment(json!({})), [""; 0]);
    assert_eq!(world.tell(Event::PodGone(Key::new("x", "controller"))), ["attach csi-1 Ok(\"vol-1\") true"]);
}

/// One that its driver lists, or not, and what the driver is asked for after that. It is listed each minute.
#[test]
fn a_driver_that_lists_a_volume_otherwise_is_asked_once_more() {
    let asked = || vec![r#"ask sample where {("vol-1", "node-1")}"#.to_owned()];
    for (finalizers, status, is_leaving, is_listed, then) in [
        (&[ATTACHER][..], true, false, true, None),
        (&[ATTACHER], true, false, false, Some("attach csi-1 Ok(\"vol-1\") true")),
        (&[], false, true, true, Some("detach csi-1 Ok(\"vol-1\")")),
        (&[], false, true, false, None),
    ] {
        let mut world = World::new();
        world.add_driver(|it| it.tells_attached = true);
        world.volume(sample_volume(json!({})));
        let leaving = is_leaving.then_some("1970-01-01T00:00:00Z");
        let mut attachment = json!({
            "metadata": {
                "finalizers": finalizers, "deletionTimestamp": leaving,
                "annotations": { "csi.alpha.kubernetes.io/node-id": "node-1" },
            },
            "status": { "attached": status },
        });
        assert!(world.attachment(attachment.clone()).is_empty());
        assert_eq!(world.wait(60), asked());
        let told = |is_listed: bool| {
            let places = is_listed.then(|| ("vol-1".to_owned(), "node-1".to_owned())).into_iter().collect();
            Event::Attached("sample".into(), Some(places))
        };
        let then: Vec<&str> = then.into_iter().collect();
        assert_eq!(world.tell(told(is_listed)), then, "{status} {is_leaving}");
        if then.is_empty() {
            // What has changed meanwhile is not believed to be otherwise.
            assert_eq!(world.wait(60), asked());
            merge(&mut attachment, json!({ "metadata": { "resourceVersion": "10" } }));
            world.attachment(attachment);
            assert!(world.tell(told(!is_listed)).is_empty());
            continue;
        }
        // One that says no is asked again after the next look, and not sooner.
        let refused = Outcome::Attached { attachment: "csi-1".into(), result: Err(failure("no", false)) };
        world.tell(Event::Done(refused));
        assert!(world.wait(30).is_empty());
        assert_eq!(world.wait(30), asked());
        assert!(world.wait(60).is_empty(), "it has not answered");
        assert_eq!(world.tell(told(is_listed)), then);
    }
}

#[test]
fn where_volumes_are_attached_is_asked_by_who_attaches_them() {
    let mut world = World::new();
    world.add_driver(|it| it.tells_attached = true);
    world.volume(sample_volume(json!({})));
    world.tell(Event::Leads([].into()));
    let annotations = json!({ "csi.alpha.kubernetes.io/node-id": "node-1" });
    let attached = json!({ "metadata": { "annotations": annotations }, "status": { "attached": true } });
    assert!(world.attachment(attached).is_empty());
    assert!(world.wait(60).is_empty());
}
