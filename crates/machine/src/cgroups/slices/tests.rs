//! A systemd that is not real, at a socket of its own: it notes what it is told, and loses connections.

use std::{
    os::unix::net::UnixListener,
    path::Path,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
};

use zbus::{Guid, MessageStream, OwnedVariant, interface, object_server::SignalEmitter};

use super::*;

const PATH: &str = "/org/freedesktop/systemd1";
const IN_TIME: Duration = Duration::from_secs(20);

#[derive(Default)]
struct CallLog(Mutex<Vec<String>>);

impl CallLog {
    fn note(&self, line: String) {
        self.0.lock().expect("nobody panicked").push(line);
    }

    fn lines(&self) -> Vec<String> {
        self.0.lock().expect("nobody panicked").clone()
    }
}

struct Fake {
    told: Arc<CallLog>,
    /// How many jobs there were.
    jobs: Arc<AtomicUsize>,
    result: &'static str,
}

impl Fake {
    async fn job(&self, unit: &str, emitter: &SignalEmitter<'_>) -> OwnedObjectPath {
        let n = self.jobs.fetch_add(1, Ordering::Relaxed);
        let path = |n: usize| OwnedObjectPath::try_from(format!("{PATH}/job/{n}")).expect("a path");
        // Everybody hears of everybody's.
        Self::job_removed(emitter, 7, path(n + 1000), "other.service".into(), "failed".into()).await.expect("told");
        Self::job_removed(emitter, 8, path(n), unit.into(), self.result.into()).await.expect("told");
        path(n)
    }
}

type UnitProperties = Vec<(String, OwnedVariant)>;

#[interface(name = "org.freedesktop.systemd1.Manager")]
impl Fake {
    async fn start_transient_unit(
        &self,
        name: String,
        _mode: String,
        properties: UnitProperties,
        _aux: Vec<(String, UnitProperties)>,
        #[zbus(signal_emitter)] emitter: SignalEmitter<'_>,
    ) -> zbus::fdo::Result<OwnedObjectPath> {
        let known: Vec<&str> = properties.iter().map(|it| &*it.0).filter(|it| !it.ends_with("Accounting")).collect();
        self.told.note(format!("start {name} {}", known.join(" ")));
        Ok(self.job(&name, &emitter).await)
    }

    fn set_unit_properties(&self, name: String, runtime: bool, properties: UnitProperties) {
        let limits: Vec<String> = properties.iter().map(|(name, it)| format!("{name}={it:?}")).collect();
        self.told.note(format!("set {name} {runtime} {}", limits.len()));
    }

    fn subscribe(&self) {}

    fn reset_failed_unit(&self, name: String) {
        self.told.note(format!("forget {name}"));
    }

    async fn stop_unit(
        &self,
        name: String,
        _mode: String,
        #[zbus(signal_emitter)] emitter: SignalEmitter<'_>,
    ) -> zbus::fdo::Result<OwnedObjectPath> {
        self.told.note(format!("stop {name}"));
        Ok(self.job(&name, &emitter).await)
    }

    #[zbus(signal)]
    async fn job_removed(
        emitter: &SignalEmitter<'_>,
        id: u32,
        job: OwnedObjectPath,
        unit: String,
        result: String,
    ) -> zbus::Result<()>;
}

/// Serves whoever comes, but the first `n_lost` of them.
fn serve(socket: &Path, n_lost: usize, result: &'static str) -> Arc<CallLog> {
    let listener = UnixListener::bind(socket).expect("bound");
    let (told, jobs) = (Arc::new(CallLog::default()), Arc::new(AtomicUsize::new(0)));
    let noted = told.clone();
    std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        for (n, stream) in listener.incoming().enumerate() {
            let Ok(stream) = stream else { return };
            if n < n_lost {
                continue;
            }
            let fake = Fake { told: noted.clone(), jobs: jobs.clone(), result };
            runtime.block_on(async {
                let built = Builder::unix_stream(stream).server(Guid::generate()).p2p().serve_at(PATH, fake).build();
                let connection = built.await.expect("greeted");
                let mut heard = MessageStream::from(&connection);
                while heard.next().await.is_some_and(|it| it.is_ok()) {}
            });
        }
    });
    told
}

fn at(socket: &Path) -> impl Fn() -> Builder<'static> + Sync {
    let address = format!("unix:path={}", socket.display());
    move || Builder::address(&*address).p2p()
}

#[test]
fn waits_for_its_own_job_and_asks_again_where_the_connection_is_lost() {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let socket = dir.path().join("private");
    let told = serve(&socket, 2, "done");
    let begun: Result<(), Error> = ask_at(at(&socket), IN_TIME, async |systemd| {
        let properties = accounted("Pods");
        systemd.job(systemd.manager.start_transient_unit("a.slice", "replace", &properties, &[])).await?;
        systemd.manager.set_unit_properties("a.slice", true, &[("MemoryMax", Variant::from(7_u64))]).await?;
        systemd.job(systemd.manager.stop_unit("a.slice", "replace")).await
    });
    begun.expect("done");
    assert_eq!(told.lines(), ["start a.slice Description DefaultDependencies", "set a.slice true 1", "stop a.slice"]);
}

#[test]
fn a_job_that_fails_is_told_and_nobody_who_answers_is_waited_for_only_so_long() {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let socket = dir.path().join("private");
    serve(&socket, 0, "timeout");
    let stopped: Result<(), Error> = ask_at(at(&socket), IN_TIME, async |systemd| {
        systemd.job(systemd.manager.stop_unit("a.slice", "replace")).await
    });
    assert_eq!(stopped.expect_err("failed").to_string(), "the job for a.slice ended: timeout");

    let asked: Result<(), Error> = ask_at(at(&dir.path().join("none")), AGAIN, async |_| Ok(()));
    asked.expect_err("nobody is there");
}
