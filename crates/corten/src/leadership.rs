//! A process that is there for its loops alone leads once, and ends where it loses the lease.

use anyhow::{Context, Result, bail};
use corten_runner::{Candidate, Loops, Stopping};
use tokio::{sync::watch, task::JoinSet};

use crate::process;

/// Runs what `begin` begins until a signal ends the process: at once, or where there is a candidate once it is elected.
///
/// # Errors
/// The lease is lost, and with it all that this process is about to write: another one goes on. Or a task has failed.
pub(crate) async fn lead_until_told(
    loops: &Loops,
    candidate: Option<Candidate>,
    begin: impl FnOnce(&Stopping) -> JoinSet<Result<()>>,
) -> Result<()> {
    let mut signals = process::Signals::listen()?;
    let (stop, told) = watch::channel(false);
    let told = Stopping::new(told);
    let leading = async {
        match candidate {
            Some(candidate) => lead_once(&candidate, &told, begin).await,
            None => ended(&mut begin(&told)).await,
        }
    };
    let ending = async {
        signals.told_to_end().await;
        stop.send_replace(true);
        loops.begin_stop();
        std::future::pending().await
    };
    let led = tokio::select! {
        led = leading => led,
        () = ending => Ok(()),
    };
    loops.stop();
    led
}

/// Leads while it holds the lease, which it gives back when it is told to end.
async fn lead_once(
    candidate: &Candidate,
    told: &Stopping,
    begin: impl FnOnce(&Stopping) -> JoinSet<Result<()>>,
) -> Result<()> {
    let mut term = tokio::select! {
        biased;
        () = told.now() => return Ok(()),
        term = candidate.elected() => term,
    };
    let mut tasks = begin(told);
    let led = tokio::select! {
        biased;
        led = ended(&mut tasks) => led,
        () = term.keep() => bail!("the lease {} is lost: another process goes on", candidate.lease),
    };
    term.end();
    // What has failed may be amid a write: others wait as for a process that was killed.
    if led.is_ok() {
        term.release().await;
    }
    led
}

/// # Errors
/// The first that a task ends with.
async fn ended(tasks: &mut JoinSet<Result<()>>) -> Result<()> {
    while let Some(ended) = tasks.join_next().await {
        ended.context("a task broke")??;
    }
    Ok(())
}
