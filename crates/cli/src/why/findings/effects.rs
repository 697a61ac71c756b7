//! Kinds that nothing here acts on.

use corten_kinds::Kind;
use corten_reconcile::{Actor, Wait};
use serde_json::Value;

use super::found::Findings;
use crate::why::fields::{items, time};

/// Objects of these kinds are stored, and no loop of this release looks at them.
const WITHOUT_EFFECT: &[(&str, &str, &str)] =
    &[("workload", "NotEnforced", "it is stored, and no PodGroup is made of it: nothing here makes one")];

/// Is it of a kind that nothing here acts on?
pub(crate) fn has_none(kind: &Kind) -> bool {
    WITHOUT_EFFECT.iter().any(|it| it.0 == kind.singular)
}

pub(super) fn missing(kind: &Kind, object: &Value, found: &mut Findings) {
    let Some((_, reason, message)) = WITHOUT_EFFECT.iter().find(|it| it.0 == kind.singular) else { return };
    // Who gave it conditions acts on it, and is no part of this cluster.
    if !items(object, "/status/conditions").is_empty() || found.verdict.is_some() {
        return;
    }
    let mut wait = Wait::new(reason, *message, Actor::Operator);
    wait.since = time(&object["metadata"]["creationTimestamp"]);
    found.wait(wait);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_names_a_kind() {
        assert!(WITHOUT_EFFECT.is_sorted_by_key(|it| it.0));
        for (kind, ..) in WITHOUT_EFFECT {
            assert_eq!(corten_kinds::by_name(kind).map(|it| &*it.singular), Some(*kind));
        }
    }
}
