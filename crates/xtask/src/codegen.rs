//! Writes the type table of `crates/schema` and the notes of the server's OpenAPI documents, from the schemas that
//! `k8s-openapi` carries and the facts in `codegen/*.tsv`.
//!
//! Those schemas take a while to compile, so they stand behind a feature; without it the task calls itself again with it.

#[cfg(feature = "codegen")]
mod defaults;
#[cfg(feature = "codegen")]
mod merge_rules;
#[cfg(feature = "codegen")]
mod notes;
#[cfg(feature = "codegen")]
mod numbers;
#[cfg(feature = "codegen")]
mod omitted;
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
    let crates = corten_testbed::root()?.join("crates");
    let folder = crates.join("schema/src/table");
    let definitions = shapes::definitions();
    let types = shapes::read(&definitions, &merge_rules::read()?)?;
    let files = rust::write(&types);
    for (name, text) in &files {
        let path = folder.join(name);
        std::fs::write(&path, text).with_context(|| format!("writing {}", path.display()))?;
    }
    let path = crates.join("openapi/src/notes.json.gz");
    std::fs::write(&path, notes::write(&definitions, &types)?)
        .with_context(|| format!("writing {}", path.display()))?;
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
    let root = corten_testbed::root()?;
    let status = Command::new(cargo).args(arguments).current_dir::<&Path>(&root).status();
    if !status.with_context(|| format!("running cargo {}", arguments.join(" ")))?.success() {
        bail!("cargo {} failed", arguments.join(" "));
    }
    Ok(())
}
