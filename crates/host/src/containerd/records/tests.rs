use super::*;

/// What containerd 1.6 writes, beginning and end.
#[test]
fn damage_shows_in_the_log() {
    let bolt = r#"level=warning msg="failed to load plugin io.containerd.metadata.v1.bolt" error="#;
    let panic = "level=info msg=booting\npanic: invalid freelist page: 0, page type is unknown<00>\n\ngoroutine 42 [running]:\n\
        go.etcd.io/bbolt.(*freelist).read(0x226cc86?, 0x7f87ec500000)\n\tgo.etcd.io/bbolt/freelist.go:266 +0x22e\n";
    let cri =
        r#"level=fatal msg="Failed to run CRI service" error="failed to recover state: failed to list images: x""#;
    let snapshots = r#"level=error msg="Failed to sync" error="failed to open database file: invalid database""#;
    let memory = "fatal error: runtime: out of memory\n\ngoroutine 1 [running]:\ngo.etcd.io/bbolt.x()\n";
    let elsewhere =
        "panic: other\n\ngoroutine 1 [running]:\nmain.x()\n\ngoroutine 2 [chan receive]:\ngo.etcd.io/bbolt.x()\n";
    for (log, expected) in [
        (format!("{bolt}\"invalid database\""), Some("invalid database")),
        (format!("{bolt}\"file size too small\"\nlevel=info msg=serving"), Some("file size too small")),
        (panic.to_owned(), Some("panic: invalid freelist page: 0, page type is unknown<00>")),
        (cri.to_owned(), Some("failed to recover state: failed to list images: x")),
        (snapshots.to_owned(), Some("failed to open database file: invalid database")),
        // Another one holds it; the disk is full; a crash elsewhere: nothing is taken away for these.
        (format!("{bolt}timeout"), None),
        (format!("{bolt}\"open meta.db: no space left on device\""), None),
        (memory.to_owned(), None),
        (elsewhere.to_owned(), None),
        (String::new(), None),
    ] {
        assert_eq!(damage(&log).as_deref(), expected, "{log}");
    }
}

#[test]
fn the_last_complaint_is_told() {
    let log = "level=warning msg=a error=first\nlevel=warning msg=b error=second\nlevel=info msg=booted\n";
    assert_eq!(last_complaint(log), "level=warning msg=b error=second");
    assert_eq!(last_complaint("one\ntwo"), "two");
}
