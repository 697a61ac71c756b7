//! How far the terminations of deleted Pods are: written while they go on, read by the next run of the kubelet.
//!
//! Not synced: after a power cut nothing runs whose grace could begin again.

use std::{collections::BTreeMap, fs, io, path::PathBuf};

use corten_kubelet::TerminationNote;
use corten_machine::Layout;

fn folder(layout: &Layout) -> PathBuf {
    layout.data.join("kubelet").join("terminations")
}

pub(crate) fn write(layout: &Layout, uid: &str, note: &TerminationNote) -> io::Result<()> {
    let folder = folder(layout);
    fs::create_dir_all(&folder)?;
    let (path, new) = (folder.join(format!("{uid}.json")), folder.join(format!("{uid}.new")));
    fs::write(&new, serde_json::to_vec(note)?)?;
    fs::rename(new, path)
}

pub(crate) fn forget(layout: &Layout, uid: &str) -> io::Result<()> {
    match fs::remove_file(folder(layout).join(format!("{uid}.json"))) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// By the Pods' uids. What cannot be read begins anew.
pub fn begun_terminations(layout: &Layout) -> BTreeMap<String, TerminationNote> {
    let entries = fs::read_dir(folder(layout)).into_iter().flatten().flatten();
    let read = entries.filter_map(|it| {
        let uid = it.file_name().to_str()?.strip_suffix(".json")?.to_owned();
        Some((uid, serde_json::from_slice(&fs::read(it.path()).ok()?).ok()?))
    });
    read.collect()
}

#[cfg(test)]
mod tests {
    use corten_meta::Time;

    use super::*;

    #[test]
    fn what_was_begun_is_known_until_the_pod_is_gone() {
        let dir = tempfile::tempdir().expect("a temporary folder");
        let layout = Layout::new(dir.path().join("data"), dir.path().join("run"));
        assert!(begun_terminations(&layout).is_empty(), "a first start");
        let note = |hooks: &[&str]| TerminationNote {
            since: Time::from_unix_seconds(1_800_000_000),
            hooks: hooks.iter().map(|it| (*it).to_owned()).collect(),
        };
        write(&layout, "u1", &note(&[])).expect("written");
        write(&layout, "u1", &note(&["c1"])).expect("written");
        write(&layout, "u2", &note(&[])).expect("written");
        fs::write(folder(&layout).join("u3.json"), "{").expect("torn");
        let known = BTreeMap::from([("u1".to_owned(), note(&["c1"])), ("u2".to_owned(), note(&[]))]);
        assert_eq!(begun_terminations(&layout), known);
        forget(&layout, "u1").expect("removed");
        forget(&layout, "u1").expect("it is gone");
        assert_eq!(begun_terminations(&layout).len(), 1);
    }
}
