//! Which CPUs and which memory containers have for themselves: upstream's files, written before a container that has them begins.

use std::{fs, io, path::PathBuf};

use corten_kubelet::ManagerStates;
use corten_machine::{Layout, write_whole};

/// No node writes more: 10,000 containers with all their names.
const BYTES_MAX: u64 = 16 << 20;

fn path(layout: &Layout, name: &str) -> PathBuf {
    layout.data.join("kubelet").join(name)
}

const CPU: &str = "cpu_manager_state";
const MEMORY: &str = "memory_manager_state";

/// Durable when it returns.
pub(crate) fn write(layout: &Layout, states: &ManagerStates) -> io::Result<()> {
    for (name, text) in [(CPU, &states.cpu), (MEMORY, &states.memory)] {
        let Some(text) = text else { continue };
        fs::create_dir_all(layout.data.join("kubelet"))?;
        write_whole(&path(layout, name), 0o600, text.as_bytes())?;
    }
    Ok(())
}

/// What an earlier run of the kubelet has written.
///
/// # Errors
/// A file is there and cannot be read: nobody knows what containers that run have.
pub fn written_manager_states(layout: &Layout) -> io::Result<ManagerStates> {
    let read = |name: &str| -> io::Result<Option<String>> {
        let path = path(layout, name);
        let failed = |it: io::Error| io::Error::new(it.kind(), format!("reading {}: {it}", path.display()));
        match fs::metadata(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(failed(error)),
            Ok(it) if it.len() > BYTES_MAX => Err(failed(io::Error::other("it is too long"))),
            Ok(_) => fs::read_to_string(&path).map(Some).map_err(failed),
        }
    };
    Ok(ManagerStates { cpu: read(CPU)?, memory: read(MEMORY)? })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_written_is_there_at_the_next_start() {
        let dir = tempfile::tempdir().expect("a temporary folder");
        let layout = Layout::new(dir.path().join("data"), dir.path().join("run"));
        assert_eq!(written_manager_states(&layout).expect("a first start"), ManagerStates::default());
        let states = ManagerStates { cpu: Some("{}".into()), memory: None };
        write(&layout, &states).expect("written");
        assert_eq!(written_manager_states(&layout).expect("readable"), states);
        fs::write(path(&layout, MEMORY), [0xff]).expect("torn");
        assert!(written_manager_states(&layout).is_err());
    }
}
