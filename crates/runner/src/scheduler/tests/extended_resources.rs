//! The claim for a pod's extended resources: made before the pod is bound, and gone where that comes to nothing.

use corten_scheduler::NewClaim;

use super::*;
use crate::scheduler_measures::Binder;

const CLAIMS: &str = "/apis/resource.k8s.io/v1/namespaces/default/resourceclaims";
const PROTECTION: &str = "resource.kubernetes.io/delete-protection";

/// A node with one device, which is the resource of a class.
fn world_with_a_device() -> World {
    let world = World::with_nodes(&["n1"]);
    let class = json!({"metadata": {"name": "gpu"}, "spec": {"extendedResourceName": "example.com/gpu"}});
    world.api.put("/apis/resource.k8s.io/v1/deviceclasses/gpu", class);
    let pool = json!({"name": "p", "generation": 1, "resourceSliceCount": 1});
    let spec = json!({"driver": "gpu.example.com", "nodeName": "n1", "pool": pool, "devices": [{"name": "a"}]});
    world.api.put("/apis/resource.k8s.io/v1/resourceslices/s", json!({"metadata": {"name": "s"}, "spec": spec}));
    world
}

fn asking(name: &str) -> Value {
    let mut pod = pod(name);
    pod["metadata"]["uid"] = json!(format!("uid-of-{name}"));
    pod["spec"]["containers"][0]["resources"]["requests"] = json!({"example.com/gpu": "1"});
    pod
}

fn claim_to_make() -> ExtendedClaimWrite {
    let metadata = json!({"generateName": "a-extended-resources-", "namespace": "default"});
    ExtendedClaimWrite::Make(Box::new(NewClaim {
        claim: json!({"metadata": metadata, "spec": {}}),
        status: json!({"reservedFor": [{"resource": "pods", "name": "a", "uid": "uid-of-a"}]}),
        mappings: json!([]),
    }))
}

#[tokio::test(start_paused = true)]
async fn a_pod_is_bound_after_its_claim() {
    let world = world_with_a_device();
    pass(1).await;
    world.api.put(&format!("{POD}/a"), asking("a"));
    world.api.put(&format!("{POD}/b"), asking("b"));
    pass(5).await;
    let claims = world.api.objects(CLAIMS);
    let [claim] = &*claims else { panic!("one claim: {claims:?}") };
    let user = claim["metadata"]["ownerReferences"][0]["name"].as_str().expect("its pod").to_owned();
    assert_eq!(claim["metadata"]["finalizers"], json!([PROTECTION]));
    assert_eq!(claim["status"]["allocation"]["devices"]["results"][0]["device"], "a");
    assert_eq!(claim["status"]["reservedFor"][0]["uid"], format!("uid-of-{user}"));
    let pod = world.api.object(&format!("{POD}/{user}")).expect("stored");
    let named = &pod["status"]["extendedResourceClaimStatus"];
    assert_eq!(named["resourceClaimName"], claim["metadata"]["name"]);
    let mapping =
        json!({"containerName": "c", "resourceName": "example.com/gpu", "requestName": "container-0-request-0"});
    assert_eq!(named["requestMappings"], json!([mapping]));
    assert_eq!(pod["spec"]["nodeName"], "n1");

    // The device is the next one's when the claim has gone.
    let other = if user == "a" { "b" } else { "a" };
    assert_eq!(world.node_of(other), None);
    world.api.remove(&format!("{POD}/{user}"));
    world.api.remove(&format!("{CLAIMS}/{}", claim["metadata"]["name"].as_str().expect("a name")));
    pass(30).await;
    assert_eq!(world.node_of(other).as_deref(), Some("n1"));
}

/// Whatever is refused on the way: there is one claim in the end, and the pod has it.
#[tokio::test(start_paused = true)]
async fn a_claim_that_came_to_nothing_is_deleted() {
    for (method, fault) in [("PATCH", "refused"), ("POST", "refused"), ("POST", "lost"), ("PATCH", "lost")] {
        let world = world_with_a_device();
        pass(1).await;
        match fault {
            "lost" => world.api.fault(Fault::AnswerLost(method)),
            _ => world.api.fault(Fault::Refused(method, 409, "Conflict")),
        }
        world.api.put(&format!("{POD}/a"), asking("a"));
        pass(60).await;
        let pod = world.api.object(&format!("{POD}/a")).expect("stored");
        assert_eq!(pod["spec"]["nodeName"], "n1", "{method} {fault}");
        let claims = world.api.objects(CLAIMS);
        assert_eq!(claims.len(), 1, "{method} {fault}: {claims:?}");
        let named = &pod["status"]["extendedResourceClaimStatus"]["resourceClaimName"];
        assert_eq!(*named, claims[0]["metadata"]["name"], "{method} {fault}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_claim_goes_where_its_pod_is_not_bound_to_the_node() {
    let key = Key::new("default", "a");
    let (api, mut bound) = (FakeApi::new(), asking("a"));
    let bind = async |api: &Arc<FakeApi>| {
        bind_with_devices(&api.client(), None, (&key, "uid-of-a"), "n1", (Vec::new(), Some(claim_to_make()))).await
    };
    assert!(bind(&api).await.expect_err("there is no pod").is_not_found());
    assert_eq!(api.objects(CLAIMS), Vec::<Value>::new());

    bound["spec"]["nodeName"] = json!("n2");
    api.put(&format!("{POD}/a"), bound);
    assert_eq!(bind(&api).await.expect("it is bound"), Binder::Another("n2".into()));
    assert_eq!(api.objects(CLAIMS), Vec::<Value>::new());
}

/// Of a scheduler that ended amid a binding.
#[tokio::test(start_paused = true)]
async fn a_stale_claim_is_deleted_before_another_is_made() {
    let world = world_with_a_device();
    let owner = json!({"apiVersion": "v1", "kind": "Pod", "name": "a", "uid": "uid-of-a", "controller": true});
    let metadata = json!({"name": "stale", "namespace": "default", "uid": "stale", "ownerReferences": [owner],
        "annotations": {"resource.kubernetes.io/extended-resource-claim": "true"}, "finalizers": [PROTECTION]});
    let result = json!({"driver": "gpu.example.com", "pool": "p", "device": "a", "request": "r"});
    let status = json!({"allocation": {"devices": {"results": [result]}}});
    let stale = json!({"metadata": metadata, "spec": {}, "status": status});
    world.api.put(&format!("{CLAIMS}/stale"), stale);
    world.api.put(&format!("{POD}/a"), asking("a"));
    pass(30).await;
    assert_eq!(world.node_of("a").as_deref(), Some("n1"));
    let claims = world.api.objects(CLAIMS);
    assert_eq!(claims.len(), 1, "{claims:?}");
    assert_ne!(claims[0]["metadata"]["name"], "stale");
}
