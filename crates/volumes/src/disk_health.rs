//! Whether the disk below a file system fails, as far as the kernel tells: a Pod that has a volume there sees errors, and nothing
//! else would say where they come from.

use std::{
    fs,
    os::unix::fs::MetadataExt,
    path::Path,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

/// Why the file system at `path` is not well; `None`: the kernel says nothing. In the node's mount namespace.
pub(crate) fn trouble_at(path: &Path) -> Option<String> {
    let number = fs::metadata(path).ok()?.dev();
    let number = format!("{}:{}", rustix::fs::major(number), rustix::fs::minor(number));
    let table = fs::read("/proc/thread-self/mountinfo").ok()?;
    let mounted = Mounted::of(&String::from_utf8_lossy(&table), &number)?;
    let disk = fs::read_link(format!("/sys/dev/block/{number}")).ok()?;
    let disk = disk.file_name()?.to_string_lossy();
    let told = |name: &str| -> Option<u64> {
        let text = fs::read_to_string(format!("/sys/fs/{}/{disk}/{name}", mounted.fs_type)).ok()?;
        text.trim().parse().ok()
    };
    // A count is kept on the disk until somebody checks it: what was before this start of the machine may be long mended.
    let is_new = told("last_error_time").is_some_and(|it| it >= booted_at());
    let n_errors = told("errors_count").filter(|_| is_new).unwrap_or_default();
    // A write that failed, and a journal that was given up for it (Linux 6.12), is no error before somebody writes again. These are
    // counted anew with each mount.
    let n_warnings = told("warning_count").unwrap_or_default();
    mounted.trouble(&disk, n_errors, n_warnings)
}

/// Seconds since 1970.
fn booted_at() -> u64 {
    let uptime = fs::read_to_string("/proc/uptime").ok();
    let uptime = uptime.and_then(|it| it.split('.').next()?.parse().ok()).unwrap_or_default();
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    now.saturating_sub(Duration::from_secs(uptime)).as_secs()
}

/// A file system that is mounted somewhere.
#[derive(Debug, PartialEq, Eq)]
struct Mounted {
    fs_type: String,
    /// All of it is read-only, and not only the places where it is mounted so.
    is_read_only: bool,
    /// Somebody has it to write to.
    is_for_writing: bool,
}

impl Mounted {
    /// By the device's number. A line of the table, its fourth part optional:
    ///
    /// ```text
    /// 36 35 98:0 /part /at rw,noatime shared:1 - ext4 /dev/sda1 ro,errors=continue
    /// ```
    fn of(table: &str, number: &str) -> Option<Self> {
        let mut found: Option<Self> = None;
        for line in table.lines() {
            let Some((place, file_system)) = line.split_once(" - ") else { continue };
            let mut place = place.split(' ').skip(2);
            let (Some(of), Some(options)) = (place.next(), place.nth(2)) else { continue };
            let mut file_system = file_system.split(' ');
            let (Some(fs_type), Some(super_options)) = (file_system.next(), file_system.nth(1)) else { continue };
            if of != number {
                continue;
            }
            let is_read_only = |options: &str| options.split(',').any(|it| it == "ro");
            // Newer kernels leave `rw` as it is, and say so by these.
            let is_off = super_options.split(',').any(|it| matches!(it, "emergency_ro" | "shutdown"));
            let found = found.get_or_insert(Self {
                fs_type: fs_type.to_owned(),
                is_read_only: is_off || is_read_only(super_options),
                is_for_writing: false,
            });
            found.is_for_writing |= !is_read_only(options);
        }
        found
    }

    fn trouble(&self, disk: &str, n_errors: u64, n_warnings: u64) -> Option<String> {
        let fs_type = &self.fs_type;
        if self.is_read_only && self.is_for_writing {
            return Some(format!(
                "the kernel takes no more writes to its file system ({fs_type} on {disk}) after an error"
            ));
        }
        let (n, what, since) = match (n_errors, n_warnings) {
            (0, 0) => return None,
            (0, n) => (n, "warning", "it was mounted (see dmesg)"),
            (n, _) => (n, "error", "the machine started"),
        };
        let plural = if n == 1 { "" } else { "s" };
        Some(format!("its file system ({fs_type} on {disk}) has met {n} {what}{plural} since {since}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TABLE: &str = "\
22 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw,errors=remount-ro
40 22 254:0 / /mnt/a\\040b ro,relatime - ext4 /dev/mapper/bad ro,errors=continue
41 22 254:0 / /pods/v rw,nosuid - ext4 /dev/mapper/bad ro,errors=continue
42 22 254:1 / /mnt/ro ro - xfs /dev/mapper/ro ro
43 22 254:2 / /mnt/off rw master:3 - ext4 /dev/mapper/off rw,emergency_ro
";

    #[test]
    fn a_file_system_that_was_to_be_written_to_and_cannot_be_is_not_well() {
        let trouble = |number: &str| Mounted::of(TABLE, number).and_then(|it| it.trouble("dm-0", 0, 0));
        let told = trouble("254:0").expect("the kernel has made it read-only");
        assert!(told.contains("ext4 on dm-0") && told.contains("no more writes"), "{told}");
        assert!(trouble("254:2").is_some());
        assert_eq!(trouble("8:1"), None);
        assert_eq!(trouble("254:1"), None, "it was mounted so");
        assert_eq!(Mounted::of(TABLE, "9:9"), None);
    }

    #[test]
    fn errors_are_told() {
        let fine = Mounted::of(TABLE, "8:1").expect("it is mounted");
        let told = fine.trouble("sda1", 2, 5).expect("two errors");
        assert_eq!(told, "its file system (ext4 on sda1) has met 2 errors since the machine started");
        assert!(fine.trouble("sda1", 1, 0).is_some_and(|it| it.contains("1 error since")));
        let told = fine.trouble("sda1", 0, 3).expect("three warnings");
        assert_eq!(told, "its file system (ext4 on sda1) has met 3 warnings since it was mounted (see dmesg)");
    }

    #[test]
    fn what_is_well_has_no_trouble() {
        assert_eq!(trouble_at(&std::env::temp_dir()), None);
    }
}
