use super::*;

fn lines(path: &Path) -> Vec<String> {
    fs::read_to_string(path).unwrap_or_default().lines().map(str::to_owned).collect()
}

#[tokio::test]
async fn records_are_lines_and_files_rotate() {
    let dir = tempfile::tempdir().expect("a folder for the test");
    let path = dir.path().join("audit.log");
    let log = FileLog::open(&path, Rotation { bytes_max: 20, files_kept: 2 }).expect("a new file");
    for n in 0..7 {
        log.record(format!("record {n}").into_bytes());
    }
    log.close().await;
    assert_eq!(log.dropped(), 0);
    // Two records fill a file; the oldest file is gone.
    assert_eq!(lines(&path), ["record 6"]);
    assert_eq!(lines(&dir.path().join("audit.log.1")), ["record 4", "record 5"]);
    assert_eq!(lines(&dir.path().join("audit.log.2")), ["record 2", "record 3"]);
    assert!(!dir.path().join("audit.log.3").exists());

    let again = FileLog::open(&path, Rotation { bytes_max: 20, files_kept: 2 }).expect("the same file");
    again.record(b"record 7".to_vec());
    again.close().await;
    assert_eq!(lines(&path), ["record 6", "record 7"], "a restart goes on in the same file");
}

#[tokio::test]
async fn what_cannot_be_queued_is_counted() {
    let dir = tempfile::tempdir().expect("a folder for the test");
    let log = FileLog::open(&dir.path().join("audit.log"), Rotation::default()).expect("a new file");
    log.close().await;
    log.record(b"too late".to_vec());
    assert_eq!(log.dropped(), 1);
}
