//! Mount options as users write them: those that the kernel knows as flags, and the rest, which is the file system's.

use rustix::mount::MountFlags;

/// Options, apart by who reads them.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Options {
    pub(crate) flags: MountFlags,
    /// Joined by commas.
    pub(crate) data: String,
}

/// What each word sets, and what it clears.
const FLAGS: [(&str, MountFlags, bool); 18] = [
    ("ro", MountFlags::RDONLY, true),
    ("rw", MountFlags::RDONLY, false),
    ("nosuid", MountFlags::NOSUID, true),
    ("suid", MountFlags::NOSUID, false),
    ("nodev", MountFlags::NODEV, true),
    ("dev", MountFlags::NODEV, false),
    ("noexec", MountFlags::NOEXEC, true),
    ("exec", MountFlags::NOEXEC, false),
    ("noatime", MountFlags::NOATIME, true),
    ("atime", MountFlags::NOATIME, false),
    ("nodiratime", MountFlags::NODIRATIME, true),
    ("diratime", MountFlags::NODIRATIME, false),
    ("relatime", MountFlags::RELATIME, true),
    ("norelatime", MountFlags::RELATIME, false),
    ("strictatime", MountFlags::STRICTATIME, true),
    ("sync", MountFlags::SYNCHRONOUS, true),
    ("async", MountFlags::SYNCHRONOUS, false),
    ("dirsync", MountFlags::DIRSYNC, true),
];

pub(crate) fn parse(options: &[String]) -> Options {
    let mut flags = MountFlags::empty();
    let mut data = Vec::new();
    for option in options.iter().flat_map(|it| it.split(',')).map(str::trim) {
        match FLAGS.iter().find(|it| it.0 == option) {
            Some((_, flag, is_set)) => flags.set(*flag, *is_set),
            None if matches!(option, "" | "defaults") => {}
            None => data.push(option),
        }
    }
    Options { flags, data: data.join(",") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_are_told_from_what_is_the_file_systems() {
        let options = ["noatime,nosuid", "data=journal", "defaults", "ro", "rw", "discard"].map(str::to_owned);
        let parsed = parse(&options);
        assert_eq!(parsed.flags, MountFlags::NOATIME | MountFlags::NOSUID);
        assert_eq!(parsed.data, "data=journal,discard");
    }
}
