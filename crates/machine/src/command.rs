//! Runs the system's programs, with a deadline, and reports what they said when they fail.

use std::{
    fs, io,
    process::{Output, Stdio},
    time::Duration,
};

use tokio::{
    io::AsyncWriteExt,
    process::{Child, Command},
    time::timeout,
};

use crate::MachineError;

/// No program we run has more to do than this, but for those that say how they get on.
const DEADLINE: Duration = Duration::from_secs(60);
/// Whoever has not got on for so long hangs: a slow disk may take a minute to sync what it was given.
const STANDSTILL_MAX: Duration = Duration::from_secs(120);

/// Runs `program` with `input` on its standard input; its standard output is the answer.
pub async fn run(program: &str, args: &[&str], input: &str) -> Result<String, MachineError> {
    let failed = |message: String| failure(program, args, message);
    let mut child = spawn(program, args).map_err(|it| failed(it.to_string()))?;
    let mut stdin = child.stdin.take().expect("its standard input was asked to be a pipe");
    let work = async {
        // A program that ends without reading its input says why on its standard error.
        let _ = stdin.write_all(input.as_bytes()).await;
        drop(stdin);
        child.wait_with_output().await
    };
    let output = timeout(DEADLINE, work)
        .await
        .map_err(|_| failed(format!("no answer within {} s", DEADLINE.as_secs())))?
        .map_err(|it| failed(it.to_string()))?;
    answer(&output).map_err(failed)
}

/// Runs `program` for as long as it gets on: `progress`, which is given its process number, tells something else each time.
pub async fn run_while_it_advances<P: PartialEq>(
    program: &str,
    args: &[&str],
    progress: impl Fn(u32) -> P,
) -> Result<String, MachineError> {
    let failed = |message: String| failure(program, args, message);
    let mut child = spawn(program, args).map_err(|it| failed(it.to_string()))?;
    drop(child.stdin.take());
    let pid = child.id().unwrap_or_default();
    let mut work = std::pin::pin!(child.wait_with_output());
    let mut seen = progress(pid);
    let output = loop {
        if let Ok(ended) = timeout(STANDSTILL_MAX, &mut work).await {
            break ended.map_err(|it| failed(it.to_string()))?;
        }
        let now = progress(pid);
        if now == seen {
            return Err(failed(format!("no progress within {} s", STANDSTILL_MAX.as_secs())));
        }
        seen = now;
    };
    answer(&output).map_err(failed)
}

/// How many bytes a process has read from files and pipes.
pub fn bytes_read(pid: u32) -> u64 {
    count_of_io(pid, "rchar:")
}

/// How many bytes a process has written to file systems; what it said to others does not count.
pub fn bytes_written(pid: u32) -> u64 {
    count_of_io(pid, "write_bytes:")
}

/// 0 where it is not known.
fn count_of_io(pid: u32, name: &str) -> u64 {
    let counts = fs::read_to_string(format!("/proc/{pid}/io")).unwrap_or_default();
    let count = counts.lines().find_map(|it| it.strip_prefix(name));
    count.and_then(|it| it.trim().parse().ok()).unwrap_or_default()
}

fn spawn(program: &str, args: &[&str]) -> io::Result<Child> {
    Command::new(program)
        .args(args)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
}

/// Its standard output; where it failed, what it said.
fn answer(output: &Output) -> Result<String, String> {
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    let said = String::from_utf8_lossy(&output.stderr).trim().replace('\n', "; ");
    Err(if said.is_empty() { output.status.to_string() } else { said })
}

fn failure(program: &str, args: &[&str], message: String) -> MachineError {
    MachineError::Command { program: format!("{program} {}", args.join(" ")), message }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    #[test]
    fn a_process_tells_what_it_has_moved() {
        let (own, before) = (std::process::id(), bytes_read(std::process::id()));
        fs::read("/proc/self/status").expect("read");
        assert!(bytes_read(own) > before);
        assert_eq!(bytes_written(u32::MAX), 0, "there is no such process");
    }

    /// The clock runs on whenever nothing else is to be done: here nothing ever is.
    #[tokio::test(start_paused = true)]
    async fn a_program_that_gets_on_is_waited_for_and_one_that_hangs_is_not() {
        let begin = tokio::time::Instant::now();
        let n_looks = Cell::new(0_u32);
        let progress = |_| {
            n_looks.set(n_looks.get() + 1);
            n_looks.get().min(5)
        };
        let error = run_while_it_advances("tail", &["-f", "/dev/null"], progress).await.expect_err("it hangs");
        assert!(error.to_string().contains("no progress within 120 s"), "{error}");
        assert_eq!(begin.elapsed(), STANDSTILL_MAX * 5, "and not as long as it got on");
    }

    #[tokio::test]
    async fn what_it_says_is_the_answer() {
        let run = async |script: &str| run_while_it_advances("sh", &["-c", script], |pid| pid).await;
        assert_eq!(run("echo done").await.expect("it works"), "done\n");
        let error = run("echo cannot >&2; exit 1").await.expect_err("it fails");
        assert!(error.to_string().ends_with("cannot"), "{error}");
    }
}
