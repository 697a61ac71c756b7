//! `cargo xtask upstream`: builds Kubernetes's own API server, scheduler and controller manager from the source that Debian packages, for the
//! scripts of `e2e/` that play them against Corten: old ones, which write what a client of years ago writes.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context, Result, bail};
use corten_testbed::root;

use crate::debian::Apt;

/// The last release whose source package is whole: later ones have kubectl alone.
const RELEASE: &str = "bookworm";
const VERSION: &str = "v1.20.2";
const PROGRAMS: [&str; 3] = ["kube-scheduler", "kube-controller-manager", "kube-apiserver"];
/// What its authors make with the program below before they build: the API server's description of all types.
const DESCRIPTION: &str = "pkg/generated/openapi";
const DESCRIBER: &str = "k8s.io/kubernetes/vendor/k8s.io/kube-openapi/cmd/openapi-gen";
/// Types that are to be in it say so.
const IS_DESCRIBED: &str = "+k8s:openapi-gen=true";

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
    describe(&folder, &source)?;
    for program in PROGRAMS {
        println!("building {program}: some minutes");
        build(&folder, &source, program, &format!("k8s.io/kubernetes/cmd/{program}"))?;
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

/// Makes the description, which the source package leaves out.
fn describe(folder: &Path, source: &Path) -> Result<()> {
    build(folder, source, "openapi-gen", DESCRIBER)?;
    let found = Command::new("grep")
        .args(["-rl", "--include=*.go", "--exclude=*_test.go", IS_DESCRIBED, "pkg", "staging/src/k8s.io"])
        .current_dir(source)
        .output()
        .context("running grep")?;
    let found = String::from_utf8(found.stdout).context("reading names of files")?;
    let mut folders: Vec<String> = found.lines().filter_map(package).collect();
    folders.sort();
    folders.dedup();
    let status = Command::new(folder.join("openapi-gen"))
        .args(["-h", "hack/boilerplate/boilerplate.generatego.txt", "-O", "zz_generated.openapi"])
        .args(["-i", &folders.join(","), "-p", &format!("k8s.io/kubernetes/{DESCRIPTION}"), "-r"])
        .arg(folder.join("violations"))
        .current_dir(source)
        .env("GOPATH", folder.join("go"))
        .env("GO111MODULE", "off")
        .status()
        .context("running openapi-gen")?;
    if !status.success() {
        bail!("the types of the API cannot be described");
    }
    Ok(())
}

/// The Go package of a source file whose types the API has.
fn package(file: &str) -> Option<String> {
    let folder = file.rsplit_once('/')?.0;
    let others = ["code-generator", "sample-", "_examples", "testdata", "pkg/generated"];
    if others.iter().any(|it| folder.contains(it)) {
        return None;
    }
    Some(match folder.strip_prefix("staging/src/") {
        Some(vendored) => format!("k8s.io/kubernetes/vendor/{vendored}"),
        None => format!("k8s.io/kubernetes/{folder}"),
    })
}

fn build(folder: &Path, source: &Path, program: &str, package: &str) -> Result<()> {
    let of_version = "k8s.io/kubernetes/vendor/k8s.io/component-base/version";
    let version =
        format!("-X {of_version}.gitVersion={VERSION} -X {of_version}.gitMajor=1 -X {of_version}.gitMinor=20");
    let status = Command::new("go")
        .args(["build", "-ldflags", &version, "-o"])
        .arg(folder.join(program))
        .arg(package)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packages_are_where_go_looks_for_them() {
        assert_eq!(package("pkg/apis/x/doc.go").as_deref(), Some("k8s.io/kubernetes/pkg/apis/x"));
        let vendored = package("staging/src/k8s.io/api/core/v1/doc.go");
        assert_eq!(vendored.as_deref(), Some("k8s.io/kubernetes/vendor/k8s.io/api/core/v1"));
        assert_eq!(package("staging/src/k8s.io/sample-apiserver/pkg/doc.go"), None);
    }
}
