//! Why a file that is read again and again is not used as it is now: what it said before still holds.

use std::{
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use parking_lot::Mutex;

#[derive(Default)]
pub struct Refusal(Mutex<Option<Refused>>);

struct Refused {
    reason: String,
    /// When the file was last found to be no good after it had been good.
    begun: Instant,
}

/// A file that is not used, in the words of a sentence.
pub struct RefusedFile {
    /// `the encryption configuration`.
    pub what: &'static str,
    pub path: PathBuf,
    pub reason: String,
    /// How long ago it was first refused, for whatever reason.
    pub since: Duration,
}

impl Refusal {
    /// False where it was refused for the same reason before.
    pub fn refuse(&self, reason: &str) -> bool {
        let mut refused = self.0.lock();
        let before = refused.as_ref();
        if before.is_some_and(|it| it.reason == reason) {
            return false;
        }
        let begun = before.map_or_else(Instant::now, |it| it.begun);
        *refused = Some(Refused { reason: reason.to_owned(), begun });
        true
    }

    /// The file is in use as it is, whether it is another one or the one of before.
    pub fn end(&self) {
        *self.0.lock() = None;
    }

    /// What there is to tell of the file; none where it is in use.
    pub fn of(&self, what: &'static str, path: &Path) -> Option<RefusedFile> {
        let refused = self.0.lock();
        let Refused { reason, begun } = refused.as_ref()?;
        Some(RefusedFile { what, path: path.to_owned(), reason: reason.clone(), since: begun.elapsed() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_reason_is_new_once_and_a_good_file_ends_it() {
        let refusal = Refusal::default();
        let told = |it: &Refusal| it.of("the configuration", Path::new("/etc/x")).map(|it| it.reason);
        assert_eq!(told(&refusal), None);
        assert!(refusal.refuse("no YAML") && !refusal.refuse("no YAML"));
        let begun = refusal.0.lock().as_ref().map(|it| it.begun);
        assert!(refusal.refuse("another kind"));
        assert_eq!(told(&refusal).as_deref(), Some("another kind"));
        assert_eq!(refusal.0.lock().as_ref().map(|it| it.begun), begun, "it has not been good in between");
        refusal.end();
        assert_eq!(told(&refusal), None);
        assert!(refusal.refuse("another kind"));
    }
}
