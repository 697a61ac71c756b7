//! A volume that holds still for a moment, while it is copied. In the node's mount namespace.

use std::{fs::File, path::Path};

use super::{
    copy,
    volume::{Form, Volume},
};
use crate::{Code, Fault, file_system, loop_device, loop_device::text, program::run, with_faults_named};

/// How often a file system is asked to go on: one that stays frozen stops all who write to it.
const THAW_TRIES: u32 = 3;

/// Does `work` while nobody writes to the volume's file; who would waits meanwhile. Where the disk's file system shares
/// blocks that is a moment, else as long as the copy takes.
pub(super) fn at_rest<T>(volume: &Volume, disk: &Path, work: impl FnOnce() -> Result<T, Fault>) -> Result<T, Fault> {
    let Some(device) = loop_device::of(disk) else { return work() };
    let shares = {
        let file = with_faults_named(File::open(disk), "open the volume's file")?;
        let folder = disk.parent().unwrap_or(Path::new("/"));
        copy::shares_blocks(&file, folder)?
    };
    let mounted = if volume.form == Form::Disk { None } else { file_system::mounted_at(&device) };
    let Some(place) = mounted else {
        if volume.form == Form::Disk && !shares {
            let why = "this disk's file system does not share blocks between files: a block volume is copied only while no \
                       Pod has it";
            return Err(Fault::new(Code::FailedPrecondition, why));
        }
        run("blockdev", &["--flushbufs", text(&device)?])?;
        return work();
    };
    match run("fsfreeze", &["--freeze", text(&place)?]) {
        Ok(_) => {
            let thaw = Thaw(&place);
            let done = work();
            drop(thaw);
            done
        }
        // Blocks are shared at one moment: what is kept is what a power cut would leave, and journals are made for that.
        Err(fault) if shares => {
            tracing::info!(%fault, "a file system is copied without being frozen");
            thaw(&place);
            work()
        }
        Err(fault) => {
            thaw(&place);
            Err(fault)
        }
    }
}

struct Thaw<'p>(&'p Path);

impl Drop for Thaw<'_> {
    fn drop(&mut self) {
        for _ in 0..THAW_TRIES {
            match text(self.0).and_then(|it| run("fsfreeze", &["--unfreeze", it])) {
                Ok(_) => return,
                Err(fault) => tracing::error!(%fault, at = %self.0.display(), "a file system stays frozen"),
            }
        }
    }
}

/// Lets whoever writes to it go on; harmless where nobody stopped them.
pub(super) fn thaw(place: &Path) {
    let _ = text(place).and_then(|it| run("fsfreeze", &["--unfreeze", it]));
}
