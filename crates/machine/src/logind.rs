//! The end of the machine as systemd's logind tells of it: it waits until pods have ended.
//!
//! As with the kubelet's node shutdown manager (KEP-2000), a delay lock is held as long as the node runs. logind asks before the
//! machine ends; the lock is let go once the pods have ended, or logind's patience is over.

use std::{
    convert::Infallible,
    fs,
    path::{Path, PathBuf},
    time::Duration,
};

use futures_util::StreamExt;
use zbus::{Connection, OwnedFd, connection::Builder};

use crate::EndOfMachine;

/// As long as the machine has no logind, or has lost it, it is looked for this often.
const RETRY: Duration = Duration::from_secs(10);
/// Read by logind after all others; gone when the machine starts anew.
const OVERRIDE: &str = "/run/systemd/logind.conf.d/99-corten.conf";
const UNIT: &str = "systemd-logind.service";
const SIGHUP: i32 = 1;
/// What logind may take to read its files again.
const RELOADS: u32 = 20;
const RELOAD: Duration = Duration::from_millis(100);

#[zbus::proxy(
    interface = "org.freedesktop.login1.Manager",
    default_service = "org.freedesktop.login1",
    default_path = "/org/freedesktop/login1"
)]
trait Manager {
    fn inhibit(&self, what: &str, who: &str, why: &str, mode: &str) -> zbus::Result<OwnedFd>;

    #[zbus(property(emits_changed_signal = "false"), name = "InhibitDelayMaxUSec")]
    fn inhibit_delay_max(&self) -> zbus::Result<u64>;

    #[zbus(property(emits_changed_signal = "false"))]
    fn preparing_for_shutdown(&self) -> zbus::Result<bool>;

    #[zbus(signal)]
    fn prepare_for_shutdown(&self, start: bool) -> zbus::Result<()>;
}

#[zbus::proxy(
    interface = "org.freedesktop.systemd1.Manager",
    default_service = "org.freedesktop.systemd1",
    default_path = "/org/freedesktop/systemd1"
)]
trait Systemd {
    fn kill_unit(&self, name: &str, whom: &str, signal: i32) -> zbus::Result<()>;
}

/// Keeps the machine waiting for a node's pods.
pub struct Logind {
    end: EndOfMachine,
    /// What the pods may take.
    grace: Duration,
    /// Instead of the machine's bus.
    bus: Option<String>,
    patience: Override,
    /// The pods were told of an end, and not yet that it is off.
    is_ending: bool,
    /// Nobody holds the machine, and the log says so.
    is_told: bool,
}

/// A file that makes logind more patient; it goes with this.
struct Override(PathBuf);

impl Drop for Override {
    fn drop(&mut self) {
        // What is not there need not go; what cannot go goes with the machine's run.
        let _ = fs::remove_file(&self.0);
    }
}

/// Removes what a node that was killed has left.
pub fn forget() {
    drop(Override(OVERRIDE.into()));
}

impl Logind {
    pub fn new(end: EndOfMachine, grace: Duration) -> Self {
        Self { end, grace, bus: None, patience: Override(OVERRIDE.into()), is_ending: false, is_told: false }
    }

    /// Another bus than the machine's, and another place for what logind shall read.
    #[cfg(test)]
    fn on(mut self, bus: &str, file: &Path) -> Self {
        (self.bus, self.patience) = (Some(bus.to_owned()), Override(file.to_owned()));
        self
    }

    /// For as long as it is polled.
    pub async fn run(mut self) {
        loop {
            let Err(error) = self.session().await;
            if !std::mem::replace(&mut self.is_told, true) {
                tracing::info!(%error, "no logind holds the machine for pods: `corten down --drain` ends them in order");
            }
            tokio::time::sleep(RETRY).await;
        }
    }

    /// Until the bus or logind is gone.
    async fn session(&mut self) -> zbus::Result<Infallible> {
        let bus = self.bus.as_deref().map_or_else(Builder::system, Builder::address).build().await?;
        let logind = ManagerProxy::new(&bus).await?;
        let mut told = logind.receive_prepare_for_shutdown().await?;
        if self.is_ending {
            // That it is off may have been told while nobody listened.
            if logind.preparing_for_shutdown().await? {
                until(&mut told, false).await?;
            }
            self.call_off();
        }
        self.make_patient(&bus, &logind).await?;
        loop {
            let lock = logind.inhibit("shutdown", "corten", "Pods end before the machine", "delay").await?;
            self.is_told = false;
            until(&mut told, true).await?;
            tracing::info!("the machine is about to end: pods are ended first");
            self.is_ending = true;
            self.end.begin();
            let is_off = tokio::select! {
                () = self.end.drained() => false,
                it = until(&mut told, false) => it.map(|()| true)?,
            };
            drop(lock);
            if !is_off {
                tracing::info!("pods have ended: the machine may");
                until(&mut told, false).await?;
            }
            self.call_off();
        }
    }

    fn call_off(&mut self) {
        tracing::info!("the machine does not end after all");
        self.is_ending = false;
        self.end.cancel();
    }

    /// Where nobody has set anything else, logind waits 5 s.
    async fn make_patient(&self, bus: &Connection, logind: &ManagerProxy<'_>) -> zbus::Result<()> {
        if patience(logind).await? >= self.grace {
            return Ok(());
        }
        if let Err(error) = self.reload(bus).await {
            tracing::debug!(%error, "logind cannot be told to wait longer");
        }
        for _ in 0..RELOADS {
            if patience(logind).await? >= self.grace {
                return Ok(());
            }
            tokio::time::sleep(RELOAD).await;
        }
        let (allowed, grace) = (patience(logind).await?, self.grace);
        tracing::warn!(
            "logind ends the machine after {allowed:?}, pods may take {grace:?}: set InhibitDelayMaxSec in logind.conf"
        );
        Ok(())
    }

    async fn reload(&self, bus: &Connection) -> zbus::Result<()> {
        let seconds = self.grace.as_secs_f64().ceil();
        write(&self.patience.0, &format!("[Login]\nInhibitDelayMaxSec={seconds}\n"))?;
        SystemdProxy::new(bus).await?.kill_unit(UNIT, "all", SIGHUP).await
    }
}

async fn patience(logind: &ManagerProxy<'_>) -> zbus::Result<Duration> {
    Ok(Duration::from_micros(logind.inhibit_delay_max().await?))
}

fn write(file: &Path, text: &str) -> std::io::Result<()> {
    file.parent().map_or(Ok(()), fs::create_dir_all)?;
    fs::write(file, text)
}

/// Waits until this is told; an error where nobody tells any more.
async fn until(told: &mut PrepareForShutdownStream, start: bool) -> zbus::Result<()> {
    while let Some(signal) = told.next().await {
        if signal.args()?.start == start {
            return Ok(());
        }
    }
    Err(zbus::Error::Failure("the bus is gone".to_owned()))
}

#[cfg(test)]
mod tests;
