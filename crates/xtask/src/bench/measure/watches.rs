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
use http_body_util::BodyExt;
use hyper::{Method, StatusCode, body::Incoming};
use tokio::{sync::Notify, task::JoinSet};

use super::{
    super::{
        connection::{Connection, text_field},
        control_plane::{Data, Launcher},
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

pub(super) async fn measure(launcher: &Launcher, scale: Scale, rows: &mut Vec<Row>) -> Result<()> {
    let data = Data::new()?;
    let (server, _) = launcher.start(&data).await?;
    let mut writer = server.connect().await?;
    let list = writer.get(CONFIG_MAPS).await?;
    let path = format!("{CONFIG_MAPS}?watch=true&resourceVersion={}", text_field(&list, "resourceVersion")?);

    let n = scale.watchers;
    let heard = Arc::new(Heard::default());
    let mut watchers = JoinSet::new();
    for mut connection in server.connect_many(n).await? {
        let (status, body) = connection.begin(Method::GET, &path, Bytes::new()).await?;
        if status != StatusCode::OK {
            bail!("a watch was answered with {status}");
        }
        watchers.spawn(listen(connection, body, heard.clone()));
    }
    let memory = server.memory()?;

    // The first write finds everything cold.
    write(&mut writer, &heard, "warm-up", n).await?;
    let cpu = server.cpu()?;
    let mut times = Vec::with_capacity(scale.watched_writes);
    for idx in 0..scale.watched_writes {
        times.push(write(&mut writer, &heard, &format!("watched-{idx}"), n * (idx + 2)).await?);
    }
    let cpu = (server.cpu()? - cpu).as_secs_f64() * 1e3 / scale.watched_writes as f64;
    if let Some(ended) = watchers.try_join_next() {
        bail!("a watch has ended: {:?}", ended?);
    }

    times.sort();
    let median = quantile(&times, 0.5);
    let row = Row::new(format!("{n} watchers, one write reaches all"), median.as_secs_f64() * 1e3, Unit::Milliseconds);
    let note = format!("median of {}; best {} ms", times.len(), millis(times[0]));
    rows.push(scale.compare(row, 22.0).note(note));
    let last = quantile(&times, 0.99).as_secs_f64() * 1e3;
    let row = Row::new(format!("{n} watchers, one write reaches all, p99"), last, Unit::Milliseconds);
    rows.push(scale.compare(row, 31.0));
    let row = Row::new(format!("{n} watchers, processor time per write"), cpu, Unit::Milliseconds);
    rows.push(scale.compare(row, 23.0).note("the server's"));
    let row = Row::new(format!("memory, {n} watchers"), super::megabytes(memory), Unit::Megabytes);
    rows.push(row.note("resident"));
    watchers.shutdown().await;
    server.stop()
}

/// How long it takes from before the write until all have heard of it.
async fn write(writer: &mut Connection, heard: &Heard, name: &str, n_awaited: usize) -> Result<Duration> {
    heard.n_awaited.store(n_awaited, Ordering::SeqCst);
    let body = objects::config_map(name);
    let start = Instant::now();
    writer.create(CONFIG_MAPS, body).await?;
    let all_have = async {
        while heard.n_events.load(Ordering::SeqCst) < n_awaited {
            heard.reached.notified().await;
        }
    };
    tokio::time::timeout(PATIENCE, all_have).await.context("some watchers heard nothing of a write")?;
    Ok(start.elapsed())
}

/// Counts events, one to a line, until the watch ends.
async fn listen(connection: Connection, mut body: Incoming, heard: Arc<Heard>) -> Result<()> {
    // Dropping the connection would end the watch.
    let _connection = connection;
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
