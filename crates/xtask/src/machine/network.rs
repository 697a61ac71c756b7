//! What guests are told apart by: a number, which is in their addresses on the network that all of them share.

use std::{
    fs::{self, File},
    net::Ipv4Addr,
    path::Path,
};

use anyhow::{Context, Result};

use super::{folder, guest::Settings};

const NUMBERS: std::ops::Range<u8> = 1..100;
/// Multicast on the loopback device carries the frames. It needs neither a bridge nor root.
pub(super) const CARRIER: &str = "239.77.0.1:7701";

pub(super) fn address(number: u8) -> Ipv4Addr {
    Ipv4Addr::new(10, 77, 0, number)
}

/// Nobody has it: a default route that leads nowhere, so that no guest reaches the outside.
pub(super) const GATEWAY: Ipv4Addr = Ipv4Addr::new(10, 77, 0, 254);

pub(super) fn hardware_address(number: u8) -> String {
    format!("52:54:00:77:00:{number:02x}")
}

/// Calls `make` with a number that no other guest has; it is taken once the guest's settings are written.
pub(super) fn with_free_number<T>(make: impl FnOnce(u8) -> Result<T>) -> Result<T> {
    let guests = folder().join("guests");
    fs::create_dir_all(&guests).with_context(|| format!("making {}", guests.display()))?;
    let lock = File::create(guests.join("lock"))?;
    lock.lock().context("waiting for the list of guests")?;
    let taken: Vec<u8> = numbers(&guests)?;
    let number = NUMBERS.into_iter().find(|it| !taken.contains(it)).context("too many guests are there")?;
    make(number)
}

fn numbers(guests: &Path) -> Result<Vec<u8>> {
    let folders = fs::read_dir(guests)?.filter_map(|it| it.ok().map(|it| it.path()));
    Ok(folders.filter_map(|it| Settings::read(&it).ok()).map(|it| it.number).collect())
}
