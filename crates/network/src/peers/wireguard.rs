//! WireGuard as the tunnel to other nodes: the kernel's own, asked by generic netlink.
//!
//! This node's private key is made once and stays in its file. The public key that belongs to it is what the kernel makes of it, and
//! is told to others by the Node.

mod messages;

use std::{
    collections::BTreeMap,
    fs, io,
    net::IpAddr,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use corten_machine::{Doing, Layout, MachineError, write_whole};
use corten_meta::address::Cidr;
use corten_proxy::{PublicKey, RefusedWay, WIREGUARD_PORT, WireGuardTunnel, peer_changes};

use super::{batch, ip, mtu_of, own_addresses, remove_device, wireguard_device};
use crate::{bridge::is_there, netlink::blocking};
use messages::{Device, PrivateKey, Socket};

/// So many changes go into one message: an attribute is at most 64 KiB long.
const CHANGES_MAX: usize = 100;
/// `EADDRINUSE`, as `ip` and the kernel say it.
const IN_USE: &str = "Address already in use";

/// This node's end of the tunnel. Clones are the same.
#[derive(Clone, Debug)]
pub struct WireGuard {
    device: String,
    key_file: PathBuf,
    state: Arc<Mutex<State>>,
}

#[derive(Debug, Default)]
struct State {
    public_key: Option<PublicKey>,
    /// Why there is no tunnel, as it was last looked at.
    problem: Option<String>,
    is_lacking: bool,
    /// Where the kernel was told that each peer is.
    told: BTreeMap<PublicKey, IpAddr>,
}

impl WireGuard {
    pub fn new(layout: &Layout) -> Self {
        let key_file = layout.data.join("kubelet/pki/wireguard.key");
        Self { device: wireguard_device(layout), key_file, state: Arc::default() }
    }

    /// Makes this node's end, with its key. Harmless where it is there.
    pub(super) async fn prepare(&self) -> Result<(), MachineError> {
        self.noted(self.make().await).map(drop)
    }

    pub(super) fn device(&self) -> &str {
        &self.device
    }

    /// What others encrypt by; nothing before the kernel has said it.
    pub fn public_key(&self) -> Option<PublicKey> {
        self.state().public_key
    }

    /// Why no Pod of another node is reached; nothing where they are.
    pub fn problem(&self) -> Option<String> {
        self.state().problem.clone()
    }

    /// Has the kernel none?
    pub fn is_lacking(&self) -> bool {
        self.state().is_lacking
    }

    /// Makes the device have these peers and no others, and be up.
    pub(super) async fn put(
        &self,
        tunnel: &WireGuardTunnel,
        networks: &[Cidr],
    ) -> Result<Vec<RefusedWay>, MachineError> {
        self.noted(self.try_put(tunnel, networks).await)
    }

    /// Takes the device away. Harmless where it is gone. The key stays.
    pub(super) async fn remove(&self) -> Result<(), MachineError> {
        if !is_there(&self.device) {
            return Ok(());
        }
        self.state().told.clear();
        remove_device(&self.device).await
    }

    async fn try_put(&self, tunnel: &WireGuardTunnel, networks: &[Cidr]) -> Result<Vec<RefusedWay>, MachineError> {
        let Device { peers, .. } = self.make().await?;
        let device = self.device.as_str();
        let underlay = match tunnel.node {
            Some(node) => mtu_of(node).await,
            None => super::ETHERNET,
        };
        let mtu = underlay.saturating_sub(tunnel.overhead()).to_string();
        let there = ip(&["-o", "link", "show", "dev", device]).await?;
        if ![format!(" mtu {mtu} "), "UP".to_owned()].iter().all(|it| there.contains(it.as_str())) {
            ip(&["link", "set", device, "mtu", &mtu, "up"]).await.map_err(taken)?;
        }
        let refused = batch("ip", &own_addresses(device, networks)).await?;
        let changes = peer_changes(&tunnel.peers, &self.state().told, &peers);
        if !changes.is_empty() {
            tracing::info!(changes = changes.len(), "WireGuard's peers are changed");
            let device = self.device.clone();
            let told = tunnel.peers.iter().map(|(key, it)| (*key, it.node)).collect();
            blocking("change WireGuard's peers", move || {
                let mut socket = Socket::open()?.ok_or(io::ErrorKind::Unsupported)?;
                changes.chunks(CHANGES_MAX).try_for_each(|it| socket.set_peers(&device, it))
            })
            .await?;
            self.state().told = told;
        }
        Ok(refused)
    }

    /// The device as it is, with this node's key and port.
    async fn make(&self) -> Result<Device, MachineError> {
        let private = private_key(&self.key_file)?;
        let device = self.device.clone();
        let found = blocking("look for WireGuard", move || match Socket::open()? {
            Some(mut socket) => socket.device(&device).map(Some),
            None => Ok(None),
        })
        .await?;
        self.state().is_lacking = found.is_none();
        let found = found.ok_or_else(|| MachineError::Missing(lack()))?;
        if found.is_none() {
            ip(&["link", "add", "dev", &self.device, "type", "wireguard"]).await?;
        }
        if let Some(found) = found.filter(|it| it.is_set(&private, WIREGUARD_PORT)) {
            self.state().public_key = found.public_key;
            return Ok(found);
        }
        let device = self.device.clone();
        let made = blocking("set WireGuard's key", move || {
            let mut socket = Socket::open()?.ok_or(io::ErrorKind::Unsupported)?;
            socket.set_device(&device, &private, WIREGUARD_PORT)?;
            socket.device(&device)?.ok_or(io::ErrorKind::NotFound.into())
        });
        let made = made.await.map_err(taken)?;
        self.state().public_key = made.public_key;
        Ok(made)
    }

    /// What fails is known to whoever asks how the tunnel is.
    pub(super) fn noted<T>(&self, result: Result<T, MachineError>) -> Result<T, MachineError> {
        self.state().problem = result.as_ref().err().map(ToString::to_string);
        result
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Why this machine can have no such tunnel; nothing where it can. The kernel loads what it has of it.
///
/// # Errors
/// The kernel does not answer.
pub fn wireguard_lack() -> io::Result<Option<String>> {
    Ok(Socket::open()?.is_none().then(lack))
}

fn lack() -> String {
    let release = rustix::system::uname().release().to_string_lossy().into_owned();
    format!(
        "this machine's kernel has no WireGuard (Linux {release} knows no generic netlink family of that name, and loads no module \
         for it): boot one with CONFIG_WIREGUARD, which Linux has since 5.6, or have all nodes use `--pod-network vxlan`"
    )
}

/// Another tunnel has the port: of a program, or of the kernel's own, which no list of sockets shows.
fn taken(error: MachineError) -> MachineError {
    if !error.to_string().contains(IN_USE) {
        return error;
    }
    MachineError::Missing(format!(
        "UDP port {WIREGUARD_PORT}, by which nodes reach each other with WireGuard, is another's on this machine: `ip link show type \
         wireguard` and `ss -lunp sport = {WIREGUARD_PORT}` say whose"
    ))
}

/// The node's own, made where there is none.
fn private_key(file: &Path) -> Result<PrivateKey, MachineError> {
    match fs::read_to_string(file) {
        Ok(text) => {
            let key = PublicKey::parse(text.trim()).map(|it| PrivateKey::new(it.0));
            key.ok_or_else(|| {
                let file = file.display();
                MachineError::Missing(format!("{file} holds no WireGuard key: remove it, and another one is made"))
            })
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let mut bytes = [0; 32];
            aws_lc_rs::rand::fill(&mut bytes)
                .map_err(|_| io::Error::other("the system gives no random numbers"))
                .doing("make", file)?;
            let key = PrivateKey::new(bytes);
            let folder = file.parent().expect("it is in a folder");
            fs::create_dir_all(folder).doing("create", folder)?;
            write_whole(file, 0o600, format!("{}\n", key.text()).as_bytes()).doing("write", file)?;
            Ok(key)
        }
        Err(error) => Err(error).doing("read", file),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn a_key_is_made_once_and_is_nobody_elses_to_read() {
        let dir = tempfile::tempdir().expect("a temporary folder");
        let file = dir.path().join("kubelet/pki/wireguard.key");
        let first = private_key(&file).expect("made").text();
        assert_eq!(private_key(&file).expect("read").text(), first);
        assert_eq!(fs::metadata(&file).expect("there").permissions().mode() & 0o777, 0o600);
        let text = fs::read_to_string(&file).expect("text");
        assert_eq!((text.len(), text.trim()), (45, &*first));
        let other = private_key(&dir.path().join("other")).expect("made").text();
        assert_ne!(other, first);
        fs::write(&file, "half of a k").expect("written");
        let error = private_key(&file).err().expect("refused").to_string();
        assert!(error.ends_with("wireguard.key holds no WireGuard key: remove it, and another one is made"), "{error}");
    }

    #[test]
    fn a_port_that_is_anothers_is_named() {
        let said = |message: &str| {
            taken(MachineError::Command { program: "ip".to_owned(), message: message.to_owned() }).to_string()
        };
        assert!(said("RTNETLINK answers: Address already in use").starts_with("UDP port 51820, "));
        assert_eq!(said("RTNETLINK answers: No such device"), "ip: RTNETLINK answers: No such device");
    }

    /// On a kernel with WireGuard the device is made, with its key; on one without, it is said what is missing.
    #[test]
    fn the_kernel_has_it_or_says_so() {
        crate::nft::tests::in_own_network(|| {
            let dir = tempfile::tempdir().expect("a temporary folder");
            let wireguard = WireGuard::new(&Layout::new(dir.path(), "/run/corten"));
            let prepared = crate::peers::tests::block(wireguard.prepare());
            match wireguard_lack().expect("an answer") {
                Some(lack) => {
                    eprintln!("not tried: this kernel has no WireGuard");
                    assert_eq!(prepared.err().map(|it| it.to_string()), Some(lack.clone()));
                    assert_eq!((wireguard.problem(), wireguard.is_lacking()), (Some(lack), true));
                    assert_eq!(wireguard.public_key(), None);
                }
                None => with_the_kernel(&wireguard),
            }
        });
    }

    fn with_the_kernel(wireguard: &WireGuard) {
        use corten_proxy::WireGuardPeer;

        use crate::peers::tests::{block, run};

        let key = wireguard.public_key().expect("the kernel has made one");
        assert_eq!((wireguard.problem(), wireguard.is_lacking()), (None, false));
        let range = |text: &str| Cidr::parse(text).expect("a range");
        let peer = |last: u8, ranges: &[&str]| {
            let ranges = ranges.iter().map(|it| range(it)).collect();
            (PublicKey([last; 32]), WireGuardPeer { node: [192, 0, 2, last].into(), ranges })
        };
        let own = [range("10.244.0.0/24"), range("fd00:10:244::/64")];
        let put = |peers: &[(PublicKey, WireGuardPeer)]| {
            let tunnel = WireGuardTunnel { peers: peers.iter().cloned().collect(), ..WireGuardTunnel::default() };
            assert_eq!(block(wireguard.put(&tunnel, &own)).expect("taken"), []);
            let device = block(wireguard.make()).expect("there");
            let ranges = device.peers.iter().map(|(key, it)| (key.0[0], it.ranges.len(), it.endpoint));
            ranges.collect::<Vec<_>>()
        };
        let two = peer(2, &["10.244.2.0/24", "fd00:10:244:2::/64"]);
        let endpoint = |last: u8| Some(([192, 0, 2, last], WIREGUARD_PORT).into());
        assert_eq!(put(&[two.clone(), peer(3, &["10.244.3.0/24"])]), [(2, 2, endpoint(2)), (3, 1, endpoint(3))]);
        assert!(run("ip -o link show dev cwg0").contains(" mtu 1440 "));
        assert!(run("ip -o address show dev cwg0").contains("10.244.0.0/32"));
        // Of many, and with a range that has gone to another.
        let many: Vec<_> = (2..=250).map(|it| peer(it, &[&*format!("10.244.{}.0/24", 255 - it)])).collect();
        assert_eq!(put(&many).len(), many.len());
        assert_eq!(put(&[two]), [(2, 2, endpoint(2))]);
        block(wireguard.remove()).expect("removed");
        block(wireguard.remove()).expect("harmless");
        block(wireguard.prepare()).expect("made again");
        assert_eq!(wireguard.public_key(), Some(key), "the key stays");
    }
}
