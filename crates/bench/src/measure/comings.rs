//! What is left in memory of definitions that come and go: the recent history of their resources, which has a bound, and nothing else.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use bytes::Bytes;
use corten_testbed::{Connection, Data, Launcher};
use hyper::{Method, StatusCode};
use serde_json::json;
use tokio::task::JoinSet;

use super::{
    super::report::{Row, Unit},
    Scale, megabytes,
};

const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
const CONNECTIONS: usize = 8;
/// Memory is looked at so often.
const LOOKS: usize = 5;
const PATIENCE: Duration = Duration::from_secs(30);
const BETWEEN_LOOKS: Duration = Duration::from_millis(2);

pub(super) async fn measure(launcher: &Launcher, scale: Scale, rows: &mut Vec<Row>) -> Result<()> {
    let data = Data::new()?;
    let (server, _) = launcher.start(&data).await?;
    let mut connections = server.connect_many(CONNECTIONS).await?;
    let n_each = scale.comings / LOOKS / CONNECTIONS;
    let before = megabytes(server.memory()?);
    let mut grown = Vec::new();
    let start = Instant::now();
    for _ in 0..LOOKS {
        let mut loops = JoinSet::new();
        for (idx, mut connection) in connections.drain(..).enumerate() {
            loops.spawn(async move {
                for _ in 0..n_each {
                    come_and_go(&mut connection, idx).await?;
                }
                anyhow::Ok(connection)
            });
        }
        while let Some(done) = loops.join_next().await {
            connections.push(done??);
        }
        grown.push(megabytes(server.memory()?));
    }
    let n = n_each * LOOKS * CONNECTIONS;
    let told: Vec<String> = grown.iter().map(|it| format!("{it:.0}")).collect();
    let note = format!(
        "resident; {before:.0} MB before the first, after each fifth: {}; {:.0} a second",
        told.join(", "),
        n as f64 / start.elapsed().as_secs_f64()
    );
    let last = grown.last().copied().unwrap_or_default();
    rows.push(Row::new(format!("memory after {n} definitions came and went"), last, Unit::Megabytes).note(note));
    server.stop()
}

/// A definition, one object of it, and the end of both.
async fn come_and_go(connection: &mut Connection, idx: usize) -> Result<()> {
    let group = format!("g{idx}.bench.example.com");
    let schema = json!({ "type": "object", "properties": { "spec": { "type": "object", "properties": {
        "size": { "type": "integer", "default": 1, "x-kubernetes-validations": [{ "rule": "self > 0" }] } } } } });
    let definition = json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": { "name": format!("cars.{group}") },
        "spec": { "group": group, "scope": "Namespaced", "names": { "plural": "cars", "kind": "Car" },
            "versions": [{ "name": "v1", "served": true, "storage": true, "schema": { "openAPIV3Schema": schema } }] },
    });
    connection.create(DEFINITIONS, definition.to_string().into()).await?;
    let cars = format!("/apis/{group}/v1/namespaces/default/cars");
    let car = json!({ "apiVersion": format!("{group}/v1"), "kind": "Car", "metadata": { "name": "a" }, "spec": {} });
    let car = Bytes::from(car.to_string());
    until(connection, Method::POST, &cars, &car, StatusCode::CREATED).await?;
    let path = format!("{DEFINITIONS}/cars.{group}");
    until(connection, Method::DELETE, &path, &Bytes::new(), StatusCode::OK).await?;
    until(connection, Method::GET, &path, &Bytes::new(), StatusCode::NOT_FOUND).await
}

/// Asks until it is answered so.
async fn until(
    connection: &mut Connection,
    method: Method,
    path: &str,
    body: &Bytes,
    wanted: StatusCode,
) -> Result<()> {
    let start = Instant::now();
    loop {
        let (status, answer) = connection.send(method.clone(), path, body.clone()).await.context(method.clone())?;
        if status == wanted {
            return Ok(());
        }
        if start.elapsed() > PATIENCE {
            bail!("{method} {path} is still answered with {status}: {}", String::from_utf8_lossy(&answer));
        }
        tokio::time::sleep(BETWEEN_LOOKS).await;
    }
}
