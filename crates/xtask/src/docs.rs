//! `cargo xtask docs`: the reference pages, read off the tables of the code. A test keeps them from going stale.

use std::{fmt::Write as _, fs};

use anyhow::{Context, Result, bail};
use corten_kinds::{KINDS, Kind};

use crate::tidy::root;

const HEAD: &str = "<!-- Written by `cargo xtask docs`; change the table it is read off instead. -->\n\n";

/// Writes every page; with `check` compares instead and fails where one is stale.
pub(crate) fn run(check: bool) -> Result<()> {
    let dir = root()?.join("docs/reference");
    for (name, page) in [("kinds.md", kinds()), ("commands.md", commands()), ("answers.md", answers()?)] {
        let path = dir.join(name);
        if !check {
            fs::create_dir_all(&dir)?;
            fs::write(&path, page).with_context(|| format!("writing {}", path.display()))?;
        } else if fs::read_to_string(&path).unwrap_or_default() != page {
            bail!("docs/reference/{name} is stale: run `cargo xtask docs`");
        }
    }
    Ok(())
}

/// What `corten why` says, cause by cause: the screens that its tests hold it to.
fn answers() -> Result<String> {
    let folder = root()?.join("crates/cli/testdata/why");
    let mut paths: Vec<_> = fs::read_dir(&folder)
        .with_context(|| format!("listing {}", folder.display()))?
        .filter_map(|it| it.ok().map(|it| it.path()))
        .collect();
    paths.sort();
    let mut page = format!(
        "{HEAD}# Answers\n\nWhat `corten why` says, cause by cause. These are the screens its tests hold it to; \
         [waits.md](waits.md) lists the reasons, [why.md](why.md) says how to read an answer and what `-o json` has.\n"
    );
    for path in paths {
        let text = fs::read_to_string(&path).with_context(|| format!("reading {}", path.display()))?;
        let mut parts = text.split("\n---- why");
        let about = parts.next().and_then(|it| it.lines().next()).unwrap_or_default().trim_start_matches("# ");
        let _ = write!(page, "\n## {}\n", about.trim_end_matches('.'));
        for part in parts {
            let (question, screen) = part.split_once('\n').unwrap_or((part, ""));
            let question = question.trim();
            let command = if question.contains('/') { format!("{question} -n shop") } else { format!("-n {question}") };
            let _ = write!(page, "\n```console\n$ corten why {command}\n{}\n```\n", screen.trim_end());
        }
    }
    Ok(page)
}

fn kinds() -> String {
    let mut page =
        format!("{HEAD}# Kinds\n\nWhat the API server serves. Columns marked `*` appear with `-o wide`.\n\n");
    page.push_str("| resource | API version | kind | short names | scope | verbs | subresources | columns | selectable fields |\n");
    page.push_str("|---|---|---|---|---|---|---|---|---|\n");
    for kind in KINDS {
        let _ = writeln!(page, "{}", row(kind));
    }
    page
}

fn row(kind: &Kind) -> String {
    let resource = &kind.resource;
    let verbs: Vec<_> = kind.verbs.iter().map(|it| it.as_str()).collect();
    let subresources: Vec<_> = kind.subresources.iter().map(|it| it.as_str()).collect();
    let columns: Vec<_> =
        kind.columns.iter().map(|it| format!("{}{}", it.name, if it.priority > 0 { "*" } else { "" })).collect();
    format!(
        "| `{}` | `{}` | {} | {} | {} | {} | {} | {} | {} |",
        resource.plural,
        resource.api_version(),
        resource.kind,
        kind.short_names.join(", "),
        if resource.namespaced { "namespace" } else { "cluster" },
        verbs.join(", "),
        subresources.join(", "),
        columns.join(", "),
        kind.selectable_fields.join(", "),
    )
}

fn commands() -> String {
    let mut page = format!(
        "{HEAD}# Commands\n\n`corten server` and `corten node`, which run in the foreground, describe themselves: `corten server --help`.\n"
    );
    for verb in corten_cli::VERBS {
        let _ = write!(
            page,
            "\n## corten {}\n\n{}.\n\n{}\n\n```\n{}\n```\n",
            verb.name, verb.about, verb.long_about, verb.examples
        );
    }
    page
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_reference_is_current() {
        super::run(true).expect("run `cargo xtask docs`");
    }
}
