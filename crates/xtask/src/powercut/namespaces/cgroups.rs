//! The cgroups of a machine of namespaces: below one group in each hierarchy, which no boot of a real machine finds again.

use std::{fs, path::Path};

const ROOT: &str = "/sys/fs/cgroup";
const PREFIX: &str = "corten-powercut-";

/// Of the machine that this process has: there is one at a time.
pub(super) fn name() -> String {
    format!("{PREFIX}{}", std::process::id())
}

/// Removes groups of machines that are off, and of those whose process was killed.
pub(super) fn sweep() {
    let is_left = |name: &str| {
        let pid = name.strip_prefix(PREFIX);
        pid.is_some_and(|it| name == self::name() || !Path::new("/proc").join(it).exists())
    };
    let folders = |path: &Path| {
        let entries = fs::read_dir(path).into_iter().flatten().flatten();
        entries.map(|it| it.path()).filter(|it| it.is_dir() && !it.is_symlink()).collect::<Vec<_>>()
    };
    let of_root = folders(Path::new(ROOT));
    let deeper: Vec<_> = of_root.iter().flat_map(|it| folders(it)).collect();
    for group in of_root.iter().chain(&deeper) {
        if group.file_name().is_some_and(|it| is_left(&it.to_string_lossy())) {
            remove(group);
        }
    }
}

/// One that still has processes stays: the kernel refuses.
fn remove(group: &Path) {
    let below = fs::read_dir(group).into_iter().flatten().flatten();
    for it in below.filter(|it| it.file_type().is_ok_and(|it| it.is_dir())) {
        remove(&it.path());
    }
    let _ = fs::remove_dir(group);
}
