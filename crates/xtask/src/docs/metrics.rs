//! What `/metrics/state` serves, read off the table of its families.

use std::fmt::Write as _;

use corten_state_metrics::StateMetrics;

/// A table for each kind.
pub(super) fn page() -> String {
    let mut page = String::from(super::HEAD);
    page.push_str(
        "# Metrics of objects\n\n`/metrics/state` of the API server tells what objects are like, in the names and labels of \
         kube-state-metrics v2. Prometheus scrapes it with the rights of the group `system:monitoring`: it shows the names of all \
         objects.\n",
    );
    for kind in corten_state_metrics::KINDS {
        let _ =
            writeln!(page, "\n## {}\n\n| metric | type | labels | meaning |\n|---|---|---|---|", kind.resource().kind);
        rows(*kind, &mut page);
    }
    page.push_str(
        "\n## What Pods ask for as a whole\n\n`/metrics/resources`, as of kube-scheduler, with the same rights.\n\n\
         | metric | type | labels | meaning |\n|---|---|---|---|\n",
    );
    corten_state_metrics::POD_RESOURCES.iter().for_each(|it| rows(*it, &mut page));
    page
}

fn rows(kind: &dyn StateMetrics, page: &mut String) {
    for it in kind.families() {
        let labels: Vec<String> = it.labels.iter().map(|it| format!("`{it}`")).collect();
        let _ = writeln!(page, "| `{}` | {} | {} | {} |", it.name, it.of.as_str(), labels.join(", "), it.help);
    }
}
