//! The rooms of every crate, from the bottom: which files and folders there are, which stand on which, and what each says of itself.

use std::{fmt::Write as _, fs, path::Path};

use anyhow::{Context, Result};

use crate::tidy::{FLOORS, imports::Imports, source_files};

const INTRODUCTION: &str = "# Rooms\n\n\
    What is inside the crates, from the bottom: a room is a file below `src`, or a folder with the file of its name. It imports rooms of lower floors of its \
    crate alone, which `cargo xtask tidy` holds. The sentence is the first of its own. Which crate is on which floor says \
    [ARCHITECTURE.md](../../ARCHITECTURE.md#floors).\n";

pub(super) fn page(root: &Path) -> Result<String> {
    let crates = root.join("crates");
    let files = source_files(&crates)?;
    let files: Vec<String> = files.iter().map(|it| it.strip_prefix(root).unwrap_or(it).display().to_string()).collect();
    let mut page = format!("{}{INTRODUCTION}", super::HEAD);
    for (name, _) in FLOORS {
        let own = name.trim_start_matches("corten-");
        let folder = [own.to_owned(), own.replace('-', "_")].into_iter().find(|it| crates.join(it).is_dir());
        let folder = format!("crates/{}", folder.with_context(|| format!("{name} has no folder"))?);
        let imports = Imports::of(root, &folder, &files)?;
        let rows = rows(root, &folder, &imports.floors());
        if !rows.is_empty() {
            let _ = write!(page, "\n## {own}\n\n| floor | room | what it is |\n|---|---|---|\n{rows}");
        }
    }
    Ok(page)
}

fn rows(root: &Path, folder: &str, floors: &[Vec<String>]) -> String {
    let mut rows = String::new();
    for (floor, rooms) in floors.iter().enumerate() {
        for room in rooms.iter().filter(|it| !matches!(it.as_str(), "lib" | "main")) {
            let paths = [format!("{folder}/src/{room}.rs"), format!("{folder}/src/{room}/mod.rs")];
            let text = paths.iter().find_map(|it| fs::read_to_string(root.join(it)).ok()).unwrap_or_default();
            let _ = writeln!(rows, "| {floor} | `{room}` | {} |", first_sentence(&text).replace('|', "\\|"));
        }
    }
    rows
}

/// Of the comment that a file begins with.
fn first_sentence(text: &str) -> String {
    let lines = text.lines().map_while(|it| it.strip_prefix("//!")).map(str::trim);
    let paragraph = lines.take_while(|it| !it.is_empty()).collect::<Vec<_>>().join(" ");
    let end = paragraph.find(". ").map_or(paragraph.len(), |at| at + 1);
    paragraph[..end].to_owned()
}

#[cfg(test)]
mod tests {
    use super::first_sentence;

    #[test]
    fn the_first_sentence_is_taken() {
        assert_eq!(first_sentence("//! One of\n//! two. Three.\n//!\n//! Four.\n\nuse a;"), "One of two.");
        assert_eq!(first_sentence("//! What is there: a.b\n"), "What is there: a.b");
        assert_eq!(first_sentence("use a;"), "");
    }
}
