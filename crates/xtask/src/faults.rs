//! Holds `docs/reference/faults.md` to what is played: each row names its scripts, and each table one on a whole machine.

use std::{fs, path::Path};

use anyhow::{Context, Result};

const PAGE: &str = "docs/reference/faults.md";
const TABLES: [&str; 4] = ["Processes", "The machine", "Disks", "The network"];

/// What of the page is not so.
pub(crate) fn sins(root: &Path) -> Result<Vec<String>> {
    let text = fs::read_to_string(root.join(PAGE)).with_context(|| format!("reading {PAGE}"))?;
    let mut scripts = Vec::new();
    for kind in ["machine", "node"] {
        let folder = root.join("e2e").join(kind);
        for entry in fs::read_dir(&folder).with_context(|| format!("listing {}", folder.display()))? {
            let name = entry?.file_name().to_string_lossy().into_owned();
            if let Some((number, _)) = name.split_once('-').filter(|_| name.ends_with(".e2e")) {
                scripts.push(format!("{kind}/{number}"));
            }
        }
    }
    Ok(check(&text, &scripts))
}

fn check(text: &str, scripts: &[String]) -> Vec<String> {
    let mut sins = Vec::new();
    let sections: Vec<(&str, &str)> =
        text.split("\n## ").skip(1).map(|it| it.split_once('\n').unwrap_or((it, ""))).collect();
    for table in TABLES {
        let Some((_, section)) = sections.iter().find(|it| it.0 == table) else {
            sins.push(format!("{PAGE}: no table {table:?}"));
            continue;
        };
        let mut on_machines = 0;
        for row in section.lines().filter(|it| it.starts_with("| ") && !it.starts_with("| fault |")) {
            let cells: Vec<&str> = row.trim_matches('|').split(" | ").map(str::trim).collect();
            let fault = cells.first().copied().unwrap_or_default();
            let named: Vec<&str> = cells.last().map(|it| it.split(", ").collect()).unwrap_or_default();
            for script in named {
                let script = script.trim_matches('`');
                on_machines += usize::from(script.starts_with("machine/"));
                if !scripts.iter().any(|it| it == script) {
                    sins.push(format!("{PAGE}: {fault:?} is played by {script:?}, and there is no such script"));
                }
            }
        }
        if on_machines == 0 {
            sins.push(format!("{PAGE}: nothing of the table {table:?} is played on a machine"));
        }
    }
    sins
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_without_a_script_is_found() {
        let table = |name: &str, scripts: &str| {
            format!("\n## {name}\n\n| fault | played by |\n|---|---|\n| it is killed | {scripts} |\n")
        };
        let scripts = ["machine/10".to_owned(), "node/90".to_owned()];
        let mut text: String = TABLES[1..].iter().map(|it| table(it, "`machine/10`, `node/90`")).collect();
        assert_eq!(check(&text, &scripts), ["docs/reference/faults.md: no table \"Processes\""]);
        text += &table("Processes", "`machine/11`");
        let lost =
            "docs/reference/faults.md: \"it is killed\" is played by \"machine/11\", and there is no such script";
        assert_eq!(check(&text, &scripts), [lost]);
        let text = text.replace("machine/11", "node/90");
        let none = "docs/reference/faults.md: nothing of the table \"Processes\" is played on a machine";
        assert_eq!(check(&text, &scripts), [none]);
    }
}
