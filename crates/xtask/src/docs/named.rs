//! What pages that people write must name: all that the code has of it, and nothing that it has not.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result, ensure};

/// The admission plugins, in the order in which they are asked, and in which round.
pub(super) fn plugins(page: &str) -> Result<()> {
    let (_, table) = page
        .split_once("| plugin | round | what it does |\n|---|---|---|\n")
        .context("there is no table of plugins")?;
    let rows = table.lines().take_while(|it| it.starts_with('|'));
    let told: Vec<_> = rows
        .flat_map(|row| first_names(row).map(move |name| (name, row.split('|').nth(2).unwrap_or_default().trim())))
        .collect();
    let round = |it: &corten_admission::Plugin| match (it.admits, it.validates) {
        (true, true) => "both",
        (true, false) => "first",
        (false, _) => "second",
    };
    let asked: Vec<_> = corten_admission::PLUGINS.iter().map(|it| (it.plugin.name(), round(it))).collect();
    ensure!(told == asked, "the table of plugins has {told:?}, and asked are {asked:?}");
    Ok(())
}

/// The reasons of waits: each literal in the code that says who must act, as `Wait::new("NoNodes", message, Actor::Operator)`.
pub(super) fn waits(page: &str, crates: &Path) -> Result<()> {
    let (mut reasons, mut words) = (BTreeMap::new(), BTreeSet::new());
    for path in sources(crates)? {
        let text = fs::read_to_string(&path).with_context(|| format!("reading {}", path.display()))?;
        let text = text.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default();
        for (at, word) in literals(text) {
            words.insert(word.to_owned());
            if is_reason(text, at, word) {
                reasons.insert(word.to_owned(), path.clone());
            }
        }
    }
    let named: BTreeSet<&str> = page.split('`').skip(1).step_by(2).collect();
    let missing: Vec<_> = reasons.iter().filter(|it| !named.contains(&**it.0)).collect();
    ensure!(missing.is_empty(), "reasons that are not there: {missing:?}");
    let rows = page.lines().filter(|it| it.starts_with("| `")).flat_map(first_names);
    let unknown: Vec<_> = rows.filter(|it| !words.contains(*it) && !is_put_together(it)).collect();
    ensure!(unknown.is_empty(), "reasons that nothing waits with: {unknown:?}");
    Ok(())
}

/// `OutOfcpu`: what the code makes of a part and the name of a resource.
fn is_put_together(reason: &str) -> bool {
    reason.starts_with("OutOf")
}

/// What the first cell of a row has between backticks.
fn first_names(row: &str) -> impl Iterator<Item = &str> {
    let cell = row.trim_start_matches('|').split('|').next().unwrap_or_default();
    cell.split('`').skip(1).step_by(2)
}

/// Where literals stand that look like a reason, and which.
fn literals(text: &str) -> impl Iterator<Item = (usize, &str)> {
    text.match_indices('"').filter_map(|(at, _)| {
        let word = &text[at + 1..];
        let word = &word[..word.find(|it: char| !it.is_ascii_alphanumeric())?];
        let is_whole = text[at + 1 + word.len()..].starts_with('"');
        (is_whole && word.starts_with(|it: char| it.is_ascii_uppercase()) && word.len() > 3).then_some((at, word))
    })
}

fn is_reason(text: &str, at: usize, word: &str) -> bool {
    let before = text[..at].trim_end();
    if ["Wait::new(", "wait:", "found.add(", "Rejection { reason:"].iter().any(|it| before.ends_with(it)) {
        return true;
    }
    let after = &text[at + word.len() + 2..];
    let has_two_humps = word.chars().skip(1).any(|it| it.is_ascii_uppercase());
    let end =
        [";", "=>", "\n\n", "name:"].iter().filter_map(|it| after.find(it)).chain(literals(after).map(|it| it.0)).min();
    has_two_humps && !before.ends_with("name:") && after[..end.unwrap_or(after.len())].contains("Actor::")
}

/// The sources of all crates that waits can come from, without their tests.
fn sources(crates: &Path) -> Result<Vec<PathBuf>> {
    let (mut folders, mut found) = (vec![crates.to_owned()], Vec::new());
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).with_context(|| format!("listing {}", folder.display()))? {
            let path = entry?.path();
            let name = path.file_name().and_then(|it| it.to_str()).unwrap_or_default();
            if path.is_dir() && !matches!(name, "tests" | "testdata" | "xtask" | "sim" | "sample") {
                folders.push(path);
            } else if path.extension().is_some_and(|it| it == "rs") && name != "tests.rs" {
                found.push(path);
            }
        }
    }
    Ok(found)
}
