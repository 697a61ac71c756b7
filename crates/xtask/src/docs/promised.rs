//! The page of the metrics that Kubernetes promises and dashboards ask for: where each is served, or why it is not.

use std::{collections::BTreeMap, fmt::Write as _};

use anyhow::{Context, Result, bail};

/// The headings, each with the word of the list that it stands for.
const PLACES: [(&str, &str); 5] = [
    ("metrics", "`/metrics` of the API server"),
    ("happens", "`/metrics` and `/metrics/slis` of the API server, once it has happened"),
    ("slis", "`/metrics/slis` of the API server"),
    ("state", "`/metrics/state` of the API server"),
    ("node", "`/metrics`, `/metrics/cadvisor`, `/metrics/resource` and `/metrics/probes` of a node"),
];
const LEFT_OUT: &str = "left out";

/// `list`: name, place, and of those that are left out why.
pub(super) fn page(list: &str) -> Result<String> {
    let mut rows: BTreeMap<&str, Vec<(&str, &str)>> = BTreeMap::new();
    for line in list.lines().filter(|it| !it.starts_with('#')) {
        let mut fields = line.split('\t');
        let (name, place) = (fields.next().unwrap_or_default(), fields.next().context("a metric has no place")?);
        if place != LEFT_OUT && PLACES.iter().all(|it| it.0 != place) {
            bail!("{name}: no place is called {place}");
        }
        rows.entry(place).or_default().push((name, fields.next().unwrap_or_default()));
    }
    rows.values_mut().for_each(|it| it.sort_unstable());
    let mut page = format!(
        "{}# Promised metrics\n\nThe metrics that Kubernetes promises (its stable and beta ones), and those that the dashboards and \
         alerts of kubernetes-mixin ask for: where each is served. More are; what the state of objects is told by stands in \
         [metrics-of-objects.md](metrics-of-objects.md).\n\nBindings that came too late because another scheduler was faster are \
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
    use super::*;

    #[test]
    fn what_is_left_out_has_a_reason_and_what_is_served_a_place() {
        let text = page("# a list\nb\tmetrics\na\tmetrics\nc\tleft out\tnobody counts it\n").expect("a page");
        assert!(text.contains("- `a`\n- `b`\n") && text.contains("| `c` | nobody counts it |"), "{text}");
        assert!(page("c\tleft out\n").is_err());
        assert!(page("c\tsomewhere\n").is_err());
    }
}
