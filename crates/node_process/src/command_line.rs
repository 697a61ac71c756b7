//! What a node, or its parent, was started with, as the kernel tells it.

use std::{fs, path::PathBuf};

use anyhow::{Context, Result, bail};
use rustix::process::Pid;

use crate::node_folders::{DATA_DIR, process_file};

/// What a node, or its parent, was started with.
pub struct CommandLine {
    pid: Pid,
    words: Vec<String>,
}

impl CommandLine {
    pub fn new(pid: Pid, words: &[String]) -> Self {
        Self { pid, words: words.to_vec() }
    }

    pub fn pid(&self) -> Pid {
        self.pid
    }

    /// # Errors
    /// There is no such process, or it has ended: one that the kernel is just taking apart, or that nobody has waited for,
    /// has no words left (`proc_pid_cmdline(5)`).
    pub fn of(pid: Pid) -> Result<Self> {
        let path = process_file(pid, "cmdline");
        let line = fs::read(&path).with_context(|| format!("reading {}", path.display()))?;
        if line.is_empty() {
            bail!("process {} has ended", pid.as_raw_nonzero());
        }
        let line = String::from_utf8_lossy(&line).into_owned();
        Ok(Self { pid, words: line.split_terminator('\0').map(str::to_owned).collect() })
    }

    /// Is it that of a node or of its parent?
    pub fn is_known(&self) -> bool {
        self.words.get(1).is_some_and(|it| ["join", "node", "supervise"].contains(&it.as_str()))
    }

    /// The value of an option, where it was given.
    pub fn value(&self, option: &str) -> Option<&str> {
        let flag = format!("--{option}");
        let mut words = self.words.iter();
        while let Some(word) = words.next() {
            match word.strip_prefix(&flag) {
                Some("") => return words.next().map(String::as_str),
                Some(rest) if rest.starts_with('=') => return Some(&rest[1..]),
                _ => {}
            }
        }
        None
    }

    /// Its words without the program, the verb and the folders.
    pub fn options(&self) -> Vec<String> {
        let (mut options, mut words) = (Vec::new(), self.words.iter().skip(2));
        while let Some(word) = words.next() {
            match word.as_str() {
                "--data-dir" | "--run-dir" => drop(words.next()),
                it if it.starts_with("--data-dir=") || it.starts_with("--run-dir=") => {}
                it => options.push(it.to_owned()),
            }
        }
        options
    }

    pub fn data_dir(&self) -> PathBuf {
        let data = self.value("data-dir").unwrap_or(DATA_DIR);
        let folder = fs::read_link(process_file(self.pid, "cwd")).unwrap_or_else(|_| PathBuf::from("/"));
        folder.join(data)
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    #[test]
    fn a_process_that_has_ended_was_started_with_nothing_known() {
        let mut child = std::process::Command::new("true").spawn().expect("started");
        let pid = Pid::from_child(&child);
        // It has ended and is still there, until somebody waits for it.
        let ended = rustix::process::WaitIdOptions::EXITED | rustix::process::WaitIdOptions::NOWAIT;
        rustix::process::waitid(rustix::process::WaitId::Pid(pid), ended).expect("it ends");
        assert!(CommandLine::of(pid).is_err());
        child.wait().expect("it has ended");
        assert!(CommandLine::of(pid).is_err());
    }

    #[test]
    fn a_command_line_is_read_in_both_spellings() {
        let words = ["corten", "node", "--data-dir", "/d", "--run-dir=/r", "--port", "7443", "--bind=::1"];
        let line = CommandLine::new(rustix::process::getpid(), &words.map(str::to_owned));
        assert_eq!((line.value("port"), line.value("bind"), line.value("por")), (Some("7443"), Some("::1"), None));
        assert_eq!(line.options(), ["--port", "7443", "--bind=::1"]);
        assert_eq!(line.data_dir(), Path::new("/d"));
    }
}
