//! The old way back: an annotation that names a revision, and is taken off once the deployment has that template again.
//!
//! `kubectl rollout undo` writes the template itself; this is for those who still ask for it as before apps/v1.

use corten_api::resources;
use corten_reconcile::{Effect, EventType, Plan, status::exact_patch};
use serde_json::{Value, json};

use super::{progress, revision, rollout::Rollout, template};
use crate::projections::{Deployment, ReplicaSet, reference};

const ROLLBACK_TO: &str = "deprecated.deployment.rollback.to";

/// The revision that is asked for; zero for the last one before the present.
pub(super) fn asked(deployment: &Deployment) -> Option<i64> {
    deployment.metadata.annotations.get(ROLLBACK_TO)?.parse().ok()
}

pub(super) fn run(mut rollout: Rollout<'_>, to: i64) -> Plan {
    let name = &rollout.deployment.metadata.name;
    let mut patch = json!({ "metadata": { "annotations": { ROLLBACK_TO: null } } });
    let (event_type, reason, message) = match target(&rollout, to) {
        None => {
            let message =
                if to == 0 { "Unable to find last revision." } else { "Unable to find the revision to rollback to." };
            (EventType::Warning, "DeploymentRollbackRevisionNotFound", message.to_owned())
        }
        Some(set) if template::are_equal(&set.spec.template, &rollout.deployment.spec.template) => {
            let message = format!("The rollback revision contains the same template as current deployment {name:?}");
            (EventType::Warning, "DeploymentRollbackTemplateUnchanged", message)
        }
        Some(set) => {
            let mut template = set.spec.template.clone();
            if let Some(labels) = template["metadata"]["labels"].as_object_mut() {
                labels.shift_remove(template::HASH_LABEL);
            }
            patch["spec"]["template"] = difference(&rollout.deployment.spec.template, &template);
            let message = format!("Rolled back deployment {name:?} to revision {}", revision::of(set));
            (EventType::Normal, "DeploymentRollback", message)
        }
    };
    let about = reference(rollout.deployment);
    rollout.effects.push(exact_patch(resources::DEPLOYMENTS, &rollout.deployment.metadata, patch));
    rollout.effects.push(Effect::Event { about, event_type, reason, message });
    progress::finish(rollout, None)
}

fn target<'a>(rollout: &Rollout<'a>, to: i64) -> Option<&'a ReplicaSet> {
    let mut revisions: Vec<i64> = rollout.all().map(revision::of).filter(|it| *it > 0).collect();
    revisions.sort_unstable();
    let wanted = if to == 0 { revisions.iter().rev().nth(1).copied()? } else { to };
    rollout.all().find(|it| revision::of(it) == wanted)
}

/// The merge patch that makes `new` of `old`.
fn difference(old: &Value, new: &Value) -> Value {
    let (Some(before), Some(after)) = (old.as_object(), new.as_object()) else { return new.clone() };
    let gone = before.keys().filter(|it| !after.contains_key(*it)).map(|it| (it.clone(), Value::Null));
    let changed = after.iter().filter(|(name, value)| before.get(*name) != Some(value));
    let changed = changed.map(|(name, value)| {
        let old = before.get(name).unwrap_or(&Value::Null);
        (name.clone(), difference(old, value))
    });
    changed.chain(gone).collect()
}
