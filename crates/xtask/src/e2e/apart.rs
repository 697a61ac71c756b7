//! A network of its own for a lane of scripts: two nodes of one machine have the same addresses for Pods and Services.

use std::{
    env,
    io::{BufRead, BufReader},
    process::{Command, Stdio},
};

use anyhow::{Context, Result, bail};

use super::Tally;

/// Loopback, and a way out that leads nowhere, at addresses for documentation (RFC 5737, and RFC 3849 where the machine has
/// IPv6). The kernel shows the devices of a network in the `/sys` that was mounted in it.
const SETUP: &str = "set -e
ip link set lo up
ip link add out0 type veth peer name out1
ip link set out0 up
ip link set out1 up
ip address add 192.0.2.2/24 dev out0
ip route add default via 192.0.2.1
if [ \"$(cat /proc/sys/net/ipv6/conf/all/disable_ipv6 2>/dev/null)\" = 0 ]; then
ip address add 2001:db8:2::2/64 dev out0 nodad
ip -6 route add default via 2001:db8:2::1
fi
mount -t sysfs sysfs /mnt
mount --bind /mnt/devices/virtual/net /sys/devices/virtual/net
mount --bind /mnt/class/net /sys/class/net
umount /mnt
exec \"$@\"";

/// Plays the lane in a process of its own, with the options of this one. Its network and its mounts go with its last process.
pub(super) fn play(lane: usize) -> Result<Tally> {
    let own = env::current_exe().context("finding this program")?;
    let mut child = Command::new("unshare")
        .args(["--net", "--mount", "bash", "-c", SETUP, "apart"])
        .arg(own)
        .args(env::args_os().skip(1))
        .args(["--lane", &lane.to_string()])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .context("running unshare")?;
    let output = child.stdout.take().context("its output is piped")?;
    let mut last = String::new();
    for line in BufReader::new(output).lines() {
        last = line.context("reading what the lane prints")?;
        if Tally::parse(&last).is_none() {
            println!("{last}");
        }
    }
    let status = child.wait().context("waiting for the lane")?;
    let Some(tally) = Tally::parse(&last) else { bail!("the lane apart ended with {status}, before its scripts did") };
    Ok(tally)
}
