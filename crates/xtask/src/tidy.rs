//! The rules of the house that no compiler checks: floors, headers, sizes, words that must not appear.
//!
//! Old sins are listed by name in `tidy.allow`; a line there that no longer sins must go, so the list only shrinks.

mod doc_links;
pub(crate) mod imports;
mod page;

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context, Result, bail};
use serde_json::Value;

use corten_testbed::root;
use doc_links::DocLinks;
use imports::Imports;

/// The floor of each crate. A crate may use lower floors, and of its own floor only what `SAME_FLOOR` lists.
pub(crate) const FLOORS: &[(&str, u8)] = &[
    ("corten-meta", 0),
    ("corten-api", 0),
    ("corten-cel", 0),
    ("corten-schema", 0),
    ("corten-etcd-api", 0),
    ("corten-reconcile", 1),
    ("corten-validation", 2),
    ("corten-kinds", 2),
    ("corten-routes", 2),
    ("corten-policies", 2),
    ("corten-flowcontrol", 2),
    ("corten-state-metrics", 2),
    ("corten-forwarding", 2),
    ("corten-autoscaling", 2),
    ("corten-controllers", 2),
    ("corten-allocator", 2),
    ("corten-scheduler", 2),
    ("corten-kubelet", 2),
    ("corten-provisioner", 2),
    ("corten-proxy", 2),
    ("corten-netpolicy", 2),
    ("corten-dns", 2),
    ("corten-nat64", 2),
    ("corten-options", 2),
    ("corten-store", 3),
    ("corten-client", 3),
    ("corten-runner", 3),
    ("corten-stream", 3),
    ("corten-machine", 3),
    ("corten-records", 3),
    ("corten-console", 3),
    ("corten-node-process", 3),
    ("corten-network", 3),
    ("corten-grpc", 3),
    ("corten-volumes", 3),
    ("corten-devices", 3),
    ("corten-host", 3),
    ("corten-pki", 3),
    ("corten-cacher", 3),
    ("corten-connection", 3),
    ("corten-files", 3),
    ("corten-fairness", 3),
    ("corten-metrics", 3),
    ("corten-kubelets", 3),
    ("corten-access", 3),
    ("corten-audit", 3),
    ("corten-openapi", 3),
    ("corten-webhook", 3),
    ("corten-conversion", 3),
    ("corten-encryption", 3),
    ("corten-etcd", 3),
    ("corten-etcd-server", 3),
    ("corten-etcd-snapshot", 3),
    ("corten-stored-form", 3),
    ("corten-admission", 3),
    ("corten-aggregation", 3),
    ("corten-apiserver", 3),
    ("corten-cli", 4),
    ("corten-sim", 4),
    ("corten-testbed", 4),
    ("corten-bench", 5),
    ("corten", 5),
    ("xtask", 5),
];
const SAME_FLOOR: &[(&str, &str)] = &[
    ("corten-api", "corten-meta"),
    ("corten-cel", "corten-meta"),
    ("corten-schema", "corten-meta"),
    ("corten-schema", "corten-cel"),
    ("corten-kinds", "corten-validation"),
    ("corten-routes", "corten-kinds"),
    ("corten-policies", "corten-validation"),
    ("corten-autoscaling", "corten-kinds"),
    ("corten-controllers", "corten-autoscaling"),
    ("corten-controllers", "corten-kinds"),
    ("corten-controllers", "corten-policies"),
    ("corten-scheduler", "corten-allocator"),
    ("corten-netpolicy", "corten-proxy"),
    ("corten-runner", "corten-client"),
    ("corten-client", "corten-stream"),
    ("corten-volumes", "corten-grpc"),
    ("corten-volumes", "corten-machine"),
    ("corten-host", "corten-volumes"),
    ("corten-records", "corten-machine"),
    ("corten-node-process", "corten-console"),
    ("corten-node-process", "corten-machine"),
    ("corten-devices", "corten-grpc"),
    ("corten-devices", "corten-machine"),
    ("corten-host", "corten-devices"),
    ("corten-pki", "corten-stream"),
    ("corten-cacher", "corten-store"),
    ("corten-access", "corten-cacher"),
    ("corten-access", "corten-files"),
    ("corten-audit", "corten-files"),
    ("corten-encryption", "corten-files"),
    ("corten-webhook", "corten-files"),
    ("corten-access", "corten-metrics"),
    ("corten-access", "corten-pki"),
    ("corten-access", "corten-webhook"),
    ("corten-apiserver", "corten-webhook"),
    ("corten-aggregation", "corten-access"),
    ("corten-aggregation", "corten-cacher"),
    ("corten-aggregation", "corten-metrics"),
    ("corten-aggregation", "corten-openapi"),
    ("corten-aggregation", "corten-pki"),
    ("corten-aggregation", "corten-stream"),
    ("corten-aggregation", "corten-webhook"),
    ("corten-apiserver", "corten-aggregation"),
    ("corten-apiserver", "corten-encryption"),
    ("corten-encryption", "corten-cacher"),
    ("corten-encryption", "corten-metrics"),
    ("corten-encryption", "corten-store"),
    ("corten-etcd", "corten-store"),
    ("corten-etcd-server", "corten-etcd-snapshot"),
    ("corten-etcd-server", "corten-store"),
    ("corten-stored-form", "corten-cacher"),
    ("corten-stored-form", "corten-store"),
    ("corten-audit", "corten-access"),
    ("corten-fairness", "corten-cacher"),
    ("corten-fairness", "corten-metrics"),
    ("corten-metrics", "corten-store"),
    ("corten-admission", "corten-metrics"),
    ("corten-apiserver", "corten-metrics"),
    ("corten-apiserver", "corten-kubelets"),
    ("corten-kubelets", "corten-access"),
    ("corten-kubelets", "corten-cacher"),
    ("corten-kubelets", "corten-pki"),
    ("corten-kubelets", "corten-stream"),
    ("corten-kubelets", "corten-webhook"),
    ("corten-apiserver", "corten-connection"),
    ("corten-apiserver", "corten-fairness"),
    ("corten-openapi", "corten-cacher"),
    ("corten-webhook", "corten-cacher"),
    ("corten-webhook", "corten-stream"),
    ("corten-conversion", "corten-cacher"),
    ("corten-conversion", "corten-metrics"),
    ("corten-conversion", "corten-webhook"),
    ("corten-admission", "corten-conversion"),
    ("corten-apiserver", "corten-conversion"),
    ("corten-admission", "corten-access"),
    ("corten-admission", "corten-cacher"),
    ("corten-admission", "corten-pki"),
    ("corten-admission", "corten-store"),
    ("corten-admission", "corten-webhook"),
    ("corten-apiserver", "corten-access"),
    ("corten-apiserver", "corten-admission"),
    ("corten-apiserver", "corten-audit"),
    ("corten-apiserver", "corten-cacher"),
    ("corten-apiserver", "corten-openapi"),
    ("corten-apiserver", "corten-pki"),
    ("corten-apiserver", "corten-store"),
    ("corten-apiserver", "corten-stream"),
    ("corten-network", "corten-machine"),
    ("corten-host", "corten-machine"),
    ("corten-host", "corten-network"),
    ("corten-host", "corten-stream"),
    ("xtask", "corten-bench"),
];
/// Who may name the store: all others speak the API.
const STORE_USERS: [&str; 12] = [
    "corten-cacher",
    "corten-encryption",
    "corten-etcd",
    "corten-etcd-server",
    "corten-stored-form",
    "corten-metrics",
    "corten-admission",
    "corten-apiserver",
    "corten-sim",
    "corten-bench",
    "corten",
    "xtask",
];
/// What a mind's manifest may not name.
const NOT_FOR_MINDS: [&str; 8] = ["tokio", "hyper", "rand", "rustix", "redb", "tonic", "rustls", "futures-util"];

/// Of a crate without its tests: those at a boundary (HTTP scripts, whole servers) try all crates beneath it.
const CRATE_LINES_MAX: usize = 18_000;
/// Of the API server's own crate: what does not need a whole request belongs into the crates beneath it.
const APISERVER_LINES_MAX: usize = 10_000;
const FILE_LINES_MAX: usize = 600;
const FUNCTION_LINES_MAX: usize = 85;

/// Prints every broken rule and fails if there is one.
pub(crate) fn run() -> Result<()> {
    let root = root()?;
    let mut sins = floors(&root)?;
    let files = source_files(&root.join("crates"))?;
    let (mut crate_lines, mut doc_links) = (BTreeMap::<String, usize>::new(), DocLinks::default());
    for file in &files {
        let text = fs::read_to_string(file).with_context(|| format!("reading {}", file.display()))?;
        let name = file.strip_prefix(&root).unwrap_or(file).display().to_string();
        sins.extend(file_sins(&name, &text));
        doc_links.read(&name, &text);
        if !is_generated(&name) && !is_test(&name) {
            let crate_dir = name.split('/').take(2).collect::<Vec<_>>().join("/");
            *crate_lines.entry(crate_dir).or_default() += text.lines().count();
        }
    }
    sins.extend(crate_lines.iter().filter_map(|(name, n_lines)| {
        let max = if name == "crates/apiserver" { APISERVER_LINES_MAX } else { CRATE_LINES_MAX };
        (*n_lines > max).then(|| format!("{name}: is longer than {max} lines without its tests"))
    }));
    sins.extend(doc_links.sins());
    sins.extend(crate::faults::sins(&root)?);
    sins.extend(circles(&root, &files)?);
    sins.extend(page::sins(&root)?);
    let listed: BTreeSet<String> = fs::read_to_string(root.join("crates/xtask/tidy.allow"))
        .unwrap_or_default()
        .lines()
        .filter(|it| !it.is_empty() && !it.starts_with('#'))
        .map(str::to_owned)
        .collect();
    let found: BTreeSet<String> = sins.into_iter().collect();
    let new: Vec<&String> = found.difference(&listed).collect();
    let gone: Vec<&String> = listed.difference(&found).collect();
    for sin in &new {
        eprintln!("tidy: {sin}");
    }
    for sin in &gone {
        eprintln!("tidy: no longer true, take it out of tidy.allow: {sin}");
    }
    if !new.is_empty() || !gone.is_empty() {
        bail!("{} new and {} outdated findings", new.len(), gone.len());
    }
    println!("tidy: {} files, all rules hold ({} old findings listed)", files.len(), listed.len());
    Ok(())
}

/// Where the folders of a crate import each other in a circle.
fn circles(root: &Path, files: &[PathBuf]) -> Result<Vec<String>> {
    let files = files.iter().map(|it| it.strip_prefix(root).unwrap_or(it).display().to_string());
    let files: Vec<String> = files.collect();
    let crates: BTreeSet<&str> = files.iter().filter_map(|it| it.split_once("/src/")).map(|it| it.0).collect();
    let mut sins = Vec::new();
    for crate_dir in crates {
        sins.extend(Imports::of(root, crate_dir, &files)?.sins());
    }
    Ok(sins)
}

fn floors(root: &Path) -> Result<Vec<String>> {
    let cargo = std::env::var("CARGO").unwrap_or_else(|_| "cargo".into());
    let output = Command::new(cargo)
        .args(["metadata", "--no-deps", "--format-version", "1", "--offline"])
        .current_dir(root)
        .output()
        .context("running cargo metadata")?;
    let metadata: Value = serde_json::from_slice(&output.stdout).context("reading cargo metadata")?;
    let packages = metadata["packages"].as_array().context("cargo metadata lists packages")?;
    Ok(packages.iter().flat_map(package_sins).collect())
}

fn package_sins(package: &Value) -> Vec<String> {
    let name = package["name"].as_str().unwrap_or_default();
    let Some(floor) = floor_of(name) else { return vec![format!("{name}: has no floor")] };
    let dependencies = package["dependencies"].as_array().map(Vec::as_slice).unwrap_or_default();
    let mut sins = Vec::new();
    let manifest = Path::new(package["manifest_path"].as_str().unwrap_or_default());
    if floor <= 2 && fs::read_link(manifest.with_file_name("clippy.toml")).is_err() {
        sins.push(format!("{name}: a word or mind has a link to minds.clippy.toml, as clippy.toml"));
    }
    for dependency in dependencies.iter().filter(|it| it["kind"].is_null()) {
        let on = dependency["name"].as_str().unwrap_or_default();
        if floor <= 2 && NOT_FOR_MINDS.contains(&on) {
            sins.push(format!("{name}: a word or mind must not depend on {on}"));
        }
        if on == "corten-store" && !STORE_USERS.contains(&name) {
            sins.push(format!("{name}: only the API server speaks to the store"));
        }
        let Some(below) = floor_of(on) else { continue };
        if below > floor || (below == floor && !SAME_FLOOR.contains(&(name, on))) {
            sins.push(format!("{name} (floor {floor}): must not depend on {on} (floor {below})"));
        }
    }
    sins
}

fn floor_of(name: &str) -> Option<u8> {
    FLOORS.iter().find(|it| it.0 == name).map(|it| it.1)
}

pub(crate) fn source_files(dir: &Path) -> Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    let mut dirs = vec![dir.to_owned()];
    while let Some(dir) = dirs.pop() {
        for entry in fs::read_dir(&dir).with_context(|| format!("listing {}", dir.display()))? {
            let path = entry?.path();
            if path.is_dir() {
                dirs.push(path);
            } else if path.extension().is_some_and(|it| it == "rs") {
                files.push(path);
            }
        }
    }
    files.sort();
    Ok(files)
}

fn is_test(name: &str) -> bool {
    name.contains("/tests/") || name.ends_with("/tests.rs")
}

/// Generated tables are one long thing.
fn is_generated(name: &str) -> bool {
    name.contains("/schema/src/table")
}

fn file_sins(name: &str, text: &str) -> Vec<String> {
    let mut sins = Vec::new();
    let is_test = is_test(name);
    if !text.starts_with("//!") && !is_test {
        sins.push(format!("{name}: does not begin with `//!`"));
    }
    if ["utils", "util", "helpers", "common", "misc", "manager"].iter().any(|it| name.ends_with(&format!("/{it}.rs"))) {
        sins.push(format!("{name}: a file is named for what it holds"));
    }
    let product: Vec<&str> = text.lines().take_while(|it| *it != "mod tests {").collect();
    if product.len() > FILE_LINES_MAX && !is_test && !is_generated(name) {
        sins.push(format!("{name}: is longer than {FILE_LINES_MAX} lines"));
    }
    for (word, why) in [
        (concat!("#[", "ignore"), "a test runs or is not there"),
        (concat!("#[", "should_panic"), "assert the error instead"),
        (concat!("#[", "allow("), "use expect with a reason"),
        (concat!("#![", "allow("), "use expect with a reason"),
        (concat!("todo", "!("), "say so with an error"),
        (concat!("unimplemented", "!("), "say so with an error"),
        (concat!("thread::", "sleep("), "time is a parameter"),
    ] {
        if text.contains(word) {
            sins.push(format!("{name}: {word}: {why}"));
        }
    }
    sins.extend(
        doubled_causes(text).into_iter().map(|it| format!("{name}: {it}: an error says its cause or passes it on")),
    );
    if !is_test && !is_generated(name) {
        sins.extend(long_functions(&product).into_iter().map(|it| format!("{name}: fn {it} does not fit a screen")));
    }
    sins
}

/// Variants of errors that say their cause in their own words and are its source, too: who prints the chain prints it twice.
fn doubled_causes(text: &str) -> Vec<String> {
    let mut doubled = Vec::new();
    let mut lines = text.lines().map(str::trim);
    while let Some(line) = lines.next() {
        let Some(message) = line.strip_prefix(concat!("#[", "error(\"")) else { continue };
        let Some(variant) = lines.find(|it| !it.starts_with('#') && !it.starts_with("//") && !it.ends_with(")]"))
        else {
            break;
        };
        let says_source = message.contains("{source") || message.contains("(source)");
        let is_source = [concat!("#[", "from]"), concat!("#[", "source]")].iter().any(|it| variant.contains(it));
        if says_source || (message.contains("{0") && is_source) {
            doubled.push(variant.split(['(', ' ', ',']).next().unwrap_or_default().to_owned());
        }
    }
    doubled
}

/// Names of functions longer than a screen, found by rustfmt's indentation: a function ends at a `}` as deep as its `fn`.
fn long_functions(lines: &[&str]) -> Vec<String> {
    let mut long = Vec::new();
    for (start, line) in lines.iter().enumerate() {
        let indent = line.len() - line.trim_start().len();
        let Some(name) = function_name(line) else { continue };
        let end = lines[start..].iter().position(|it| it.trim() == "}" && it.len() - it.trim_start().len() == indent);
        if end.is_some_and(|it| it > FUNCTION_LINES_MAX) && lines[start..].iter().take(12).any(|it| it.ends_with('{')) {
            long.push(name.to_owned());
        }
    }
    long
}

fn function_name(line: &str) -> Option<&str> {
    let line = line.trim_start();
    let rest = [
        "fn ",
        "pub fn ",
        "pub(crate) fn ",
        "pub(super) fn ",
        "async fn ",
        "pub async fn ",
        "pub(crate) async fn ",
        "pub(super) async fn ",
    ]
    .iter()
    .find_map(|it| line.strip_prefix(it))?;
    rest.split(['(', '<']).next().filter(|_| !line.ends_with(';') && !line.ends_with("}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_house_is_tidy() {
        run().expect("every rule holds");
    }

    #[test]
    fn sins_are_seen() {
        let body = "    x();\n".repeat(FUNCTION_LINES_MAX + 1);
        let text = format!("fn long() {{\n{body}}}\n");
        let sins = file_sins("crates/x/src/utils.rs", &text);
        assert_eq!(sins.len(), 3, "{sins:?}");
        let error = concat!("#[", "error(\"");
        for (message, variant, n_sins) in [
            ("{doing}: {source}\")]", "Io { doing: String, source: io::Error },", 1),
            ("{}\", words(source))]", "Io { source: io::Error },", 1),
            ("cannot: {0}\")]", "Store(#[from] io::Error),", 1),
            ("cannot\")]", "Store(#[from] io::Error),", 0),
            ("cannot: {0}\")]", "Store(String),", 0),
            ("{doing}: {cause}\")]", "Io { doing: String, cause: io::Error },", 0),
        ] {
            let text = format!("//! x\nenum E {{\n    {error}{message}\n    {variant}\n}}\n");
            assert_eq!(file_sins("crates/x/src/x.rs", &text).len(), n_sins, "{text}");
        }
    }
}
