//! `cargo xtask dist`: builds the program that is shipped, by what it does.
//!
//! The program is built twice with the profile `dist`. The first one counts what it runs (profile-guided optimization, as
//! in the rustc book), and is given the load of the benchmarks. Of its counts the second one knows what runs often, what
//! runs seldom and what never does: often-run code lies together, so that the rest of the program need not be in memory.

use std::{
    env,
    ffi::OsString,
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context, Result, bail};

/// Whose tool reads what the compiler's counts are written in, the newest first.
const DEBIAN_LLVM: [u32; 4] = [22, 21, 20, 19];

#[derive(clap::Args)]
pub(crate) struct Args {
    /// Take the counts of the last time, instead of building the first program and loading it
    #[arg(long)]
    keep_counts: bool,
}

pub(crate) fn run(args: &Args) -> Result<()> {
    let profdata = profdata()?;
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).context("finding the workspace")?;
    let target = env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), PathBuf::from);
    let dir = target.join("counts");
    let merged = dir.join("corten.profdata");
    if !args.keep_counts {
        let raw = dir.join("raw");
        let _ = fs::remove_dir_all(&dir);
        fs::create_dir_all(&raw).with_context(|| format!("making {}", raw.display()))?;
        println!("1 of 3: the program that counts");
        let program = build(root, &target, &flag("-Cprofile-generate=", &raw))?;
        println!("2 of 3: its load");
        corten_bench::load(&program)?;
        merge(&profdata, &raw, &merged)?;
        fs::remove_dir_all(&raw).context("removing what was counted")?;
    }
    println!("3 of 3: the program that is shipped");
    let program = build(root, &target, &flag("-Cprofile-use=", &merged))?;
    println!("{}", program.display());
    Ok(())
}

fn flag(name: &str, path: &Path) -> OsString {
    let mut flag = OsString::from(name);
    flag.push(path);
    flag
}

/// Answers the program.
fn build(root: &Path, target: &Path, flag: &OsString) -> Result<PathBuf> {
    // A target is named so that build scripts, which run here and now, are not counted.
    let host = host()?;
    let status = Command::new(env::var_os("CARGO").unwrap_or("cargo".into()))
        .current_dir(root)
        .args(["build", "--profile", "dist", "--package", "corten", "--target", &host])
        .env("CARGO_ENCODED_RUSTFLAGS", flag)
        .status()
        .context("running cargo")?;
    if !status.success() {
        bail!("cargo build ended with {status}");
    }
    Ok(target.join(host).join("dist/corten"))
}

fn merge(profdata: &Path, raw: &Path, merged: &Path) -> Result<()> {
    let status = Command::new(profdata).arg("merge").arg("-o").arg(merged).arg(raw).status();
    let status = status.with_context(|| format!("running {}", profdata.display()))?;
    if !status.success() {
        bail!("{} ended with {status}", profdata.display());
    }
    Ok(())
}

/// The tool that comes with the compiler, or Debian's: its form of counts has been the same from LLVM 19 on (`INSTR_PROF_RAW_VERSION` 10).
fn profdata() -> Result<PathBuf> {
    let sysroot = PathBuf::from(rustc(&["--print", "sysroot"])?.trim());
    let own = sysroot.join("lib/rustlib").join(host()?).join("bin/llvm-profdata");
    let of_debian = DEBIAN_LLVM.map(|it| PathBuf::from(format!("/usr/lib/llvm-{it}/bin/llvm-profdata")));
    let found = [own.clone()].into_iter().chain(of_debian).find(|it| it.exists());
    found.with_context(|| {
        format!("there is no {}: rustup component add llvm-tools, or apt-get install llvm-19", own.display())
    })
}

fn host() -> Result<String> {
    let version = rustc(&["-vV"])?;
    let host =
        version.lines().find_map(|it| it.strip_prefix("host: ")).context("the compiler does not name its host")?;
    Ok(host.to_owned())
}

fn rustc(args: &[&str]) -> Result<String> {
    let output = Command::new(env::var_os("RUSTC").unwrap_or("rustc".into())).args(args).output();
    let output = output.context("asking the compiler")?;
    if !output.status.success() {
        bail!("rustc {} ended with {}", args.join(" "), output.status);
    }
    String::from_utf8(output.stdout).context("reading the compiler's answer")
}
