//! QEMU's command line.

use std::{path::Path, process::Command};

use super::{
    Arch,
    guest::{Boot, Settings},
    network::{CARRIER, GATEWAY, address, hardware_address},
};

/// `is_owned`: the guest ends with the thread that starts it, however that ends.
pub(super) fn command(settings: &Settings, boot: &Boot, dir: &Path, is_owned: bool) -> Command {
    let mut command = Command::new("setpriv");
    if is_owned {
        command.args(["--pdeathsig", "KILL"]);
    } else {
        command.args(["--pdeathsig", "clear", "setsid"]);
    }
    let console = match settings.arch {
        Arch::Amd64 => {
            command.args(["qemu-system-x86_64", "-cpu", "max,la57=off"]);
            "ttyS0"
        }
        Arch::Arm64 => {
            command.args(["qemu-system-aarch64", "-machine", "virt", "-cpu", "cortex-a72"]);
            "ttyAMA0"
        }
    };
    let path = |name: &str| dir.join(name).display().to_string();
    let base = |name: &str| settings.base.join(name).display().to_string();
    command
        .args(["-accel", "tcg,thread=multi", "-smp", "2", "-m", &settings.memory_mib.to_string()])
        .args(["-kernel", &base("kernel"), "-initrd", &base("initrd")])
        .args(["-append", &kernel_words(settings, boot, console)])
        // The host's page cache outlives QEMU: what the guest's kernel has handed over is there after a cut.
        .args(["-drive", &format!("file={},format=qcow2,if=virtio,cache=writeback", path("disk"))]);
    // It is gone with whoever made it, and has been unpacked by then.
    if let Some(payload) = settings.payload.as_ref().filter(|it| it.exists()) {
        command.args(["-drive", &format!("file={},format=raw,if=virtio,readonly=on", payload.display())]);
    }
    let mut inside = format!("user,id=inside,restrict=on,hostfwd=tcp:127.0.0.1:{}-:22", settings.ssh_port);
    for (here, there) in &settings.forwards {
        inside.push_str(&format!(",hostfwd=tcp:127.0.0.1:{here}-:{there}"));
    }
    let network = format!("virtio-net-pci,netdev=machines,mac={}", hardware_address(settings.number));
    command
        .args(["-netdev", &inside, "-device", "virtio-net-pci,netdev=inside"])
        .args(["-netdev", &format!("socket,id=machines,mcast={CARRIER},localaddr=127.0.0.1"), "-device", &network])
        .args(["-device", "virtio-rng-pci", "-display", "none", "-monitor", "none"])
        .args([
            "-chardev",
            &format!("file,id=console,path={},append=on", path("console")),
            "-serial",
            "chardev:console",
        ]);
    if let Some(clock) = &boot.clock {
        command.args(["-rtc", &format!("base={clock}")]);
    }
    command
}

fn kernel_words(settings: &Settings, boot: &Boot, console: &str) -> String {
    let (address, host_name) = (address(settings.number), &settings.host_name);
    let words = boot.kernel_words.as_deref().unwrap_or_default();
    // The base disk has a unit that reads `machine.…`. An emulated processor now and then stumbles over an instruction that the
    // kernel replaces while it starts: a kernel that panics starts again. Where others use the processors no tick may come
    // while the kernel looks whether its timer ticks, and Debian 12's would panic for it.
    format!(
        "root=/dev/vda rw console={console} net.ifnames=0 quiet panic=1 mitigations=off no_timer_check systemd.hostname={host_name} \
         machine.address={address}/24 machine.gateway={GATEWAY} {words}"
    )
}
