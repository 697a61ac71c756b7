//! What is being done now: which volumes and snapshots somebody has in hand, and what was promised of the disk to those that
//! are being made.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    sync::Arc,
};

use parking_lot::Mutex;

use super::copy::Progress;
use crate::{Code, Fault};

#[derive(Debug, Default)]
pub(super) struct UnderWay(Mutex<Works>);

#[derive(Debug, Default)]
struct Works {
    /// How many read it; `None`: somebody has it alone.
    held: BTreeMap<PathBuf, Option<usize>>,
    making: BTreeMap<PathBuf, (u64, Arc<Progress>)>,
}

/// As long as it lives nobody else changes what it is of.
#[derive(Debug)]
pub(super) struct Hold<'w> {
    works: &'w UnderWay,
    of: PathBuf,
}

/// As long as it lives the name is taken, and the bytes are promised.
#[derive(Debug)]
pub(super) struct Making<'w> {
    works: &'w UnderWay,
    of: PathBuf,
    pub(super) progress: Arc<Progress>,
}

impl UnderWay {
    /// # Errors
    /// `Aborted`, to be tried again: somebody else has it in hand.
    pub(super) fn hold_alone(&self, of: &Path) -> Result<Hold<'_>, Fault> {
        let mut works = self.0.lock();
        if works.held.contains_key(of) {
            return Err(busy(of));
        }
        works.held.insert(of.to_owned(), None);
        Ok(Hold { works: self, of: of.to_owned() })
    }

    /// The same for who only reads it, beside others who do.
    pub(super) fn hold_to_read(&self, of: &Path) -> Result<Hold<'_>, Fault> {
        match self.0.lock().held.entry(of.to_owned()).or_insert(Some(0)) {
            Some(readers) => *readers += 1,
            None => return Err(busy(of)),
        }
        Ok(Hold { works: self, of: of.to_owned() })
    }

    /// # Errors
    /// `Aborted`: it is being made already; how far that is.
    pub(super) fn begin(&self, of: &Path, bytes: u64) -> Result<Making<'_>, Fault> {
        let mut works = self.0.lock();
        if let Some((_, progress)) = works.making.get(of) {
            let why = format!("{} is being made: {}", name(of), progress.told());
            return Err(Fault::new(Code::Aborted, why));
        }
        let progress = Arc::<Progress>::default();
        works.making.insert(of.to_owned(), (bytes, progress.clone()));
        Ok(Making { works: self, of: of.to_owned(), progress })
    }

    /// What of the promises is not on the disk yet.
    pub(super) fn promised(&self) -> u64 {
        let left = |it: &(u64, Arc<Progress>)| it.0.saturating_sub(it.1.done());
        self.0.lock().making.values().fold(0, |all, it| all.saturating_add(left(it)))
    }
}

impl Making<'_> {
    /// So many bytes are promised to it.
    pub(super) fn bytes(&self) -> u64 {
        self.works.0.lock().making.get(&self.of).map_or(0, |it| it.0)
    }

    /// It turns out to take more than was promised.
    pub(super) fn takes(&self, bytes: u64) {
        if let Some(promise) = self.works.0.lock().making.get_mut(&self.of) {
            promise.0 = promise.0.max(bytes);
        }
    }
}

fn name(of: &Path) -> String {
    of.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

fn busy(of: &Path) -> Fault {
    Fault::new(Code::Aborted, format!("an operation with {} is under way", name(of)))
}

impl Drop for Hold<'_> {
    fn drop(&mut self) {
        let mut works = self.works.0.lock();
        match works.held.get_mut(&self.of) {
            Some(Some(readers)) if *readers > 1 => *readers -= 1,
            _ => drop(works.held.remove(&self.of)),
        }
    }
}

impl Drop for Making<'_> {
    fn drop(&mut self) {
        self.works.0.lock().making.remove(&self.of);
    }
}
