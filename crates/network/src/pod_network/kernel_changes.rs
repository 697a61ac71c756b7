//! What the kernel tells of packet rules, links, addresses and routes (`netlink(7)`, `rtnetlink(7)`).

use std::{io, os::fd::OwnedFd};

use corten_machine::Layout;
use rustix::{
    io::Errno,
    net::{AddressFamily, Protocol, RecvFlags, SocketFlags, SocketType, bind, netlink, recv, socket_with},
};
use tokio::io::unix::AsyncFd;

use crate::{netlink::answers, nft::table_of};

/// Of the protocol `NETLINK_ROUTE`, which is number 0: links, addresses and routes of IPv4 and IPv6: the kernel's `RTMGRP_*`.
const ROUTE_GROUPS: u32 = 0x1 | 0x10 | 0x40 | 0x100 | 0x400;
/// `NFNLGRP_NFTABLES` as a bit.
const NFTABLES_GROUP: u32 = 1 << 6;
/// What a message tells of, behind the subsystem: `NFT_MSG_DELTABLE`, `…CHAIN`, `…RULE`.
const DELETIONS: [u16; 3] = [2, 5, 8];
/// `NFT_MSG_NEWCHAIN`, `…NEWRULE`: what can begin to drop.
const ADDITIONS: [u16; 2] = [3, 6];
const BUFFER: usize = 64 << 10;

/// What has changed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct KernelChange {
    /// Perhaps something of the node's own.
    pub(super) ours: bool,
    /// Others' packet rules.
    pub(super) others: bool,
}

pub(super) struct KernelWatcher {
    rules: AsyncFd<OwnedFd>,
    links: AsyncFd<OwnedFd>,
    /// How the node's own tables begin.
    own: String,
}

impl KernelWatcher {
    pub(super) fn listen(layout: &Layout) -> io::Result<Self> {
        Ok(Self {
            rules: listener(Some(netlink::NETFILTER), NFTABLES_GROUP)?,
            links: listener(None, ROUTE_GROUPS)?,
            own: layout.nft_table.clone(),
        })
    }

    /// Waits for the next of importance, and takes what came with it.
    pub(super) async fn next(&self) -> KernelChange {
        loop {
            let change = tokio::select! {
                change = read(&self.rules, |bytes| self.of_rules(bytes)) => change,
                change = read(&self.links, |_| KernelChange { ours: true, others: false }) => change,
            };
            if change != KernelChange::default() {
                return change;
            }
        }
    }

    fn of_rules(&self, bytes: &[u8]) -> KernelChange {
        let mut change = KernelChange::default();
        for message in answers(bytes) {
            let kind = message.kind & 0xff;
            let (is_deletion, is_addition) = (DELETIONS.contains(&kind), ADDITIONS.contains(&kind));
            // Behind the netfilter header. Tables of another node of this machine begin like ours: a look too many.
            let is_own = table_of(message.body).is_some_and(|it| it.starts_with(&self.own));
            change.ours |= is_own && is_deletion;
            change.others |= !is_own && (is_deletion || is_addition);
        }
        change
    }
}

#[expect(unsafe_code, reason = "the runtime must trust that the socket stays open as long as it waits for it")]
fn listener(protocol: Option<Protocol>, groups: u32) -> io::Result<AsyncFd<OwnedFd>> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let socket = socket_with(AddressFamily::NETLINK, SocketType::RAW, flags, protocol)?;
    bind(&socket, &netlink::SocketAddrNetlink::new(0, groups))?;
    // SAFETY: what is registered owns the socket, and closes it only when it is no longer registered.
    Ok(unsafe { AsyncFd::register(socket) }?)
}

/// All that is there, once there is something.
async fn read(socket: &AsyncFd<OwnedFd>, judge: impl Fn(&[u8]) -> KernelChange) -> KernelChange {
    let mut change = KernelChange::default();
    // Where nothing can be waited for nothing is told: the look by the clock is left.
    let Ok(mut guard) = socket.readable().await else { return std::future::pending().await };
    let mut buffer = vec![0; BUFFER];
    loop {
        match recv(socket.get_ref(), &mut *buffer, RecvFlags::empty()) {
            Ok((n, _)) => {
                let it = judge(&buffer[..n]);
                change = KernelChange { ours: change.ours || it.ours, others: change.others || it.others };
            }
            Err(Errno::INTR) => {}
            // More came than there was room for: anything may have changed.
            Err(Errno::NOBUFS) => change = KernelChange { ours: true, others: true },
            Err(_) => {
                guard.clear_ready();
                return change;
            }
        }
    }
}
