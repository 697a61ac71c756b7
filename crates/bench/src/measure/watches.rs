//! Many watchers of one thing: until when have all heard of a write, and what does it cost the server?

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use anyhow::{Context, Result, bail};
use bytes::Bytes;
use corten_testbed::{Connection, ControlPlane, Data, Launcher, Shared, text_field};
use http_body_util::BodyExt;
use hyper::{Method, StatusCode, body::Incoming};
use tokio::{sync::Notify, task::JoinSet};

use super::{
    super::{
        load::{millis, quantile},
        objects::{self, CONFIG_MAPS},
        report::{Row, Unit},
    },
    Scale,
};

const PATIENCE: Duration = Duration::from_secs(30);

/// How many events have arrived at all watchers together, and at how many somebody wants to know.
#[derive(Default)]
struct Heard {
    n_events: AtomicUsize,
    n_awaited: AtomicUsize,
    reached: Notify,
}

/// As many streams on a connection as client libraries put there.
const STREAMS: usize = 100;

pub(super) async fn measure(launcher: &Launcher, scale: Scale, rows: &mut Vec<Row>) -> Result<()> {
    let data = Data::new()?;
    let (server, _) = launcher.start(&data).await?;
    let n = scale.watchers;

    let watchers = Watchers::begin(&server, OF_CONFIG_MAPS).await?.alone(&server, n).await?;
    let measured = watchers.measure(&server, n, "alone", scale.watched_writes).await?;
    let name = format!("{n} watchers");
    rows.push(scale.compare(measured.median(&name), 22.0));
    rows.push(scale.compare(measured.last(&name), 31.0));
    rows.push(scale.compare(measured.cpu(&name), 23.0));
    let row = Row::new(format!("memory, {name}"), super::megabytes(measured.memory), Unit::Megabytes);
    rows.push(row.note("resident"));

    let watchers = Watchers::begin(&server, OF_CONFIG_MAPS).await?.together(&server, n).await?;
    let measured = watchers.measure(&server, n, "together", scale.watched_writes).await?;
    let name = format!("{n} watchers, {STREAMS} to a connection");
    rows.push(measured.median(&name));
    rows.push(measured.last(&name));
    rows.push(scale.compare(measured.cpu(&name), 23.0));
    server.stop()
}

/// What is watched: where, and what is written there.
#[derive(Clone, Copy)]
pub(super) struct WatchedKind {
    pub(super) path: &'static str,
    pub(super) body: fn(&str) -> Bytes,
}

const OF_CONFIG_MAPS: WatchedKind = WatchedKind { path: CONFIG_MAPS, body: objects::config_map };

/// So many watchers of what is measured beside ConfigMaps: until when have all heard of a write?
pub(super) async fn of_many(
    server: &ControlPlane,
    of: WatchedKind,
    name: &str,
    n: usize,
    n_writes: usize,
) -> Result<Row> {
    let watchers = Watchers::begin(server, of).await?.alone(server, n).await?;
    let measured = watchers.measure(server, n, "watched", n_writes).await?;
    Ok(measured.median(name))
}

/// Tasks that listen to one watch each.
struct Watchers {
    of: WatchedKind,
    path: String,
    heard: Arc<Heard>,
    tasks: JoinSet<Result<()>>,
    shared: Vec<Shared>,
}

struct Measured {
    /// From the shortest to the longest.
    times: Vec<Duration>,
    cpu: f64,
    memory: u64,
}

impl Watchers {
    async fn begin(server: &ControlPlane, of: WatchedKind) -> Result<Self> {
        let list = server.connect().await?.get(&format!("{}?limit=1", of.path)).await?;
        let path = format!("{}?watch=true&resourceVersion={}", of.path, text_field(&list, "resourceVersion")?);
        Ok(Self { of, path, heard: Arc::default(), tasks: JoinSet::new(), shared: Vec::new() })
    }

    /// Each on an HTTP/1.1 connection of its own.
    async fn alone(mut self, server: &ControlPlane, n: usize) -> Result<Self> {
        for mut connection in server.connect_many(n).await? {
            let (status, body) = connection.begin(Method::GET, &self.path, Bytes::new()).await?;
            self.listen(status, body, connection)?;
        }
        Ok(self)
    }

    /// Many on one HTTP/2 connection.
    async fn together(mut self, server: &ControlPlane, n: usize) -> Result<Self> {
        for idx in 0..n {
            if idx % STREAMS == 0 {
                self.shared.push(server.connect_shared().await?);
            }
            let shared = self.shared.last_mut().expect("opened before its first stream");
            let (status, body) = shared.begin(&self.path).await?;
            self.listen(status, body, ())?;
        }
        Ok(self)
    }

    /// `connection` is kept until the watch ends: dropping it would end the watch.
    fn listen(&mut self, status: StatusCode, body: Incoming, connection: impl Send + 'static) -> Result<()> {
        if status != StatusCode::OK {
            bail!("a watch was answered with {status}");
        }
        self.tasks.spawn(listen(connection, body, self.heard.clone()));
        Ok(())
    }

    async fn measure(mut self, server: &ControlPlane, n: usize, name: &str, n_writes: usize) -> Result<Measured> {
        let memory = server.memory()?;
        let mut writer = server.connect().await?;
        // The first write finds everything cold.
        write(&mut writer, self.of, &self.heard, &format!("{name}-warm-up"), n).await?;
        let cpu = server.cpu()?;
        let mut times = Vec::with_capacity(n_writes);
        for idx in 0..n_writes {
            times.push(write(&mut writer, self.of, &self.heard, &format!("{name}-{idx}"), n * (idx + 2)).await?);
        }
        let cpu = (server.cpu()? - cpu).as_secs_f64() * 1e3 / n_writes as f64;
        if let Some(ended) = self.tasks.try_join_next() {
            bail!("a watch has ended: {:?}", ended?);
        }
        self.tasks.shutdown().await;
        times.sort();
        Ok(Measured { times, cpu, memory })
    }
}

impl Measured {
    fn median(&self, name: &str) -> Row {
        let median = quantile(&self.times, 0.5).as_secs_f64() * 1e3;
        let note = format!("median of {}; best {} ms", self.times.len(), millis(self.times[0]));
        Row::new(format!("{name}, one write reaches all"), median, Unit::Milliseconds).note(note)
    }

    fn last(&self, name: &str) -> Row {
        let last = quantile(&self.times, 0.99).as_secs_f64() * 1e3;
        Row::new(format!("{name}, one write reaches all, p99"), last, Unit::Milliseconds)
    }

    fn cpu(&self, name: &str) -> Row {
        Row::new(format!("{name}, processor time per write"), self.cpu, Unit::Milliseconds).note("the server's")
    }
}

/// How long it takes from before the write until all have heard of it.
async fn write(
    writer: &mut Connection,
    of: WatchedKind,
    heard: &Heard,
    name: &str,
    n_awaited: usize,
) -> Result<Duration> {
    heard.n_awaited.store(n_awaited, Ordering::SeqCst);
    let body = (of.body)(name);
    let start = Instant::now();
    writer.create(of.path, body).await?;
    let all_have = async {
        while heard.n_events.load(Ordering::SeqCst) < n_awaited {
            heard.reached.notified().await;
        }
    };
    tokio::time::timeout(PATIENCE, all_have).await.context("some watchers heard nothing of a write")?;
    Ok(start.elapsed())
}

/// Counts events, one to a line, until the watch ends.
async fn listen<C>(_connection: C, mut body: Incoming, heard: Arc<Heard>) -> Result<()> {
    while let Some(frame) = body.frame().await {
        let Ok(data) = frame?.into_data() else { continue };
        let n = data.iter().filter(|it| **it == b'\n').count();
        let n_events = heard.n_events.fetch_add(n, Ordering::SeqCst) + n;
        if n_events >= heard.n_awaited.load(Ordering::SeqCst) {
            heard.reached.notify_one();
        }
    }
    Ok(())
}
