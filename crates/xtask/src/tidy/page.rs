//! ARCHITECTURE.md beside the tables that are enforced: which crate is on which floor, which edges a floor has inside, who names the
//! store.

use std::{collections::BTreeSet, fs, path::Path};

use anyhow::{Context, Result};

use super::{FLOORS, SAME_FLOOR, STORE_USERS};

pub(super) fn sins(root: &Path) -> Result<Vec<String>> {
    let page = fs::read_to_string(root.join("ARCHITECTURE.md")).context("reading ARCHITECTURE.md")?;
    Ok(check(&page))
}

fn check(page: &str) -> Vec<String> {
    let own = |it: &str| it.trim_start_matches("corten-").replace('-', "_");
    let floors = FLOORS.iter().map(|(name, floor)| format!("{} on floor {floor}", own(name))).collect();
    let edges = SAME_FLOOR.iter().map(|(from, to)| format!("{}→{}", own(from), own(to))).collect();
    let users = STORE_USERS.iter().map(|it| format!("{} names `store`", own(it))).collect();
    let said_users = between(page, "- Only these name `store`:", "Everything else");
    let said_users = said_users.lines().flat_map(names).filter(|it| it != "store");
    let rules = [
        (floors, crates(page)),
        (edges, edges_of(between(page, "the only edges within a floor are", "enforces this"))),
        (users, said_users.map(|it| format!("{it} names `store`")).collect()),
    ];
    let mut sins = Vec::new();
    for (enforced, said) in rules {
        let enforced: BTreeSet<String> = enforced;
        let said: BTreeSet<String> = said;
        sins.extend(enforced.difference(&said).map(|it| format!("ARCHITECTURE.md does not say: {it}")));
        sins.extend(said.difference(&enforced).map(|it| format!("ARCHITECTURE.md says what tidy does not hold: {it}")));
    }
    sins
}

fn between<'p>(page: &'p str, from: &str, to: &str) -> &'p str {
    let rest = page.split_once(from).map_or("", |it| it.1);
    rest.split_once(to).map_or("", |it| it.0)
}

/// What stands in backticks.
fn names(line: &str) -> impl Iterator<Item = String> {
    line.split('`').skip(1).step_by(2).map(str::to_owned)
}

/// Rows of the table of crates: a floor stands in the first of its rows alone.
fn crates(page: &str) -> BTreeSet<String> {
    let mut floor = String::new();
    let mut found = BTreeSet::new();
    for line in between(page, "| floor | crate |", "\n\n").lines() {
        let cells: Vec<&str> = line.split('|').map(str::trim).collect();
        let [_, first, name, ..] = cells[..] else { continue };
        if first.starts_with(|it: char| it.is_ascii_digit()) {
            first.split(' ').next().unwrap_or_default().clone_into(&mut floor);
        }
        found.extend(names(name).map(|it| format!("{} on floor {floor}", it.replace('-', "_"))));
    }
    found
}

/// `a→b`, and `a→{b,c}` for both.
fn edges_of(text: &str) -> BTreeSet<String> {
    let edges = text.lines().flat_map(names).collect::<Vec<_>>();
    let edges = edges.iter().filter_map(|it| it.split_once('→'));
    let all = edges.flat_map(|(from, to)| {
        to.trim_matches(['{', '}']).split(',').map(move |to| format!("{from}→{to}")).collect::<Vec<_>>()
    });
    all.collect()
}

#[cfg(test)]
mod tests {
    use super::{crates, edges_of};

    #[test]
    fn tables_and_edges_are_read() {
        let page = "| floor | crate | x |\n|---|---|---|\n| 0 words | `meta` | a |\n| | `api` | b |\n| 4 house | `cli` | c |\n\n| 9 | `z` |";
        assert_eq!(
            crates(page).into_iter().collect::<Vec<_>>(),
            ["api on floor 0", "cli on floor 4", "meta on floor 0"]
        );
        let edges = edges_of(" `a→b`, `c→{a,b}` and\n`x→y`. `no edge`");
        assert_eq!(edges.into_iter().collect::<Vec<_>>(), ["a→b", "c→a", "c→b", "x→y"]);
    }
}
