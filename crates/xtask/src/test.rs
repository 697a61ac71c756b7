//! `cargo xtask test`: every test of the workspace. Cargo builds the test programs and says where they are; several of them run at
//! once, where `cargo test` waits for each before it begins the next, and most of a test is waiting.

use std::{
    cmp::Reverse,
    env, fs, iter,
    path::{Path, PathBuf},
    process::{Command, Output, Stdio},
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context, Result, bail, ensure};
use parking_lot::Mutex;
use serde::Deserialize;

/// How many of the longest programs are named in the end.
const SLOWEST: usize = 5;

#[derive(clap::Args)]
pub(crate) struct Args {
    /// How many test programs run side by side; without it, one more than there are processors
    #[arg(long)]
    jobs: Option<usize>,
    /// What cargo is told when it builds them, as `--features corten-etcd/real`
    #[arg(last = true)]
    cargo: Vec<String>,
}

pub(crate) fn run(args: &Args) -> Result<()> {
    let mut programs = programs(&args.cargo)?;
    // What holds most tests takes longest, and begins first.
    programs.sort_by_key(|it| Reverse(fs::metadata(&it.executable).map_or(0, |it| it.len())));
    let processors = thread::available_parallelism().context("asking for the number of processors")?.get();
    let jobs = args.jobs.unwrap_or(processors + 1).max(1);
    let (waiting, ended) = (Mutex::new(programs.iter()), Mutex::new(Vec::new()));
    thread::scope(|scope| {
        for _ in 0..jobs {
            scope.spawn(|| {
                for program in iter::from_fn(|| waiting.lock().next()) {
                    let end = program.run();
                    end.tell();
                    ended.lock().push(end);
                }
            });
        }
    });
    judge(ended.into_inner())
}

/// A program that holds the tests of one target, as cargo has built it.
struct Program {
    name: String,
    executable: PathBuf,
    /// The folder of its package, in which its tests expect to run.
    folder: PathBuf,
}

/// What cargo says of each thing that it has built; what is not read here is left out.
#[derive(Deserialize)]
struct Message {
    executable: Option<PathBuf>,
    manifest_path: Option<PathBuf>,
    target: Option<Target>,
    profile: Option<Profile>,
}

#[derive(Deserialize)]
struct Target {
    name: String,
}

#[derive(Deserialize)]
struct Profile {
    test: bool,
}

impl Program {
    /// One line of cargo's messages; `None` where it tells of something else.
    fn read(line: &str) -> Option<Self> {
        let message: Message = serde_json::from_str(line).ok()?;
        let (target, profile) = (message.target?, message.profile?);
        let folder = message.manifest_path?.parent()?.to_owned();
        let executable = message.executable.filter(|_| profile.test)?;
        Some(Self { name: target.name, executable, folder })
    }

    fn run(&self) -> End<'_> {
        let begin = Instant::now();
        let output = Command::new(&self.executable)
            .arg("--quiet")
            .current_dir(&self.folder)
            .env("CARGO_MANIFEST_DIR", &self.folder)
            .stdin(Stdio::null())
            .output();
        End {
            program: self,
            output: output.with_context(|| format!("running {}", self.executable.display())),
            took: begin.elapsed(),
        }
    }
}

fn programs(options: &[String]) -> Result<Vec<Program>> {
    let output = Command::new(env::var_os("CARGO").unwrap_or("cargo".into()))
        .args(["test", "--no-run", "--quiet", "--workspace", "--message-format", "json-render-diagnostics"])
        .args(options)
        .current_dir(Path::new(env!("CARGO_MANIFEST_DIR")))
        .stderr(Stdio::inherit())
        .output()
        .context("asking cargo for the tests")?;
    ensure!(output.status.success(), "the tests are not built: {}", output.status);
    let programs: Vec<_> = String::from_utf8_lossy(&output.stdout).lines().filter_map(Program::read).collect();
    ensure!(!programs.is_empty(), "cargo named no program with tests");
    Ok(programs)
}

struct End<'a> {
    program: &'a Program,
    output: Result<Output>,
    took: Duration,
}

impl End<'_> {
    fn is_good(&self) -> bool {
        self.output.as_ref().is_ok_and(|it| it.status.success())
    }

    /// All of its output where it failed; else what it says in its last line: how many tests there were.
    fn tell(&self) {
        let seconds = self.took.as_secs_f64();
        let name = &self.program.name;
        match &self.output {
            Err(error) => println!("{name}: {error:#}"),
            Ok(output) if self.is_good() => {
                let printed = String::from_utf8_lossy(&output.stdout);
                println!("{seconds:6.1} s  {name}: {}", counted(&printed).unwrap_or("it does not say how many tests"));
            }
            Ok(output) => {
                let (printed, errors) =
                    (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
                println!("== {name}, after {seconds:.1} s: {}\n{printed}{errors}", output.status);
            }
        }
    }
}

/// The harness's last words without their beginning and their time: `12 passed; 0 failed; …`.
fn counted(printed: &str) -> Option<&str> {
    let line = printed.lines().rev().find_map(|it| it.strip_prefix("test result: ok. "))?;
    Some(line.split("; finished").next().unwrap_or(line))
}

fn judge(mut ended: Vec<End<'_>>) -> Result<()> {
    ended.sort_by_key(|it| Reverse(it.took));
    let longest = ended.iter().take(SLOWEST).map(|it| format!("{} {:.0} s", it.program.name, it.took.as_secs_f64()));
    println!("{} programs; the longest: {}", ended.len(), longest.collect::<Vec<_>>().join(", "));
    let failed: Vec<_> = ended.iter().filter(|it| !it.is_good()).map(|it| &*it.program.name).collect();
    if failed.is_empty() { Ok(()) } else { bail!("tests failed in {}", failed.join(", ")) }
}

#[cfg(test)]
mod tests {
    use super::{Program, counted};

    #[test]
    fn what_cargo_has_built_is_read() {
        let line = |test: bool, executable: &str| {
            format!(
                r#"{{"reason":"compiler-artifact","manifest_path":"/w/crates/a/Cargo.toml","target":{{"kind":["lib"],"name":"a"}},
                    "profile":{{"opt_level":"0","test":{test}}},"executable":{executable}}}"#
            )
        };
        let program = Program::read(&line(true, r#""/w/target/a-1""#)).unwrap();
        assert_eq!((&*program.name, program.folder.to_str()), ("a", Some("/w/crates/a")));
        for other in [
            &*line(false, r#""/w/target/a""#),
            &line(true, "null"),
            r#"{"reason":"build-finished","success":true}"#,
            "",
            "x",
        ] {
            assert!(Program::read(other).is_none(), "{other}");
        }
    }

    #[test]
    fn what_the_harness_counted_is_read() {
        let printed = "\nrunning 2 tests\n..\ntest result: ok. 2 passed; 0 failed; 0 ignored; 0 measured; 1 filtered out; finished in 0.10s\n\n";
        assert_eq!(counted(printed), Some("2 passed; 0 failed; 0 ignored; 0 measured; 1 filtered out"));
        assert_eq!(counted("running 2 tests\n"), None);
    }
}
