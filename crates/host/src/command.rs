//! Runs the system's programs, with a deadline, and reports what they said when they fail.

use std::{process::Stdio, time::Duration};

use tokio::{io::AsyncWriteExt, process::Command};

use crate::HostError;

/// No program we run has more to do than this.
const DEADLINE: Duration = Duration::from_secs(60);

/// Runs `program` with `input` on its standard input; its standard output is the answer.
pub(crate) async fn run(program: &str, args: &[&str], input: &str) -> Result<String, HostError> {
    let failed = |message: String| HostError::Command { program: format!("{program} {}", args.join(" ")), message };
    let mut child = Command::new(program)
        .args(args)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .map_err(|it| failed(it.to_string()))?;
    let mut stdin = child.stdin.take().expect("its standard input was asked to be a pipe");
    let work = async {
        // A program that ends without reading its input says why on its standard error.
        let _ = stdin.write_all(input.as_bytes()).await;
        drop(stdin);
        child.wait_with_output().await
    };
    let output = tokio::time::timeout(DEADLINE, work)
        .await
        .map_err(|_| failed(format!("no answer within {} s", DEADLINE.as_secs())))?
        .map_err(|it| failed(it.to_string()))?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    let said = String::from_utf8_lossy(&output.stderr).trim().replace('\n', "; ");
    Err(failed(if said.is_empty() { output.status.to_string() } else { said }))
}
