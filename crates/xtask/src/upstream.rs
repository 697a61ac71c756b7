//! `cargo xtask upstream`: builds Kubernetes's own scheduler and controller manager from the source that Debian packages, for the
//! scripts of `e2e/` that play them against Corten: old ones, which write what a client of years ago writes.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context, Result, bail};

use crate::{debian::Apt, tidy::root};

/// The last release whose source package is whole: later ones have kubectl alone.
const RELEASE: &str = "bookworm";
const VERSION: &str = "v1.20.2";
const PROGRAMS: [&str; 2] = ["kube-scheduler", "kube-controller-manager"];

pub(crate) fn run() -> Result<()> {
    let folder = root()?.join("target/upstream");
    if PROGRAMS.iter().all(|it| folder.join(it).exists()) {
        println!("{}", folder.display());
        return Ok(());
    }
    if Command::new("go").arg("version").output().is_err() {
        bail!("there is no Go compiler: `apt-get install golang-go`");
    }
    let source = source(&folder)?;
    for program in PROGRAMS {
        println!("building {program}: some minutes");
        build(&folder, &source, program)?;
    }
    println!("{}", folder.display());
    Ok(())
}

/// The folder of the source, where Go of before modules looks for it.
fn source(folder: &Path) -> Result<PathBuf> {
    let source = folder.join("go/src/k8s.io/kubernetes");
    let apt = Apt::new(folder.join("apt"), "deb-src", RELEASE)?;
    apt.run(&["source", "--download-only", "kubernetes"])?;
    let mut files = fs::read_dir(&apt.folder).context("looking for the source")?.filter_map(Result::ok);
    let archive = files.find(|it| it.file_name().to_string_lossy().ends_with(".orig.tar.gz"));
    let archive = archive.context("the source package has no archive of the source")?.path();
    fs::create_dir_all(&source).with_context(|| format!("making {}", source.display()))?;
    let mut tar = Command::new("tar");
    tar.arg("-xzf").arg(&archive).arg("-C").arg(&source).arg("--strip-components=1");
    if !tar.status().context("running tar")?.success() {
        bail!("{} cannot be unpacked", archive.display());
    }
    Ok(source)
}

fn build(folder: &Path, source: &Path, program: &str) -> Result<()> {
    let package = "k8s.io/kubernetes/vendor/k8s.io/component-base/version";
    let version = format!("-X {package}.gitVersion={VERSION} -X {package}.gitMajor=1 -X {package}.gitMinor=20");
    let status = Command::new("go")
        .args(["build", "-ldflags", &version, "-o"])
        .arg(folder.join(program))
        .arg(format!("k8s.io/kubernetes/cmd/{program}"))
        .current_dir(source)
        .env("GOPATH", folder.join("go"))
        .env("GOCACHE", folder.join("cache"))
        .envs([("GO111MODULE", "off"), ("GOFLAGS", ""), ("CGO_ENABLED", "0")])
        .status()
        .context("running go")?;
    if !status.success() {
        bail!("{program} cannot be built");
    }
    Ok(())
}
