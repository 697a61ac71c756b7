//! The account as one screen of text.

use std::fmt::Write as _;

use corten_meta::Time;
use corten_reconcile::{Actor, Step, StepState, Wait};

use super::{Account, State};

/// Prints the account, its causes indented below it, and at the end who must act and what to run next.
pub(crate) fn render(account: &Account, now: Time, colour: bool) -> String {
    let mut page = Page { text: String::new(), now, colour };
    page.account(account, 0);
    page.verdict(account);
    page.text
}

struct Page {
    text: String,
    now: Time,
    colour: bool,
}

const SUMMARY_CHARS_MAX: usize = 120;

const GREEN: &str = "32";
const YELLOW: &str = "33";
const RED: &str = "31";
const DIM: &str = "2";

impl Page {
    fn line(&mut self, depth: usize, text: &str) {
        let _ = writeln!(self.text, "{}{text}", "   ".repeat(depth));
    }

    fn paint(&self, code: &str, text: &str) -> String {
        if self.colour { format!("\x1b[{code}m{text}\x1b[0m") } else { text.to_owned() }
    }

    fn account(&mut self, account: &Account, depth: usize) {
        let (code, word) = match account.state {
            State::Fine => (GREEN, "fine"),
            State::Progressing => (YELLOW, "progressing"),
            State::Blocked => (RED, "blocked"),
            State::Finished => (DIM, "finished"),
            State::Terminating => (YELLOW, "terminating"),
        };
        let place = if account.namespace.is_empty() { String::new() } else { format!(" in {}", account.namespace) };
        let head = format!("{}{place} is {}", account.subject, self.paint(code, word));
        // The heart of the matter is said at the top, and in full where it belongs; in between it would only repeat.
        if depth == 0 || account.root().is_none() {
            self.line(depth, &format!("{head}: {}", shortened(&account.summary)));
        } else {
            self.line(depth, &head);
        }
        let width = account.steps.iter().map(|it| it.name.chars().count()).max().unwrap_or(0);
        for step in &account.steps {
            self.step(step, width, depth + 1);
        }
        for error in &account.errors {
            let mark = self.paint(RED, "!");
            self.line(depth + 1, &format!("{mark} {error}"));
        }
        for cause in &account.causes {
            let line = format!("└ {} waits: {}", cause.by, self.wait(&cause.wait));
            self.line(depth + 1, &line);
            if let Some(because) = &cause.because {
                self.account(because, depth + 2);
            }
        }
        for event in &account.events {
            let line = self.paint(DIM, &format!("event {event}"));
            self.line(depth + 1, &line);
        }
    }

    fn step(&mut self, step: &Step, width: usize, depth: usize) {
        let (code, mark) = match step.state {
            StepState::Done => (GREEN, "✔"),
            StepState::Running => (YELLOW, "▸"),
            StepState::Blocked | StepState::Failed => (RED, "✖"),
            StepState::Pending => (DIM, "·"),
        };
        let mark = self.paint(code, mark);
        let took = self.took(step);
        let line = format!("{mark} {:width$}  {took:>7}  {}", step.name, step.message);
        self.line(depth, line.trim_end());
        if let Some(wait) = &step.wait {
            let line = format!("└ {}", self.wait(wait));
            self.line(depth + 1, &line);
        }
    }

    fn took(&self, step: &Step) -> String {
        match (step.started, step.finished) {
            (Some(started), Some(finished)) => duration(finished.since(started)),
            (Some(started), None) if step.state != StepState::Pending => duration(self.now.since(started)),
            _ => String::new(),
        }
    }

    fn wait(&self, wait: &Wait) -> String {
        let since = wait.since.map(|it| format!(" (for {})", duration(self.now.since(it)))).unwrap_or_default();
        format!("{}: {}{since}", wait.reason, wait.message)
    }

    fn verdict(&mut self, account: &Account) {
        let Some((at, wait)) = account.root() else { return };
        let who = match wait.actor {
            Actor::Cluster => "nobody: the cluster goes on by itself",
            Actor::Author => "whoever wrote it: its spec, or something it names, must change",
            Actor::Operator => "whoever runs the cluster",
            Actor::External => "a program outside the cluster",
        };
        self.line(0, &format!("who must act:  {who}"));
        self.line(0, &format!("run next:      {}", next_command(at, wait)));
    }
}

/// The first words of a message that would fill lines: runtimes say everything they know.
fn shortened(message: &str) -> String {
    match message.char_indices().nth(SUMMARY_CHARS_MAX) {
        Some((at, _)) => format!("{}…", &message[..at]),
        None => message.to_owned(),
    }
}

/// The command that shows most about the root cause.
fn next_command(at: &Account, wait: &Wait) -> String {
    let namespace = if at.namespace.is_empty() { String::new() } else { format!(" -n {}", at.namespace) };
    let name = at.subject.split_once('/').map_or("", |it| it.1);
    let step = at.steps.iter().find(|it| it.wait.as_ref() == Some(wait)).map_or("", |it| &it.name);
    if wait.reason == "CrashLoopBackOff" {
        let container = step.strip_prefix("container ").map(|it| format!(" -c {it}"));
        return format!("kubectl logs{namespace} {name}{} --previous", container.unwrap_or_default());
    }
    match &wait.on {
        Some(on) if on.starts_with("node/") => format!("kubectl describe {on}"),
        Some(on) => format!("kubectl describe{namespace} {on}"),
        None if step == "scheduled" && wait.actor == Actor::Operator => "kubectl describe nodes".into(),
        None => format!("kubectl describe{namespace} {}", at.subject),
    }
}

/// `0.3s`, `12s`, `4m`, `3h`, `2d`: short, because it stands in a column.
fn duration(duration: std::time::Duration) -> String {
    let seconds = duration.as_secs();
    match seconds {
        0..=9 => format!("{:.1}s", duration.as_secs_f64()),
        10..=119 => format!("{seconds}s"),
        120..=7_199 => format!("{}m{:02}s", seconds / 60, seconds % 60),
        7_200..=172_799 => format!("{}h{:02}m", seconds / 3_600, seconds % 3_600 / 60),
        _ => format!("{}d", seconds / 86_400),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_crash_loop_fits_one_screen_and_names_the_next_command() {
        let now = Time::from_unix_seconds(100);
        let mut wait = Wait::new("CrashLoopBackOff", "back-off 10s restarting failed container user", Actor::Author);
        wait.since = Some(Time::from_unix_seconds(70));
        let done = Step {
            name: "network".into(),
            state: StepState::Done,
            started: Some(Time::from_unix_millis(1_000)),
            finished: Some(Time::from_unix_millis(1_250)),
            message: "10.244.0.5".into(),
            wait: None,
        };
        let blocked = Step {
            name: "container user".into(),
            state: StepState::Blocked,
            started: Some(Time::from_unix_seconds(60)),
            finished: None,
            message: String::new(),
            wait: Some(wait),
        };
        let account = Account {
            subject: "pod/web".into(),
            namespace: "default".into(),
            state: State::Blocked,
            summary: "CrashLoopBackOff: back-off 10s restarting failed container user".into(),
            steps: vec![done, blocked],
            causes: vec![],
            errors: vec![],
            events: vec![],
        };
        let expected = "\
pod/web in default is blocked: CrashLoopBackOff: back-off 10s restarting failed container user
   ✔ network            0.2s  10.244.0.5
   ✖ container user      40s
      └ CrashLoopBackOff: back-off 10s restarting failed container user (for 30s)
who must act:  whoever wrote it: its spec, or something it names, must change
run next:      kubectl logs -n default web -c user --previous
";
        assert_eq!(render(&account, now, false), expected);
    }
}
