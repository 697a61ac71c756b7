//! The way from Pods that have IPv6 alone to what has IPv4 alone: a device of the kernel whose packets are translated here.
//!
//! ```text
//! Pod ──► masquerade ──► the device ──► `corten_nat64` ──► the device ──► masquerade ──► the machine's IPv4
//! ```
//! The device outlives this process: the kernel forgets nothing of its connections where that starts again.

use std::{
    fs, io,
    net::UdpSocket,
    os::fd::OwnedFd,
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use corten_machine::{Layout, MachineError, command};
use corten_meta::address::Cidr;
use corten_nat64::{Ends, Translator};
use rustix::{
    fs::{Mode, OFlags},
    io::Errno,
    ioctl,
};
use tokio::{io::unix::AsyncFd, sync::Notify};

use crate::bridge;

const ENDS: Ends = Ends::LOCAL;
/// What devices' names begin with.
const DEVICE: &str = "cn64";
/// What an IPv6 packet is longer by than the same of IPv4.
const LONGER: usize = 20;
/// Of no device with IPv6 is less.
const MTU_MIN: usize = 1280;
/// Of a device that says none.
const ETHERNET: usize = 1500;
const PACKET_BYTES_MAX: usize = 64 << 10;
/// Packets that are translated before others on this thread have their turn.
const PACKETS_AT_ONCE: usize = 64;
/// How long after a failure it is tried again. The process before may still be there.
const RETRY_DELAY: Duration = Duration::from_secs(1);

const TUN: &str = "/dev/net/tun";
/// `TUNSETIFF` of `linux/if_tun.h`, and what it is told: packets of IP, and nothing before them.
const SET_DEVICE: ioctl::Opcode = 0x4004_54ca;
const IFF_TUN: u16 = 1;
const IFF_NO_PI: u16 = 0x1000;

/// `struct ifreq`, as far as it is read here.
#[repr(C)]
struct DeviceRequest {
    name: [u8; 16],
    flags: u16,
    rest: [u8; 22],
}

#[derive(Clone, Debug)]
pub(crate) struct Nat64 {
    device: String,
    bridge: String,
    /// The device may be another one.
    made: Arc<Notify>,
    is_told: Arc<AtomicBool>,
}

pub(crate) fn device(layout: &Layout) -> String {
    format!("{DEVICE}{}", layout.bridge.trim_start_matches("corten"))
}

/// Have Pods IPv6 alone?
fn is_needed(networks: &[String]) -> bool {
    !networks.is_empty() && networks.iter().all(|it| it.contains(':'))
}

/// What is added to the table that lets Pods out; nothing where it is not needed.
#[derive(Default)]
pub(crate) struct Rules {
    /// Before anything is known of a packet.
    pub(crate) guard: String,
    /// Where it leaves.
    pub(crate) leave: String,
    /// Whole chains.
    pub(crate) chains: String,
}

pub(crate) fn rules(networks: &[String]) -> Rules {
    if !is_needed(networks) {
        return Rules::default();
    }
    let Ends { prefix, inside, outside } = ENDS;
    Rules {
        // Nobody but this machine and its Pods is translated, and nobody reaches the ends themselves: what answers is turned back behind this.
        guard: format!(
            "\t\tip daddr {outside} drop\n\
             \t\tiifname != \"lo\" iifname != \"{DEVICE}*\" ip6 daddr {inside} drop\n\
             \t\tiifname != \"lo\" iifname != \"corten*\" ip6 daddr {prefix}/96 drop\n"
        ),
        leave: format!("\t\tip saddr {outside} masquerade\n"),
        // What belongs to no connection would leave untold whose it is.
        chains: format!(
            "\tchain translated {{\n\
             \t\ttype filter hook forward priority filter; policy accept;\n\
             \t\toifname \"{DEVICE}*\" ct state invalid drop\n\
             \t}}\n"
        ),
    }
}

fn ranges() -> [Cidr; 2] {
    [Cidr { address: ENDS.prefix.into(), bits: 96 }, Cidr { address: ENDS.outside.into(), bits: 32 }]
}

fn devices() -> impl Iterator<Item = String> {
    let devices = fs::read_dir("/sys/class/net").into_iter().flatten().flatten();
    devices.filter_map(|it| it.file_name().into_string().ok())
}

/// Does a process hold it?
fn is_served(device: &str) -> bool {
    fs::read_to_string(format!("/sys/class/net/{device}/carrier")).is_ok_and(|it| it.trim() == "1")
}

impl Nat64 {
    /// None where Pods have IPv4 themselves.
    pub(crate) fn new(layout: &Layout, networks: &[String]) -> Option<Self> {
        is_needed(networks).then(|| Self {
            device: device(layout),
            bridge: layout.bridge.clone(),
            made: Arc::default(),
            is_told: Arc::default(),
        })
    }

    /// Makes the device, and has the kernel send there what is to be translated. Harmless where that is done.
    pub(crate) async fn prepare(&self) -> Result<(), MachineError> {
        let device = &*self.device;
        if !bridge::is_there(device) {
            if !Path::new(TUN).exists() {
                // Where it is not to be had, the next line says so.
                let _ = command::run("modprobe", &["tun"], "").await;
            }
            ip(&["tuntap", "add", "dev", device, "mode", "tun"]).await?;
        }
        let mtu = (self.mtu() - LONGER).max(MTU_MIN).to_string();
        ip(&["link", "set", device, "mtu", &mtu, "up"]).await?;
        // What is masqueraded into the device has its address.
        ip(&["address", "replace", &format!("{}/128", ENDS.inside), "dev", device, "nodad"]).await?;
        for range in ranges().iter().filter(|it| !self.has_route(it)) {
            ip(&["route", "replace", &range.to_string(), "dev", device]).await?;
        }
        self.made.notify_one();
        Ok(())
    }

    /// What is no longer as [`Nat64::prepare`] made it.
    pub(crate) fn changed(&self) -> Option<String> {
        let device = &self.device;
        if !bridge::is_up(device) {
            return Some(format!("{device} is down or gone"));
        }
        if UdpSocket::bind((ENDS.inside, 0)).is_err() {
            return Some(format!("{device} has lost its address {}", ENDS.inside));
        }
        let lost = ranges().into_iter().find(|it| !self.has_route(it));
        lost.map(|it| format!("the route to {it} by {device} is gone"))
    }

    /// By its own device, or by another node's that is served: where several are on a machine, what one translates serves them all. A route
    /// of somebody else stays, and is told of.
    fn has_route(&self, range: &Cidr) -> bool {
        // Mostly it is there: other devices, of which each Pod has one, are not gone through.
        if bridge::has_route(&self.device, range) {
            return true;
        }
        let is_of_nodes = |it: &String| it.starts_with(DEVICE);
        let mut others = devices().filter(|it| *it != self.device && bridge::has_route(it, range));
        let Some(by) = others.find(|it| !is_of_nodes(it) || is_served(it)) else { return false };
        if !is_of_nodes(&by) && !self.is_told.swap(true, Ordering::Relaxed) {
            tracing::warn!(
                %range, by,
                "another has a route there, and what has IPv4 alone is not reached: take that route away, or let its device translate"
            );
        }
        true
    }

    /// Of the Pods' links.
    fn mtu(&self) -> usize {
        let said = fs::read_to_string(format!("/sys/class/net/{}/mtu", self.bridge)).ok();
        said.and_then(|it| it.trim().parse().ok()).filter(|it| *it > LONGER).unwrap_or(ETHERNET)
    }

    /// Translates what comes. Never returns.
    pub(crate) async fn serve(&self) {
        let mut told = None;
        loop {
            // Who holds on to a device that is gone is told nothing of that.
            let ended = tokio::select! {
                ended = self.translate(&mut told) => ended,
                () = self.made.notified() => continue,
            };
            let ended = Some(ended.to_string());
            // It is made a moment after this begins, and made again where it was taken away.
            if told != ended && bridge::is_there(&self.device) {
                tracing::warn!(device = self.device, error = ended, "what has IPv4 alone is not reached");
                told = ended;
            }
            tokio::time::sleep(RETRY_DELAY).await;
        }
    }

    /// Why it ended. `told` is what was said of that last.
    async fn translate(&self, told: &mut Option<String>) -> io::Error {
        const WELL: &str = "";
        match self.attach() {
            Ok(device) => {
                if told.as_deref() != Some(WELL) {
                    tracing::info!(device = self.device, "what has IPv4 alone is reached");
                    *told = Some(WELL.to_owned());
                }
                translate(&device, Translator::new(ENDS, self.mtu())).await
            }
            Err(error) => error,
        }
    }

    fn attach(&self) -> io::Result<AsyncFd<OwnedFd>> {
        // Who asks for a device that is not there gets one that goes with the process.
        if !bridge::is_there(&self.device) {
            return Err(io::Error::new(io::ErrorKind::NotFound, "the device is not there"));
        }
        let flags = OFlags::RDWR | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let fd = rustix::fs::open(TUN, flags, Mode::empty())?;
        let mut request = DeviceRequest { name: [0; 16], flags: IFF_TUN | IFF_NO_PI, rest: [0; 22] };
        let name = self.device.as_bytes();
        let place = request.name.get_mut(..name.len()).filter(|it| it.len() < 16);
        place.ok_or_else(|| io::Error::other("the device's name is too long"))?.copy_from_slice(name);
        #[expect(unsafe_code, reason = "rustix has no name for this request")]
        // SAFETY: the request reads one `struct ifreq`, which lives until it is done.
        unsafe {
            ioctl::ioctl(&fd, ioctl::Setter::<SET_DEVICE, DeviceRequest>::new(request))?;
        }
        #[expect(unsafe_code, reason = "the runtime waits for what it does not own")]
        // SAFETY: an `OwnedFd` is the same descriptor until it is dropped, which is after it was taken from the runtime.
        Ok(unsafe { AsyncFd::register(fd) }?)
    }
}

/// Why it ended.
async fn translate(device: &AsyncFd<OwnedFd>, mut translator: Translator) -> io::Error {
    let mut packet = vec![0; PACKET_BYTES_MAX];
    loop {
        let mut ready = match device.readable().await {
            Ok(ready) => ready,
            Err(error) => return error,
        };
        for _ in 0..PACKETS_AT_ONCE {
            match rustix::io::read(device, &mut packet) {
                // What the kernel does not take is lost, as on any link.
                Ok(length) => translator.translate(&packet[..length], |it| {
                    let _ = rustix::io::write(device, it);
                }),
                Err(Errno::AGAIN) => {
                    ready.clear_ready();
                    break;
                }
                Err(Errno::INTR) => {}
                Err(error) => return error.into(),
            }
        }
        drop(ready);
        tokio::task::yield_now().await;
    }
}

async fn ip(args: &[&str]) -> Result<(), MachineError> {
    command::run("ip", args, "").await.map(drop)
}
