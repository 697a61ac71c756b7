//! One guest, from its disk to its end.

use std::{
    fs::{self, File},
    path::{Path, PathBuf},
    process::{Child, Command, Output, Stdio},
    time::{Duration, Instant},
};

use anyhow::{Context, Result, bail};
use corten_testbed::free_port;
use serde::{Deserialize, Serialize};

use super::{Arch, guest_folder, leftovers, network, qemu, ssh::Ssh, tail};

const BETWEEN_TRIES: Duration = Duration::from_millis(100);
/// An emulated machine of another architecture needs the longest, or one whose processors are asked for by many others.
const BOOT_DEADLINE: Duration = Duration::from_secs(900);

/// What a guest shall be like.
pub(crate) struct GuestSpec<'a> {
    pub(crate) name: &'a str,
    pub(crate) host_name: &'a str,
    pub(crate) base: &'a Path,
    pub(crate) arch: Arch,
    pub(crate) memory_mib: u32,
    /// A tar archive that the guest unpacks into its root when it starts for the first time.
    pub(crate) payload: Option<&'a Path>,
    /// Ports of the guest that can be reached from here.
    pub(crate) ports: &'a [u16],
    /// Stays when this process ends.
    pub(crate) is_kept: bool,
}

/// What is written down of a guest.
#[derive(Serialize, Deserialize)]
pub(super) struct Settings {
    pub(super) number: u8,
    pub(super) base: PathBuf,
    pub(super) arch: Arch,
    pub(super) host_name: String,
    pub(super) memory_mib: u32,
    pub(super) ssh_port: u16,
    /// Ports here, and the guest's own.
    pub(super) forwards: Vec<(u16, u16)>,
    pub(super) payload: Option<PathBuf>,
    pub(super) is_kept: bool,
}

impl Settings {
    pub(super) fn read(dir: &Path) -> Result<Self> {
        let path = dir.join("settings.json");
        let text = fs::read(&path).with_context(|| format!("reading {}", path.display()))?;
        serde_json::from_slice(&text).with_context(|| format!("reading {}", path.display()))
    }
}

/// What is different about one start.
#[derive(Default)]
pub(crate) struct Boot {
    /// What the machine's own clock shows, as QEMU takes it: `2020-01-01T00:00:00`.
    pub(crate) clock: Option<String>,
    pub(crate) kernel_words: Option<String>,
}

pub(crate) struct Guest {
    dir: PathBuf,
    settings: Settings,
    /// QEMU, where this process has started it.
    process: Option<Child>,
    /// Locked as long as the guest has an owner. Whoever gets the lock may remove the guest.
    owner: Option<File>,
    powered_on: Option<Instant>,
}

impl Guest {
    /// Its disk and its place on the network. It is not on yet.
    pub(crate) fn make(wanted: &GuestSpec) -> Result<Self> {
        leftovers::sweep();
        let dir = guest_folder(wanted.name);
        network::with_free_number(|number| {
            fs::create_dir(&dir).with_context(|| format!("making {}", dir.display()))?;
            let owner = if wanted.is_kept { None } else { Some(leftovers::own(&dir)?) };
            let forwards = wanted.ports.iter().map(|it| Ok((free_port()?, *it))).collect::<Result<_>>()?;
            let settings = Settings {
                number,
                base: wanted.base.to_owned(),
                arch: wanted.arch,
                host_name: wanted.host_name.to_owned(),
                memory_mib: wanted.memory_mib,
                ssh_port: free_port()?,
                forwards,
                payload: wanted.payload.map(Path::to_owned),
                is_kept: wanted.is_kept,
            };
            copy_on_write(&wanted.base.join("disk"), &dir.join("disk"))?;
            fs::write(dir.join("settings.json"), serde_json::to_vec_pretty(&settings)?)?;
            Ok(Self { dir: dir.clone(), settings, process: None, owner, powered_on: None })
        })
    }

    /// One that was kept.
    pub(crate) fn open(name: &str) -> Result<Self> {
        let dir = guest_folder(name);
        let settings = Settings::read(&dir).with_context(|| format!("there is no guest {name}"))?;
        Ok(Self { dir, settings, process: None, owner: None, powered_on: None })
    }

    pub(crate) fn name(&self) -> String {
        self.dir.file_name().unwrap_or_default().to_string_lossy().into_owned()
    }

    pub(crate) fn host_name(&self) -> &str {
        &self.settings.host_name
    }

    pub(crate) fn address(&self) -> String {
        network::address(self.settings.number).to_string()
    }

    /// Where a port of the guest is reached from here.
    pub(crate) fn port(&self, of_guest: u16) -> Option<u16> {
        self.settings.forwards.iter().find(|it| it.1 == of_guest).map(|it| it.0)
    }

    /// Since when it has had power.
    pub(crate) fn powered_on(&self) -> Option<Instant> {
        self.powered_on
    }

    fn ssh(&self) -> Ssh<'_> {
        Ssh { port: self.settings.ssh_port, key: self.settings.base.join("key"), dir: &self.dir }
    }

    /// Switches it on, and returns when it can be reached.
    pub(crate) fn boot(&mut self, boot: &Boot) -> Result<()> {
        if self.is_on() {
            bail!("{} is on", self.name());
        }
        self.powered_on = Some(Instant::now());
        let is_first = !self.dir.join("console").exists();
        let log = File::create(self.dir.join("qemu.log"))?;
        let mut command = qemu::command(&self.settings, boot, &self.dir, !self.settings.is_kept);
        let child =
            command.stdin(Stdio::null()).stdout(log.try_clone()?).stderr(log).spawn().context("starting QEMU")?;
        fs::write(self.dir.join("pid"), child.id().to_string())?;
        self.process = Some(child);
        self.wait_reachable(None)?;
        if is_first && self.settings.payload.is_some() {
            self.output("tar -x -f /dev/vdb -C /").context("unpacking what the guest needs")?;
        }
        Ok(())
    }

    /// Tells the guest to start again in good order, and returns when it can be reached once more.
    pub(crate) fn reboot(&mut self) -> Result<()> {
        let before = self.boot_id()?;
        // The answer may be cut off.
        let _ = self.run("systemctl reboot");
        self.powered_on = Some(Instant::now());
        self.wait_reachable(Some(&before))
    }

    fn boot_id(&self) -> Result<String> {
        self.output("cat /proc/sys/kernel/random/boot_id")
    }

    /// When it started, by its own clock, as the API writes times.
    pub(crate) fn booted(&self) -> Result<String> {
        self.output("date -u -d @$(sed -n 's/^btime //p' /proc/stat) +%Y-%m-%dT%H:%M:%SZ")
    }

    /// Waits for an answer; where `before` is given, for one of another boot than that.
    fn wait_reachable(&mut self, before: Option<&str>) -> Result<()> {
        let end = Instant::now() + BOOT_DEADLINE;
        loop {
            if let Some(status) = self.process.as_mut().map(Child::try_wait).transpose()?.flatten() {
                bail!("QEMU ended with {status}: {}", tail(&self.dir.join("qemu.log"), 5));
            }
            if self.ssh().connect() {
                match (before, self.boot_id()) {
                    (None, Ok(_)) => return Ok(()),
                    (Some(before), Ok(now)) if before != now => return Ok(()),
                    _ => {}
                }
            }
            if Instant::now() >= end {
                bail!("{} cannot be reached; its console ends with\n{}", self.name(), self.console(30));
            }
            std::thread::park_timeout(BETWEEN_TRIES);
        }
    }

    pub(crate) fn is_on(&self) -> bool {
        leftovers::qemu_of(&self.dir).is_some()
    }

    /// Pulls the plug.
    pub(crate) fn cut(&mut self) -> Result<()> {
        leftovers::end(&self.dir)?;
        if let Some(mut process) = self.process.take() {
            process.wait()?;
        }
        self.ssh().forget();
        self.powered_on = None;
        Ok(())
    }

    /// For bash, as root. What becomes of its streams is the caller's matter.
    pub(crate) fn command(&self, text: &str) -> Command {
        self.ssh().command(text)
    }

    pub(crate) fn run(&self, text: &str) -> Result<Output> {
        self.command(text).stdin(Stdio::null()).output().context("running ssh")
    }

    /// What it prints; an error where it fails.
    pub(crate) fn output(&self, text: &str) -> Result<String> {
        let output = self.run(text)?;
        if !output.status.success() {
            let error = String::from_utf8_lossy(&output.stderr);
            bail!("{text}: {}: {}", output.status, error.trim());
        }
        Ok(String::from_utf8_lossy(&output.stdout).trim_end().to_owned())
    }

    /// Copies files or folders into a folder of the guest.
    pub(crate) fn put(&self, sources: &[PathBuf], folder: &str) -> Result<()> {
        for source in sources {
            let source = source.canonicalize().with_context(|| format!("looking for {}", source.display()))?;
            let (Some(parent), Some(name)) = (source.parent(), source.file_name()) else { bail!("/ is not copied") };
            let mut pack = Command::new("tar")
                .args(["-c", "-C"])
                .args([parent.as_os_str(), name])
                .stdout(Stdio::piped())
                .spawn()
                .context("running tar")?;
            let stream = pack.stdout.take().context("tar has a standard output")?;
            let quoted = super::ssh::quoted(folder);
            let unpack = format!("mkdir -p {quoted} && tar -x -f - -C {quoted}");
            let status = self.command(&unpack).stdin(stream).status().context("running ssh")?;
            if !pack.wait()?.success() || !status.success() {
                bail!("{} was not copied", source.display());
            }
        }
        Ok(())
    }

    /// The last lines that its console showed.
    pub(crate) fn console(&self, n_lines: usize) -> String {
        tail(&self.dir.join("console"), n_lines)
    }

    /// Stays when this process ends.
    pub(crate) fn is_kept(&self) -> bool {
        self.settings.is_kept
    }

    /// Switches it off and deletes its disk.
    pub(crate) fn remove(mut self) -> Result<()> {
        self.take_away()
    }

    fn take_away(&mut self) -> Result<()> {
        self.cut()?;
        leftovers::disown(&self.dir);
        fs::remove_dir_all(&self.dir).with_context(|| format!("removing {}", self.dir.display()))
    }
}

impl Drop for Guest {
    fn drop(&mut self) {
        if self.owner.is_some() && self.dir.exists() {
            let _ = self.take_away();
        }
    }
}

fn copy_on_write(base: &Path, disk: &Path) -> Result<()> {
    let mut command = Command::new("qemu-img");
    command.args(["create", "-q", "-f", "qcow2", "-F", "raw", "-b"]).args([base, disk]);
    let output = command.output().context("running qemu-img")?;
    if !output.status.success() {
        bail!("a copy of {}: {}", base.display(), String::from_utf8_lossy(&output.stderr).trim());
    }
    Ok(())
}
