//! Custom resources beside ConfigMaps of the same size, and what many definitions cost.

use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use bytes::Bytes;
use corten_testbed::{Connection, Data, Launcher};
use serde_json::{Value, json};

use super::{
    super::{
        load::{self, connections},
        objects::{self, CONFIG_MAPS},
        report::{Row, Unit},
    },
    Scale,
    creates::{creates, row},
    megabytes,
    watches::{self, WatchedKind},
};

const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
const RECORDS: &str = "/apis/bench.example.com/v1/namespaces/default/records";
const ATTEMPTS: usize = 5;
const PATIENCE: Duration = Duration::from_secs(60);
const BETWEEN_LOOKS: Duration = Duration::from_millis(10);

pub(super) async fn measure(launcher: &Launcher, scale: Scale, rows: &mut Vec<Row>) -> Result<()> {
    let data = Data::new()?;
    let (server, _) = launcher.start(&data).await?;
    let mut connection = server.connect().await?;
    connection.create(DEFINITIONS, definition("records", "Record")).await?;
    established(&mut connection, 1).await?;
    for n in [1, 16, 64] {
        for (what, path, body) in of_both() {
            let cpu = server.cpu()?;
            let load = creates(&server, n, scale.time, path, body).await?;
            let note = load.note(server.cpu()? - cpu);
            rows.push(row(format!("create {what}, {}", connections(n)), &load).note(note));
        }
    }
    // The first one has been idle for too long by now.
    let mut connection = server.connect().await?;
    for path in [CONFIG_MAPS, RECORDS] {
        connection.send(hyper::Method::DELETE, path, Bytes::new()).await?;
    }
    let n = scale.pods;
    for (what, path, body) in of_both() {
        load::create(server.connect_many(16).await?, n, path, move |idx| body(&format!("listed-{idx}"))).await?;
        let mut best = Duration::MAX;
        for _ in 0..ATTEMPTS {
            let start = Instant::now();
            connection.drain(path).await?;
            best = best.min(start.elapsed());
        }
        let note = format!("best of {ATTEMPTS}");
        rows.push(Row::new(format!("list {n} {what}"), best.as_secs_f64() * 1e3, Unit::Milliseconds).note(note));
    }
    let n_watchers = scale.watchers / 10;
    for (what, path, body) in of_both() {
        let name = format!("{n_watchers} watchers of {n} {what}");
        let of = WatchedKind { path, body };
        rows.push(watches::of_many(&server, of, &name, n_watchers, scale.watched_writes).await?);
    }
    server.stop()?;
    for compared in of_both() {
        rows.push(memory_of(launcher, n, compared).await?);
    }
    many_definitions(launcher, scale, rows).await
}

/// On a server that has done nothing else: what one gives back, others take without growing.
async fn memory_of(launcher: &Launcher, n: usize, (what, path, body): Compared) -> Result<Row> {
    let data = Data::new()?;
    let (server, _) = launcher.start(&data).await?;
    let mut connection = server.connect().await?;
    connection.create(DEFINITIONS, definition("records", "Record")).await?;
    established(&mut connection, 1).await?;
    let before = server.memory()?;
    load::create(server.connect_many(16).await?, n, path, move |idx| body(&format!("held-{idx}"))).await?;
    let grown = megabytes(server.memory()?.saturating_sub(before));
    server.stop()?;
    Ok(Row::new(format!("memory of {n} {what}"), grown, Unit::Megabytes).note("resident, more than before"))
}

/// How a kind is called, where its objects are, and one of them by its name.
type Compared = (&'static str, &'static str, fn(&str) -> Bytes);

/// By turns: what a minute of the machine does to one it does to the other.
fn of_both() -> [Compared; 2] {
    [("ConfigMaps", CONFIG_MAPS, objects::config_map), ("custom resources", RECORDS, record)]
}

/// What a large operator brings at once.
async fn many_definitions(launcher: &Launcher, scale: Scale, rows: &mut Vec<Row>) -> Result<()> {
    let data = Data::new()?;
    let (server, _) = launcher.start(&data).await?;
    let mut connection = server.connect().await?;
    let (n, before) = (scale.definitions, server.memory()?);
    let start = Instant::now();
    let body = |idx: usize| definition(&format!("kind{idx}s"), &format!("Kind{idx}"));
    load::create(server.connect_many(16).await?, n, DEFINITIONS, body).await?;
    established(&mut connection, n).await?;
    let served = start.elapsed();
    for path in ["/openapi/v3/apis/bench.example.com/v1", "/openapi/v2"] {
        documented_at(&mut connection, path, &format!("Kind{}", n - 1)).await?;
    }
    let documented = start.elapsed();
    let grown = megabytes(server.memory()?.saturating_sub(before));
    let what = |end: &str| format!("{n} definitions at once, {end}");
    rows.push(Row::new(what("all established"), served.as_secs_f64(), Unit::Seconds));
    rows.push(Row::new(what("and in OpenAPI"), documented.as_secs_f64(), Unit::Seconds));
    rows.push(
        Row::new(format!("memory of {n} definitions"), grown, Unit::Megabytes).note("resident, more than before"),
    );
    server.stop()
}

/// Waits until a document of OpenAPI says what a kind is.
async fn documented_at(connection: &mut Connection, path: &str, kind: &str) -> Result<()> {
    let (start, kind) = (Instant::now(), format!("\"kind\":\"{kind}\""));
    loop {
        let document = connection.get(path).await?;
        if String::from_utf8_lossy(&document).contains(&kind) {
            return Ok(());
        }
        if start.elapsed() > PATIENCE {
            bail!("{path} does not have {kind} after {PATIENCE:?}");
        }
        tokio::time::sleep(BETWEEN_LOOKS).await;
    }
}

/// Waits until so many definitions are established.
async fn established(connection: &mut Connection, n: usize) -> Result<()> {
    let start = Instant::now();
    loop {
        let list: Value = serde_json::from_slice(&connection.get(DEFINITIONS).await?)?;
        let is_established = |it: &&Value| {
            let conditions = it["status"]["conditions"].as_array();
            conditions.into_iter().flatten().any(|it| it["type"] == "Established" && it["status"] == "True")
        };
        let n_established = list["items"].as_array().map_or(0, |it| it.iter().filter(is_established).count());
        if n_established == n {
            return Ok(());
        }
        if start.elapsed() > PATIENCE {
            bail!("{n_established} of {n} definitions are established after {PATIENCE:?}");
        }
        tokio::time::sleep(BETWEEN_LOOKS).await;
    }
}

/// Fields as many as an operator's kind has, some with rules.
fn definition(plural: &str, kind: &str) -> Bytes {
    let text =
        json!({ "type": "string", "description": "What it is for, in a sentence as long as such sentences are." });
    let mut fields: serde_json::Map<String, Value> =
        (0..30).map(|idx| (format!("setting{idx}"), text.clone())).collect();
    fields.insert("data".into(), json!({ "type": "object", "additionalProperties": { "type": "string" } }));
    fields.insert("size".into(), json!({ "type": "integer", "minimum": 1, "default": 3 }));
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": { "name": format!("{plural}.bench.example.com") },
        "spec": {
            "group": "bench.example.com", "scope": "Namespaced", "names": { "plural": plural, "kind": kind },
            "versions": [{ "name": "v1", "served": true, "storage": true, "subresources": { "status": {} },
                "schema": { "openAPIV3Schema": { "type": "object", "properties": {
                    "spec": { "type": "object", "properties": fields,
                        "x-kubernetes-validations": [{ "rule": "self.size < 100", "message": "too large" }] },
                    "status": { "type": "object", "x-kubernetes-preserve-unknown-fields": true } } } } }],
        },
    })
    .to_string()
    .into()
}

/// As large as the ConfigMaps.
fn record(name: &str) -> Bytes {
    json!({
        "kind": "Record", "apiVersion": "bench.example.com/v1",
        "metadata": { "name": name, "namespace": "default", "labels": { "app": "bench" } },
        "spec": { "data": { "a.properties": "color=weathering\nsize=40ft\n", "b.properties": "x".repeat(200) } },
    })
    .to_string()
    .into()
}
