//! The endpoints of another API server: each in its turn, and what one costs that is dead, or fails for a moment.

use tokio::sync::watch;

use super::{backend::json_answer, *};

fn numbered_slice(number: usize, port: u16) -> Value {
    let mut slice = slice(port);
    slice["metadata"]["name"] = json!(format!("flunder-{number}"));
    slice["endpoints"][0]["addresses"] = json!([format!("10.1.2.{number}")]);
    slice
}

#[tokio::test]
async fn endpoints_are_asked_in_turn_and_one_that_is_dead_costs_no_request() {
    let closed = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let dead = closed.local_addr().expect("an address").port();
    drop(closed);
    let n_refused = Arc::<AtomicUsize>::default();
    let (counted, dial) = (n_refused.clone(), to_this_machine());
    let mut config = server::config();
    config.webhook_dial = Some(Arc::new(move |address| {
        counted.fetch_add((address.port() == dead).into(), Relaxed);
        dial(address)
    }));
    let server = Server::start(config).await.expect("a server");
    let pki = server.config().pki.clone();
    let backends = [Backend::start(&pki, echo).await, Backend::start(&pki, echo).await];
    create(&server, "/api/v1/namespaces", json!({ "metadata": { "name": "other" } })).await;
    create(&server, "/api/v1/namespaces/other/services", service()).await;
    for (number, backend) in backends.iter().enumerate() {
        create(&server, SLICES, numbered_slice(number, backend.port)).await;
    }
    // Each has a certificate of its own.
    let mut object = api_service(NAME, "");
    object["spec"]["insecureSkipTLSVerify"] = json!(true);
    create(&server, API_SERVICES_PATH, object).await;
    until(&server, NAME, "Passed").await;
    let asked = || backends.each_ref().map(Backend::asked);
    for _ in 0..20 {
        // None of these is asked again.
        assert_eq!(ask(&server, "POST", FLUNDERS, &json!({})).await.0, 201);
    }
    assert_eq!(asked(), [10, 10]);
    let n_connections: usize = backends.iter().map(Backend::connections).sum();
    assert!(n_connections < 10, "20 requests one after another took {n_connections} connections");
    create(&server, SLICES, numbered_slice(9, dead)).await;
    for _ in 0..30 {
        assert_eq!(ask(&server, "POST", FLUNDERS, &json!({})).await.0, 201);
    }
    assert_eq!(asked().iter().sum::<usize>(), 50);
    assert!(asked().iter().all(|it| *it >= 20), "{:?}", asked());
    // A third of the requests, and no more than a look or two.
    let n_refused = n_refused.load(Relaxed);
    assert!(n_refused >= 8, "{n_refused}");
    server.stop().await;
}

/// A server that starts anew answers with errors, or not at all, for half a second.
#[tokio::test]
async fn a_server_that_fails_three_times_and_answers_the_fourth_stays_available() {
    let server = started().await;
    const PROBED: &str = "/apis/wardle.example.com/v1";
    let n_failing = Arc::<AtomicUsize>::default();
    let (probed, mut probes) = watch::channel(0);
    let failing = n_failing.clone();
    let unprobed = |path: &str| discovery(path).filter(|_| path != PROBED);
    let backend = Backend::describing(&server.config().pki, unprobed, move |request| {
        let fails = request.uri().path() == PROBED
            && failing.fetch_update(Relaxed, Relaxed, |it: usize| it.checked_sub(1)).is_ok();
        probed.send_modify(|it| *it += usize::from(request.uri().path() == PROBED));
        let found = discovery(PROBED).expect("it is described");
        Box::pin(async move { if fails { coded(500, "x-a", "b") } else { json_answer(&found) } })
    });
    let backend = backend.await;
    register(&server, &backend).await;
    until_freshness(&server, "Current").await;
    let written = || {
        let cache = server.caches().get(&API_SERVICES_AT).expect("there are some");
        cache.get("", NAME).expect("it is there").parse()["metadata"]["resourceVersion"].clone()
    };
    // It is looked at when its endpoints are others.
    let mut number = 3;
    let mut looked_at = async |n_probes: usize| {
        // Never as they were: a change there and back may be seen as none.
        number += 1;
        let mut slice = slice(backend.port);
        slice["endpoints"][0]["addresses"] = json!([format!("10.1.2.{number}")]);
        assert_eq!(ask(&server, "PUT", &format!("{SLICES}/flunder-1"), &slice).await.0, 200);
        let until = *probes.borrow() + n_probes;
        let waiting = tokio::time::timeout(Duration::from_secs(30), probes.wait_for(|it| *it >= until));
        waiting.await.expect("it is probed in time").expect("it is there");
    };
    let mut stayed = false;
    // On a machine that is busy three answers may not be quick: then it is right to take it for unavailable.
    for _ in 0..5 {
        let before = written();
        // Each time another endpoint may do better.
        n_failing.store(3 * 2, Relaxed);
        looked_at(3 * 2 + 1).await;
        // What came of that is written before the next look.
        looked_at(1).await;
        stayed |= written() == before;
        until(&server, NAME, "Passed").await;
        if stayed {
            break;
        }
    }
    assert!(stayed, "it was taken to be unavailable");
    n_failing.store(usize::MAX, Relaxed);
    looked_at(4 * 2).await;
    until(&server, NAME, "FailedDiscoveryCheck").await;
    server.stop().await;
}
