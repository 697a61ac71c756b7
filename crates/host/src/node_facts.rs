//! What the node's status says of the machine.

use std::{collections::BTreeMap, fs, net::IpAddr, path::Path};

use corten_machine::{Layout, boot_id};

use crate::containerd;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NodeFacts {
    pub hostname: String,
    pub cpus: u32,
    pub memory_bytes: u64,
    /// Of the file system that holds the node's data.
    pub storage_bytes: u64,
    pub architecture: String,
    pub operating_system: String,
    pub kernel_version: String,
    pub os_image: String,
    pub machine_id: String,
    pub system_uuid: String,
    pub boot_id: String,
    /// Of each size of huge pages (`2Mi`), how many bytes the machine has set aside.
    pub hugepages: BTreeMap<String, i64>,
    /// The kernel has AppArmor, and profiles can be loaded.
    pub app_armor: bool,
    pub se_linux: bool,
    /// The addresses the machine is reached at: of its default routes, IPv4 first.
    pub addresses: Vec<IpAddr>,
}

pub fn gather(layout: &Layout) -> NodeFacts {
    let system = rustix::system::uname();
    let text = |it: &std::ffi::CStr| it.to_string_lossy().into_owned();
    let read = |path: &str| fs::read_to_string(path).unwrap_or_default().trim().to_owned();
    let machine_id = read("/etc/machine-id");
    let system_uuid = Some(read("/sys/class/dmi/id/product_uuid")).filter(|it| !it.is_empty());
    NodeFacts {
        hostname: text(system.nodename()).to_lowercase(),
        cpus: count_cpus(&read("/sys/devices/system/cpu/online")),
        memory_bytes: memory_bytes(&read("/proc/meminfo")),
        storage_bytes: rustix::fs::statvfs(&layout.data).map_or(0, |it| it.f_blocks.saturating_mul(it.f_frsize)),
        architecture: architecture(&text(system.machine())),
        operating_system: "linux".to_owned(),
        kernel_version: text(system.release()),
        os_image: pretty_name(&read("/etc/os-release")),
        system_uuid: system_uuid.unwrap_or_else(|| machine_id.clone()),
        machine_id,
        boot_id: boot_id().unwrap_or_default(),
        hugepages: hugepages(),
        app_armor: containerd::apparmor_works(),
        se_linux: Path::new("/sys/fs/selinux/enforce").exists(),
        addresses: corten_network::addresses(),
    }
}

/// Each folder is named `hugepages-2048kB`. As in cAdvisor's `GetHugePagesInfo`: a size of which there are none is one, too.
fn hugepages() -> BTreeMap<String, i64> {
    let entries = fs::read_dir("/sys/kernel/mm/hugepages").into_iter().flatten().flatten();
    let one = |entry: fs::DirEntry| {
        let name = entry.file_name().into_string().ok()?;
        let count: i64 = fs::read_to_string(entry.path().join("nr_hugepages")).ok()?.trim().parse().ok()?;
        let (size, bytes) = page_size(&name)?;
        Some((size, count.saturating_mul(i64::try_from(bytes).ok()?)))
    };
    entries.filter_map(one).collect()
}

/// The size that such a folder is about, in Kubernetes' words and in bytes.
pub(crate) fn page_size(folder: &str) -> Option<(String, u64)> {
    let kib: u64 = folder.strip_prefix("hugepages-")?.strip_suffix("kB")?.parse().ok()?;
    let size = match kib {
        kib if kib % (1 << 20) == 0 => format!("{}Gi", kib >> 20),
        kib if kib % (1 << 10) == 0 => format!("{}Mi", kib >> 10),
        kib => format!("{kib}Ki"),
    };
    Some((size, kib.saturating_mul(1024)))
}

/// All memory of the machine.
pub(crate) fn memory_total() -> u64 {
    memory_bytes(&fs::read_to_string("/proc/meminfo").unwrap_or_default())
}

/// What programs could have at once, as the kernel estimates it: most of what it has read of files counts.
pub(crate) fn memory_available() -> u64 {
    bytes_of(&fs::read_to_string("/proc/meminfo").unwrap_or_default(), "MemAvailable:")
}

pub(crate) fn cpus() -> u32 {
    count_cpus(fs::read_to_string("/sys/devices/system/cpu/online").unwrap_or_default().trim())
}

/// When the machine started.
pub(crate) fn boot_time() -> jiff::Timestamp {
    let stat = fs::read_to_string("/proc/stat").unwrap_or_default();
    let line = stat.lines().find_map(|it| it.strip_prefix("btime "));
    line.and_then(|it| jiff::Timestamp::from_second(it.trim().parse().ok()?).ok()).unwrap_or_default()
}

/// Kubernetes names architectures as Go does.
fn architecture(machine: &str) -> String {
    match machine {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        "i386" | "i686" => "386",
        "armv6l" | "armv7l" => "arm",
        other => other,
    }
    .to_owned()
}

/// Counts the CPUs of a list such as `0-3,8`.
fn count_cpus(online: &str) -> u32 {
    let spans = online.split(',').filter_map(|span| {
        let (first, last) = span.split_once('-').unwrap_or((span, span));
        Some(last.trim().parse::<u32>().ok()?.checked_sub(first.trim().parse().ok()?)? + 1)
    });
    spans.sum::<u32>().max(1)
}

fn memory_bytes(meminfo: &str) -> u64 {
    bytes_of(meminfo, "MemTotal:")
}

fn bytes_of(meminfo: &str, name: &str) -> u64 {
    let line = meminfo.lines().find_map(|it| it.strip_prefix(name));
    line.and_then(|it| it.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()).unwrap_or(0) * 1024
}

fn pretty_name(os_release: &str) -> String {
    let name = os_release.lines().find_map(|it| it.strip_prefix("PRETTY_NAME="));
    name.unwrap_or("Linux").trim_matches('"').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_what_the_kernel_writes() {
        for (text, expected) in [("0-1", 2), ("0", 1), ("0-3,8,10-11", 7), ("", 1)] {
            assert_eq!(count_cpus(text), expected, "{text}");
        }
        assert_eq!(memory_bytes("MemFree: 1 kB\nMemTotal:       24684176 kB\n"), 24_684_176 * 1024);
        assert_eq!(bytes_of("MemFree: 1 kB\nMemAvailable:     352664 kB\n", "MemAvailable:"), 352_664 * 1024);
        assert_eq!(
            pretty_name("NAME=x\nPRETTY_NAME=\"Debian GNU/Linux 12 (bookworm)\"\n"),
            "Debian GNU/Linux 12 (bookworm)"
        );
        assert_eq!(architecture("x86_64"), "amd64");
    }

    #[test]
    fn finds_this_machine() {
        let facts = gather(&Layout::new("/", "/run/corten"));
        assert!(facts.memory_bytes > 0 && facts.storage_bytes > 0 && !facts.kernel_version.is_empty());
        assert!(!facts.hostname.is_empty() && !facts.boot_id.is_empty() && !facts.addresses.is_empty());
    }
}
