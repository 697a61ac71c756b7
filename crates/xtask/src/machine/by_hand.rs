//! `cargo xtask guest`: machines for people. Each stays until it is removed.

use std::{fs, path::PathBuf, time::Instant};

use anyhow::{Result, bail};
use clap::Subcommand;

use super::{Arch, Boot, Guest, GuestSpec, Suite, base, folder};

#[derive(clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Subcommand)]
enum Verb {
    /// Make the base disk, which takes some minutes, once
    Make(Kind),
    /// Start a guest on a copy of that disk, and wait until it can be reached
    Start {
        name: String,
        #[command(flatten)]
        kind: Kind,
        /// MiB of memory
        #[arg(long, default_value_t = 2048)]
        memory: u32,
    },
    /// Run a command in a guest, as root
    Run {
        name: String,
        #[arg(required = true, trailing_var_arg = true, allow_hyphen_values = true)]
        command: Vec<String>,
    },
    /// Copy files or folders into a folder of a guest
    Put {
        name: String,
        #[arg(required = true)]
        files: Vec<PathBuf>,
        #[arg(long, default_value = "/root")]
        to: String,
    },
    /// Pull the plug: what the guest has not synced is lost
    Cut { name: String },
    /// Switch a guest on again
    Boot {
        name: String,
        /// What its clock shows: 2020-01-01T00:00:00
        #[arg(long)]
        clock: Option<String>,
        /// Words for its kernel
        #[arg(long)]
        append: Option<String>,
    },
    /// Show the end of a guest's console
    Console {
        name: String,
        #[arg(long, default_value_t = 40)]
        lines: usize,
    },
    /// Pull the plug and delete the disk
    Rm {
        #[arg(required = true)]
        names: Vec<String>,
    },
    /// List the guests
    List,
}

#[derive(clap::Args)]
struct Kind {
    #[arg(long, value_enum, default_value_t = Suite::Trixie)]
    suite: Suite,
    #[arg(long, value_enum, default_value_t = Arch::Amd64)]
    arch: Arch,
}

pub(crate) fn run(args: &Args) -> Result<()> {
    match &args.verb {
        Verb::Make(kind) => println!("{}", base(kind.suite, kind.arch)?.display()),
        Verb::Start { name, kind, memory } => start(name, kind, *memory)?,
        Verb::Run { name, command } => {
            let status = Guest::open(name)?.command(&command.join(" ")).status()?;
            std::process::exit(status.code().unwrap_or(255));
        }
        Verb::Put { name, files, to } => Guest::open(name)?.put(files, to)?,
        Verb::Cut { name } => Guest::open(name)?.cut()?,
        Verb::Boot { name, clock, append } => {
            let boot = Boot { clock: clock.clone(), kernel_words: append.clone() };
            timed(&mut Guest::open(name)?, &boot)?;
        }
        Verb::Console { name, lines } => println!("{}", Guest::open(name)?.console(*lines)),
        Verb::Rm { names } => names.iter().try_for_each(|it| Guest::open(it)?.remove())?,
        Verb::List => list()?,
    }
    Ok(())
}

fn start(name: &str, kind: &Kind, memory_mib: u32) -> Result<()> {
    let valid = |it: char| it.is_ascii_lowercase() || it.is_ascii_digit() || it == '-';
    if name.is_empty() || !name.chars().all(valid) {
        bail!("{name:?} is no host name of small letters, digits and dashes");
    }
    let base = base(kind.suite, kind.arch)?;
    let wanted = GuestSpec {
        name,
        host_name: name,
        base: &base,
        arch: kind.arch,
        memory_mib,
        payload: None,
        ports: &[],
        is_kept: true,
    };
    timed(&mut Guest::make(&wanted)?, &Boot::default())
}

fn timed(guest: &mut Guest, boot: &Boot) -> Result<()> {
    let begin = Instant::now();
    guest.boot(boot)?;
    println!("{} at {}, reached after {:.1} s", guest.name(), guest.address(), begin.elapsed().as_secs_f64());
    Ok(())
}

fn list() -> Result<()> {
    let Ok(entries) = fs::read_dir(folder().join("guests")) else { return Ok(()) };
    for entry in entries {
        let name = entry?.file_name().to_string_lossy().into_owned();
        let Ok(guest) = Guest::open(&name) else { continue };
        let state = if guest.is_on() { "on" } else { "off" };
        println!("{name} {} {state}{}", guest.address(), if guest.is_kept() { "" } else { ", ends with its run" });
    }
    Ok(())
}
