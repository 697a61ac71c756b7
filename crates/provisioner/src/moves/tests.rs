use super::*;

const DRIVER: &str = "local.corten.dev";

fn claim(wish: Option<&str>) -> PersistentVolumeClaim {
    let annotations = wish.map(|it| json!({ MOVE_TO: it }));
    let metadata = json!({ "name": "data", "namespace": "default", "uid": "u1", "annotations": annotations });
    let claim = json!({ "metadata": metadata, "spec": { "volumeName": "pvc-u1" } });
    serde_json::from_value(claim).expect("a claim")
}

fn volume(at: &str, marks: Value) -> PersistentVolume {
    let of = |it: &str| json!({ "matchExpressions": [{ "key": HOSTNAME, "operator": "In", "values": [it] }] });
    let volume = json!({
        "metadata": { "name": "pvc-u1", "resourceVersion": "7", "annotations": marks, "finalizers": ["other"] },
        "spec": {
            "csi": { "driver": DRIVER, "volumeHandle": "pvc-u1" },
            "claimRef": { "name": "data", "namespace": "default", "uid": "u1" },
            "nodeAffinity": { "required": { "nodeSelectorTerms": [of(at)] } },
        },
    });
    serde_json::from_value(volume).expect("a volume")
}

fn transfer() -> VolumeTransfer {
    let of = |it: &str| it.to_owned();
    VolumeTransfer { volume: of("pvc-u1"), handle: of("pvc-u1"), from: of("n1"), to: of("n2"), id: of("5-a") }
}

fn new() -> VolumeTransfer {
    VolumeTransfer { id: String::new(), ..transfer() }
}

/// The marks of a move to this node.
fn under_way(to: &str) -> Value {
    json!({ MOVING_TO: to, MOVE_ID: "5-a" })
}

fn step(claim: Option<&PersistentVolumeClaim>, volume: Option<&PersistentVolume>, pod: Option<&str>) -> MoveStep {
    let nodes = BTreeSet::from(["n1".to_owned(), "n2".to_owned()]);
    next(&MoveView { driver: DRIVER, claim, volume, pod, nodes: &nodes })
}

#[test]
fn a_move_goes_from_step_to_step() {
    let (still, wished) = (claim(None), claim(Some("n2")));
    let there = volume("n1", json!({}));
    assert_eq!(step(Some(&still), Some(&there), None), MoveStep::Rest);
    assert_eq!(step(Some(&wished), Some(&there), None), MoveStep::Begin(new()));
    // Begun, it goes on after whatever ended it.
    let begun = volume("n1", under_way("n2"));
    assert_eq!(step(Some(&wished), Some(&begun), None), MoveStep::Copy(transfer()));
    // Nothing is removed before the volume is on the other node.
    let moved = volume("n2", json!({ MOVED_FROM: "n1", MOVE_ID: "5-a" }));
    let remove = MoveStep::RemoveOld { transfer: transfer(), node: Some("n1".into()) };
    assert_eq!(step(Some(&wished), Some(&moved), Some("db-0")), remove);
    assert_eq!(step(None, Some(&moved), None), remove);
    let ended = volume("n2", json!({}));
    assert_eq!(step(Some(&wished), Some(&ended), Some("db-0")), MoveStep::Fulfilled { node: "n2".into() });
}

#[test]
fn a_pod_keeps_the_volume_where_it_is() {
    let MoveStep::Wait { reason, message } =
        step(Some(&claim(Some("n2"))), Some(&volume("n1", json!({}))), Some("db-0"))
    else {
        panic!("it does not wait");
    };
    assert_eq!(reason, "MoveInUse");
    assert_eq!(message, "pod db-0 has the volume on node n1: it is moved when no Pod has it");
}

#[test]
fn what_is_no_longer_wished_is_called_off() {
    let begun = volume("n1", under_way("n2"));
    let off = MoveStep::CallOff { transfer: transfer(), to: Some("n2".into()) };
    assert_eq!(step(Some(&claim(None)), Some(&begun), None), off);
    // The claim is gone, or is another one of that name.
    assert_eq!(step(None, Some(&begun), None), off);
    let mut other = claim(Some("n2"));
    other.metadata.uid = Some("u2".into());
    assert_eq!(step(Some(&other), Some(&begun), None), off);
    // A node that is gone is not asked.
    let begun = volume("n1", under_way("n3"));
    assert!(matches!(step(None, Some(&begun), None), MoveStep::CallOff { to: None, .. }));
}

#[test]
fn what_is_called_off_stays_so() {
    let off = MoveStep::CallOff { transfer: transfer(), to: Some("n2".into()) };
    let mut marked = volume("n1", under_way("n2"));
    marked.metadata.annotations.get_or_insert_default().insert(MOVE_CALLED_OFF.into(), "true".into());
    // It is wished anew: another move begins when this one is undone.
    assert_eq!(step(Some(&claim(Some("n2"))), Some(&marked), None), off);
    let patch = called_off(&marked, &transfer());
    assert_eq!(patch["metadata"]["resourceVersion"], "7", "a volume that is on the other node is never called off");
    assert_eq!(patch["metadata"]["annotations"], json!({ MOVE_ID: "5-a", MOVE_CALLED_OFF: "true" }));
    // A Pod that was placed meanwhile gets its volume where it is, also where the other node is gone.
    let marked = volume("n1", under_way("n2"));
    assert_eq!(step(Some(&claim(Some("n2"))), Some(&marked), Some("db-0")), off);
    let gone = volume("n1", under_way("n3"));
    let step = step(Some(&claim(Some("n3"))), Some(&gone), Some("db-0"));
    assert!(matches!(step, MoveStep::CallOff { to: None, .. }), "{step:?}");
}

#[test]
fn a_claim_that_names_the_volume_of_another_moves_nothing() {
    let named = |marks: Value| volume("n1", marks);
    for (name, namespace) in [("data", "other"), ("other", "default")] {
        let mut stranger = claim(Some("n2"));
        (stranger.metadata.name, stranger.metadata.namespace) = (Some(name.into()), Some(namespace.into()));
        for marks in [json!({}), under_way("n2"), under_way("n3"), json!({ MOVED_FROM: "n0", MOVE_ID: "5-a" })] {
            let refused = MoveStep::Refuse("volume pvc-u1 is not this claim's".into());
            assert_eq!(step(Some(&stranger), Some(&named(marks.clone())), None), refused, "{marks}");
            stranger.metadata.annotations = None;
            assert_eq!(step(Some(&stranger), Some(&named(marks)), None), MoveStep::Rest);
            stranger.metadata.annotations = claim(Some("n2")).metadata.annotations;
        }
    }
}

#[test]
fn no_two_moves_have_one_id() {
    let mut volume = volume("n1", json!({}));
    assert_eq!(id_of(&volume, "c0ffee"), "7-c0ffee");
    volume.metadata.resource_version = Some("9".into());
    assert_eq!(id_of(&volume, "c0ffee"), "9-c0ffee");
}

#[test]
fn what_cannot_be_is_refused() {
    let refusal =
        |claim: &PersistentVolumeClaim, volume: Option<&PersistentVolume>| match step(Some(claim), volume, None) {
            MoveStep::Refuse(why) => why,
            other => panic!("{other:?}"),
        };
    let there = volume("n1", json!({}));
    assert_eq!(refusal(&claim(Some("n3")), Some(&there)), "there is no node n3 with the driver local.corten.dev");
    assert!(refusal(&claim(Some("n2")), None).starts_with("the claim has no volume yet"));
    let mut other = there;
    other.spec.as_mut().and_then(|it| it.csi.as_mut()).expect("it has one").driver = "ebs.example".into();
    assert_eq!(refusal(&claim(Some("n2")), Some(&other)), "only volumes of local.corten.dev are moved");
}

#[test]
fn volumes_are_held_while_something_is_left_of_a_move() {
    let begun = begun(&volume("n1", json!({})), &transfer());
    assert_eq!(begun["metadata"]["finalizers"], json!(["other", MOVE_FINALIZER]));
    assert_eq!(begun["metadata"]["annotations"], json!({ MOVING_TO: "n2", MOVE_ID: "5-a", MOVE_CALLED_OFF: null }));
    let moved = moved(&volume("n1", json!({})), &transfer());
    assert_eq!(moved["metadata"]["annotations"], json!({ MOVING_TO: null, MOVED_FROM: "n1" }));
    assert_eq!(moved["metadata"]["resourceVersion"], "7");
    let mut held = volume("n2", json!({ MOVED_FROM: "n1" }));
    held.metadata.finalizers = Some(vec![MOVE_FINALIZER.into(), "other".into()]);
    assert_eq!(ended(&held)["metadata"]["finalizers"], json!(["other"]));
}

#[test]
fn a_claim_says_how_far_it_is() {
    let (now, later) = (Time::from_unix_seconds(100), Time::from_unix_seconds(200));
    let mut claim = claim(Some("n2"));
    let told =
        |it: &PersistentVolumeClaim, message: &str, now| with_condition(it, Some((true, "MoveCopying", message)), now);
    let first = told(&claim, "1 of 2 MiB", now).expect("it is new");
    claim.status = serde_json::from_value(first["status"].clone()).expect("a status");
    assert_eq!(told(&claim, "1 of 2 MiB", later), None);
    let second = told(&claim, "2 of 2 MiB", later).expect("it is further");
    let condition = &second["status"]["conditions"][0];
    assert_eq!((&condition["message"], &condition["lastTransitionTime"]), (&json!("2 of 2 MiB"), &json!(now)));
    assert_eq!(with_condition(&claim, None, later).expect("it goes")["status"]["conditions"], json!([]));
    claim.status = None;
    assert_eq!(with_condition(&claim, None, later), None);
}
