//! Runs cases one after another, and says which one it was that panicked or does not come to an end.

use std::{
    io::Write,
    panic::{AssertUnwindSafe, catch_unwind, resume_unwind},
    sync::mpsc::{self, RecvTimeoutError},
    time::Duration,
};

/// Far longer than any case takes.
const PATIENCE: Duration = Duration::from_secs(60);

/// A thread that is told of each case when it begins.
pub struct Cases(mpsc::Sender<Option<String>>);

impl Default for Cases {
    fn default() -> Self {
        Self::new(PATIENCE, |case| {
            // What tests print is kept until they end, and this one does not.
            let _ = writeln!(std::io::stderr(), "this case does not come to an end: {case}");
            std::process::abort();
        })
    }
}

impl Cases {
    fn new(patience: Duration, tell: impl FnOnce(&str) + Send + 'static) -> Self {
        let (begins, begun) = mpsc::channel::<Option<String>>();
        let watch = move || {
            let mut case: Option<String> = None;
            loop {
                // Between two cases there is nothing to wait for.
                let next = match &case {
                    Some(_) => begun.recv_timeout(patience),
                    None => begun.recv().map_err(|_| RecvTimeoutError::Disconnected),
                };
                match next {
                    Ok(next) => case = next,
                    Err(RecvTimeoutError::Disconnected) => return,
                    Err(RecvTimeoutError::Timeout) => return tell(&case.unwrap_or_default()),
                }
            }
        };
        std::thread::Builder::new().spawn(watch).expect("a thread");
        Self(begins)
    }

    /// # Panics
    /// `run` does; standard error says in which case.
    pub fn run<T>(&self, case: &str, run: impl FnOnce() -> T) -> T {
        // Who has told of a case is gone.
        let _ = self.0.send(Some(case.to_owned()));
        let done = catch_unwind(AssertUnwindSafe(run));
        let _ = self.0.send(None);
        done.unwrap_or_else(|panic| {
            eprintln!("in the case {case}");
            resume_unwind(panic)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_case_that_does_not_come_to_an_end_is_named() {
        let (told, tells) = mpsc::channel();
        let cases = Cases::new(Duration::from_millis(50), move |case| told.send(case.to_owned()).expect("awaited"));
        assert_eq!(cases.run("the first", || 1), 1);
        let named = cases.run("the second", || tells.recv().expect("somebody tells"));
        assert_eq!(named, "the second");
        assert_eq!(cases.run("the third", || 3), 3, "who has told is not asked again");
    }

    #[test]
    fn a_case_that_panics_ends_the_test() {
        let cases = Cases::default();
        let case = || cases.run("bad", || assert!(cases.run("good", || false), "wrong"));
        assert!(catch_unwind(AssertUnwindSafe(case)).is_err());
    }
}
