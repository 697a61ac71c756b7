//! Which run of the machine this is.

use std::{fs, io};

/// Names this run of the machine: another after each boot.
pub fn boot_id() -> io::Result<String> {
    Ok(fs::read_to_string("/proc/sys/kernel/random/boot_id")?.trim().to_owned())
}
