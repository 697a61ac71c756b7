//! Clients that read and write the same few objects, and write down what they were answered.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use anyhow::{Result, bail};
use bytes::Bytes;
use corten_testbed::{Connection, ServerAddress, expect};
use hyper::{Method, StatusCode};
use rand::{Rng, rngs::StdRng};
use tokio::time::{Instant, timeout};

use super::check::{Operation, Outcome, Request};
use crate::crash::{CONFIG_MAPS, List, Object, Watcher};

/// Few, so that clients meet.
const OBJECTS: usize = 5;
/// A request that is not answered by then is given up, and its connection with it.
const PATIENCE: Duration = Duration::from_secs(3);
const THINK_MS: std::ops::Range<u64> = 0..6;
/// Until a server is tried again, or another.
const PAUSE: Duration = Duration::from_millis(20);

/// Half of them stay each with one server, whatever it answers; the others with one as long as it answers.
pub(super) struct Clients {
    pub(super) servers: Vec<ServerAddress>,
    pub(super) is_over: Arc<AtomicBool>,
    pub(super) start: Instant,
}

fn name(number: usize) -> String {
    format!("w-{number}")
}

/// The objects, before anything befalls their server.
pub(super) async fn make_objects(connection: &mut Connection, start: Instant) -> Result<Vec<Operation>> {
    let mut history = Vec::new();
    for number in 0..OBJECTS {
        let (key, value, begun) = (name(number), format!("first-{number}"), start.elapsed());
        let answer = connection.create(CONFIG_MAPS, body(&key, &value, None)).await?;
        let outcome = Outcome::At(Object::read(&answer)?.1.revision);
        let what = Request::Put { key, value, expected: None, outcome };
        history.push(Operation { begun, ended: start.elapsed(), what });
    }
    Ok(history)
}

pub(super) async fn list_once(connection: &mut Connection, start: Instant) -> Result<(Operation, List)> {
    let begun = start.elapsed();
    let list = List::read(&connection.get(CONFIG_MAPS).await?)?;
    let what = Request::List { revision: list.revision, found: list.objects.clone() };
    Ok((Operation { begun, ended: start.elapsed(), what }, list))
}

/// Follows one watch from server to server, as client libraries do.
pub(super) async fn watch(watcher: Watcher, servers: Vec<ServerAddress>, mut dice: StdRng) -> Result<()> {
    loop {
        let server = &servers[dice.random_range(0..servers.len())];
        // One that is stopped says nothing: it is left after a while.
        if let Ok(Ok(connection)) = timeout(PATIENCE, Connection::open(server)).await
            && let Ok(ended) = timeout(PATIENCE * 2, watcher.clone().watch(connection)).await
        {
            ended?;
        }
        tokio::time::sleep(PAUSE).await;
    }
}

/// Reads and writes until it is over.
pub(super) async fn work(clients: Clients, number: usize, mut dice: StdRng) -> Result<Vec<Operation>> {
    let mut history = Vec::new();
    let mut connection = None;
    // What it read last, which a write may rely on.
    let mut read = None;
    while !clients.is_over.load(Ordering::Relaxed) {
        let asked = match connection.take() {
            Some(connection) => connection,
            None => {
                let drawn = dice.random_range(0..clients.servers.len());
                let server = clients.servers.get(number).unwrap_or(&clients.servers[drawn]);
                match timeout(PATIENCE, Connection::open(server)).await {
                    Ok(Ok(opened)) => opened,
                    Ok(Err(_)) | Err(_) => {
                        tokio::time::sleep(PAUSE).await;
                        continue;
                    }
                }
            }
        };
        let request = drawn(&mut dice, number, read.take());
        let begun = clients.start.elapsed();
        let (what, kept) = ask(asked, request).await?;
        connection = kept;
        if let Some(what) = what {
            if let Request::Read { key, found } = &what {
                read = Some((key.clone(), found.revision));
            }
            history.push(Operation { begun, ended: clients.start.elapsed(), what });
        }
        tokio::time::sleep(Duration::from_millis(dice.random_range(THINK_MS))).await;
    }
    Ok(history)
}

enum Drawn {
    Read(String),
    List,
    Put { key: String, value: String, expected: Option<u64> },
}

fn drawn(dice: &mut StdRng, number: usize, read: Option<(String, u64)>) -> Drawn {
    let key = name(dice.random_range(0..OBJECTS));
    let value = format!("{number}-{:016x}", dice.random::<u64>());
    match (dice.random_range(0..8), read) {
        (0..4, Some((key, revision))) => Drawn::Put { key, value, expected: Some(revision) },
        (0 | 1, None) => Drawn::Put { key, value, expected: None },
        (2, _) => Drawn::List,
        _ => Drawn::Read(key),
    }
}

/// Answers what is to be written down of it, and the connection where it can be asked again.
async fn ask(mut connection: Connection, drawn: Drawn) -> Result<(Option<Request>, Option<Connection>)> {
    let (method, path, body) = match &drawn {
        Drawn::Read(key) => (Method::GET, format!("{CONFIG_MAPS}/{key}"), Bytes::new()),
        Drawn::List => (Method::GET, CONFIG_MAPS.to_owned(), Bytes::new()),
        Drawn::Put { key, value, expected } => {
            (Method::PUT, format!("{CONFIG_MAPS}/{key}"), body(key, value, *expected))
        }
    };
    let answer = timeout(PATIENCE, connection.send(method, &path, body)).await;
    let in_doubt = |drawn| match drawn {
        Drawn::Put { key, value, expected } => Some(Request::Put { key, value, expected, outcome: Outcome::InDoubt }),
        Drawn::Read(_) | Drawn::List => None,
    };
    let Ok(Ok((status, answer))) = answer else { return Ok((in_doubt(drawn), None)) };
    // Then nothing was written: that is promised (docs/how-to/keep-the-cluster-in-etcd.md), and the check holds it to that.
    let is_refused = status == StatusCode::SERVICE_UNAVAILABLE && contains(&answer, b"the store is not available");
    if let (true, Drawn::Put { key, value, expected }) = (is_refused, &drawn) {
        let (key, value, expected) = (key.clone(), value.clone(), *expected);
        return Ok((Some(Request::Put { key, value, expected, outcome: Outcome::Refused }), None));
    }
    // It is there and cannot do it: what it has done before it found out nobody knows.
    if status.is_server_error() || status == StatusCode::TOO_MANY_REQUESTS {
        return Ok((in_doubt(drawn), None));
    }
    let what = match drawn {
        Drawn::Put { key, value, expected } => {
            let outcome = match status {
                StatusCode::CONFLICT => Outcome::Refused,
                _ => {
                    expect(status, StatusCode::OK, &path, &answer)?;
                    let (named, version) = Object::read(&answer)?;
                    if (&named, &version.value) != (&key, &value) {
                        bail!("{value} was put into {key}, and the answer is {version:?} of {named}");
                    }
                    Outcome::At(version.revision)
                }
            };
            Request::Put { key, value, expected, outcome }
        }
        Drawn::Read(key) => {
            expect(status, StatusCode::OK, &path, &answer)?;
            Request::Read { key, found: Object::read(&answer)?.1 }
        }
        Drawn::List => {
            expect(status, StatusCode::OK, &path, &answer)?;
            let list = List::read(&answer)?;
            Request::List { revision: list.revision, found: list.objects }
        }
    };
    Ok((Some(what), Some(connection)))
}

fn body(key: &str, value: &str, expected: Option<u64>) -> Bytes {
    let mut metadata = serde_json::json!({ "name": key });
    if let Some(expected) = expected {
        metadata["resourceVersion"] = expected.to_string().into();
    }
    let object = serde_json::json!({
        "apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": { "value": value },
    });
    Bytes::from(object.to_string())
}

fn contains(text: &[u8], words: &[u8]) -> bool {
    text.windows(words.len()).any(|it| it == words)
}
