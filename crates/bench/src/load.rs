//! Closed loops: each connection asks again as soon as it is answered.

use std::{
    future::Future,
    time::{Duration, Instant},
};

use anyhow::Result;
use corten_testbed::{Connection, ControlPlane, expect};
use hyper::{Method, StatusCode};
use tokio::task::JoinSet;

use super::objects::{self, PODS};

const PATIENCE: Duration = Duration::from_secs(60);

/// What a load came to.
#[derive(Default)]
pub(super) struct Load {
    pub(super) per_second: f64,
    latencies: Vec<Duration>,
}

impl Load {
    /// How many requests were answered.
    pub(super) fn requests(&self) -> usize {
        self.latencies.len()
    }

    /// From the shortest to the longest.
    pub(super) fn latencies(&self) -> &[Duration] {
        &self.latencies
    }

    /// `cpu`: what the server used for all of it.
    pub(super) fn note(&self, cpu: Duration) -> String {
        let [p50, p99] = [0.5, 0.99].map(|it| millis(quantile(&self.latencies, it)));
        let each = cpu.as_secs_f64() * 1e6 / self.latencies.len().max(1) as f64;
        format!("p50 {p50} ms, p99 {p99} ms, {each:.0} µs of the server's processor time each")
    }
}

pub(super) fn millis(duration: Duration) -> String {
    format!("{:.2}", duration.as_secs_f64() * 1e3)
}

/// Of sorted durations.
pub(super) fn quantile(sorted: &[Duration], q: f64) -> Duration {
    let idx = ((sorted.len() as f64 - 1.0) * q).round();
    // A position in the slice, so neither negative nor large.
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a position in a slice")]
    sorted.get(idx as usize).copied().unwrap_or_default()
}

/// The middle one of several turns.
pub(super) fn middle(figures: impl Iterator<Item = f64>) -> f64 {
    let mut figures: Vec<f64> = figures.collect();
    figures.sort_by(f64::total_cmp);
    figures[figures.len() / 2]
}

pub(super) fn connections(n: usize) -> String {
    if n == 1 { "1 connection".into() } else { format!("{n} connections") }
}

/// Repeats a request on every connection until the time is over; it is told which connection and which repetition it is.
pub(super) async fn for_a_time<F>(
    connections: Vec<Connection>,
    time: Duration,
    request: impl Fn(Connection, usize, usize) -> F + Clone + Send + 'static,
) -> Result<Load>
where
    F: Future<Output = Result<Connection>> + Send + 'static,
{
    let start = Instant::now();
    let mut loops = JoinSet::new();
    for (idx, mut connection) in connections.into_iter().enumerate() {
        let request = request.clone();
        loops.spawn(async move {
            let mut latencies = Vec::new();
            while start.elapsed() < time {
                let begin = Instant::now();
                connection = request(connection, idx, latencies.len()).await?;
                latencies.push(begin.elapsed());
            }
            anyhow::Ok(latencies)
        });
    }
    let mut latencies = Vec::new();
    while let Some(done) = loops.join_next().await {
        latencies.extend(done??);
    }
    let per_second = latencies.len() as f64 / start.elapsed().as_secs_f64();
    latencies.sort();
    Ok(Load { per_second, latencies })
}

/// Creates `n` objects as fast as the connections can, shared out evenly.
pub(super) async fn create(
    connections: Vec<Connection>,
    n: usize,
    path: &'static str,
    body: impl Fn(usize) -> bytes::Bytes + Clone + Send + 'static,
) -> Result<()> {
    let mut loops = JoinSet::new();
    let step = connections.len();
    for (idx, mut connection) in connections.into_iter().enumerate() {
        let body = body.clone();
        loops.spawn(async move {
            for n in (idx..n).step_by(step) {
                connection.create(path, body(n)).await?;
            }
            anyhow::Ok(())
        });
    }
    while let Some(done) = loops.join_next().await {
        done??;
    }
    Ok(())
}

/// Creates the Pod `first`. Right after the start the service account that Pods run as may not be there yet.
pub(super) async fn wait_for_admission(server: &ControlPlane) -> Result<()> {
    let start = Instant::now();
    let mut connection = server.connect().await?;
    loop {
        match connection.send(Method::POST, PODS, objects::pod("first")).await? {
            (StatusCode::CREATED, _) => return Ok(()),
            (StatusCode::FORBIDDEN, _) if start.elapsed() < PATIENCE => {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
            (status, body) => return expect(status, StatusCode::CREATED, PODS, &body),
        }
    }
}
