//! Many Services, and how long it takes until the kernel sends connections to where one endpoint has moved to.
//!
//! Seen from outside: somebody connects to the Service's address again and again, until another listener answers.

use std::{
    net::{IpAddr, SocketAddr},
    time::{Duration, Instant},
};

use anyhow::{Context, Result, bail};
use bytes::Bytes;
use corten_testbed::{Connection, RealNode, expect, memory_of};
use hyper::{Method, StatusCode};
use serde_json::{Value, json};
use tokio::{
    io::AsyncReadExt,
    net::{TcpListener, TcpStream},
    task::JoinSet,
};

use super::{
    super::{
        load::{millis, quantile},
        measure::megabytes,
        report::{Row, Unit},
    },
    Scale,
};

const SERVICES: &str = "/api/v1/namespaces/default/services";
const SLICES: &str = "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices";
const CONNECTIONS: usize = 8;
const PATIENCE: Duration = Duration::from_secs(60);
/// What a connection may take that is not refused.
const CONNECT: Duration = Duration::from_millis(500);

pub(super) async fn measure(node: &RealNode, scale: Scale, rows: &mut Vec<Row>) -> Result<()> {
    let mut connection = node.connect().await?;
    let address = address(&mut connection).await?;
    let mut listeners = JoinSet::new();
    let mut ports = Vec::new();
    for mark in [b'a', b'b'] {
        let listener = TcpListener::bind((address, 0)).await.context("listening")?;
        ports.push(listener.local_addr()?.port());
        listeners.spawn(answer(listener, mark));
    }

    let begin = Instant::now();
    create_all(node, scale.services, address, ports[0]).await?;
    let idx = scale.services / 2;
    let service: Value = serde_json::from_slice(&connection.get(&format!("{SERVICES}/bench-{idx}")).await?)?;
    let ip: IpAddr = service["spec"]["clusterIP"].as_str().context("the Service has no address")?.parse()?;
    let target = SocketAddr::new(ip, 80);
    let reached = until(target, b'a').await.context("no Service leads anywhere")?;
    let n = scale.services;
    rows.push(
        Row::new(format!("{n} Services are made and lead somewhere"), (reached - begin).as_secs_f64(), Unit::Seconds)
            .note(format!("{CONNECTIONS} connections make them, each with an EndpointSlice")),
    );

    let mut times = Vec::new();
    for change in 0..scale.changes {
        let (port, mark) = if change % 2 == 0 { (ports[1], b'b') } else { (ports[0], b'a') };
        let begin = Instant::now();
        let path = format!("{SLICES}/bench-{idx}");
        let (status, body) = connection.send(Method::PUT, &path, slice(idx, address, port)).await?;
        expect(status, StatusCode::OK, &path, &body)?;
        times.push(until(target, mark).await? - begin);
    }
    times.sort();
    let [median, p99] = [0.5, 0.99].map(|it| quantile(&times, it));
    let note = format!(
        "median of {}, best {} ms, p99 {} ms; from before the write until connections arrive there",
        times.len(),
        millis(times[0]),
        millis(p99)
    );
    let what = format!("{n} Services, one endpoint's change is in the kernel");
    rows.push(Row::new(what, median.as_secs_f64() * 1e3, Unit::Milliseconds).note(note));
    let row = Row::new(format!("memory, {n} Services"), megabytes(memory_of(node.pid())?), Unit::Megabytes);
    rows.push(row.note("resident; the whole cluster and its node"));
    Ok(())
}

/// The node's own: whoever listens there can be an endpoint.
async fn address(connection: &mut Connection) -> Result<IpAddr> {
    let nodes: Value = serde_json::from_slice(&connection.get("/api/v1/nodes").await?)?;
    let addresses = nodes["items"][0]["status"]["addresses"].as_array().cloned().unwrap_or_default();
    let internal = addresses.iter().find(|it| it["type"] == "InternalIP").and_then(|it| it["address"].as_str());
    Ok(internal.context("the node has no address")?.parse()?)
}

async fn create_all(node: &RealNode, n: usize, address: IpAddr, port: u16) -> Result<()> {
    let mut loops = JoinSet::new();
    for first in 0..CONNECTIONS {
        let mut connection = node.connect().await?;
        loops.spawn(async move {
            for idx in (first..n).step_by(CONNECTIONS) {
                connection.create(SERVICES, service(idx)).await?;
                connection.create(SLICES, slice(idx, address, port)).await?;
            }
            anyhow::Ok(())
        });
    }
    while let Some(done) = loops.join_next().await {
        done??;
    }
    Ok(())
}

fn service(idx: usize) -> Bytes {
    let object = json!({
        "kind": "Service", "apiVersion": "v1",
        "metadata": {"name": format!("bench-{idx}"), "namespace": "default"},
        "spec": {"ports": [{"name": "http", "port": 80, "protocol": "TCP"}]},
    });
    object.to_string().into()
}

fn slice(idx: usize, address: IpAddr, port: u16) -> Bytes {
    let name = format!("bench-{idx}");
    let object = json!({
        "kind": "EndpointSlice", "apiVersion": "discovery.k8s.io/v1",
        "metadata": {"name": name, "namespace": "default", "labels": {"kubernetes.io/service-name": name}},
        "addressType": if address.is_ipv4() { "IPv4" } else { "IPv6" },
        "endpoints": [{"addresses": [address], "conditions": {"ready": true}}],
        "ports": [{"name": "http", "port": port, "protocol": "TCP"}],
    });
    object.to_string().into()
}

/// Sends its mark to whoever connects.
async fn answer(listener: TcpListener, mark: u8) {
    while let Ok((stream, _)) = listener.accept().await {
        let _ = stream.writable().await;
        let _ = stream.try_write(&[mark]);
    }
}

/// Connects until the listener with this mark answers.
async fn until(target: SocketAddr, mark: u8) -> Result<Instant> {
    let end = Instant::now() + PATIENCE;
    while Instant::now() < end {
        let heard = tokio::time::timeout(CONNECT, async {
            let mut heard = [0];
            TcpStream::connect(target).await?.read_exact(&mut heard).await?;
            std::io::Result::Ok(heard[0])
        });
        if matches!(heard.await, Ok(Ok(it)) if it == mark) {
            return Ok(Instant::now());
        }
        // Somebody who is refused shall not keep the server from a core.
        tokio::time::sleep(Duration::from_micros(200)).await;
    }
    bail!("connections to {target} did not arrive where they should within {PATIENCE:?}")
}
