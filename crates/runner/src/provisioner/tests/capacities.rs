//! What an earlier run has told of how much is left.

use super::*;

const CAPACITIES: &str = "/apis/storage.k8s.io/v1/namespaces/kube-system/csistoragecapacities/";

pub(super) fn told_by(api: &FakeApi, name: &str, manager: &str) {
    let labels = json!({ "csi.storage.k8s.io/drivername": "gone.example", "csi.storage.k8s.io/managed-by": manager });
    let meta = json!({ "name": name, "namespace": "kube-system", "labels": labels });
    api.put(&format!("{CAPACITIES}{name}"), json!({ "metadata": meta, "storageClassName": "x", "capacity": "1Gi" }));
}

pub(super) fn is_told(api: &FakeApi, name: &str) -> bool {
    api.object(&format!("{CAPACITIES}{name}")).is_some()
}

#[tokio::test(start_paused = true)]
async fn what_was_told_of_a_driver_that_went_meanwhile_goes() {
    let world = World::new();
    told_by(&world.api, "csisc-own", "corten-n1");
    told_by(&world.api, "csisc-other", "corten-n2");
    world.until("told what is left", |api| api.objects(CAPACITIES).len() == 3).await;
    assert!(is_told(&world.api, "csisc-own"), "it may be there soon");
    world.until("withdrawn", |api| !is_told(api, "csisc-own")).await;
    assert_eq!(world.api.objects(CAPACITIES).len(), 2, "another node's is that node's");
}
