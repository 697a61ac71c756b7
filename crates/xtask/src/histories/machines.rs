//! Three machines on one link, made of network namespaces. The link is in the network that this process has entered, and so are the
//! clients.
//!
//! ```text
//! clients 10.89.0.254 ── link0 ─┬─ one    10.89.0.1   a server and its clock, a member of etcd and its disk
//!                               ├─ two    10.89.0.2
//!                               └─ three  10.89.0.3
//! ```
//! What gets lost on its way is dropped where it would arrive, by nftables. Nothing is late: the kernels of machines for tests have no
//! netem. The clock is the server's alone: etcd, as every program in Go, asks the kernel for the time and not libc, where it is told
//! another.

use std::{
    fmt::{self, Write as _},
    fs::{self, File},
    io::{ErrorKind, Write as _},
    net::Ipv4Addr,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use anyhow::{Context, Result, bail};
use corten_testbed::Data;
use rustix::mount::{MountFlags, UnmountFlags, mount, unmount};

use super::cluster::NAMES;
use crate::{
    e2e::in_path,
    namespaces::{self, run},
};

const LINK: &str = "link0";
/// etcd has two files of 64 MiB for what it is about to write, before it writes anything.
const DISK: &std::ffi::CStr = c"size=384m";
const FILLER: &str = "filler";
const NEEDED: [(&str, &str); 4] =
    [("ip", "iproute2"), ("nft", "nftables"), ("nsenter", "util-linux"), ("setpriv", "util-linux")];

/// Why no machines can be here; `None` where they can.
pub(super) fn missing(has_clocks: bool) -> Option<String> {
    let mut absent: Vec<&str> = NEEDED.into_iter().filter(|it| !in_path(it.0)).map(|it| it.1).collect();
    if has_clocks && clock_library().is_none() {
        absent.push("faketime");
    }
    if !absent.is_empty() {
        return Some(format!("not installed: {}", absent.join(", ")));
    }
    namespaces::refused()
}

/// It stands between a program and libc, and tells it another time.
fn clock_library() -> Option<PathBuf> {
    let folders = fs::read_dir("/usr/lib").ok()?.flatten();
    folders.map(|it| it.path().join("faketime/libfaketimeMT.so.1")).find(|it| it.exists())
}

/// Who speaks on the link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    Machine(usize),
    Clients,
}

impl End {
    pub(super) const ALL: [Self; 4] = [Self::Machine(0), Self::Machine(1), Self::Machine(2), Self::Clients];

    pub(super) fn address(self) -> Ipv4Addr {
        let last = match self {
            Self::Machine(number) => u8::try_from(number + 1).expect("there are three"),
            Self::Clients => 254,
        };
        Ipv4Addr::new(10, 89, 0, last)
    }
}

impl fmt::Display for End {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Machine(number) => NAMES[*number],
            Self::Clients => "clients",
        })
    }
}

/// So much of what one sends another does not arrive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Loss {
    pub(super) from: End,
    pub(super) to: End,
    pub(super) percent: u8,
}

pub(super) struct Machines {
    clock_library: Option<PathBuf>,
    losses: Vec<Loss>,
    unplugged: Vec<usize>,
    /// Networks that are kept as files, and disks.
    mounts: Vec<PathBuf>,
    data: Data,
}

impl Machines {
    pub(super) fn new(has_clocks: bool) -> Result<Self> {
        let clock_library = clock_library().filter(|_| has_clocks);
        let (losses, unplugged, mounts) = (Vec::new(), Vec::new(), Vec::new());
        let mut machines = Self { clock_library, losses, unplugged, mounts, data: Data::new()? };
        run("ip", &["link", "add", LINK, "type", "bridge"])?;
        run("ip", &["address", "add", &format!("{}/24", End::Clients.address()), "dev", LINK])?;
        run("ip", &["link", "set", LINK, "up"])?;
        for machine in 0..NAMES.len() {
            machines.make(machine)?;
        }
        Ok(machines)
    }

    fn make(&mut self, machine: usize) -> Result<()> {
        let folder = self.folder(machine);
        fs::create_dir_all(self.disk(machine)).with_context(|| format!("making {}", folder.display()))?;
        let net = self.net(machine);
        File::create(&net).with_context(|| format!("making {net}"))?;
        run("unshare", &[&format!("--net={net}"), "ip", "link", "set", "lo", "up"])?;
        self.mounts.push(PathBuf::from(&net));
        let card = NAMES[machine];
        run("ip", &["link", "add", card, "type", "veth", "peer", "name", "eth0", "netns", &net])?;
        run("ip", &["link", "set", card, "master", LINK, "up"])?;
        let address = format!("{}/24", End::Machine(machine).address());
        run("nsenter", &[&format!("--net={net}"), "ip", "address", "add", &address, "dev", "eth0"])?;
        run("nsenter", &[&format!("--net={net}"), "ip", "link", "set", "eth0", "up"])?;
        let disk = self.disk(machine);
        mount("tmpfs", &disk, "tmpfs", MountFlags::empty(), DISK)
            .with_context(|| format!("mounting {}", disk.display()))?;
        self.mounts.push(disk);
        self.set_clock(machine, 0)
    }

    /// Of what lies on the machine.
    pub(super) fn folder(&self, machine: usize) -> PathBuf {
        self.data.path().join(NAMES[machine])
    }

    pub(super) fn disk(&self, machine: usize) -> PathBuf {
        self.folder(machine).join("disk")
    }

    fn net(&self, machine: usize) -> String {
        self.folder(machine).join("net").to_string_lossy().into_owned()
    }

    fn clock(&self, machine: usize) -> PathBuf {
        self.folder(machine).join("clock")
    }

    /// A program on a machine. It ends with this process, or rather with the thread that starts it.
    pub(super) fn command(&self, machine: usize, program: &Path) -> Command {
        let mut command = Command::new("setpriv");
        command.args(["--pdeathsig", "KILL", "nsenter", &format!("--net={}", self.net(machine)), "--"]).arg(program);
        command
    }

    /// As [`Self::command`], by the machine's clock.
    pub(super) fn command_by_clock(&self, machine: usize, program: &Path) -> Command {
        let mut command = self.command(machine, program);
        if let Some(library) = &self.clock_library {
            command.env("LD_PRELOAD", library).env("FAKETIME_TIMESTAMP_FILE", self.clock(machine));
            // It jumps at once; how long something takes is told as it is.
            command.env("FAKETIME_NO_CACHE", "1").env("FAKETIME_DONT_FAKE_MONOTONIC", "1");
        }
        command
    }

    /// From now on it is so many seconds ahead, or behind.
    pub(super) fn set_clock(&self, machine: usize, ahead: i64) -> Result<()> {
        let (clock, new) = (self.clock(machine), self.folder(machine).join("clock.new"));
        fs::write(&new, format!("{ahead:+}\n")).and_then(|()| fs::rename(&new, &clock)).context("setting a clock")
    }

    /// Besides what gets lost already.
    pub(super) fn lose(&mut self, losses: &[Loss]) -> Result<()> {
        self.losses.extend(losses);
        self.set_rules()
    }

    fn set_rules(&self) -> Result<()> {
        for end in End::ALL {
            let mut command = match end {
                End::Machine(machine) => self.command(machine, Path::new("nft")),
                End::Clients => Command::new("nft"),
            };
            let mut child = command.args(["-f", "-"]).stdin(Stdio::piped()).spawn().context("running nft")?;
            let mut input = child.stdin.take().context("its input is a pipe")?;
            input.write_all(rules(&self.losses, end).as_bytes()).context("writing to nft")?;
            drop(input);
            if !child.wait()?.success() {
                bail!("nft did not take what {end} shall not hear");
            }
        }
        Ok(())
    }

    pub(super) fn unplug(&mut self, machine: usize) -> Result<()> {
        self.unplugged.push(machine);
        run("ip", &["link", "set", NAMES[machine], "down"])
    }

    /// All hear each other again.
    pub(super) fn connect_all(&mut self) -> Result<()> {
        for machine in self.unplugged.drain(..) {
            run("ip", &["link", "set", NAMES[machine], "up"])?;
        }
        self.losses.clear();
        self.set_rules()
    }

    /// To the last byte.
    pub(super) fn fill(&self, machine: usize) -> Result<()> {
        let path = self.disk(machine).join(FILLER);
        let mut file = File::create(&path).with_context(|| format!("making {}", path.display()))?;
        let piece = vec![0; 1 << 20];
        loop {
            match file.write_all(&piece) {
                Ok(()) => {}
                Err(error) if error.kind() == ErrorKind::StorageFull => return Ok(()),
                Err(error) => return Err(error).with_context(|| format!("filling {}", path.display())),
            }
        }
    }

    pub(super) fn make_room(&self, machine: usize) -> Result<()> {
        match fs::remove_file(self.disk(machine).join(FILLER)) {
            Err(error) if error.kind() != ErrorKind::NotFound => Err(error).context("making room on a disk"),
            _ => Ok(()),
        }
    }
}

impl Drop for Machines {
    fn drop(&mut self) {
        for mount in &self.mounts {
            let _ = unmount(mount, UnmountFlags::DETACH);
        }
    }
}

/// What this end does not hear.
fn rules(losses: &[Loss], to: End) -> String {
    let mut rules = String::from("add table ip faults\ndelete table ip faults\ntable ip faults {\nchain input {\n");
    rules.push_str("type filter hook input priority 0; policy accept;\n");
    for Loss { from, percent, .. } in losses.iter().filter(|it| it.to == to) {
        let of_all = format!(" numgen random mod 100 < {percent}");
        let some = if *percent < 100 { &*of_all } else { "" };
        let _ = writeln!(rules, "ip saddr {}{some} drop", from.address());
    }
    rules.push_str("}\n}\n");
    rules
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_end_drops_what_is_sent_to_it() {
        let (one, clients) = (End::Machine(0), End::Clients);
        let losses = [Loss { from: one, to: clients, percent: 100 }, Loss { from: clients, to: one, percent: 7 }];
        let dropped = |to: End| rules(&losses, to).lines().skip(5).map(str::to_owned).collect::<Vec<_>>();
        assert_eq!(dropped(clients), ["ip saddr 10.89.0.1 drop", "}", "}"]);
        assert_eq!(dropped(one), ["ip saddr 10.89.0.254 numgen random mod 100 < 7 drop", "}", "}"]);
        assert_eq!(dropped(End::Machine(1)), ["}", "}"]);
    }
}
