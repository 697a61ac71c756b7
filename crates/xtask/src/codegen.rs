//! Writes the type table of `crates/schema` from the schemas that `k8s-openapi` carries and the merge rules in
//! `codegen/merge_rules.tsv`.
//!
//! Those schemas take a while to compile, so they stand behind a feature; without it the task calls itself again with it.

#[cfg(feature = "codegen")]
mod merge_rules;
#[cfg(feature = "codegen")]
mod numbers;
#[cfg(feature = "codegen")]
mod roots;
#[cfg(feature = "codegen")]
mod rust;
#[cfg(feature = "codegen")]
mod shapes;

use std::{path::Path, process::Command};

use anyhow::{Context, Result, bail};

#[cfg(feature = "codegen")]
pub(crate) fn run() -> Result<()> {
    let folder = crate::tidy::root()?.join("crates/schema/src/table");
    let types = shapes::read(&merge_rules::read()?)?;
    let files = rust::write(&types);
    for (name, text) in &files {
        let path = folder.join(name);
        std::fs::write(&path, text).with_context(|| format!("writing {}", path.display()))?;
    }
    cargo(&["fmt", "--package", "corten-schema"])?;
    println!("{} types in {} files", types.len(), files.len());
    Ok(())
}

#[cfg(not(feature = "codegen"))]
pub(crate) fn run() -> Result<()> {
    cargo(&["run", "--quiet", "--package", "xtask", "--features", "codegen", "--", "codegen"])
}

fn cargo(arguments: &[&str]) -> Result<()> {
    let cargo = std::env::var("CARGO").unwrap_or_else(|_| "cargo".into());
    let root = crate::tidy::root()?;
    let status = Command::new(cargo).args(arguments).current_dir::<&Path>(&root).status();
    if !status.with_context(|| format!("running cargo {}", arguments.join(" ")))?.success() {
        bail!("cargo {} failed", arguments.join(" "));
    }
    Ok(())
}
