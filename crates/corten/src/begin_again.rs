//! Goes on as the same process, whose options no longer say what nobody else may read: whoever knows an invitation has the cluster, and
//! everybody on the machine reads a process's options.

use std::{ffi::OsString, os::unix::process::CommandExt, process::Command};

use anyhow::{Context, Result};

/// Only returns where the program cannot be started again.
///
/// # Errors
/// As of `execve`.
pub(crate) fn begin_again_without(options: &[&str]) -> Result<()> {
    let program = std::env::current_exe().context("finding this program")?;
    let mut words = std::env::args_os();
    let name = words.next().unwrap_or_default();
    let error = Command::new(&program).arg0(name).args(without(options, words)).exec();
    Err(error).with_context(|| format!("starting {} again", program.display()))
}

fn without(options: &[&str], words: impl Iterator<Item = OsString>) -> Vec<OsString> {
    let (mut kept, mut is_value) = (Vec::new(), false);
    for word in words {
        let text = word.to_string_lossy();
        let (name, value) = text.split_once('=').map_or((&*text, None), |it| (it.0, Some(it.1)));
        if std::mem::take(&mut is_value) {
            continue;
        }
        if options.contains(&name) {
            is_value = value.is_none();
        } else {
            kept.push(word);
        }
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_are_left_out_with_their_values() {
        let words = "server --data-dir d --join https://a:6443 --token=a.b --ca-hash sha256:1 --bind=10.0.0.2 --certificate-key 00";
        let of_server = ["--join", "--token", "--ca-hash", "--certificate-key"];
        let kept = without(&of_server, words.split(' ').map(OsString::from));
        assert_eq!(kept, ["server", "--data-dir", "d", "--bind=10.0.0.2"]);
        let words = "join https://a:6443 --token a.b --ca-hash=sha256:1 --foreground";
        let kept = without(&["--token", "--ca-hash"], words.split(' ').map(OsString::from));
        assert_eq!(kept, ["join", "https://a:6443", "--foreground"]);
    }
}
