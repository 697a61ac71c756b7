//! Many Pods: reading them all at once and in pages, and what they cost in memory.

use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use corten_testbed::{Connection, Data, Launcher, text_field};

use super::{
    super::{
        load::{self, wait_for_admission},
        objects::{self, PODS},
        report::{Row, Unit},
    },
    Scale, megabytes,
};

const ATTEMPTS: usize = 7;
const PAGE: usize = 500;

pub(super) async fn measure(launcher: &Launcher, scale: Scale, rows: &mut Vec<Row>) -> Result<()> {
    let data = Data::new()?;
    let (server, _) = launcher.start(&data).await?;
    wait_for_admission(&server).await?;
    let n = scale.pods;
    let body = |n: usize| objects::pod(&format!("listed-{n}"));
    // One is there already.
    load::create(server.connect_many(16).await?, n - 1, PODS, body).await?;
    let memory = server.memory()?;

    let mut connection = server.connect().await?;
    let (mut best, mut length) = (Duration::MAX, 0);
    for _ in 0..ATTEMPTS {
        let start = Instant::now();
        length = connection.drain(PODS).await?.0;
        best = best.min(start.elapsed());
    }
    let size = megabytes(length as u64);
    let row = Row::new(format!("list {n} Pods"), best.as_secs_f64(), Unit::Seconds);
    rows.push(scale.compare(row, 0.75).note(format!("{size:.1} MB, best of {ATTEMPTS}")));
    let row = Row::new(format!("list {n} Pods"), size / best.as_secs_f64(), Unit::MegabytesPerSecond);
    rows.push(scale.compare(row, 70.0));

    connection.accept("application/vnd.kubernetes.protobuf");
    let (mut first, mut best_protobuf, mut length) = (Duration::ZERO, Duration::MAX, 0);
    for attempt in 0..ATTEMPTS {
        let start = Instant::now();
        length = connection.drain(PODS).await?.0;
        let took = start.elapsed();
        first = if attempt == 0 { took } else { first };
        best_protobuf = best_protobuf.min(took);
    }
    connection.accept("application/json");
    let row = Row::new(format!("list {n} Pods as protobuf"), best_protobuf.as_secs_f64(), Unit::Seconds);
    rows.push(row.note(format!(
        "{:.1} MB, best of {ATTEMPTS}; {:.2} times as long as JSON; {:.3} s for the first",
        megabytes(length as u64),
        best_protobuf.as_secs_f64() / best.as_secs_f64(),
        first.as_secs_f64()
    )));

    let mut best = Duration::MAX;
    for _ in 0..ATTEMPTS {
        let start = Instant::now();
        let n_pages = pages(&mut connection).await?;
        best = best.min(start.elapsed());
        if n_pages != n.div_ceil(PAGE) {
            bail!("{n} Pods came in {n_pages} pages of {PAGE}");
        }
    }
    let row = Row::new(format!("list {n} Pods in pages of {PAGE}"), best.as_secs_f64(), Unit::Seconds);
    rows.push(scale.compare(row, 1.06).note(format!("best of {ATTEMPTS}")));

    let row = Row::new(format!("memory, {n} Pods"), megabytes(memory), Unit::Megabytes);
    rows.push(scale.compare(row, 1_630.0).note("resident, after they were created"));
    let row = Row::new(format!("memory, {n} Pods and listed"), megabytes(server.memory()?), Unit::Megabytes);
    rows.push(row.note("resident"));
    server.stop()?;

    let (server, took) = launcher.start(&data).await?;
    let row = Row::new(format!("cold start, {n} Pods"), took.as_secs_f64() * 1e3, Unit::Milliseconds);
    rows.push(row);

    let many = scale.many_pods;
    let body = |idx: usize| objects::pod(&format!("more-{idx}"));
    load::create(server.connect_many(16).await?, many - n, PODS, body).await?;
    let row = Row::new(format!("memory, {many} Pods"), megabytes(server.memory()?), Unit::Megabytes);
    rows.push(row.note("resident, after they were created"));
    server.stop()
}

async fn pages(connection: &mut Connection) -> Result<usize> {
    let mut n_pages = 0;
    let mut path = format!("{PODS}?limit={PAGE}");
    loop {
        let (_, begin) = connection.drain(&path).await?;
        n_pages += 1;
        // The list's own metadata comes before its items.
        let head = begin.split(|it| *it == b'[').next().unwrap_or_default();
        match text_field(head, "continue") {
            Ok("") | Err(_) => return Ok(n_pages),
            Ok(token) => {
                let token = token.replace('+', "%2B").replace('=', "%3D").replace('/', "%2F");
                path = format!("{PODS}?limit={PAGE}&continue={token}");
            }
        }
    }
}
