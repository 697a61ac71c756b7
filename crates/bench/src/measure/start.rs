//! From the start of the process until it is ready, and what it then needs while nothing happens.

use std::time::Duration;

use anyhow::Result;
use corten_testbed::{Data, Launcher};

use super::{
    super::{
        load::quantile,
        report::{Row, Unit},
    },
    Scale, megabytes,
};

pub(super) async fn measure(launcher: &Launcher, scale: Scale, rows: &mut Vec<Row>) -> Result<()> {
    let (mut first, mut again) = (Vec::new(), Vec::new());
    for _ in 0..scale.starts {
        let data = Data::new()?;
        for times in [&mut first, &mut again] {
            let (server, took) = launcher.start(&data).await?;
            times.push(took);
            server.stop()?;
        }
    }
    let median = |times: &mut Vec<Duration>| {
        times.sort();
        quantile(times, 0.5).as_secs_f64() * 1e3
    };
    let note = format!("median of {}, process start to /readyz", scale.starts);
    rows.push(
        Row::new("cold start, new cluster", median(&mut first), Unit::Milliseconds).note(&note).kubernetes(2_300.0),
    );
    rows.push(Row::new("cold start, again", median(&mut again), Unit::Milliseconds).note(note));

    let data = Data::new()?;
    let (server, _) = launcher.start(&data).await?;
    // Whatever it still does after it is ready shall be over.
    tokio::time::sleep(Duration::from_secs(3)).await;
    let row = Row::new("memory, idle", megabytes(server.memory()?), Unit::Megabytes);
    rows.push(row.note("resident").kubernetes(505.0));
    let cpu = server.cpu()?;
    tokio::time::sleep(scale.time).await;
    let used = (server.cpu()? - cpu).as_secs_f64() * 1e3 / scale.time.as_secs_f64();
    rows.push(Row::new("processor time per second, idle", used, Unit::Milliseconds));
    server.stop()
}
