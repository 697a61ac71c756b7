//! A whole Debian machine in QEMU.

use std::{path::PathBuf, process::Command};

use anyhow::{Context, Result};

use super::plug::Machine;
use crate::{
    machine::{Arch, Boot, Guest, GuestSpec, slowness},
    machines::Payload,
};

/// Where the API is served in the machine.
const PORT: u16 = 6443;
/// A registry of the machine's own, for everybody and without encryption: Debian's configuration asks for a password.
const REGISTRY: &str = "printf '%s\n' 'version: 0.1' 'storage: {filesystem: {rootdirectory: /var/lib/docker-registry}}' \
                        'http: {addr: \"127.0.0.1:5000\"}' > /etc/docker/registry/config.yml && \
                        systemctl enable -q docker-registry && systemctl restart docker-registry && sync";

/// What its machines are made of.
pub(super) struct Emulation {
    pub(super) base: PathBuf,
    pub(super) payload: Payload,
    pub(super) memory_mib: u32,
    pub(super) is_kept: bool,
}

pub(super) struct Emulated {
    guest: Guest,
    port: u16,
}

impl Emulation {
    /// One that is on, and on which Corten has never run.
    pub(super) fn machine(&self, number: usize) -> Result<Emulated> {
        let mut guest = Guest::make(&GuestSpec {
            name: &format!("powercut-{}-{number}", std::process::id()),
            host_name: "machine-1",
            base: &self.base,
            arch: Arch::Amd64,
            memory_mib: self.memory_mib,
            payload: Some(&self.payload.path()),
            ports: &[PORT],
            is_kept: self.is_kept,
        })?;
        let port = guest.port(PORT).context("the API's port is forwarded")?;
        guest.boot(&Boot::default())?;
        guest.output(REGISTRY)?;
        Ok(Emulated { guest, port })
    }
}

impl Machine for Emulated {
    fn name(&self) -> String {
        format!("{}; `cargo xtask guest` goes on with it, and `guest rm` removes it", self.guest.name())
    }

    fn command(&self, script: &str) -> Command {
        self.guest.command(&format!("export HOME=/root\n{script}"))
    }

    fn up(&self) -> &'static str {
        "corten up --bind 0.0.0.0 --timeout 900"
    }

    fn server(&self) -> String {
        format!("https://127.0.0.1:{}", self.port)
    }

    fn look(&self) -> &'static str {
        "df -h /; journalctl -q -b -p warning --no-pager | tail -n 20"
    }

    fn fill_registry(&self, n_images: usize) -> Result<()> {
        let fill = format!("e2e/machine/fill-registry /usr/local/share/corten/images/demo.tar {n_images} && sync");
        self.output(&super::cluster::within(&fill)?).map(drop)
    }

    fn cut(&mut self) -> Result<()> {
        self.guest.cut()
    }

    fn boot(&mut self, _has_cluster: bool) -> Result<()> {
        self.guest.boot(&Boot::default())
    }

    fn starts_at_boot(&self) -> bool {
        let units = self.guest.output("systemctl list-unit-files --no-legend --state=enabled 'corten*'");
        units.is_ok_and(|it| !it.is_empty())
    }

    fn booted(&self) -> Result<String> {
        self.guest.booted()
    }

    fn slowness(&self) -> Result<f64> {
        slowness(&self.guest)
    }

    fn remove(self: Box<Self>) -> Result<()> {
        self.guest.remove()
    }
}
