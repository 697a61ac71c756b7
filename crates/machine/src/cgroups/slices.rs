//! Has systemd make, change and end the slices and scopes that Pods live in: it is the only one that writes to its cgroups.
//!
//! A bus that is restarted, and a systemd that executes itself anew, lose what was asked: then they are asked again, so every
//! question may be asked twice.

use std::{
    io,
    time::{Duration, Instant},
};

use futures_util::StreamExt;
use zbus::{Error, OwnedObjectPath, Variant, connection::Builder, fdo};

/// What systemd may take, with a reload and its own new start between.
const PATIENCE: Duration = Duration::from_secs(30);
const AGAIN: Duration = Duration::from_millis(100);
/// As long as nobody says that a job is done, it is asked for this often: the word of it may have been lost.
const LOOK: Duration = Duration::from_secs(1);
const UNIT_EXISTS: &str = "org.freedesktop.systemd1.UnitExists";
const NO_SUCH_UNIT: &str = "org.freedesktop.systemd1.NoSuchUnit";
const NO_SUCH_JOB: &str = "org.freedesktop.systemd1.NoSuchJob";

/// What `systemd.resource-control(5)` calls a setting, and its value on the bus.
pub(super) type Property = (&'static str, Variant<'static>);
/// No limit.
pub(super) const INFINITY: u64 = u64::MAX;

#[zbus::proxy(
    interface = "org.freedesktop.systemd1.Manager",
    default_service = "org.freedesktop.systemd1",
    default_path = "/org/freedesktop/systemd1"
)]
trait Manager {
    fn subscribe(&self) -> zbus::Result<()>;
    fn get_job(&self, id: u32) -> zbus::Result<OwnedObjectPath>;
    fn start_transient_unit(
        &self,
        name: &str,
        mode: &str,
        properties: &[Property],
        aux: &[(&str, &[Property])],
    ) -> zbus::Result<OwnedObjectPath>;
    fn start_unit(&self, name: &str, mode: &str) -> zbus::Result<OwnedObjectPath>;
    fn stop_unit(&self, name: &str, mode: &str) -> zbus::Result<OwnedObjectPath>;
    fn reset_failed_unit(&self, name: &str) -> zbus::Result<()>;
    fn set_unit_properties(&self, name: &str, runtime: bool, properties: &[Property]) -> zbus::Result<()>;
    #[zbus(signal)]
    fn job_removed(&self, id: u32, job: OwnedObjectPath, unit: String, result: String) -> zbus::Result<()>;
}

/// Makes a slice; one that is there already is given the limits.
pub(super) fn start_slice(name: &str, description: &str, limits: Vec<Property>) -> io::Result<()> {
    // Nothing stops it when the machine ends: by then the Pods have ended in order.
    let mut properties = accounted(description);
    properties.extend(limits.iter().cloned());
    ask(name, async |systemd| {
        match systemd.job(systemd.manager.start_transient_unit(name, "replace", &properties, &[])).await {
            Err(error) if is_named(&error, UNIT_EXISTS) => {
                if !limits.is_empty() {
                    systemd.manager.set_unit_properties(name, true, &limits).await?;
                }
                systemd.job(systemd.manager.start_unit(name, "replace")).await
            }
            other => other,
        }
    })
}

/// Gives a unit other limits while it runs.
pub(super) fn set(name: &str, limits: &[Property]) -> io::Result<()> {
    ask(name, async |systemd| systemd.manager.set_unit_properties(name, true, limits).await)
}

/// Makes a scope of a process, which whatever it starts stays in, and whose cgroup belongs to whoever asked.
pub(super) fn start_scope(name: &str, description: &str, slice: &str, ends_after: &str, pid: u32) -> io::Result<()> {
    let mut properties = accounted(description);
    properties.extend([
        ("Slice", Variant::from(slice.to_owned())),
        // In this order they start; they end the other way round.
        ("Before", Variant::from(vec![ends_after.to_owned()])),
        ("PIDs", Variant::from(vec![pid])),
        ("Delegate", Variant::from(true)),
        ("TasksMax", Variant::from(INFINITY)),
        ("CollectMode", Variant::from("inactive-or-failed")),
    ]);
    ask(name, async |systemd| {
        systemd.job(systemd.manager.start_transient_unit(name, "replace", &properties, &[])).await
    })
}

/// Ends a unit and what is in it. Harmless where there is none.
pub(super) fn stop(name: &str) -> io::Result<()> {
    ask(name, async |systemd| {
        match systemd.job(systemd.manager.stop_unit(name, "replace")).await {
            Err(error) if is_named(&error, NO_SUCH_UNIT) => return Ok(()),
            other => other?,
        }
        // One that ended badly would be remembered; most are gone by now.
        let _ = systemd.manager.reset_failed_unit(name).await;
        Ok(())
    })
}

fn accounted(description: &str) -> Vec<Property> {
    let mut properties = vec![("Description", Variant::from(description.to_owned()))];
    properties.push(("DefaultDependencies", Variant::from(false)));
    for of in ["CPUAccounting", "MemoryAccounting", "TasksAccounting", "IOAccounting"] {
        properties.push((of, Variant::from(true)));
    }
    properties
}

/// A connection to systemd.
struct Systemd {
    manager: ManagerProxy<'static>,
    news: tokio::sync::Mutex<JobRemovedStream>,
}

impl Systemd {
    async fn connect(bus: Builder<'static>) -> zbus::Result<Self> {
        let manager = ManagerProxy::new(&bus.build().await?).await?;
        let news = tokio::sync::Mutex::new(manager.receive_job_removed().await?);
        // It tells nobody who has not asked for it.
        manager.subscribe().await?;
        Ok(Self { manager, news })
    }

    /// Waits until what was asked for is done.
    async fn job(&self, asked: impl Future<Output = zbus::Result<OwnedObjectPath>>) -> zbus::Result<()> {
        let job = asked.await?;
        let mut news = self.news.lock().await;
        loop {
            let told = match tokio::time::timeout(LOOK, news.next()).await {
                Ok(Some(told)) => told,
                Ok(None) => return Err(io::Error::from(io::ErrorKind::ConnectionReset).into()),
                Err(_) if self.is_over(&job).await? => return Ok(()),
                Err(_) => continue,
            };
            let told = told.args()?;
            match &*told.result {
                _ if told.job != job => {}
                "done" | "skipped" => return Ok(()),
                other => return Err(Error::Failure(format!("the job for {} ended: {other}", told.unit))),
            }
        }
    }

    /// How it ended nobody says any more.
    async fn is_over(&self, job: &OwnedObjectPath) -> zbus::Result<bool> {
        let Some(id) = job.as_str().rsplit_once('/').and_then(|it| it.1.parse().ok()) else { return Ok(true) };
        match self.manager.get_job(id).await {
            Ok(_) => Ok(false),
            Err(error) if is_named(&error, NO_SUCH_JOB) => Ok(true),
            Err(error) => Err(error),
        }
    }
}

/// Asks, and blocks the thread until there is an answer.
fn ask<T: Send>(unit: &str, question: impl AsyncFn(&Systemd) -> zbus::Result<T> + Sync) -> io::Result<T> {
    ask_at(Builder::system, PATIENCE, question).map_err(|it| io::Error::other(format!("systemd about {unit}: {it}")))
}

/// On a thread of its own: the one that asks may serve a runtime already.
fn ask_at<T: Send>(
    bus: impl Fn() -> Builder<'static> + Sync,
    patience: Duration,
    question: impl AsyncFn(&Systemd) -> zbus::Result<T> + Sync,
) -> zbus::Result<T> {
    let end = Instant::now() + patience;
    let work = || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        runtime.block_on(async {
            loop {
                let left = end.saturating_duration_since(Instant::now());
                let asked = async { question(&Systemd::connect(bus()).await?).await };
                match tokio::time::timeout(left, asked).await {
                    Err(_) => return Err(io::Error::from(io::ErrorKind::TimedOut).into()),
                    Ok(Err(error)) if is_lost(&error) && Instant::now() + AGAIN < end => {
                        tokio::time::sleep(AGAIN).await
                    }
                    Ok(other) => return other,
                }
            }
        })
    };
    std::thread::scope(|it| it.spawn(work).join()).unwrap_or_else(|_| Err(Error::Failure("the question failed".into())))
}

/// Is it about the connection, and not about what was asked?
fn is_lost(error: &Error) -> bool {
    match error {
        Error::InputOutput(_) | Error::Connection(..) | Error::Handshake(_) => true,
        // Whoever was asked has left the bus, or is not there yet.
        Error::FDO(error) => matches!(
            **error,
            fdo::Error::Disconnected(_)
                | fdo::Error::NoReply(_)
                | fdo::Error::ServiceUnknown(_)
                | fdo::Error::NameHasNoOwner(_)
                | fdo::Error::SpawnChildExited(_)
                | fdo::Error::SpawnFailed(_)
        ),
        _ => false,
    }
}

fn is_named(error: &Error, name: &str) -> bool {
    matches!(error, Error::MethodError(it, ..) if it.as_str() == name)
}

#[cfg(test)]
mod tests;
