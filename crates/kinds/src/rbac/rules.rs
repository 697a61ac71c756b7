//! The rules of a role.

use corten_meta::Violation;
use corten_schema::Cursor;
use corten_validation::labels::label_selector;

/// The rules of a Role: about resources only.
pub(super) fn in_namespace(role: Cursor<'_>) {
    role.list("rules").for_each(|it| rule(it, true));
}

/// The rules of a ClusterRole, and which roles it gathers.
pub(super) fn in_cluster(role: Cursor<'_>) {
    role.list("rules").for_each(|it| rule(it, false));
    let aggregation = role.at("aggregationRule");
    if aggregation.exists() && aggregation.at("clusterRoleSelectors").is_empty() {
        aggregation
            .at("clusterRoleSelectors")
            .missing("at least one clusterRoleSelector required if aggregationRule is non-nil");
    }
    for selector in aggregation.list("clusterRoleSelectors") {
        if !label_selector(selector) {
            selector.report(Violation::invalid(selector.path(), "null", "invalid label selector."));
        }
    }
}

fn rule(rule: Cursor<'_>, namespaced: bool) {
    if rule.at("verbs").is_empty() {
        rule.at("verbs").missing("verbs must contain at least one value");
    }
    let paths = rule.at("nonResourceURLs");
    if !paths.is_empty() {
        if namespaced {
            paths.invalid("namespaced rules cannot apply to non-resource URLs");
        }
        if ["apiGroups", "resources", "resourceNames"].iter().any(|it| !rule.at(it).is_empty()) {
            paths.invalid("rules cannot apply to both regular resources and non-resource URLs");
        }
        return;
    }
    if rule.at("apiGroups").is_empty() {
        rule.at("apiGroups").missing("resource rules must supply at least one api group");
    }
    if rule.at("resources").is_empty() {
        rule.at("resources").missing("resource rules must supply at least one resource");
    }
}
