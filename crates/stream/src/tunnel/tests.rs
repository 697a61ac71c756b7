use tokio::io::duplex;

use super::*;

const LIMITS: Limits = Limits {
    idle: Duration::from_secs(60),
    half_closed: Duration::from_secs(5),
    switch: Duration::from_secs(5),
    buffer_bytes: 8,
    head_start: Duration::from_millis(20),
};

#[tokio::test(start_paused = true)]
async fn copies_both_ways_and_passes_the_end_on() {
    let (mut client, near) = duplex(64);
    let (far, mut server) = duplex(64);
    let tunnel = tokio::spawn(copy_both(near, far, LIMITS));

    client.write_all(b"a question longer than the buffer").await.expect("the tunnel reads");
    client.shutdown().await.expect("a duplex can be closed");
    let mut question = String::new();
    server.read_to_string(&mut question).await.expect("the end of the client is passed on");
    assert_eq!(question, "a question longer than the buffer");

    server.write_all(b"an answer after the end").await.expect("the other direction is still open");
    drop(server);
    let mut answer = String::new();
    client.read_to_string(&mut answer).await.expect("the end of the server is passed on");
    assert_eq!(answer, "an answer after the end");

    let copied = tunnel.await.expect("no panic").expect("both sides ended");
    assert_eq!(copied, Copied { a_to_b: 33, b_to_a: 23 });
}

#[tokio::test(start_paused = true)]
async fn silence_ends_a_tunnel() {
    let start = Instant::now();
    let (mut client, near) = duplex(64);
    let (far, _server) = duplex(64);
    let tunnel = tokio::spawn(copy_both(near, far, LIMITS));
    tokio::time::sleep(Duration::from_secs(50)).await;
    client.write_all(b"x").await.expect("the tunnel reads");
    let error = tunnel.await.expect("no panic").expect_err("nothing moves any more");
    assert_eq!((error.kind(), start.elapsed().as_secs()), (io::ErrorKind::TimedOut, 110));
}

#[tokio::test(start_paused = true)]
async fn a_half_closed_tunnel_is_given_less_time() {
    let start = Instant::now();
    let (client, near) = duplex(64);
    let (far, _server) = duplex(64);
    let tunnel = tokio::spawn(copy_both(near, far, LIMITS));
    tokio::time::sleep(Duration::from_secs(1)).await;
    drop(client);
    let error = tunnel.await.expect("no panic").expect_err("the server says nothing");
    assert_eq!((error.kind(), start.elapsed().as_secs()), (io::ErrorKind::TimedOut, 6));
}

#[tokio::test(start_paused = true)]
async fn who_does_not_read_on_is_still_heard() {
    let (mut client, near) = duplex(64);
    let (far, server) = duplex(64);
    let tunnel = tokio::spawn(copy_both(near, far, LIMITS));
    let (server_read, mut server_write) = tokio::io::split(server);
    server_write.write_all(b"enough").await.expect("the tunnel reads");
    // The other end is gone, with what it said still on the way.
    drop((server_read, server_write));
    for _ in 0..100 {
        client.write_all(&[0; 64]).await.expect("it is taken, and thrown away");
    }
    client.shutdown().await.expect("a duplex can be closed");
    let mut heard = String::new();
    client.read_to_string(&mut heard).await.expect("the end is passed on");
    assert_eq!(heard, "enough");
    tunnel.await.expect("no panic").expect("both sides ended");
}
