use std::time::{Duration, UNIX_EPOCH};

use rustix::fs::{FlockOperation, flock};

use super::*;
use crate::node_folders::log_in;

fn written(data: &Path, file: &str, second: u64) {
    let path = data.join(file);
    fs::create_dir_all(path.parent().expect("it has one")).expect("made");
    fs::write(&path, "x").expect("written");
    let file = fs::File::options().write(true).open(&path).expect("opened");
    file.set_modified(UNIX_EPOCH + Duration::from_secs(second)).expect("set");
}

fn last_second(data: &Path) -> Option<i64> {
    last(data, &log_in(data)).map(|it| it.0.as_second())
}

#[test]
fn whatever_was_written_last_counts() {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let data = dir.path();
    assert_eq!(last_second(data), None, "nothing was ever written");
    let mut second = 0;
    for file in ["log/corten.log", "store/1.log", "kubelet/kept/pods", "etcd/health.json", "etcd/data/member/wal/0.wal"]
    {
        second += 10;
        written(data, file, second);
        assert_eq!(last_second(data), i64::try_from(second).ok(), "{file}");
    }
    written(data, "log/corten.log", 100);
    assert_eq!(last_second(data), Some(100));
}

#[test]
fn an_etcd_that_goes_on_says_nothing_of_corten() {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let data = dir.path();
    written(data, "log/corten.log", 10);
    written(data, "etcd/data/member/wal/0.wal", 50);
    written(data, "etcd/lock", 1);
    assert_eq!(last_second(data), Some(50));
    let lock = fs::File::open(data.join("etcd/lock")).expect("opened");
    flock(&lock, FlockOperation::LockExclusive).expect("locked");
    assert_eq!(last_second(data), Some(10), "it runs");
}
