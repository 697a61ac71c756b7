//! What the machine itself does in the same minutes. Machines that others share are twice as fast in one hour as in the
//! next; pages of different hours can be compared by these rows.

use std::{
    fs::File,
    hash::{DefaultHasher, Hasher},
    hint::black_box,
    os::unix::fs::FileExt,
    sync::mpsc,
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context, Result};
use corten_testbed::{Data, Launcher};

use super::{
    super::{
        load::{millis, quantile},
        report::{Row, Unit},
    },
    Scale,
};

/// As large as a small commit.
const WRITTEN: [u8; 512] = [7; 512];
const FILE_BYTES: u64 = 1 << 20;
const HASHED_BYTES: usize = 1 << 20;

#[expect(clippy::unused_async, reason = "one part of many")]
pub(super) async fn measure(_: &Launcher, scale: Scale, rows: &mut Vec<Row>) -> Result<()> {
    rows.push(Row::new("the machine: one core hashes", hashed_per_second(scale.time / 10), Unit::MegabytesPerSecond));
    let times = woken(scale.time / 10)?;
    rows.push(median("the machine: a thread is woken and answers", &times));
    let times = synced(scale.time / 10)?;
    rows.push(median("the machine: 512 bytes are durable", &times));
    Ok(())
}

fn median(what: &str, times: &[Duration]) -> Row {
    let [half, most] = [0.5, 0.99].map(|it| quantile(times, it));
    let note = format!("median of {}, p99 {} ms", times.len(), millis(most));
    Row::new(what, half.as_secs_f64() * 1e3, Unit::Milliseconds).note(note)
}

/// Nothing but computing: `SipHash` over memory that stays in the core's cache.
fn hashed_per_second(time: Duration) -> f64 {
    let (bytes, begin) = (vec![7_u8; HASHED_BYTES], Instant::now());
    let mut n_rounds = 0_u32;
    while begin.elapsed() < time {
        let mut hasher = DefaultHasher::new();
        hasher.write(black_box(&bytes));
        black_box(hasher.finish());
        n_rounds += 1;
    }
    f64::from(n_rounds) * HASHED_BYTES as f64 / 1e6 / begin.elapsed().as_secs_f64()
}

/// There and back again between two threads that sleep meanwhile.
fn woken(time: Duration) -> Result<Vec<Duration>> {
    let (ask, asked) = mpsc::channel::<()>();
    let (answer, answered) = mpsc::channel::<()>();
    let other = thread::spawn(move || while asked.recv().is_ok() && answer.send(()).is_ok() {});
    let times = repeated(time, || {
        ask.send(()).context("the other thread is gone")?;
        answered.recv().context("the other thread is gone")
    });
    drop(ask);
    other.join().expect("it only waits");
    times
}

/// Written over what is there already, so that nothing else of the file changes.
fn synced(time: Duration) -> Result<Vec<Duration>> {
    let data = Data::new()?;
    let file = File::create(data.path().join("written")).context("making a file to write to")?;
    file.write_all_at(&vec![0; usize::try_from(FILE_BYTES)?], 0).context("filling it")?;
    file.sync_all().context("filling it")?;
    let mut at = 0;
    repeated(time, || {
        file.write_all_at(&WRITTEN, at).context("writing")?;
        at = (at + WRITTEN.len() as u64) % FILE_BYTES;
        file.sync_data().context("making it durable")
    })
}

/// How long each took, from the shortest to the longest.
fn repeated(time: Duration, mut act: impl FnMut() -> Result<()>) -> Result<Vec<Duration>> {
    let (begin, mut times) = (Instant::now(), Vec::new());
    while begin.elapsed() < time {
        let start = Instant::now();
        act()?;
        times.push(start.elapsed());
    }
    times.sort();
    Ok(times)
}
