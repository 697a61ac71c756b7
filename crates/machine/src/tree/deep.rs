//! Folders deeper than a stack holds calls: what every walk of a tree is tested with.

use std::path::Path;

use rustix::fs::{Mode, OFlags, mkdirat, openat};

use super::{FOLDER, open_folder};

/// Deeper than a stack holds calls, a process files, and a path names.
pub const DEEP: usize = 20_000;

/// Makes folders within folders.
pub fn make_deep(top: &Path, depth: usize) {
    let mut here = open_folder(top).expect("a folder");
    for _ in 0..depth {
        mkdirat(&here, c"deeper", Mode::from_raw_mode(0o755)).expect("made");
        here = openat(&here, c"deeper", FOLDER, Mode::empty()).expect("opened");
    }
    openat(&here, c"leaf", OFlags::CREATE | OFlags::WRONLY, Mode::from_raw_mode(0o644)).expect("a file");
}

/// Runs on as small a stack as any thread here has.
pub fn on_a_small_stack(work: impl FnOnce() + Send + 'static) {
    let thread = std::thread::Builder::new().stack_size(128 << 10).spawn(work).expect("a thread");
    thread.join().expect("the work on a small stack");
}
