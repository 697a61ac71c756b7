//! Logs as a runtime writes them: read whole, from the end, while they grow, and moved away.

use std::{fs, io::Write as _, path::Path, time::Duration};

use futures_util::StreamExt;
use tokio::sync::watch;

use super::*;

const LOG: &str = "2026-11-20T10:00:0é1Z stdout F forged\n\
    2026-11-20T10:00:00.1Z stdout F one\n\
    2026-11-20T10:00:01Z stderr F two\n\
    2026-11-20T10:00:02.5Z stdout P thr\n\
    2026-11-20T10:00:02.6Z stdout P e\n\
    2026-11-20T10:00:02.7Z stdout F e\n\
    broken\n\
    2026-11-20T10:00:03.123456789+01:00 stdout F  four \n";

async fn all(path: &Path, options: LogOptions) -> String {
    let (_, alive) = watch::channel(false);
    let pieces: Vec<_> = read(path.to_owned(), options, alive).collect().await;
    let text: Vec<u8> = pieces.into_iter().flat_map(|it| it.expect("readable").to_vec()).collect();
    String::from_utf8(text).expect("text")
}

#[tokio::test]
async fn reads_what_is_asked_for() {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let path = dir.path().join("0.log");
    fs::write(&path, LOG).expect("written");
    let options = LogOptions::default;
    let since = "2026-11-20T10:00:02Z".parse().ok();
    for (options, expected) in [
        (options(), "one\ntwo\nthree\n four \n"),
        (LogOptions { tail_lines: Some(0), ..options() }, ""),
        (LogOptions { tail_lines: Some(1), ..options() }, " four \n"),
        // What is not a line counts as one: that errs on the side of too little, as upstream's `findTailLineStartIndex`.
        (LogOptions { tail_lines: Some(3), ..options() }, "three\n four \n"),
        (LogOptions { tail_lines: Some(100), ..options() }, "one\ntwo\nthree\n four \n"),
        (LogOptions { since, ..options() }, "three\n"),
        (LogOptions { stream: Some(LogStream::Stderr), ..options() }, "two\n"),
        (LogOptions { limit_bytes: Some(6), ..options() }, "one\ntw"),
        (
            LogOptions { timestamps: true, ..options() },
            "2026-11-20T10:00:00.100000000Z one\n2026-11-20T10:00:01.000000000Z two\n\
             2026-11-20T10:00:02.500000000Z three\n2026-11-20T10:00:03.123456789+01:00  four \n",
        ),
    ] {
        assert_eq!(all(&path, options.clone()).await, expected, "{options:?}");
    }
    assert_eq!(tail_of(path, 3, 8).await, "\n four \n"[..].to_owned());
}

#[tokio::test]
async fn what_is_no_log_is_not_read() {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let pod = dir.path().join("pods/ns_web_1");
    fs::create_dir_all(pod.join("app")).expect("made");
    fs::create_dir_all(dir.path().join("elsewhere")).expect("made");
    fs::write(dir.path().join("elsewhere/0.log"), LOG).expect("written");
    std::os::unix::fs::symlink(dir.path().join("elsewhere/0.log"), pod.join("app/0.log")).expect("linked");
    std::os::unix::fs::symlink(dir.path().join("elsewhere"), pod.join("linked")).expect("linked");
    std::os::unix::fs::symlink("1.log", pod.join("app/2.log")).expect("linked");
    rustix::fs::mknodat(rustix::fs::CWD, pod.join("app/3.log"), rustix::fs::FileType::Fifo, rustix::fs::Mode::RUSR, 0)
        .expect("a pipe");
    for path in ["app/0.log", "linked/0.log", "app/2.log", "app/3.log", "app"] {
        let (_, alive) = watch::channel(false);
        let mut pieces = read(pod.join(path), LogOptions::default(), alive);
        let first = tokio::time::timeout(Duration::from_secs(5), pieces.next()).await.expect("in time");
        assert!(matches!(first, Some(Err(_))), "{path}: {first:?}");
    }
}

#[tokio::test]
async fn reads_the_end_of_a_long_log_across_blocks() {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let path = dir.path().join("0.log");
    let long = "x".repeat(100_000);
    let mut text = String::new();
    for line in 0..50 {
        text += &format!("2026-11-20T10:00:00Z stdout P {long}\n2026-11-20T10:00:00Z stdout F {line}\n");
    }
    fs::write(&path, &text).expect("written");
    let end = all(&path, LogOptions { tail_lines: Some(2), ..LogOptions::default() }).await;
    assert_eq!(end, format!("{long}48\n{long}49\n"));
    // What a power cut leaves at the end is no line, be it longer than what is read at once.
    fs::write(&path, text.clone() + &"\0".repeat(70_000)).expect("written");
    let end = all(&path, LogOptions { tail_lines: Some(1), ..LogOptions::default() }).await;
    assert_eq!(end.trim_end_matches('\0'), format!("{long}49\n"));
    fs::write(&path, text + "2026-11-20T10:00:00Z stdout P unfinished\n").expect("written");
    let end = all(&path, LogOptions { tail_lines: Some(1), ..LogOptions::default() }).await;
    assert_eq!(end, "unfinished");
}

#[tokio::test]
async fn follows_across_rotation_until_the_container_ends() {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let path = dir.path().join("0.log");
    fs::write(&path, "2026-11-20T10:00:00Z stdout F one\n2026-11-20T10:00:00Z stdout F tw").expect("written");
    let (life, alive) = watch::channel(true);
    let mut pieces = read(path.clone(), LogOptions { follow: true, ..LogOptions::default() }, alive);
    let mut next = async || {
        let piece = tokio::time::timeout(Duration::from_secs(10), pieces.next()).await.expect("in time");
        piece.map(|it| String::from_utf8(it.expect("readable").to_vec()).expect("text"))
    };
    assert_eq!(next().await.as_deref(), Some("one\n"));
    let mut file = fs::OpenOptions::new().append(true).open(&path).expect("opened");
    file.write_all(b"o\n").expect("written");
    assert_eq!(next().await.as_deref(), Some("two\n"));

    let moved = rotate(&path, RotateLimits { bytes_max: 10, files_max: 5 }).await.expect("rotated");
    assert!(moved.is_some_and(|it| it.exists()));
    fs::write(&path, "2026-11-20T10:00:00Z stdout F three\n").expect("written");
    assert_eq!(next().await.as_deref(), Some("three\n"));

    let mut file = fs::OpenOptions::new().append(true).open(&path).expect("opened");
    file.write_all(b"2026-11-20T10:00:00Z stdout F last\n").expect("written");
    life.send(false).expect("heard");
    assert_eq!(next().await.as_deref(), Some("last\n"));
    assert_eq!(next().await, None);
}

#[tokio::test]
async fn rotation_keeps_so_many_files_and_compresses_the_old() {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let path = dir.path().join("0.log");
    for (name, text) in
        [("20200101-000000.gz", "a"), ("20200102-000000.gz", "b"), ("20200103-000000", "c"), ("9.tmp", "")]
    {
        fs::write(dir.path().join(format!("0.log.{name}")), text).expect("written");
    }
    let limits = RotateLimits { bytes_max: 5, files_max: 4 };
    fs::write(&path, "1234").expect("written");
    assert_eq!(rotate(&path, limits).await.expect("looked at"), None);
    fs::write(&path, "12345").expect("written");
    assert!(rotate(&path, limits).await.expect("rotated").is_some());
    let mut names: Vec<String> = fs::read_dir(dir.path())
        .expect("listed")
        .flatten()
        .map(|it| it.file_name().to_string_lossy().into_owned())
        .collect();
    names.sort();
    assert_eq!(names.len(), 3, "{names:?}");
    assert_eq!(names[..2], ["0.log.20200102-000000.gz", "0.log.20200103-000000.gz"]);
    assert_eq!(fs::read_to_string(dir.path().join(&names[2])).expect("read"), "12345");
}
