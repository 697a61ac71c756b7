use super::{
    failover::{API_SERVER_NAME, FailoverTransport as Transport},
    *,
};

fn url(port: u16) -> String {
    format!("https://127.0.0.1:{port}")
}

/// A port that nobody listens at.
async fn closed_port() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    listener.local_addr().expect("bound").port()
}

fn over(pki: &Pki, ports: &[u16]) -> (Arc<Transport>, Client) {
    let (first, others) = ports.split_first().expect("a server");
    let target = RestConfig { server: url(*first), ..target(pki, *first) };
    let others: Vec<String> = others.iter().map(|it| url(*it)).collect();
    let transport = Arc::new(Transport::new(target, &others, &url(*first)).expect("a good target"));
    (transport.clone(), Client::new(transport))
}

#[tokio::test]
async fn the_next_server_is_asked_where_one_is_gone() {
    let pki = pki();
    let (gone, two) = (server(&pki, &[b"h2"]).await, server(&pki, &[b"h2"]).await);
    let (transport, client) = over(&pki, &[gone.port, two.port]);
    let mut moves = transport.moves();
    ask(&client).await.expect("answered");
    assert_eq!((transport.server(), moves.has_changed().expect("alive")), (url(gone.port), false));

    drop(gone);
    let answers = futures_util::future::join_all((0..20).map(|_| ask(&client))).await;
    // Those that the server had begun to read may fail, and no more than those: no answer says whether it acted on them.
    assert!(answers.iter().any(Result::is_ok) || ask(&client).await.is_ok(), "{answers:?}");
    moves.changed().await.expect("it has moved on");
    assert_eq!(transport.server(), url(two.port));
    assert_eq!(crate::Transport::host(&*transport).as_deref(), Some(&*format!("127.0.0.1:{}", two.port)));
    ask(&client).await.expect("it stays there");
    assert_eq!(two.n_connections.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn what_may_have_been_seen_is_not_sent_again() {
    let pki = pki();
    let (one, two) = (server(&pki, &[b"h2"]).await, server(&pki, &[b"h2"]).await);
    let (transport, client) = over(&pki, &[one.port, two.port]);
    let broken = client.get_path("/break").await.expect_err("no answer");
    assert!(broken.may_have_been_done(), "{broken}");
    assert_eq!(two.n_connections.load(Ordering::SeqCst), 0);
    assert_eq!(transport.server(), url(one.port));
}

#[tokio::test]
async fn where_no_server_answers_each_is_named() {
    let pki = pki();
    let (one, two) = (closed_port().await, closed_port().await);
    let (_, client) = over(&pki, &[one, two]);
    let error = ask(&client).await.expect_err("nobody answers").to_string();
    assert!(error.contains(&format!("127.0.0.1:{one}")) && error.contains(&format!("127.0.0.1:{two}")), "{error}");
}

#[tokio::test]
async fn a_server_that_another_authority_vouches_for_is_passed_over() {
    let (pki, others) = (pki(), super::pki());
    let (stranger, own) = (server(&others, &[b"h2"]).await, server(&pki, &[b"h2"]).await);
    let (transport, client) = over(&pki, &[stranger.port, own.port]);
    ask(&client).await.expect("answered");
    assert_eq!(transport.server(), url(own.port));
}

/// It has taken the connection and says nothing, as one on a machine that has just gone.
#[tokio::test(start_paused = true)]
async fn all_who_wait_for_a_silent_server_move_on_together() {
    let pki = pki();
    let silent = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let (transport, client) = over(&pki, &[silent.local_addr().expect("bound").port(), closed_port().await]);
    let begun = Instant::now();
    let answers = futures_util::future::join_all((0..20).map(|_| ask(&client))).await;
    assert!(answers.iter().all(Result::is_err));
    assert!(begun.elapsed() < Duration::from_secs(30), "{:?}", begun.elapsed());
    drop(transport);
}

#[tokio::test]
async fn a_server_that_is_told_of_later_is_asked_and_a_connection_outlives_the_news() {
    let pki = pki();
    let (one, two) = (server(&pki, &[b"h2"]).await, server(&pki, &[b"h2"]).await);
    let (transport, client) = over(&pki, &[one.port]);
    ask(&client).await.expect("answered");
    transport.set_servers(&[url(two.port), url(one.port)]).expect("good targets");
    ask(&client).await.expect("answered");
    assert_eq!((transport.server(), one.n_connections.load(Ordering::SeqCst)), (url(one.port), 1));
    // The cluster has it no more, and it answers still.
    transport.set_servers(&[url(two.port)]).expect("a good target");
    ask(&client).await.expect("answered");
    assert_eq!((transport.server(), one.n_connections.load(Ordering::SeqCst)), (url(one.port), 1));
    let mut moves = transport.moves();
    drop(one);
    while ask(&client).await.is_err() {}
    moves.changed().await.expect("it has moved on");
    assert_eq!(transport.server(), url(two.port));
}

#[tokio::test]
async fn only_who_has_the_name_of_the_service_is_asked() {
    let pki = pki();
    let (kubelet, api_server) = (server_with(&pki, &pki.kubelet, &[b"h2"]).await, server(&pki, &[b"h2"]).await);
    let gone = closed_port().await;
    let (transport, client) = over(&pki, &[gone, kubelet.port, api_server.port]);
    ask(&client).await.expect("answered");
    assert_eq!(transport.server(), url(api_server.port));
    assert_eq!(transport.current_target().server_name.as_deref(), Some(API_SERVER_NAME));

    // It may have come to the address of a server that was joined, too.
    for ports in [&[gone, kubelet.port][..], &[kubelet.port]] {
        let (_, client) = over(&pki, ports);
        let error = ask(&client).await.expect_err("a kubelet is no API server").to_string();
        assert!(error.contains(&format!("cannot trust 127.0.0.1:{}", kubelet.port)), "{error}");
    }
}

/// It begins where it ended, which may be a server that the cluster told of.
#[tokio::test]
async fn where_the_first_server_is_another_now_the_joined_one_is_asked() {
    let pki = pki();
    let (joined, kubelet) = (server(&pki, &[b"h2"]).await, server_with(&pki, &pki.kubelet, &[b"h2"]).await);
    let target = RestConfig { server: url(joined.port), ..target(&pki, joined.port) };
    let transport = Arc::new(Transport::new(target, &[], &url(kubelet.port)).expect("a good target"));
    assert_eq!(transport.server(), url(kubelet.port));
    ask(&Client::new(transport.clone())).await.expect("answered");
    assert_eq!(transport.server(), url(joined.port));
}

#[tokio::test]
async fn the_joined_server_is_the_last_of_the_circle() {
    let pki = pki();
    let joined = server(&pki, &[b"h2"]).await;
    let (transport, client) = over(&pki, &[joined.port]);
    let one = server(&pki, &[b"h2"]).await;
    let target = RestConfig { server: url(joined.port), ..target(&pki, joined.port) };
    let begun_at_one = Arc::new(Transport::new(target, &[url(one.port)], &url(one.port)).expect("a good target"));
    ask(&Client::new(begun_at_one.clone())).await.expect("answered");
    drop(one);
    while ask(&Client::new(begun_at_one.clone())).await.is_err() {}
    assert_eq!(begun_at_one.server(), url(joined.port));
    // Told of others alone, it is not forgotten.
    begun_at_one.set_servers(&[url(closed_port().await)]).expect("a good target");
    transport.set_servers(&[url(closed_port().await)]).expect("a good target");
    ask(&client).await.expect("answered");
    assert_eq!(transport.server(), url(joined.port));
}

/// Its way is so slow that a connection takes longer than the first round waits.
#[tokio::test(start_paused = true)]
async fn slow_servers_are_waited_for_longer_in_a_later_round() {
    let pki = pki();
    let far = server(&pki, &[b"h2"]).await;
    let slow = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let port = slow.local_addr().expect("bound").port();
    let to = far.port;
    let mut way = JoinSet::new();
    way.spawn(async move {
        let mut connections = JoinSet::new();
        while let Ok((mut near, _)) = slow.accept().await {
            connections.spawn(async move {
                tokio::time::sleep(Duration::from_secs(2)).await;
                let mut far = tokio::net::TcpStream::connect(("127.0.0.1", to)).await.expect("connected");
                // Who gives up closes its end.
                let _ended = tokio::io::copy_bidirectional(&mut near, &mut far).await;
            });
        }
    });
    let (transport, client) = over(&pki, &[port, closed_port().await]);
    ask(&client).await.expect("answered");
    assert_eq!(transport.server(), url(port));
}

#[tokio::test]
async fn a_server_that_is_not_ready_is_left_for_one_that_is() {
    let pki = pki();
    let (one, two, three) = (server(&pki, &[b"h2"]).await, server(&pki, &[b"h2"]).await, server(&pki, &[b"h2"]).await);
    // The server that was joined by is the last of the circle.
    let (transport, client) = over(&pki, &[one.port, two.port, three.port]);
    ask(&client).await.expect("answered");
    for status in [503, 401, 404] {
        one.state.readyz.store(status, Ordering::SeqCst);
        transport.check_ready().await;
        assert_eq!(transport.server(), url(one.port), "once is not enough");
        one.state.readyz.store(200, Ordering::SeqCst);
        transport.check_ready().await;
    }
    // Who may not ask learns nothing.
    one.state.readyz.store(403, Ordering::SeqCst);
    for _ in 0..3 {
        transport.check_ready().await;
    }
    assert_eq!(transport.server(), url(one.port));

    one.state.readyz.store(500, Ordering::SeqCst);
    two.state.readyz.store(500, Ordering::SeqCst);
    three.state.readyz.store(500, Ordering::SeqCst);
    for _ in 0..3 {
        transport.check_ready().await;
    }
    assert_eq!(transport.server(), url(one.port), "no other is better");

    let watch = tokio::spawn({
        let client = client.clone();
        async move { client.get_path("/hang").await.map(drop) }
    });
    one.state.hung.notified().await;
    three.state.readyz.store(200, Ordering::SeqCst);
    let mut moves = transport.moves();
    transport.check_ready().await;
    assert_eq!((transport.server(), moves.has_changed().expect("alive")), (url(three.port), true));
    moves.mark_unchanged();
    watch.await.expect("it ends").expect_err("what is under way ends there");
    ask(&client).await.expect("answered");
    three.state.readyz.store(500, Ordering::SeqCst);
    transport.check_ready().await;
    assert_eq!(transport.server(), url(three.port), "the new one is counted anew");
}

#[tokio::test]
async fn the_only_server_is_not_asked_whether_it_is_ready() {
    let pki = pki();
    let one = server(&pki, &[b"h2"]).await;
    let (transport, _) = over(&pki, &[one.port]);
    transport.check_ready().await;
    assert_eq!(one.n_connections.load(Ordering::SeqCst), 0);
}

#[tokio::test]
async fn a_server_that_is_gone_is_left_by_who_only_listens() {
    let pki = pki();
    let two = server(&pki, &[b"h2"]).await;
    let (transport, _) = over(&pki, &[closed_port().await, two.port]);
    transport.check_ready().await;
    transport.check_ready().await;
    assert_eq!(transport.server(), url(two.port));
}
