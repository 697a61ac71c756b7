//! A script of commands with what they must print.
//!
//! ```text
//! # A comment.
//! $ kubectl create configmap a --from-literal=k=v
//! configmap/a created
//!
//! ~60 kubectl get pod web -o jsonpath={.status.phase}
//! Running
//!
//! $ kubectl get pod missing
//! exit 1
//! Error from server (NotFound): pods "missing" not found
//! ```
//!
//! `$` runs once; `~N` runs again until it holds, for at most N seconds. Each expected line must occur within a line of the
//! output, in this order; `…` stands for anything. `exit N` asks for an exit code (0 where it is left out), `not TEXT` says that no
//! line contains TEXT. A command may go on over lines that begin with two blanks. Bash runs it, in the project's folder.
//!
//! A script for commands that older versions of kubectl do not have begins with `needs kubectl 1.26`, one that runs a
//! program which not every machine has with `needs program NAME`; one that needs something else says what, and by which
//! command that is seen: `needs containerd 2: containerd --version | grep -q ' 2'`.

use std::{
    fmt::Write as _,
    fs,
    path::Path,
    time::{Duration, Instant},
};

use anyhow::{Context, Result, bail};
use parking_lot::Mutex;

/// What one failure shows is not torn apart by another.
static FAILURES: Mutex<()> = Mutex::new(());
/// A step that takes longer is named.
const SLOW: Duration = Duration::from_secs(5);
/// What is waited for long is asked for less often: each kubectl takes as much of a processor as what it waits for.
const BETWEEN_TRIES: [Duration; 2] = [Duration::from_millis(250), Duration::from_secs(2)];

/// What runs the commands of a script.
pub(crate) trait Shell {
    /// Runs a command to its end: the exit code, and all that it printed.
    fn run(&mut self, command: &str) -> Result<(i32, String)>;

    /// What somebody would look at who has nothing but this output.
    fn show_state(&self);

    /// How much longer than on a real machine all takes.
    fn slowness(&self) -> f64;
}

pub(crate) struct Script {
    name: String,
    needs: Needs,
    steps: Vec<Step>,
}

/// What not every machine has.
#[derive(Debug, Default, PartialEq)]
struct Needs {
    /// The oldest minor version of kubectl that can play it.
    kubectl_minor: u32,
    program: Option<String>,
    /// What else it needs, and the command that succeeds where that is.
    other: Option<(String, String)>,
}

#[derive(Debug, Default, PartialEq)]
struct Step {
    line: usize,
    command: String,
    patience: Duration,
    exit: i32,
    expected: Vec<String>,
    absent: Vec<String>,
}

impl Script {
    pub(crate) fn read(root: &Path, path: &Path) -> Result<Self> {
        let text = fs::read_to_string(path).with_context(|| format!("reading {}", path.display()))?;
        let name = super::in_project(root, path);
        let (needs, text) = needs(&text);
        let steps = parse(text).with_context(|| format!("reading {name}"))?;
        Ok(Self { name, needs, steps })
    }

    /// Why it cannot be played; `None` if it can. `ask` runs a command on the machine that would play it.
    pub(crate) fn lacks(&self, ask: &mut dyn FnMut(&str) -> Result<(i32, String)>) -> Result<Option<String>> {
        let (name, needed) = (&self.name, self.needs.kubectl_minor);
        if let Some(program) = &self.needs.program
            && ask(&format!("PATH=$PATH:/usr/sbin:/sbin command -v {program}"))?.0 != 0
        {
            return Ok(Some(format!("{name}: needs {program}, which is not installed")));
        }
        if let Some((what, command)) = &self.needs.other
            && ask(command)?.0 != 0
        {
            return Ok(Some(format!("{name}: needs {what}")));
        }
        if needed == 0 {
            return Ok(None);
        }
        let minor = kubectl_minor(&ask("kubectl version --client -o json")?.1)?;
        Ok((needed > minor).then(|| format!("{name}: needs kubectl 1.{needed}, there is 1.{minor}")))
    }

    /// Runs the steps; prints and returns whether all held.
    pub(crate) fn play(&self, shell: &mut dyn Shell) -> bool {
        let (begin, mut slow) = (Instant::now(), String::new());
        for step in &self.steps {
            let step_begin = Instant::now();
            if let Err(why) = step.play(shell) {
                let _whole = FAILURES.lock();
                println!("FAILED {}:{}\n  {}\n{why}", self.name, step.line, step.command);
                shell.show_state();
                return false;
            }
            if step_begin.elapsed() > SLOW {
                let _ = write!(slow, ", line {} {:.1} s", step.line, step_begin.elapsed().as_secs_f64());
            }
        }
        println!("ok     {} ({} steps, {:.1} s{slow})", self.name, self.steps.len(), begin.elapsed().as_secs_f64());
        true
    }
}

impl Step {
    fn play(&self, shell: &mut dyn Shell) -> Result<(), String> {
        let begin = Instant::now();
        let deadline = begin + self.patience.mul_f64(shell.slowness());
        let [shortest, longest] = BETWEEN_TRIES;
        loop {
            let (exit, text) = shell.run(&self.command).map_err(|it| format!("  {it:#}"))?;
            match self.judge(exit, &text) {
                Ok(()) => return Ok(()),
                Err(why) if Instant::now() >= deadline => return Err(format!("  {why}\n--- it printed\n{text}---")),
                // Between two tries the machine belongs to the cluster.
                Err(_) => std::thread::park_timeout((begin.elapsed() / 8).clamp(shortest, longest)),
            }
        }
    }

    fn judge(&self, exit: i32, output: &str) -> Result<(), String> {
        if exit != self.exit {
            return Err(format!("exit code {exit}, expected {}", self.exit));
        }
        let mut lines = output.lines();
        for expected in &self.expected {
            if !lines.any(|it| contains(it, expected)) {
                return Err(format!("missing (in this order): {expected}"));
            }
        }
        match self.absent.iter().find(|it| output.lines().any(|line| contains(line, it))) {
            Some(absent) => Err(format!("must not be there: {absent}")),
            None => Ok(()),
        }
    }
}

/// Does `pattern`, where `…` stands for anything, occur within `line`?
fn contains(line: &str, pattern: &str) -> bool {
    let mut rest = line;
    for part in pattern.split('…') {
        let Some(at) = rest.find(part) else { return false };
        rest = &rest[at + part.len()..];
    }
    true
}

/// The minor version in what kubectl says of itself: 20 of v1.20.5.
fn kubectl_minor(said: &str) -> Result<u32> {
    let version: serde_json::Value = serde_json::from_str(said).context("reading kubectl's version")?;
    let text = version["clientVersion"]["gitVersion"].as_str().unwrap_or_default();
    let minor = text.split('.').nth(1).and_then(|it| it.parse().ok());
    minor.with_context(|| format!("{text:?} is no version of kubectl"))
}

/// What a script needs, and the rest of it. Line numbers stay what they are.
fn needs(text: &str) -> (Needs, &str) {
    let (first, rest) = text.split_at(text.find('\n').unwrap_or(text.len()));
    if let Some(minor) = first.strip_prefix("needs kubectl 1.").and_then(|it| it.parse().ok()) {
        return (Needs { kubectl_minor: minor, ..Needs::default() }, rest);
    }
    if let Some(program) = first.strip_prefix("needs program ") {
        return (Needs { program: Some(program.to_owned()), ..Needs::default() }, rest);
    }
    match first.strip_prefix("needs ").and_then(|it| it.split_once(": ")) {
        Some((what, command)) => {
            (Needs { other: Some((what.to_owned(), command.to_owned())), ..Needs::default() }, rest)
        }
        None => (Needs::default(), text),
    }
}

fn parse(text: &str) -> Result<Vec<Step>> {
    let mut steps: Vec<Step> = Vec::new();
    let mut in_command = false;
    for (index, line) in text.lines().enumerate() {
        if line.is_empty() || line.starts_with('#') {
            in_command = false;
        } else if let Some((patience, command)) = command_of(line)? {
            steps.push(Step { line: index + 1, command, patience, ..Step::default() });
            in_command = true;
        } else {
            let Some(step) = steps.last_mut() else { bail!("line {} expects something before any command", index + 1) };
            if in_command && line.starts_with("  ") {
                step.command.push('\n');
                step.command.push_str(line);
                continue;
            }
            in_command = false;
            if let Some(code) = line.strip_prefix("exit ").and_then(|it| it.parse().ok()) {
                step.exit = code;
            } else if let Some(absent) = line.strip_prefix("not ") {
                step.absent.push(absent.to_owned());
            } else {
                step.expected.push(line.to_owned());
            }
        }
    }
    Ok(steps)
}

fn command_of(line: &str) -> Result<Option<(Duration, String)>> {
    if let Some(command) = line.strip_prefix("$ ") {
        return Ok(Some((Duration::ZERO, command.to_owned())));
    }
    let Some((seconds, command)) = line.strip_prefix('~').and_then(|it| it.split_once(' ')) else { return Ok(None) };
    let seconds = seconds.parse().with_context(|| format!("{line:?} says for how many seconds to try"))?;
    Ok(Some((Duration::from_secs(seconds), command.to_owned())))
}

#[cfg(test)]
mod tests;
