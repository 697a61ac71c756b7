//! Shows what a long verb is at: a spinner on a terminal, plain lines elsewhere.

use std::{
    borrow::Cow,
    io::{IsTerminal, stderr},
    time::{Duration, Instant},
};

use indicatif::{ProgressBar, ProgressStyle};

/// One line of progress at a time, on standard error: standard output is for answers.
pub struct Progress {
    spinner: Option<ProgressBar>,
    started: Instant,
    shown: String,
}

impl Progress {
    pub fn begin() -> Self {
        let spinner = stderr().is_terminal().then(|| {
            let spinner = ProgressBar::new_spinner();
            let style =
                ProgressStyle::with_template("{spinner} {msg} {elapsed:.dim}").expect("the template is well formed");
            spinner.set_style(style);
            spinner.enable_steady_tick(Duration::from_millis(80));
            spinner
        });
        Self { spinner, started: Instant::now(), shown: String::new() }
    }

    /// What is being done now. Saying the same again changes nothing.
    pub fn doing(&mut self, what: impl Into<Cow<'static, str>>) {
        let what = what.into();
        if self.shown == what {
            return;
        }
        self.shown = what.clone().into_owned();
        match &self.spinner {
            Some(spinner) => spinner.set_message(what),
            None => eprintln!("… {what}"),
        }
    }

    /// What is done now; it stays on the screen.
    pub fn done(&mut self, what: &str) {
        let line = format!("✓ {what} ({:.1} s)", self.started.elapsed().as_secs_f64());
        match &self.spinner {
            Some(spinner) => spinner.suspend(|| eprintln!("{line}")),
            None => eprintln!("{line}"),
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if let Some(spinner) = &self.spinner {
            spinner.finish_and_clear();
        }
    }
}
