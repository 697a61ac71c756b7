//! `coordination.k8s.io`.

pub(crate) mod lease;
pub(crate) mod lease_candidate;

use corten_meta::field;
use corten_schema::Cursor;

/// How a coordinated Lease finds its holder: Kubernetes's own way, or a qualified name.
fn strategy(strategy: Cursor<'_>) {
    // Kubernetes's path names the field twice.
    let at = strategy.at("strategy");
    if strategy.str().contains('/') {
        field::qualified_name(strategy.str()).iter().for_each(|it| at.invalid_as(strategy.str(), it));
    } else if strategy.str() != "OldestEmulationVersion" {
        at.report(corten_meta::Violation::not_supported(at.path(), strategy.str(), &["OldestEmulationVersion"]));
    }
}
