//! What a machine that has joined says of its drivers.

use super::*;
use crate::run_node_drivers;

const CSI_NODE: &str = "/apis/storage.k8s.io/v1/csinodes/n1";

fn driver(name: &str) -> NodeDriver {
    let facts = DriverFacts { name: name.into(), ..DriverFacts::default() };
    NodeDriver { facts, node_id: "n1".into(), limit: None }
}

fn names(api: &FakeApi) -> Vec<String> {
    let object = api.object(CSI_NODE).unwrap_or_default();
    let drivers = object["spec"]["drivers"].as_array().cloned().unwrap_or_default();
    drivers.iter().map(|it| it["name"].as_str().unwrap_or_default().to_owned()).collect()
}

#[tokio::test(start_paused = true)]
async fn what_is_there_is_compared_with_what_is_told_until_it_is_the_same() {
    let api = FakeApi::new();
    api.put("/api/v1/nodes/n1", json!({ "metadata": { "name": "n1", "uid": "u" } }));
    let (found, followed) = watch::channel(vec![driver(DRIVER)]);
    let followed = Arc::new(tokio::sync::Mutex::new((followed, true)));
    let drivers = move || -> BoxFuture<'static, Vec<NodeDriver>> {
        let followed = followed.clone();
        Box::pin(async move {
            let (followed, is_first) = &mut *followed.lock().await;
            if !std::mem::take(is_first) {
                followed.changed().await.expect("it is followed");
            }
            followed.borrow_and_update().clone()
        })
    };
    let running = tokio::spawn(run_node_drivers(api.client(), "n1".into(), drivers, std::future::pending()));
    let pass = |seconds| tokio::time::sleep(Duration::from_secs(seconds));
    pass(1).await;
    assert_eq!(names(&api), [DRIVER]);
    // One that comes is told though the first try is refused, and the answer of the second is lost.
    api.fault(Fault::Refused("PATCH", 409, "Conflict"));
    api.fault(Fault::AnswerLost("PATCH"));
    found.send_replace(vec![driver(DRIVER), driver("other.example.com")]);
    pass(10).await;
    assert_eq!(names(&api), [DRIVER, "other.example.com"]);
    api.writes();
    pass(600).await;
    assert!(api.writes().is_empty(), "what is there is not written again");
    // An older list that arrives late, or somebody else's hand.
    let mut late = api.object(CSI_NODE).expect("it is there");
    late["spec"]["drivers"] = json!([{ "name": DRIVER, "nodeID": "n1", "topologyKeys": [] }]);
    api.put(CSI_NODE, late);
    pass(70).await;
    assert_eq!(names(&api), [DRIVER, "other.example.com"]);
    api.remove(CSI_NODE);
    pass(70).await;
    assert_eq!(names(&api), [DRIVER, "other.example.com"]);
    running.abort();
}
