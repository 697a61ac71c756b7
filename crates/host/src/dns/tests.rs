use std::{
    net::Ipv4Addr,
    sync::{Mutex, PoisonError},
};

use corten_dns::{Change, Keeper};
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::*;

const NO_ERROR: u8 = 0;
const FAILED: u8 = 2;

/// A server that is asked, and what it was asked.
struct Upstream {
    address: SocketAddr,
    asked: Arc<Mutex<Vec<&'static str>>>,
    _tasks: JoinSet<()>,
}

/// What a server says to a query over UDP or TCP: any number of packets.
type Says = fn(&[u8], &'static str) -> Vec<Vec<u8>>;

impl Upstream {
    async fn start(says: Says) -> Self {
        let (udp, tcp) = one_port().await;
        let address = udp.local_addr().expect("an address");
        let asked: Arc<Mutex<Vec<&'static str>>> = Arc::default();
        let note =
            |asked: &Mutex<Vec<&'static str>>, how| asked.lock().unwrap_or_else(PoisonError::into_inner).push(how);
        let mut tasks = JoinSet::new();
        let told = asked.clone();
        tasks.spawn(async move {
            let mut packet = [0; 512];
            while let Ok((n, from)) = udp.recv_from(&mut packet).await {
                note(&told, "udp");
                for answer in says(&packet[..n], "udp") {
                    udp.send_to(&answer, from).await.expect("sent");
                }
            }
        });
        let told = asked.clone();
        tasks.spawn(async move {
            while let Ok((mut stream, _)) = tcp.accept().await {
                let mut packet = vec![0; usize::from(stream.read_u16().await.expect("a length"))];
                stream.read_exact(&mut packet).await.expect("a query");
                note(&told, "tcp");
                for answer in says(&packet, "tcp") {
                    let length = u16::try_from(answer.len()).expect("short");
                    stream.write_all(&[&length.to_be_bytes()[..], &answer].concat()).await.expect("sent");
                }
            }
        });
        Self { address, asked, _tasks: tasks }
    }

    fn asked(&self) -> Vec<&'static str> {
        // The look for circles is the server's own business.
        std::mem::take(&mut *self.asked.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// A port that is free for UDP may be anybody's for TCP.
async fn one_port() -> (UdpSocket, TcpListener) {
    loop {
        let udp = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).await.expect("a socket");
        match TcpListener::bind(udp.local_addr().expect("an address")).await {
            Ok(tcp) => return (udp, tcp),
            Err(error) => assert_eq!(error.kind(), std::io::ErrorKind::AddrInUse),
        }
    }
}

/// `NAME 300 A 192.0.2.1`
fn good(packet: &[u8], _: &'static str) -> Vec<Vec<u8>> {
    let end = packet.len() - 11;
    let mut answer = packet[..end].to_vec();
    (answer[2], answer[3], answer[7], answer[11]) = (0x81, 0x80, 1, 0);
    answer.extend_from_slice(&[0xc0, 12, 0, 1, 0, 1, 0, 0, 1, 44, 0, 4, 192, 0, 2, 1]);
    vec![answer]
}

fn silent(_: &[u8], _: &'static str) -> Vec<Vec<u8>> {
    Vec::new()
}

/// Over UDP it says that there is more over TCP.
fn long(packet: &[u8], how: &'static str) -> Vec<Vec<u8>> {
    let mut answers = good(packet, how);
    if how == "udp" {
        answers[0][2] |= 2;
    }
    answers
}

/// First somebody who guesses.
fn attacked(packet: &[u8], how: &'static str) -> Vec<Vec<u8>> {
    let truth = good(packet, how).remove(0);
    let with = |at: usize, byte: u8| {
        let mut forged = truth.clone();
        *forged.last_mut().expect("an address") = 66;
        forged[at] = byte;
        forged
    };
    vec![with(0, !truth[0]), with(13, b'x'), with(2, 0), truth]
}

/// In small letters, as some servers answer.
fn careless(packet: &[u8], how: &'static str) -> Vec<Vec<u8>> {
    let mut answers = good(packet, how);
    answers[0][12..].make_ascii_lowercase();
    answers
}

fn failing(packet: &[u8], how: &'static str) -> Vec<Vec<u8>> {
    let mut answers = good(packet, how);
    answers[0].truncate(packet.len() - 11);
    (answers[0][3], answers[0][7]) = (0x82, 0);
    answers
}

/// The server that is tried, with the Services `shop/web` and `shop/out`.
struct Tried {
    at: SocketAddr,
    _tasks: JoinSet<()>,
}

async fn name_server(servers: Vec<SocketAddr>, stub_domains: Vec<(Name, Vec<SocketAddr>)>) -> DnsServer {
    let mut keeper = Keeper::new(Name::parse("cluster.local").expect("a name"));
    keeper.apply(Change::Namespace("shop".into()));
    for (name, spec) in [
        ("web", json!({ "clusterIP": "10.96.0.7" })),
        ("out", json!({ "type": "ExternalName", "externalName": "www.example.test" })),
    ] {
        let service = json!({ "metadata": { "name": name, "namespace": "shop" }, "spec": spec });
        keeper.apply(Change::Service(serde_json::from_value(service).expect("a service")));
    }
    keeper.apply(Change::Complete);
    let options = DnsOptions {
        addresses: vec![Ipv4Addr::LOCALHOST.into()],
        // Any.
        ports: 0..=0,
        is_peer: Box::new(|_| false),
        networks: vec!["10.244.0.0/24".into()],
        own_names: Vec::new(),
        servers: Box::new(move || servers.clone()),
        ipv4: None,
        stub_domains,
    };
    DnsServer::bind(options, keeper.zone()).await.expect("a port")
}

impl Tried {
    async fn start(servers: Vec<SocketAddr>) -> Self {
        Self::with_stubs(servers, Vec::new()).await
    }

    async fn with_stubs(servers: Vec<SocketAddr>, stub_domains: Vec<(Name, Vec<SocketAddr>)>) -> Self {
        let server = name_server(servers, stub_domains).await;
        server.name_server.forwarder.reread();
        let at = server.sockets[0].0.local_addr().expect("an address");
        let mut tasks = JoinSet::new();
        let (udp, tcp) = server.sockets.into_iter().next().expect("one");
        // TCP has a port of its own here.
        tasks.spawn(udp::serve(udp, server.name_server.clone()));
        tasks.spawn(tcp::serve(tcp, server.name_server.clone()));
        Self { at, _tasks: tasks }
    }

    async fn ask(&self, name: &str) -> (u8, Option<[u8; 4]>) {
        let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).await.expect("a socket");
        socket.connect(self.at).await.expect("connected");
        socket.send(&query(name)).await.expect("sent");
        let mut packet = [0; 512];
        let n =
            tokio::time::timeout(Duration::from_secs(60), socket.recv(&mut packet)).await.expect("an answer in time");
        read(&packet[..n.expect("an answer")])
    }
}

fn query(name: &str) -> Vec<u8> {
    let mut packet = vec![0, 7, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0];
    for label in name.split('.') {
        packet.push(u8::try_from(label.len()).expect("short"));
        packet.extend_from_slice(label.as_bytes());
    }
    packet.extend_from_slice(&[0, 0, 1, 0, 1]);
    packet
}

/// The code, and the address the answer ends in.
fn read(packet: &[u8]) -> (u8, Option<[u8; 4]>) {
    assert_eq!(packet[..2], [0, 7]);
    let has_answer = packet[7] > 0;
    (packet[3] & 0xf, packet.last_chunk().copied().filter(|_| has_answer))
}

const TRUTH: (u8, Option<[u8; 4]>) = (NO_ERROR, Some([192, 0, 2, 1]));

#[tokio::test]
async fn the_zone_is_answered_without_asking_anybody() {
    let upstream = Upstream::start(good).await;
    let server = Tried::start(vec![upstream.address]).await;
    assert_eq!(server.ask("web.shop.svc.cluster.local").await, (NO_ERROR, Some([10, 96, 0, 7])));
    assert_eq!(server.ask("no.shop.svc.cluster.local").await.0, 3);
    assert!(upstream.asked().is_empty());
}

#[tokio::test(start_paused = true)]
async fn other_names_are_asked_for_and_kept() {
    for (what, says, expected) in [
        ("an answer", good as Says, vec!["udp"]),
        ("a long one", long, vec!["udp", "tcp"]),
        ("among lies", attacked, vec!["udp"]),
        ("in small letters", careless, vec!["udp", "udp"]),
    ] {
        let upstream = Upstream::start(says).await;
        let server = Tried::start(vec![upstream.address]).await;
        assert_eq!(server.ask("www.example.test").await, TRUTH, "{what}");
        assert_eq!(upstream.asked(), expected, "{what}");
        assert_eq!(server.ask("WWW.example.test").await, TRUTH, "{what}");
        assert_eq!(server.ask("out.shop.svc.cluster.local").await, TRUTH, "an alias of what is known");
        assert!(upstream.asked().is_empty(), "{what}: it is known already");
    }
}

#[tokio::test(start_paused = true)]
async fn names_of_a_domain_are_asked_of_its_own_servers() {
    let (usual, corp, lab) = (Upstream::start(silent).await, Upstream::start(good).await, Upstream::start(good).await);
    let domain = |text: &str| Name::parse(text).expect("a name");
    let stubs = vec![(domain("corp.test"), vec![corp.address]), (domain("lab.corp.test"), vec![lab.address])];
    let server = Tried::with_stubs(vec![usual.address], stubs).await;
    for (name, of_corp, of_lab) in [
        ("corp.test", 1, 0),
        ("db.CORP.test", 1, 0),
        ("db.lab.corp.test", 0, 1),
        // The zone comes first.
        ("web.shop.svc.cluster.local", 0, 0),
    ] {
        assert_eq!(server.ask(name).await.0, NO_ERROR, "{name}");
        assert_eq!((corp.asked().len(), lab.asked().len()), (of_corp, of_lab), "{name}");
    }
    assert!(usual.asked().is_empty());
    assert_eq!(server.ask("notcorp.test").await, (FAILED, None));
    assert_eq!((corp.asked().len(), usual.asked().len()), (0, ROUNDS));
}

#[tokio::test(start_paused = true)]
async fn who_does_not_answer_is_not_waited_for() {
    let (mute, broken, well) =
        (Upstream::start(silent).await, Upstream::start(failing).await, Upstream::start(good).await);
    let server = Tried::start(vec![mute.address, broken.address, well.address]).await;
    assert_eq!(server.ask("www.example.test").await, TRUTH);
    assert_eq!((mute.asked(), broken.asked()), (vec!["udp"], vec!["udp"]));
    assert_eq!(server.ask("two.example.test").await, TRUTH);
    assert!(mute.asked().is_empty(), "the others come first now");

    let alone = Tried::start(vec![mute.address]).await;
    assert_eq!(alone.ask("www.example.test").await, (FAILED, None));
    assert_eq!(mute.asked().len(), ROUNDS, "it is asked again");
    let nobody = Tried::start(Vec::new()).await;
    assert_eq!(nobody.ask("www.example.test").await, (FAILED, None));
    let unwell = Tried::start(vec![broken.address]).await;
    assert_eq!(unwell.ask("www.example.test").await, (FAILED, None));
}

#[tokio::test]
async fn one_question_is_asked_once() {
    let upstream = Upstream::start(good).await;
    let server = Arc::new(Tried::start(vec![upstream.address]).await);
    let mut clients = JoinSet::new();
    for _ in 0..50 {
        let server = server.clone();
        clients.spawn(async move { server.ask("www.example.test").await });
    }
    while let Some(answer) = clients.join_next().await {
        assert_eq!(answer.expect("an answer"), TRUTH);
    }
    assert_eq!(upstream.asked(), ["udp"]);
}

/// Answers names that begin with `b`, and no others.
fn choosy(packet: &[u8], how: &'static str) -> Vec<Vec<u8>> {
    if packet[13].eq_ignore_ascii_case(&b'b') { good(packet, how) } else { Vec::new() }
}

#[tokio::test]
async fn one_client_cannot_take_all_places() {
    const SURPLUS: usize = 44;
    let upstream = Upstream::start(choosy).await;
    let server = Tried::start(vec![upstream.address]).await;
    let greedy = UdpSocket::bind((Ipv4Addr::new(127, 0, 0, 2), 0)).await.expect("a socket");
    for idx in 0..udp::WAITING_OF_ONE_MAX + SURPLUS {
        greedy.send_to(&query(&format!("a{idx}.test")), server.at).await.expect("sent");
        tokio::task::yield_now().await;
    }
    let mut packet = [0; 512];
    for _ in 0..SURPLUS {
        let n = greedy.recv(&mut packet).await.expect("an answer");
        assert_eq!(read(&packet[..n]), (FAILED, None));
    }
    assert_eq!(server.ask("b.test").await, TRUTH);
}

#[tokio::test(start_paused = true)]
async fn what_held_once_is_better_than_nothing() {
    let upstream = Upstream::start(good).await;
    let address = upstream.address;
    let server = Tried::start(vec![address]).await;
    assert_eq!(server.ask("www.example.test").await, TRUTH);
    drop(upstream);
    tokio::time::advance(Duration::from_secs(400)).await;
    assert_eq!(server.ask("www.example.test").await, TRUTH, "it is stale");
    tokio::time::advance(Duration::from_secs(4000)).await;
    assert_eq!(server.ask("www.example.test").await, (FAILED, None), "and then too old");
}

#[tokio::test(start_paused = true)]
async fn a_server_that_asks_here_is_found_out() {
    // What it is asked it asks here.
    let relay = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).await.expect("a socket");
    let server = name_server(vec![relay.local_addr().expect("an address")], Vec::new()).await;
    let at = server.sockets[0].0.local_addr().expect("an address");
    let mut tasks = JoinSet::new();
    tasks.spawn(async move {
        let mut packet = [0; 512];
        let mut asker = None;
        while let Ok((n, from)) = relay.recv_from(&mut packet).await {
            let to = if from == at { asker } else { Some(at) };
            asker = if from == at { asker } else { Some(from) };
            if let Some(to) = to {
                relay.send_to(&packet[..n], to).await.expect("sent");
            }
        }
    });
    let name_server = server.name_server.clone();
    let (udp, _) = server.sockets.into_iter().next().expect("one");
    tasks.spawn(udp::serve(udp, name_server.clone()));
    name_server.forwarder.keep().await;
    assert!(name_server.forwarder.is_in_circle());
    let tried = Tried { at, _tasks: tasks };
    assert_eq!(tried.ask("www.example.test").await, (FAILED, None));
    assert_eq!(tried.ask("web.shop.svc.cluster.local").await.0, NO_ERROR, "the cluster's own names go on");
}

#[tokio::test]
async fn strangers_are_refused_with_less_than_they_sent() {
    let server = name_server(Vec::new(), Vec::new()).await;
    let packet = query("web.shop.svc.cluster.local");
    let mut out = Vec::new();
    for (from, code) in [("10.244.0.9", NO_ERROR), ("127.0.0.1", NO_ERROR), ("10.244.1.9", 5), ("192.0.2.9", 5)] {
        server.name_server.handle(&packet, from.parse().expect("an address"), None, &mut out);
        assert_eq!(out[3] & 0xf, code, "{from}");
        assert!(code == NO_ERROR || out.len() < packet.len());
    }
    // Nor is it told what is wrong with its question.
    server.name_server.handle(&packet[..20], "192.0.2.9".parse().expect("an address"), None, &mut out);
    assert_eq!(out[3] & 0xf, 5);
}

#[tokio::test(start_paused = true)]
async fn connections_are_answered_in_order_and_end_when_idle() {
    let server = name_server(Vec::new(), Vec::new()).await;
    let (_, tcp) = server.sockets.into_iter().next().expect("one");
    let at = tcp.local_addr().expect("an address");
    let mut tasks = JoinSet::new();
    tasks.spawn(tcp::serve(tcp, server.name_server.clone()));
    let mut stream = tokio::net::TcpStream::connect(at).await.expect("connected");
    let packet = query("web.shop.svc.cluster.local");
    let length = u16::try_from(packet.len()).expect("short").to_be_bytes();
    let message = [&length[..], &packet].concat();
    // Two at once.
    stream.write_all(&[message.clone(), message].concat()).await.expect("sent");
    for _ in 0..2 {
        let mut answer = vec![0; usize::from(stream.read_u16().await.expect("a length"))];
        stream.read_exact(&mut answer).await.expect("an answer");
        assert_eq!(read(&answer), (NO_ERROR, Some([10, 96, 0, 7])));
    }
    assert_eq!(stream.read(&mut [0]).await.expect("the end"), 0, "idle");
}

const ROUNDS: usize = 2;
