//! A machine that starts while no server answers, with what an earlier run has kept.

use corten_client::Kept;

use super::*;

/// What `api` has, on a machine that was started anew and knows what it had kept.
fn rebooted(api: &Arc<FakeApi>, kept: &Arc<Memory>, clock: &Clock) -> World {
    kept.restart();
    World::with(clock.clone(), api.clone(), api.keeping_client(kept))
}

fn running(world: &World) -> Vec<String> {
    world.hands.containers.lock().keys().cloned().collect()
}

fn settings(api: &FakeApi, value: &str) {
    let object = json!({"metadata": {"name": "settings", "namespace": "default"}, "data": {"a": value}});
    api.put("/api/v1/namespaces/default/configmaps/settings", object);
}

/// A Pod with a file and a token, on a node that keeps what it is told.
async fn with_a_pod(clock: &Clock) -> (Arc<FakeApi>, Arc<Memory>) {
    let (api, kept) = (FakeApi::new(), Arc::new(Memory::default()));
    let world = World::with(clock.clone(), api.clone(), api.keeping_client(&kept));
    settings(&api, "1");
    let account = json!({"metadata": {"name": "bot", "namespace": "default"}});
    api.put("/api/v1/namespaces/default/serviceaccounts/bot", account);
    let token = json!({"serviceAccountToken": {"path": "token", "expirationSeconds": 3600}});
    let volumes = json!([
        {"name": "cfg", "configMap": {"name": "settings"}},
        {"name": "api", "projected": {"sources": [token]}},
    ]);
    world.pod("web", json!({"serviceAccountName": "bot", "volumes": volumes}));
    world.pod("other", json!({}));
    pass(10).await;
    assert_eq!((world.phase("web"), world.phase("other")), ("Running".to_owned(), "Running".to_owned()));
    world._running.abort();
    (api, kept)
}

#[tokio::test(start_paused = true)]
async fn it_runs_what_it_had_and_is_told_the_rest_later() {
    let clock = clock();
    let (api, kept) = with_a_pod(&clock).await;
    api.silence(true);
    let world = rebooted(&api, &kept, &clock);
    pass(40).await;
    assert_eq!(running(&world), ["container-other-app", "container-web-app"]);
    // It can be asked for them, with the status that they have by now.
    let own = world.own.ask().await.expect("the kubelet runs");
    let phases: Vec<_> = own.pods.iter().filter_map(|it| it.status.as_ref()?.phase.as_deref()).collect();
    assert_eq!((phases, own.node.is_some()), (vec!["Running", "Running"], true));
    let volumes = world.hands.volumes.lock().clone();
    assert!(volumes.contains(&"1".to_owned()) && volumes.iter().any(|it| it.contains("\"bot\"")), "{volumes:?}");

    // Meanwhile one is deleted and the file changes; the other Pod is the same, and its containers are left alone.
    let before = api.object(&format!("{POD}/web")).expect("stored")["metadata"]["uid"].clone();
    api.remove(&format!("{POD}/other"));
    settings(&api, "2");
    api.silence(false);
    pass(60).await;
    assert_eq!(running(&world), ["container-web-app"]);
    assert_eq!(*world.hands.n_starts.lock(), 2);
    assert!(world.hands.volumes.lock().contains(&"2".to_owned()));
    assert_eq!(world.phase("web"), "Running");
    assert_eq!(api.object(&format!("{POD}/web")).expect("stored")["metadata"]["uid"], before);
    let owners: Vec<String> = kept.owners().into_iter().collect();
    assert_eq!(owners, [before.as_str().expect("a uid")], "nothing is kept for a pod that is gone");
}

#[tokio::test(start_paused = true)]
async fn a_pod_that_is_over_is_not_begun_again() {
    let clock = clock();
    let (api, kept) = with_a_pod(&clock).await;
    {
        let world = rebooted(&api, &kept, &clock);
        pass(5).await;
        let path = format!("{POD}/other");
        let mut pod = api.object(&path).expect("stored");
        pod["status"] = json!({"phase": "Succeeded"});
        api.put(&path, pod);
        pass(5).await;
        world._running.abort();
    }
    api.silence(true);
    let world = rebooted(&api, &kept, &clock);
    pass(60).await;
    assert_eq!(running(&world), ["container-web-app"]);
}

#[tokio::test(start_paused = true)]
async fn what_no_pod_names_any_more_is_not_kept() {
    let clock = clock();
    let (api, kept) = with_a_pod(&clock).await;
    let world = rebooted(&api, &kept, &clock);
    pass(5).await;
    let has_settings = || kept.names().iter().any(|it| it.contains("configmaps"));
    assert!(has_settings(), "{:?}", kept.names());
    api.remove(&format!("{POD}/web"));
    pass(10).await;
    assert!(!has_settings(), "{:?}", kept.names());
    drop(world);
}

#[tokio::test(start_paused = true)]
async fn a_pod_that_was_too_large_to_be_kept_is_left_as_it_is_until_the_api_tells_of_it() {
    let clock = clock();
    let (api, kept) = with_a_pod(&clock).await;
    let uid = |name: &str| {
        let pod = api.object(&format!("{POD}/{name}")).expect("stored");
        pod["metadata"]["uid"].as_str().expect("a uid").to_owned()
    };
    api.silence(true);
    kept.restart();
    kept.leave_out("web", &uid("web"));
    let world = World::with(clock.clone(), api.clone(), api.keeping_client(&kept));
    // The process was started anew, and not the machine.
    for name in ["web", "other"] {
        let pod = PodRef { key: Key::new("default", name), uid: uid(name) };
        let id = format!("sandbox-{name}");
        let ips = vec!["10.0.0.1".to_owned()];
        let sandbox = ObservedSandbox { id, pod: pod.clone(), ready: true, ips, ..ObservedSandbox::default() };
        let (id, sandbox_id) = (format!("container-{name}-app"), sandbox.id.clone());
        let state = Observed::Running { started_at: Some(clock()) };
        let name = "app".to_owned();
        let container = ObservedContainer { id, sandbox_id, pod, name, state, ..ObservedContainer::default() };
        world.hands.sandboxes.lock().insert(sandbox.id.clone(), sandbox);
        world.hands.containers.lock().insert(container.id.clone(), container);
    }
    world.hands.news.notify_one();
    pass(60).await;
    assert_eq!(running(&world), ["container-other-app", "container-web-app"]);
    let own = world.own.ask().await.expect("the kubelet runs");
    assert_eq!(own.pods.len(), 1, "the other one is not known");
    api.silence(false);
    pass(60).await;
    assert_eq!(running(&world), ["container-other-app", "container-web-app"]);
    assert_eq!((world.phase("web"), *world.hands.n_starts.lock()), ("Running".to_owned(), 0));
    let own = world.own.ask().await.expect("the kubelet runs");
    assert_eq!(own.pods.len(), 2);
}

#[tokio::test(start_paused = true)]
async fn what_the_node_may_not_read_for_long_is_not_kept() {
    let clock = clock();
    let (api, kept) = with_a_pod(&clock).await;
    api.forbid("/configmaps");
    let world = rebooted(&api, &kept, &clock);
    let has_settings = || kept.has_before("kubelet: configmaps default  metadata.name=settings");
    pass(60).await;
    assert!(has_settings(), "a server that has just begun may not know the pod yet");
    pass(400).await;
    assert!(!has_settings());
    drop(world);
}
