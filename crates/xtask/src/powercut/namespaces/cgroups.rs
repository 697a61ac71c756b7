//! The cgroups of a machine of namespaces: below one group in each hierarchy, which no boot of a real machine finds again.

use std::{
    fs,
    path::{Path, PathBuf},
};

const ROOT: &str = "/sys/fs/cgroup";
const PREFIX: &str = "corten-powercut-";

/// Of the machine that this process has: there is one at a time.
pub(super) fn name() -> String {
    format!("{PREFIX}{}", std::process::id())
}

/// Lets go what a runtime held still when the plug was pulled: it freezes a container while it signals all of its processes, and none
/// that is frozen ends.
pub(super) fn thaw() {
    for group in groups().filter(|it| it.file_name().is_some_and(|it| it.to_string_lossy() == name())) {
        thaw_below(&group);
    }
}

fn thaw_below(group: &Path) {
    for (file, thawed) in [("freezer.state", "THAWED"), ("cgroup.freeze", "0")] {
        let path = group.join(file);
        if path.exists() {
            // The group of who is gone may be gone, too.
            let _ = fs::write(path, thawed);
        }
    }
    folders(group).iter().for_each(|it| thaw_below(it));
}

/// Removes groups of machines that are off, and of those whose process was killed.
pub(super) fn sweep() {
    let is_left = |name: &str| {
        let pid = name.strip_prefix(PREFIX);
        pid.is_some_and(|it| name == self::name() || !Path::new("/proc").join(it).exists())
    };
    groups().filter(|it| it.file_name().is_some_and(|it| is_left(&it.to_string_lossy()))).for_each(|it| remove(&it));
}

/// The groups at the top of each hierarchy.
fn groups() -> impl Iterator<Item = PathBuf> {
    let of_root = folders(Path::new(ROOT));
    let deeper: Vec<_> = of_root.iter().flat_map(|it| folders(it)).collect();
    of_root.into_iter().chain(deeper)
}

fn folders(path: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(path).into_iter().flatten().flatten();
    entries.map(|it| it.path()).filter(|it| it.is_dir() && !it.is_symlink()).collect()
}

/// One that still has processes stays: the kernel refuses.
fn remove(group: &Path) {
    folders(group).iter().for_each(|it| remove(it));
    let _ = fs::remove_dir(group);
}
