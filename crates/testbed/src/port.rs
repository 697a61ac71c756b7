//! Ports for servers that begin later, and begin anew on the same port after they were killed.

use std::{
    net::TcpListener,
    ops::Range,
    process,
    sync::atomic::{AtomicU16, Ordering::Relaxed},
};

use anyhow::{Context, Result};

/// Below the ports that the kernel gives to clients (`net.ipv4.ip_local_port_range`), which could take one meanwhile, and
/// below the node ports.
const PORTS: Range<u16> = 20_000..30_000;

/// Tried after one another, so that no two of one process are the same; each process begins elsewhere.
static TRIED: AtomicU16 = AtomicU16::new(0);

pub fn free_port() -> Result<u16> {
    let room = PORTS.end - PORTS.start;
    let start = u16::try_from(process::id() % u32::from(room))?;
    (0..room)
        .map(|_| PORTS.start + (start + TRIED.fetch_add(1, Relaxed) % room) % room)
        .find(|it| TcpListener::bind(("127.0.0.1", *it)).is_ok())
        .context("looking for a free port: none from 20000 to 29999")
}
