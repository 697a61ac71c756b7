//! Pods that wait for their devices to be made ready.

use super::*;

const CLAIM: &str = "/apis/resource.k8s.io/v1/namespaces/default/resourceclaims/c";

/// A pod whose claim is given the one device, which has to be attached; after a moment.
async fn world_that_waits() -> World {
    let world = World::with_nodes(&["n1"]);
    world.api.put("/apis/resource.k8s.io/v1/deviceclasses/gpu", json!({"metadata": {"name": "gpu"}, "spec": {}}));
    let pool = json!({"name": "p", "generation": 1, "resourceSliceCount": 1});
    let device = json!({"name": "a", "bindingConditions": ["Attached"], "bindingFailureConditions": ["Broken"]});
    let spec = json!({"driver": "d", "nodeName": "n1", "pool": pool, "devices": [device]});
    world.api.put("/apis/resource.k8s.io/v1/resourceslices/s", json!({"metadata": {"name": "s"}, "spec": spec}));
    let requests = json!([{"name": "r", "exactly": {"deviceClassName": "gpu"}}]);
    let metadata = json!({"name": "c", "namespace": "default"});
    world.api.put(CLAIM, json!({"metadata": metadata, "spec": {"devices": {"requests": requests}}}));
    let mut with_claim = pod("a");
    with_claim["metadata"]["uid"] = json!("uid-of-a");
    with_claim["spec"]["resourceClaims"] = json!([{"name": "c", "resourceClaimName": "c"}]);
    world.api.put(&format!("{POD}/a"), with_claim);
    pass(5).await;
    world
}

fn say(world: &World, r#type: &str) {
    let mut claim = world.api.object(CLAIM).expect("stored");
    let since = "2026-11-20T12:00:00Z";
    let condition =
        json!({"type": r#type, "status": "True", "reason": "Told", "message": "m", "lastTransitionTime": since});
    claim["status"]["devices"] = json!([{"driver": "d", "pool": "p", "device": "a", "conditions": [condition]}]);
    world.api.put(CLAIM, claim);
}

#[tokio::test(start_paused = true)]
async fn a_pod_is_bound_when_its_driver_says_so() {
    let world = world_that_waits().await;
    let claim = world.api.object(CLAIM).expect("stored");
    assert_eq!(claim["status"]["allocation"]["devices"]["results"][0]["bindingConditions"], json!(["Attached"]));
    assert_eq!(claim["status"]["reservedFor"][0]["name"], "a");
    assert_eq!(world.node_of("a"), None);
    say(&world, "Attached");
    pass(5).await;
    assert_eq!(world.node_of("a").as_deref(), Some("n1"));
}

/// The claim is given back, and asked for again.
#[tokio::test(start_paused = true)]
async fn a_device_that_fails_is_tried_again() {
    let world = world_that_waits().await;
    say(&world, "Broken");
    pass(1).await;
    assert_eq!(world.api.object(CLAIM).expect("stored")["status"].get("devices"), None);
    pass(30).await;
    let waiting = world.api.object(&format!("{POD}/a")).expect("stored");
    let said = waiting["status"]["conditions"][0]["message"].as_str().unwrap_or_default().to_owned();
    assert!(said.contains("claim c binding failed: reason=Told"), "{said}");
    assert_eq!(world.api.object(CLAIM).expect("stored")["status"]["reservedFor"][0]["name"], "a");
    say(&world, "Attached");
    pass(5).await;
    assert_eq!(world.node_of("a").as_deref(), Some("n1"));
}

/// What the first scheduler has begun goes on: the pod is bound when its driver says so, or tried again when the time is over that
/// began with the allocation.
#[tokio::test(start_paused = true)]
async fn a_wait_goes_on_after_a_restart() {
    for (is_ready, left) in [(true, 300), (false, 590), (false, 30)] {
        let mut world = world_that_waits().await;
        let begun = world.api.object(CLAIM).expect("stored")["status"]["allocation"].clone();
        pass(595 - left).await;
        world.restart_scheduler();
        pass(2).await;
        assert_eq!(world.node_of("a"), None, "{left}");
        assert_eq!(world.api.object(CLAIM).expect("stored")["status"]["allocation"], begun, "{left}: it is kept");
        if is_ready {
            say(&world, "Attached");
            pass(2).await;
            assert_eq!(world.node_of("a").as_deref(), Some("n1"));
            continue;
        }
        pass(left.saturating_sub(4)).await;
        assert_eq!(
            world.api.object(CLAIM).expect("stored")["status"]["allocation"],
            begun,
            "{left}: not before its time"
        );
        pass(20).await;
        let waiting = world.api.object(&format!("{POD}/a")).expect("stored");
        let said = waiting["status"]["conditions"][0]["message"].as_str().unwrap_or_default().to_owned();
        assert!(said.contains("device binding timeout"), "{left}: {said}");
        let anew = world.api.object(CLAIM).expect("stored")["status"]["allocation"].clone();
        assert!(anew["devices"] == begun["devices"] && anew != begun, "{left}: it is asked for again: {anew}");
    }
}

/// It is over while no scheduler runs.
#[tokio::test(start_paused = true)]
async fn a_wait_that_is_over_at_a_restart_is_not_begun_again() {
    let mut world = world_that_waits().await;
    world.running.abort();
    pass(700).await;
    world.restart_scheduler();
    pass(1).await;
    assert_eq!(world.api.object(CLAIM).expect("stored")["status"].get("allocation"), None);
    let waiting = world.api.object(&format!("{POD}/a")).expect("stored");
    let said = waiting["status"]["conditions"][0]["message"].as_str().unwrap_or_default().to_owned();
    assert!(said.contains("claim c binding timeout"), "{said}");
    pass(20).await;
    say(&world, "Attached");
    pass(5).await;
    assert_eq!(world.node_of("a").as_deref(), Some("n1"));
}
