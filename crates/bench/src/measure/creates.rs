//! Durable writes and single reads with few and with many connections; deleting and scaling in bulk.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use anyhow::{Result, bail};
use bytes::Bytes;
use corten_testbed::{Connection, ControlPlane, Data, Launcher, expect};
use hyper::{Method, StatusCode};

use super::{
    super::{
        load::{self, Load, connections, wait_for_admission},
        objects::{self, CONFIG_MAPS, PODS},
        report::{Row, Unit},
    },
    Scale,
};

const PATIENCE: Duration = Duration::from_secs(60);

pub(super) async fn config_maps(launcher: &Launcher, scale: Scale, rows: &mut Vec<Row>) -> Result<()> {
    let data = Data::new()?;
    let (server, _) = launcher.start(&data).await?;
    for (n, kubernetes) in [(1, 590.0), (16, 1_620.0), (64, 1_840.0)] {
        let cpu = server.cpu()?;
        let load = creates(&server, n, scale.time, CONFIG_MAPS, objects::config_map).await?;
        let note = load.note(server.cpu()? - cpu);
        rows.push(row(format!("create ConfigMaps, {}", connections(n)), &load).note(note).kubernetes(kubernetes));
    }
    server.stop()
}

pub(super) async fn pods(launcher: &Launcher, scale: Scale, rows: &mut Vec<Row>) -> Result<()> {
    let data = Data::new()?;
    let (server, _) = launcher.start(&data).await?;
    wait_for_admission(&server).await?;
    for (n, kubernetes) in [(1, 390.0), (16, 760.0), (64, 950.0)] {
        let cpu = server.cpu()?;
        let load = creates(&server, n, scale.time, PODS, objects::pod).await?;
        let note = load.note(server.cpu()? - cpu);
        rows.push(row(format!("create Pods, {}", connections(n)), &load).note(note).kubernetes(kubernetes));
    }
    for (n, kubernetes) in [(1, 1_050.0), (64, 2_740.0)] {
        let get = |mut connection: Connection, _, _| async move {
            connection.get("/api/v1/namespaces/default/pods/first").await?;
            Ok(connection)
        };
        let readers = server.connect_many(n).await?;
        let cpu = server.cpu()?;
        let load = load::for_a_time(readers, scale.time, get).await?;
        let note = load.note(server.cpu()? - cpu);
        rows.push(row(format!("get a Pod, {}", connections(n)), &load).note(note).kubernetes(kubernetes));
    }
    server.stop()
}

pub(super) fn row(what: String, load: &Load) -> Row {
    Row::new(what, load.per_second, Unit::PerSecond)
}

pub(super) async fn creates(
    server: &ControlPlane,
    n: usize,
    time: Duration,
    path: &'static str,
    body: fn(&str) -> Bytes,
) -> Result<Load> {
    let create = move |mut connection: Connection, idx: usize, repetition: usize| async move {
        connection.create(path, body(&format!("of-{n}-{idx}-{repetition}"))).await?;
        Ok(connection)
    };
    load::for_a_time(server.connect_many(n).await?, time, create).await
}

pub(super) async fn delete_collection(launcher: &Launcher, scale: Scale, rows: &mut Vec<Row>) -> Result<()> {
    let data = Data::new()?;
    let (server, _) = launcher.start(&data).await?;
    let n = scale.deleted;
    let body = |n: usize| objects::config_map(&format!("gone-{n}"));
    load::create(server.connect_many(16).await?, n, CONFIG_MAPS, body).await?;

    let mut connection = server.connect().await?;
    let path = format!("{CONFIG_MAPS}?labelSelector=app%3Dbench");
    let start = Instant::now();
    let (status, answer) = connection.send(Method::DELETE, &path, Bytes::new()).await?;
    let took = start.elapsed();
    expect(status, StatusCode::OK, &path, &answer)?;
    let left = connection.get(&path).await?;
    if !String::from_utf8_lossy(&left).contains(r#""items":[]"#) {
        bail!("deletecollection has left something: {}", String::from_utf8_lossy(&left[..left.len().min(500)]));
    }
    let row = Row::new(format!("deletecollection of {n} ConfigMaps"), took.as_secs_f64(), Unit::Seconds);
    rows.push(scale.compare(row, 2.9));
    server.stop()
}

pub(super) async fn replicas(launcher: &Launcher, scale: Scale, rows: &mut Vec<Row>) -> Result<()> {
    let data = Data::new()?;
    let (server, _) = launcher.start(&data).await?;
    wait_for_admission(&server).await?;
    let n = scale.replicas;
    let mut connection = server.connect().await?;
    let start = Instant::now();
    connection.create("/apis/apps/v1/namespaces/default/deployments", objects::deployment("many", n)).await?;
    let list = Arc::<str>::from(format!("{PODS}?labelSelector=app%3Dmany"));
    loop {
        let pods = connection.get(&list).await?;
        let n_found = String::from_utf8_lossy(&pods).matches(r#""generateName":"#).count();
        if n_found == n {
            break;
        }
        if n_found > n || start.elapsed() > PATIENCE {
            bail!("the Deployment of {n} replicas has {n_found} Pods after {:?}", start.elapsed());
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    let row = Row::new(format!("a Deployment of {n} has its Pods"), start.elapsed().as_secs_f64(), Unit::Seconds);
    rows.push(scale.compare(row, 1.3).note("looked at each 10 ms"));
    server.stop()
}
