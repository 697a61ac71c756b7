//! The whole of `e2e/node` in a machine: this program plays it there.

use std::{path::Path, process::Stdio};

use anyhow::Result;
use corten_testbed::root;

use super::{
    Args,
    payload::{Payload, SUITE_IMAGES},
    shell::Machines,
};
use crate::machine::Suite;

/// Scripts of Services ask by both families. The address is one for documentation (RFC 3849), and its way out leads nowhere.
const IPV6: &str = "ip -6 address replace 2001:db8:77::1/64 dev eth1 nodad && ip -6 route replace default via 2001:db8:77::fe dev eth1";

/// Whether all scripts passed. What they print goes to whoever looks on.
pub(super) fn play(args: &Args, suite: Suite, base: &Path, payload: &Payload) -> Result<bool> {
    let mut machines = Machines::new(args, suite, base.to_owned(), payload);
    machines.machine(1)?;
    let slowness = crate::e2e::Shell::slowness(&machines);
    let filter = &args.filter;
    let command = format!(
        "{IPV6} && cd '{}' && export HOME=/root && xtask e2e '{filter}' --suite node --corten /usr/local/bin/corten --images {SUITE_IMAGES} --slowness {slowness:.1}",
        root()?.display()
    );
    let status = machines.machine(1)?.command(&command).stdin(Stdio::null()).status()?;
    if args.keep {
        machines.say_what_is_kept();
    } else {
        machines.remove()?;
    }
    Ok(status.success())
}
