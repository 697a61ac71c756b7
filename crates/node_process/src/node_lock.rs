//! The turn of who starts or ends a node: two `corten up` at once shall not end what the other has just started.
//!
//! What runs is read off locks and the record, and between looking and acting another command could look, too. So whoever is
//! about to act holds `turn.lock` from the look to the deed.

use std::{
    fs::{self, File},
    path::PathBuf,
    time::{Duration, Instant},
};

use anyhow::{Result, bail};

use crate::node_process::{NodeProcess, is_same_file, try_lock};
use corten_console::{failure::Failure, progress::Progress};

/// While this lives, no other command starts or ends the node.
#[derive(Debug)]
pub struct NodeLock {
    lock: File,
    path: PathBuf,
}

/// A folder that cannot be made is told of after so many.
const TRIES: u32 = 5;
const PAUSE: Duration = Duration::from_millis(20);
/// Nobody is told of a shorter wait.
const SILENCE: Duration = Duration::from_secs(1);

impl NodeLock {
    /// Waits until no other command has its turn.
    ///
    /// # Errors
    /// It takes too long, or the run folder is not a node's.
    pub fn wait(node: &NodeProcess, end: Instant, progress: &mut Progress) -> Result<Self> {
        let begun = Instant::now();
        let mut tries = TRIES;
        loop {
            match Self::take(node) {
                Ok(Some(turn)) => return Ok(turn),
                Ok(None) => tries = TRIES,
                // Who had it before may just be removing the folder.
                Err(_) if tries > 0 => tries -= 1,
                Err(error) => return Err(error),
            }
            if begun.elapsed() > SILENCE {
                progress.doing("waiting for another command that starts or ends this node");
            }
            if Instant::now() > end {
                let message = format!(
                    "another command that starts or ends the node in {} does not end",
                    node.layout.run.display()
                );
                bail!(Failure::new(message).next("ps -ef | grep -E 'corten (up|down|join|reset|node)'"));
            }
            std::thread::park_timeout(PAUSE);
        }
    }

    fn take(node: &NodeProcess) -> Result<Option<Self>> {
        corten_machine::close_run(&node.layout.run)?;
        let path = node.layout.run.join("turn.lock");
        let Some(lock) = try_lock(&path)? else { return Ok(None) };
        // Who had it before may have removed the file: then another is locked by now, or none.
        Ok(is_same_file(&lock, &path).then_some(Self { lock, path }))
    }

    /// Nothing runs any more: the run folder goes, too, unless something else is in it.
    pub fn leave_folder(self) {
        let _ = fs::remove_file(&self.path);
        if let Some(run) = self.path.parent() {
            corten_machine::leave(run);
        }
        drop(self.lock);
    }
}

#[cfg(test)]
mod tests {
    use corten_machine::Layout;

    use super::*;

    #[test]
    fn one_at_a_time_also_where_the_folder_is_removed_meanwhile() {
        let dir = tempfile::tempdir().expect("a temporary folder");
        let node = NodeProcess { layout: Layout::new(dir.path().join("data"), dir.path().join("run")) };
        let first = NodeLock::take(&node).expect("taken").expect("free");
        assert!(NodeLock::take(&node).expect("looked").is_none());
        let late = NodeLock::wait(&node, Instant::now(), &mut Progress::begin()).expect_err("it is the first one's");
        assert!(late.to_string().contains("does not end"), "{late}");
        std::thread::scope(|scope| {
            let end = Instant::now() + Duration::from_secs(30);
            let waiting = scope.spawn(move || {
                let node = NodeProcess { layout: node.layout };
                NodeLock::wait(&node, end, &mut Progress::begin()).map(|it| (it, node))
            });
            first.leave_folder();
            let (second, node) = waiting.join().expect("waited").expect("its turn");
            assert!(NodeLock::take(&node).expect("looked").is_none(), "what is locked is what is there");
            drop(second);
            // A process that another test is just starting may have a copy of the lock for a moment.
            NodeLock::wait(&node, end, &mut Progress::begin()).expect("nobody has it");
        });
    }
}
