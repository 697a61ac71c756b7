//! The page of the metrics that Kubernetes promises and dashboards ask for: where each is served, or why it is not.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::Write as _,
};

use anyhow::{Context, Result, bail};

/// The headings, each with the word of the list that it stands for.
const PLACES: [(&str, &str); 6] = [
    ("metrics", "`/metrics` of the API server"),
    ("happens", "`/metrics` and `/metrics/slis` of the API server, once it has happened"),
    ("slis", "`/metrics/slis` of the API server"),
    ("state", "`/metrics/state` of the API server"),
    ("resources", "`/metrics/resources` of the API server, as of kube-scheduler"),
    ("node", "`/metrics`, `/metrics/cadvisor`, `/metrics/resource` and `/metrics/probes` of a node"),
];
const LEFT_OUT: &str = "left out";

/// `list`: name, place, and of those that are left out why.
pub(super) fn page(list: &str) -> Result<String> {
    let mut rows: BTreeMap<&str, Vec<(&str, &str)>> = BTreeMap::new();
    let mut names = BTreeSet::new();
    for line in list.lines().filter(|it| !it.starts_with('#')) {
        let mut fields = line.split('\t');
        let (name, place) = (fields.next().unwrap_or_default(), fields.next().context("a metric has no place")?);
        if place != LEFT_OUT && PLACES.iter().all(|it| it.0 != place) {
            bail!("{name}: no place is called {place}");
        }
        if !names.insert(name) {
            bail!("{name} has two places");
        }
        rows.entry(place).or_default().push((name, fields.next().unwrap_or_default()));
    }
    rows.values_mut().for_each(|it| it.sort_unstable());
    let mut page = format!(
        "{}# Promised metrics\n\nThe metrics that Kubernetes promises (its stable and beta ones), and those that the dashboards and \
         alerts of kubernetes-mixin ask for, and some alpha ones of volumes, and of the scheduler's cache and events: where each is \
         served. More are; what the state of objects is told by stands in [metrics-of-objects.md](metrics-of-objects.md).\n\nBindings \
         that came too late because another scheduler was faster are \
         `corten_scheduler_binding_conflicts_total`, at the API server in whose process the scheduler runs, by `reason`: `no_room`, \
         `bound_elsewhere`. Those of all schedulers are `apiserver_request_total` of `subresource=\"binding\"` and `code=\"409\"`.\n",
        super::HEAD
    );
    for (place, heading) in PLACES {
        let _ = writeln!(page, "\n## {heading}\n");
        rows.remove(place).unwrap_or_default().iter().for_each(|it| {
            let _ = writeln!(page, "- `{}`", it.0);
        });
    }
    page.push_str("\n## Left out\n\n| metric | why |\n|---|---|\n");
    for (name, why) in rows.remove(LEFT_OUT).unwrap_or_default() {
        if why.is_empty() {
            bail!("{name} is left out, and the list does not say why");
        }
        let _ = writeln!(page, "| `{name}` | {why} |");
    }
    Ok(page)
}

#[cfg(test)]
mod tests {
    use std::{collections::BTreeSet, fs, path::Path};

    use super::*;

    #[test]
    fn what_is_left_out_has_a_reason_and_what_is_served_a_place() {
        let text = page("# a list\nb\tmetrics\na\tmetrics\nc\tleft out\tnobody counts it\n").expect("a page");
        assert!(text.contains("- `a`\n- `b`\n") && text.contains("| `c` | nobody counts it |"), "{text}");
        assert!(page("c\tleft out\n").is_err());
        assert!(page("c\tsomewhere\n").is_err());
    }

    /// The texts in quotes of each file of the program, without its tests.
    fn texts() -> Vec<BTreeSet<String>> {
        let crates = Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the crates' folder");
        let mut folders: Vec<_> =
            fs::read_dir(crates).expect("the crates").map(|it| it.expect("a crate").path()).collect();
        folders.retain(|it| !it.ends_with("xtask"));
        let mut files = Vec::new();
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(&folder).into_iter().flatten().map(|it| it.expect("an entry").path()) {
                if entry.is_dir() && !["tests", "testdata"].iter().any(|it| entry.ends_with(it)) {
                    folders.push(entry);
                } else if entry.extension().is_some_and(|it| it == "rs") && !entry.ends_with("tests.rs") {
                    let text = fs::read_to_string(&entry).expect("a source file");
                    let code = text.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default();
                    files.push(code.split('"').map(str::to_owned).collect());
                }
            }
        }
        files
    }

    /// Is it written as a whole, or made of a text with one gap and another of the same file that fills it?
    fn is_made(name: &str, texts: &BTreeSet<String>) -> bool {
        let fills = |text: &String| {
            let Some((before, after)) =
                text.split_once('{').and_then(|(before, rest)| Some((before, rest.split_once('}')?.1)))
            else {
                return false;
            };
            let gap = name.strip_prefix(before).and_then(|it| it.strip_suffix(after));
            gap.is_some_and(|it| texts.contains(it))
        };
        texts.contains(name) || texts.iter().any(fills)
    }

    /// What a server's or a node's exposition has only once something has happened, no look at one shows to be there.
    #[test]
    fn what_only_happens_and_what_nodes_serve_is_written_by_the_program() {
        let texts = texts();
        let list = include_str!("../../../apiserver/testdata/promised_metrics.tsv");
        let rows = list.lines().filter(|it| !it.starts_with('#')).filter_map(|it| it.split_once('\t'));
        let nobodys = rows
            .filter(|(name, place)| ["happens", "node"].contains(place) && !texts.iter().any(|it| is_made(name, it)));
        assert_eq!(nobodys.collect::<Vec<_>>(), []);
        assert!(!texts.iter().any(|it| is_made("kubelet_nobody_counts_total", it)));
    }
}
