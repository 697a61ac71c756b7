//! A real bus and a real logind in a corner of the machine. Only who would end the machine is not real.

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    time::Duration,
};

use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;
use tokio::{sync::watch, time::timeout};
use zbus::{Connection, OwnedObjectPath, connection::Builder, fdo, interface};

use super::Logind;
use crate::EndOfMachine;

const IN_TIME: Duration = Duration::from_secs(20);
const GRACE: Duration = Duration::from_secs(30);
const LOGIND: &str = "/lib/systemd/systemd-logind";
const BUS: &str = "/usr/bin/dbus-daemon";

type Inhibitor = (String, String, String, String, u32, u32);

#[zbus::proxy(
    interface = "org.freedesktop.login1.Manager",
    default_service = "org.freedesktop.login1",
    default_path = "/org/freedesktop/login1"
)]
trait LogindManager {
    fn list_inhibitors(&self) -> zbus::Result<Vec<Inhibitor>>;
    fn power_off(&self, interactive: bool) -> zbus::Result<()>;
    #[zbus(property(emits_changed_signal = "false"), name = "InhibitDelayMaxUSec")]
    fn inhibit_delay_max(&self) -> zbus::Result<u64>;
}

/// What logind asks to end the machine. It notes that it was asked, and does not.
struct Systemd {
    logind: Pid,
    n_asked: watch::Sender<usize>,
}

#[interface(name = "org.freedesktop.systemd1.Manager")]
impl Systemd {
    fn kill_unit(&self, _name: &str, _whom: &str, signal: i32) {
        assert_eq!(signal, 1, "only to read its files again");
        kill_process(self.logind, Signal::HUP).expect("logind runs");
    }

    fn start_unit(&self, name: &str, _mode: &str) -> fdo::Result<OwnedObjectPath> {
        self.n_asked.send_modify(|it| *it += 1);
        Err(fdo::Error::Failed(format!("{name} is not started")))
    }
}

struct PoweroffUnit;

#[interface(name = "org.freedesktop.systemd1.Unit")]
impl PoweroffUnit {
    #[zbus(property)]
    fn load_state(&self) -> String {
        "loaded".to_owned()
    }
}

/// Ends with the test.
struct Process(Child);

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn start(command: &mut Command) -> Process {
    Process(command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("it starts"))
}

struct Machine {
    folder: TempDir,
    address: String,
    connection: Connection,
    n_asked: watch::Receiver<usize>,
    _processes: [Process; 2],
}

impl Machine {
    async fn start() -> Self {
        let folder = TempDir::new().expect("a folder");
        let address = format!("unix:path={}", folder.path().join("bus").display());
        let bus =
            start(Command::new(BUS).args(["--nofork", "--config-file"]).arg(bus_settings(folder.path(), &address)));
        // Its own /run/systemd, so that it meets no other logind of the machine.
        let systemd = folder.path().join("systemd");
        fs::create_dir(&systemd).expect("a folder");
        let script = format!("mount --bind {} /run/systemd && exec {LOGIND}", systemd.display());
        eventually(|| async { folder.path().join("bus").exists() }).await;
        fs::create_dir_all("/run/systemd").expect("a folder");
        let mut unshare = Command::new("unshare");
        let unshare = unshare.args(["--mount", "sh", "-c", &script]).env("DBUS_SYSTEM_BUS_ADDRESS", &address);
        let logind = start(unshare);
        let pid = Pid::from_child(&logind.0);
        let (asked, n_asked) = watch::channel(0);
        let connection = Builder::address(address.as_str())
            .serve_at("/org/freedesktop/systemd1", Systemd { logind: pid, n_asked: asked })
            .serve_at("/org/freedesktop/systemd1/unit/poweroff_2etarget", PoweroffUnit)
            .name("org.freedesktop.systemd1")
            .build()
            .await
            .expect("the bus answers");
        let names = fdo::DBusProxy::new(&connection).await.expect("the bus answers");
        let logind_is_up = || async { names.name_has_owner("org.freedesktop.login1".try_into()?).await };
        eventually(|| async { logind_is_up().await.is_ok_and(|it| it) }).await;
        Self { folder, address, connection, n_asked, _processes: [logind, bus] }
    }

    fn file(&self) -> PathBuf {
        self.folder.path().join("systemd/logind.conf.d/99-corten.conf")
    }

    async fn is_held(&self) -> bool {
        let asked = LogindManagerProxy::new(&self.connection).await.expect("a proxy");
        let is_ours = |it: &Inhibitor| it.0 == "shutdown" && it.1 == "corten" && it.3 == "delay";
        asked.list_inhibitors().await.is_ok_and(|it| it.iter().any(is_ours))
    }
}

fn bus_settings(folder: &Path, address: &str) -> PathBuf {
    let file = folder.join("bus.conf");
    let policy =
        ["user", "own", "send_destination", "receive_sender"].map(|it| format!("<allow {it}=\"*\"/>")).concat();
    let text = format!(
        "<busconfig><type>system</type><listen>{address}</listen><auth>EXTERNAL</auth>\
         <policy context=\"default\">{policy}<allow send_type=\"signal\"/></policy></busconfig>"
    );
    fs::write(&file, text).expect("a file");
    file
}

async fn eventually<F: Future<Output = bool>>(mut is_so: impl FnMut() -> F) {
    let asking = async {
        while !is_so().await {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    timeout(IN_TIME, asking).await.expect("in time");
}

#[tokio::test]
async fn the_machine_waits_for_pods_and_goes_on_where_it_does_not_end() {
    let is_here = [LOGIND, BUS].iter().all(|it| Path::new(it).exists());
    if !is_here || !rustix::process::geteuid().is_root() {
        eprintln!("skipped: needs root, dbus-daemon and systemd-logind");
        return;
    }
    let mut machine = Machine::start().await;
    let end = EndOfMachine::default();
    let mut news = end.news();
    let logind = Logind::new(end.clone(), GRACE).on(&machine.address, &machine.file());
    let running = tokio::spawn(logind.run());

    eventually(|| machine.is_held()).await;
    let asked = LogindManagerProxy::new(&machine.connection).await.expect("a proxy");
    assert_eq!(asked.inhibit_delay_max().await, Ok(30_000_000), "as patient as pods need");
    assert!(!*news.borrow_and_update());

    asked.power_off(false).await.expect("logind obeys");
    timeout(IN_TIME, news.wait_for(|it| *it)).await.expect("in time").expect("told");
    assert!(machine.is_held().await);
    assert_eq!(*machine.n_asked.borrow_and_update(), 0, "not before the pods have ended");

    end.pods_have_ended();
    timeout(IN_TIME, machine.n_asked.changed()).await.expect("in time").expect("asked");
    timeout(IN_TIME, news.wait_for(|it| !*it)).await.expect("in time").expect("told");
    eventually(|| machine.is_held()).await;

    running.abort();
    assert!(running.await.is_err_and(|it| it.is_cancelled()));
    assert!(!machine.file().exists());
    eventually(|| async { !machine.is_held().await }).await;
}
