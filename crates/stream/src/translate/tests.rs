use tokio::io::{DuplexStream, duplex};

use super::*;

const LIMITS: Limits = Limits {
    idle: Duration::from_secs(60),
    half_closed: Duration::from_secs(5),
    switch: Duration::from_secs(5),
    buffer_bytes: 1024,
    head_start: Duration::from_millis(20),
};

const CAT: Streams = Streams { stdin: true, stdout: true, stderr: true, tty: false };

/// A client's frame; the mask is zero.
fn frame(head: u8, payload: &[u8]) -> Vec<u8> {
    let length = u8::try_from(payload.len()).ok().filter(|it| *it < 126).expect("short");
    [&[head, 0x80 | length, 0, 0, 0, 0], payload].concat()
}

fn data(stream: u8, fin: bool, text: &[u8]) -> Vec<u8> {
    let length = u8::try_from(text.len()).expect("short");
    [&[0, 0, 0, stream, u8::from(fin), 0, 0, length], text].concat()
}

fn reset(stream: u8) -> Vec<u8> {
    vec![0x80, 3, 0, 3, 0, 0, 0, 8, 0, 0, 0, stream, 0, 0, 0, 5]
}

struct TunnelEnds {
    client: DuplexStream,
    server: DuplexStream,
    task: tokio::task::JoinHandle<io::Result<Copied>>,
}

fn join(streams: Streams) -> TunnelEnds {
    let (client, near) = duplex(4096);
    let (far, server) = duplex(4096);
    let task = tokio::spawn(async move { run(near, far, remote_command(streams), LIMITS).await });
    TunnelEnds { client, server, task }
}

async fn expect(from: &mut DuplexStream, wanted: &[u8]) {
    let mut found = vec![0; wanted.len()];
    from.read_exact(&mut found).await.expect("as much comes");
    assert_eq!(found, wanted);
}

/// Skips the opening of so many streams.
async fn opened(server: &mut DuplexStream, count: usize) {
    for nth in 0..count {
        let mut head = [0; 12];
        server.read_exact(&mut head).await.expect("a stream is opened");
        assert_eq!((&head[..4], usize::from(head[11])), (&[0x80, 3, 0, 1][..], 2 * nth + 1));
        let mut rest = vec![0; usize::from(head[7]) - 4];
        server.read_exact(&mut rest).await.expect("with headers");
    }
}

#[tokio::test(start_paused = true)]
async fn a_client_hears_nothing_before_it_can_have_made_its_channels() {
    let begun = tokio::time::Instant::now();
    let TunnelEnds { mut client, mut server, task: _task } = join(CAT);
    opened(&mut server, 4).await;
    server.write_all(&data(5, false, b"early")).await.expect("taken");
    assert_eq!(begun.elapsed(), Duration::ZERO, "the command begins at once");
    expect(&mut client, b"\x82\x01\x01\x82\x06\x01early").await;
    assert_eq!(begun.elapsed(), LIMITS.head_start);
}

#[tokio::test(start_paused = true)]
async fn a_command_runs_and_ends() {
    let TunnelEnds { mut client, mut server, task } = join(CAT);
    opened(&mut server, 4).await;
    expect(&mut client, &[0x82, 1, 1]).await;
    // Streams: 1 error, 3 stdin, 5 stdout, 7 stderr.
    client.write_all(&frame(0x82, b"\0hello")).await.expect("taken");
    client.write_all(&frame(0x89, b"are you there")).await.expect("taken");
    expect(&mut server, &data(3, false, b"hello")).await;
    expect(&mut client, b"\x8a\x0dare you there").await;
    // To nobody: no stream, no resizing without a terminal, an output.
    for channel in [9, 4, 1] {
        client.write_all(&frame(0x82, &[channel, b'x'])).await.expect("taken");
    }
    // In parts.
    client.write_all(&[frame(0x02, b""), frame(0x00, b"\0"), frame(0x80, b"more")].concat()).await.expect("taken");
    expect(&mut server, &data(3, false, b"more")).await;
    client.write_all(&frame(0x82, &[255, 0])).await.expect("taken");
    expect(&mut server, &data(3, true, b"")).await;
    client.write_all(&frame(0x82, b"\0too late")).await.expect("taken");

    server.write_all(&[0x80, 3, 0, 6, 0, 0, 0, 4, 0, 0, 0, 2]).await.expect("taken");
    expect(&mut server, &[0x80, 3, 0, 6, 0, 0, 0, 4, 0, 0, 0, 2]).await;
    server
        .write_all(&[data(5, false, b"HELLO"), data(7, false, b"oops"), data(1, false, b"{}")].concat())
        .await
        .expect("taken");
    expect(&mut client, b"\x82\x06\x01HELLO\x82\x05\x02oops").await;
    server.write_all(&[reset(1), reset(5), data(7, true, b"!")].concat()).await.expect("taken");
    expect(&mut client, b"\x82\x02\x02!\x82\x03\x03{}\x88\x02\x03\xe8").await;
    let copied = task.await.expect("no panic").expect("a good end");
    assert!(copied.b_to_a > 0);
}

#[tokio::test(start_paused = true)]
async fn a_connection_that_is_lost_is_no_success() {
    let TunnelEnds { mut client, mut server, task } = join(Streams { stdin: false, ..CAT });
    opened(&mut server, 3).await;
    server.write_all(&data(3, false, b"half")).await.expect("taken");
    drop(server);
    let mut heard = Vec::new();
    client.read_to_end(&mut heard).await.expect("an end");
    let heard = String::from_utf8_lossy(&heard).into_owned();
    assert!(heard.contains("half") && heard.contains("the connection to the container was lost"), "{heard}");
    drop(client);
    task.await.expect("no panic").expect("an end");
}

#[tokio::test(start_paused = true)]
async fn a_client_that_goes_takes_all_along() {
    for goodbye in [frame(0x88, &[3, 232]), Vec::new()] {
        let TunnelEnds { mut client, mut server, task } = join(CAT);
        opened(&mut server, 4).await;
        client.write_all(&goodbye).await.expect("taken");
        drop(client);
        let mut rest = Vec::new();
        server.read_to_end(&mut rest).await.expect("the end is passed on");
        task.await.expect("no panic").expect("a good end");
    }
    let TunnelEnds { mut client, mut server, task } = join(CAT);
    opened(&mut server, 4).await;
    client.write_all(b"GET / HTTP/1.1").await.expect("taken");
    task.await.expect("no panic").expect_err("that is no WebSocket");
}

#[tokio::test(start_paused = true)]
async fn who_does_not_read_is_waited_for() {
    let TunnelEnds { mut client, mut server, task } = join(CAT);
    opened(&mut server, 4).await;
    expect(&mut client, &[0x82, 1, 1]).await;
    // The command does not read: some buffers fill, then the client waits, and hears that we live.
    let flood = async {
        for _ in 0..1000 {
            client.write_all(&frame(0x82, &[0; 100])).await.expect("taken");
        }
    };
    timeout(Duration::from_secs(1), flood).await.expect_err("there is no room for all of it");
    expect(&mut client, &[0x8a, 0]).await;
    drop(server);
    client.read_to_end(&mut Vec::new()).await.expect("an end");
    drop(client);
    task.await.expect("no panic").expect("an end");
}

#[tokio::test(start_paused = true)]
async fn a_forwarded_port_is_bytes_in_messages() {
    let (mut client, near) = duplex(4096);
    let (far, mut server) = duplex(4096);
    let task = tokio::spawn(async move { run(near, far, (PortForward, PortForward), LIMITS).await });
    client.write_all(&[frame(0x82, b"ab"), frame(0x82, b"cd")].concat()).await.expect("taken");
    expect(&mut server, b"abcd").await;
    server.write_all(b"efg").await.expect("taken");
    expect(&mut client, b"\x82\x03efg").await;
    drop(server);
    expect(&mut client, b"\x88\x02\x03\xe8").await;
    drop(client);
    task.await.expect("no panic").expect("a good end");
}
