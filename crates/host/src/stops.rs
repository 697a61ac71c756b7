//! Which containers were stopped because the machine was about to end: written before they are, read after the boot.

use std::{collections::BTreeSet, fs, path::PathBuf};

use corten_machine::{Layout, write_whole};
use serde::{Deserialize, Serialize};

#[derive(Debug, Default, Serialize, Deserialize)]
struct Stops {
    containers: BTreeSet<String>,
}

fn path(layout: &Layout) -> PathBuf {
    layout.data.join("kubelet").join("stopped-with-machine.json")
}

/// Replaces what was written at an earlier end. Durable when it returns.
pub(crate) fn write(layout: &Layout, containers: Vec<String>) -> std::io::Result<()> {
    let path = path(layout);
    fs::create_dir_all(path.parent().expect("the path is joined from two names"))?;
    let stops = Stops { containers: containers.into_iter().collect() };
    write_whole(&path, 0o600, &serde_json::to_vec(&stops)?)
}

/// None where no end of the machine was told, or what was written cannot be read: then exit codes decide what runs again.
pub fn stopped_with_machine(layout: &Layout) -> BTreeSet<String> {
    let read = fs::read(path(layout)).ok().and_then(|it| serde_json::from_slice::<Stops>(&it).ok());
    read.unwrap_or_default().containers
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_stopped_last_is_known_after_the_boot() {
        let dir = tempfile::tempdir().expect("a temporary folder");
        let layout = Layout::new(dir.path().join("data"), dir.path().join("run"));
        assert!(stopped_with_machine(&layout).is_empty(), "a first start");
        write(&layout, vec!["c1".into(), "c2".into()]).expect("written");
        write(&layout, vec!["c3".into()]).expect("written");
        assert_eq!(stopped_with_machine(&layout), BTreeSet::from(["c3".to_owned()]));
        fs::write(path(&layout), "").expect("torn");
        assert!(stopped_with_machine(&layout).is_empty());
    }
}
