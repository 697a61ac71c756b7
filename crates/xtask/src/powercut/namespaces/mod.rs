//! A machine at this machine's own speed: namespaces and a disk.
//!
//! ```text
//! cut: the network is gone ── the disk is copied as it is ── every process is killed ── the old disk is thrown away
//! boot: new namespaces, an empty /run, another boot id ── ext4 replays its journal on the copy ── corten up
//! ```
//! Nothing is synced for the copy, so all is lost that the kernel still held back in memory. What this kernel itself does at a
//! boot, and a disk that writes in another order than it is told, it does not show: QEMU's machines boot for real.

mod cgroups;
mod disk;
mod needed;
mod registry;

use std::{
    fs::{self, File},
    io::Write,
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    sync::Arc,
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};

use anyhow::{Context, Result, bail};
use corten_meta::Time;
use corten_testbed::root;
use rustix::process::{Pid, Signal, kill_process};

pub(super) use self::needed::missing;
use self::{disk::Shelf, registry::Registry};
use super::plug::Machine;
use crate::{
    e2e::{build_images, images_cache},
    namespaces::run,
};

const BOOT: &str = include_str!("boot.sh");
/// A command that comes in from outside belongs to the machine's own group, as a login would.
const ENTER: &str = "for it in /sys/fs/cgroup/*/cgroup.procs /sys/fs/cgroup/init/cgroup.procs; do [ ! -e $it ] || echo 0 > $it; done\n\
                     export HOME=/run/home\n";
const PATH: &str = "/run/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
const UP: &str = "corten up --bind 0.0.0.0 --timeout 900";
const DISK: &str = "disk";
const BEFORE_BOOT: &str = "before-boot";
/// The machine's card as it is seen here.
const CARD: &str = "machine";
const CARD_ADDRESS: &str = "10.77.0.254/24";
const MACHINE_ADDRESS: &str = "10.77.0.1";
const BOOT_DEADLINE: Duration = Duration::from_secs(60);
const BETWEEN_LOOKS: Duration = Duration::from_millis(10);
/// However many others share this machine.
const PATIENCE_MAX: f64 = 5.0;

/// What all machines of a run stand on. There is one machine at a time.
pub(super) struct Bench {
    shelf: Shelf,
    /// A disk on which Corten has never run.
    blank: PathBuf,
    registry: Registry,
}

/// A machine, on or off.
pub(super) struct Apart {
    bench: Arc<Bench>,
    disk: PathBuf,
    /// `unshare`, and the machine's first process by its number here.
    first: Option<(Child, Pid)>,
    booted: String,
    starts_cluster: bool,
}

impl Bench {
    /// `folder` has a few GiB of room for disks.
    pub(super) fn new(corten: &Path, folder: &Path) -> Result<Arc<Self>> {
        let root = root()?;
        cgroups::sweep();
        let shelf = Shelf::new(folder)?;
        let content = tempfile::tempdir()?;
        let images = content.path().join("images");
        fs::create_dir(&images)?;
        for name in ["pause", "demo"] {
            build_images(&root, name, None)?;
            let archive = format!("{name}.tar");
            fs::copy(images_cache().join(&archive), images.join(&archive))
                .with_context(|| format!("taking {archive}"))?;
        }
        let blank = shelf.format("blank", content.path())?;
        fs::write(shelf.path().join("boot.sh"), BOOT)?;
        let bin = shelf.path().join("bin");
        fs::create_dir(&bin)?;
        fs::copy(corten, bin.join("corten")).with_context(|| format!("taking {}", corten.display()))?;
        let registry = Registry::start(shelf.path())?;
        Ok(Arc::new(Self { shelf, blank, registry }))
    }

    /// One that is on, with a copy of `disk`; without, one on which Corten has never run.
    pub(super) fn machine(self: &Arc<Self>, disk: Option<&Path>) -> Result<Apart> {
        let copy = self.shelf.copy(disk.unwrap_or(&self.blank), DISK)?;
        let mut machine =
            Apart { bench: self.clone(), disk: copy, first: None, booted: String::new(), starts_cluster: false };
        machine.boot(disk.is_some())?;
        Ok(machine)
    }

    /// Keeps the machine's disk as it is now.
    pub(super) fn keep(&self, name: &str) -> Result<PathBuf> {
        self.shelf.copy(&self.shelf.path().join(DISK), name)
    }
}

impl Apart {
    fn pid(&self) -> Option<String> {
        self.first.as_ref().map(|it| it.1.as_raw_nonzero().to_string())
    }

    /// Whatever the machine's first process sees.
    fn inside(&self, path: &str) -> PathBuf {
        Path::new("/proc").join(self.pid().unwrap_or_default()).join("root").join(path)
    }

    /// Its first process, which waits for its network.
    fn power_on(&self, device: &str, log: &Path) -> Result<(Child, Pid)> {
        let path = |name: &str| self.bench.shelf.path().join(name);
        let uptime = fs::read_to_string("/proc/uptime")?;
        // Its clocks begin anew.
        let since = format!("-{}", uptime.split('.').next().unwrap_or("0"));
        let log = File::create(log)?;
        let mut command = Command::new("setpriv");
        command.args(["--pdeathsig", "KILL", "unshare", "--fork", "--kill-child", "--mount-proc"]);
        command.args(["--pid", "--mount", "--net", "--uts", "--ipc", "--time"]);
        command.args(["--boottime", &since, "--monotonic", &since, "bash"]).arg(path("boot.sh"));
        command.args([device, &cgroups::name()]).arg(path("bin"));
        command.env("START", if self.starts_cluster { UP } else { "" });
        let child =
            command.stdin(Stdio::piped()).stdout(log.try_clone()?).stderr(log).spawn().context("running unshare")?;
        let children = format!("/proc/{0}/task/{0}/children", child.id());
        let end = Instant::now() + BOOT_DEADLINE;
        loop {
            let found = fs::read_to_string(&children)?;
            if let Some(pid) = found.split_whitespace().next().and_then(|it| Pid::from_raw(it.parse().ok()?)) {
                return Ok((child, pid));
            }
            if Instant::now() >= end {
                bail!("the machine's first process does not begin");
            }
            std::thread::park_timeout(BETWEEN_LOOKS);
        }
    }

    /// Plugs in its network, and waits until it is up.
    fn wait_up(&mut self, log: &Path) -> Result<()> {
        let pid = self.pid().context("it is on")?;
        run("ip", &["link", "add", CARD, "type", "veth", "peer", "name", "eth0", "netns", &pid])?;
        run("ip", &["address", "add", CARD_ADDRESS, "dev", CARD])?;
        run("ip", &["link", "set", CARD, "up"])?;
        let (child, _) = self.first.as_mut().context("it is on")?;
        child.stdin.take().context("its input is a pipe")?.write_all(b"go\n")?;
        let end = Instant::now() + BOOT_DEADLINE;
        loop {
            if self.inside("run/is-up").exists() {
                return Ok(());
            }
            let (child, _) = self.first.as_mut().context("it is on")?;
            let ended = child.try_wait()?;
            if ended.is_some() || Instant::now() >= end {
                let said = fs::read_to_string(log).unwrap_or_default();
                bail!("the machine does not come up: {}", said.trim());
            }
            std::thread::park_timeout(BETWEEN_LOOKS);
        }
    }
}

impl Machine for Apart {
    fn name(&self) -> String {
        let cut = Path::new("/proc").join(std::process::id().to_string()).join("root");
        let cut =
            cut.join(self.bench.shelf.path().strip_prefix("/").unwrap_or(self.bench.shelf.path())).join(BEFORE_BOOT);
        let pid = self.pid().unwrap_or_default();
        format!("nsenter --target {pid} --all; the disk as it was cut: {}; an interrupt removes both", cut.display())
    }

    fn command(&self, script: &str) -> Command {
        let mut command = Command::new("nsenter");
        command.args(["--target", &self.pid().unwrap_or_default(), "--all", "--", "bash", "-c"]);
        command.arg(format!("{ENTER}{script}"));
        command.env("PATH", PATH);
        command
    }

    fn up(&self) -> &'static str {
        UP
    }

    fn server(&self) -> String {
        format!("https://{MACHINE_ADDRESS}:6443")
    }

    fn look(&self) -> &'static str {
        "df -h /var/lib; cat /run/up.log; tail -n 40 /var/lib/corten/log/containerd.log"
    }

    fn fill_registry(&self, n_images: usize) -> Result<()> {
        self.bench.registry.fill(n_images)
    }

    fn cut(&mut self) -> Result<()> {
        let Some((mut child, pid)) = self.first.take() else { return Ok(()) };
        // Nobody is answered any more: what was answered was answered before the copy.
        run("ip", &["link", "set", CARD, "down"])?;
        let copy = self.bench.shelf.copy(&self.disk, "as-cut")?;
        // The old disk is thrown away: nothing more is written to it.
        let disk = Path::new("/proc").join(pid.as_raw_nonzero().to_string()).join("root/var/lib");
        let file_system = fs::metadata(&disk).context("looking at the machine's disk")?.dev();
        run("xfs_io", &["-x", "-c", "shutdown", disk.to_str().context("a path is text")?])?;
        kill_process(pid, Signal::KILL)?;
        cgroups::thaw();
        child.wait()?;
        // Volumes were disks of their own, with files of that one.
        disk::detach_all_on(file_system)?;
        // The other end takes it along, at once or a little later.
        let _ = run("ip", &["link", "delete", CARD]);
        cgroups::sweep();
        fs::remove_file(&self.disk)?;
        fs::rename(copy, &self.disk)?;
        Ok(())
    }

    fn boot(&mut self, has_cluster: bool) -> Result<()> {
        if self.first.is_some() {
            bail!("the machine is on");
        }
        self.starts_cluster = has_cluster;
        // What it was cut with stays for whoever looks for a cause.
        self.bench.shelf.copy(&self.disk, BEFORE_BOOT)?;
        self.booted = next_second();
        let log = self.bench.shelf.path().join("boot.log");
        let device = disk::attach(&self.disk)?;
        let up = self.power_on(&device, &log).and_then(|it| {
            self.first = Some(it);
            self.wait_up(&log)
        });
        if up.is_err() {
            // One that came up has given it back when its disk was mounted.
            let _ = run("losetup", &["--detach", &device]);
        }
        up
    }

    fn starts_at_boot(&self) -> bool {
        self.starts_cluster
    }

    fn booted(&self) -> Result<String> {
        Ok(self.booted.clone())
    }

    fn slowness(&self) -> Result<f64> {
        Ok(1.0)
    }

    /// Others' work on this machine takes its processors.
    fn patience(&self) -> Result<f64> {
        let load = fs::read_to_string("/proc/loadavg").context("reading the load")?;
        let load: f64 = load.split(' ').next().unwrap_or_default().parse().context("reading the load")?;
        let n_cpus = u32::try_from(std::thread::available_parallelism()?.get())?;
        Ok((load / f64::from(n_cpus)).clamp(1.0, PATIENCE_MAX))
    }

    fn remove(mut self: Box<Self>) -> Result<()> {
        self.cut()?;
        fs::remove_file(&self.disk).context("removing its disk")
    }
}

/// Waits for the next whole second, and returns it as the API writes times: what started before is from an earlier one, and what
/// the machine starts is not.
fn next_second() -> String {
    let now = || SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let next = now().as_secs() + 1;
    while let Some(rest) = Duration::from_secs(next).checked_sub(now()).filter(|it| !it.is_zero()) {
        std::thread::park_timeout(rest);
    }
    Time::from_unix_seconds(next.cast_signed()).to_string()
}

impl Drop for Apart {
    fn drop(&mut self) {
        // Its processes end with `unshare` in any case; its groups are swept by the next.
        let _ = self.cut();
    }
}
