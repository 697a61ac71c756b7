//! `cargo xtask docs`: the reference pages, read off the tables of the code. A test keeps them from going stale.

mod metrics;
mod named;
mod promised;
mod rooms;

use std::{fmt::Write as _, fs};

use anyhow::{Context, Result, bail};
use corten_kinds::{KINDS, Kind};
use corten_testbed::root;

const HEAD: &str = "<!-- Written by `cargo xtask docs`; change the table it is read off instead. -->\n\n";

/// Writes every page; with `check` compares instead and fails where one is stale.
pub(crate) fn run(check: bool) -> Result<()> {
    let root = root()?;
    let dir = root.join("docs/reference");
    let list = root.join("crates/apiserver/testdata/promised_metrics.tsv");
    let promised = fs::read_to_string(&list).with_context(|| format!("reading {}", list.display()))?;
    let pages = [
        ("kinds.md", kinds()),
        ("routes.md", routes()?),
        ("answers.md", answers()?),
        ("metrics.md", promised::page(&promised)?),
        ("metrics-of-objects.md", metrics::page()),
        ("rooms.md", rooms::page(&root)?),
    ];
    for (name, page) in pages {
        let path = dir.join(name);
        if !check {
            fs::create_dir_all(&dir)?;
            fs::write(&path, page).with_context(|| format!("writing {}", path.display()))?;
        } else if fs::read_to_string(&path).unwrap_or_default() != page {
            bail!("docs/reference/{name} is stale: run `cargo xtask docs`");
        }
    }
    for (name, table, lines) in tables() {
        let path = dir.join(name);
        let page = fs::read_to_string(&path).with_context(|| format!("reading {}", path.display()))?;
        let current = with_table(&page, table, &lines).with_context(|| format!("docs/reference/{name}"))?;
        if !check {
            fs::write(&path, current).with_context(|| format!("writing {}", path.display()))?;
        } else if page != current {
            bail!("the table {table} of docs/reference/{name} is stale: run `cargo xtask docs`");
        }
    }
    let page = |name: &str| fs::read_to_string(dir.join(name)).with_context(|| format!("reading {name}"));
    named::plugins(&page("security.md")?).context("docs/reference/security.md")?;
    named::waits(&page("waits.md")?, &root.join("crates")).context("docs/reference/waits.md")
}

/// Page, name and lines of what stands in pages that people write.
fn tables() -> Vec<(&'static str, &'static str, String)> {
    vec![("security.md", "folders", folders())]
}

/// A page that people write, with one table of the code in it.
fn with_table(page: &str, name: &str, lines: &str) -> Result<String> {
    let begin = format!("<!-- The table {name} is written by `cargo xtask docs`. -->\n");
    let (before, rest) = page.split_once(&begin).with_context(|| format!("has no place for the table {name}"))?;
    // A table ends with its last row.
    let end = rest.find("\n\n").map_or("", |at| &rest[at + 1..]);
    Ok(format!("{before}{begin}{lines}{end}"))
}

/// Which folders are closed, and how.
fn folders() -> String {
    let mut table = String::from("| folder | mode | bits that are taken away | made by |\n|---|---|---|---|\n");
    for it in &corten_machine::FOLDERS {
        let place = match it.place {
            corten_machine::NodeFolder::Data => "DATA",
            corten_machine::NodeFolder::Run => "RUN",
        };
        let path = if it.path.is_empty() { place.to_owned() } else { format!("{place}/{}", it.path) };
        let makers = if it.of_server { "`node`, `server`" } else { "`node`" };
        let _ = writeln!(table, "| `{path}` | {:04o} | {:04o} | {makers} |", it.mode, it.forbidden_bits);
    }
    table
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
            let command = match question {
                _ if question.contains('/') => format!("{question} -n shop"),
                _ if question.contains('-') => question.to_owned(),
                namespace => format!("-n {namespace}"),
            };
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
    for kind in KINDS.iter() {
        let _ = writeln!(page, "{}", row(kind));
    }
    page
}

fn row(kind: &Kind) -> String {
    let resource = &kind.resource;
    let verbs: Vec<_> = kind.verbs.iter().map(|it| it.as_str()).collect();
    let subresources: Vec<_> = kind.subresources.iter().map(|it| it.as_str()).collect();
    let columns: Vec<_> =
        kind.columns.iter().map(|it| format!("{}{}", it.name(), if it.priority() > 0 { "*" } else { "" })).collect();
    format!(
        "| `{}` | `{}` | {} | {} | {} | {} | {} | {} | {} |",
        resource.plural,
        resource.api_version(),
        resource.kind,
        kind.short_names.iter().collect::<Vec<_>>().join(", "),
        if resource.namespaced { "namespace" } else { "cluster" },
        verbs.join(", "),
        subresources.join(", "),
        columns.join(", "),
        kind.selectable_fields.iter().collect::<Vec<_>>().join(", "),
    )
}

/// Every path of the API, what each method does there, and who is let through.
fn routes() -> Result<String> {
    let table = root()?.join("crates/apiserver/testdata/routes.txt");
    let table = fs::read_to_string(&table).with_context(|| format!("reading {}", table.display()))?;
    let mut page = format!(
        "{HEAD}# Routes\n\nA request is read once: method, path and query become one value with the kind, the namespace, the name, \
         the subresource and the verb. This value is what is authorized, what the audit log names, and what is done. \
         Segments of a path are decoded before they are compared. A path with an encoded slash is 400, one with an empty \
         segment is no resource, a slash at the end says nothing.\n\n## Who is let through\n\n```\n"
    );
    let shown =
        |line: &str| line.replacen("# kind", "kind  ", 1).trim_start_matches("# ").trim_start_matches('#').to_owned();
    page.extend(table.lines().map(|it| shown(it) + "\n"));
    page.push_str(
        "```\n\nThis table is a test: it is played for every kind, with every method, in many spellings of each path.\n\n\
         ## Paths\n\nThe verbs are those of RBAC: `list`, `get` and `watch` come with GET (`watch` with `?watch=true`, or by \
         its own path), and HEAD asks for the same without a body, `create` with POST, `update` with PUT, `patch` with PATCH, `delete` and `deletecollection` with \
         DELETE. Every other method of a path here is 405, every other path of these kinds 404.\n",
    );
    let mut group = String::new();
    for pattern in corten_routes::patterns() {
        let of = pattern.kind.resource.api_version();
        if of != group {
            let _ = write!(page, "\n### {of}\n\n| path | verbs |\n|---|---|\n");
            group = of;
        }
        let verbs: Vec<_> = pattern.verbs().map(|it| it.as_str()).collect();
        let _ = writeln!(page, "| `{}` | {} |", pattern.path(), verbs.join(", "));
    }
    Ok(page)
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_reference_is_current() {
        super::run(true).expect("run `cargo xtask docs`");
    }
}
