//! What a migration says to the definition of the kind that it is about: that it goes on, and in the end that objects are
//! stored in one version only (`migrationrunner.go`).
//!
//! The condition holds the generation that the migration began with. Where the definition is another one in the end, objects
//! may have been stored in another version meanwhile, and `status.storedVersions` stays as it is.

use corten_api::resources;
use corten_meta::Time;
use corten_reconcile::{
    Effect,
    served::{Definition, DefinitionCondition},
};
use serde_json::{Value, json};

const MIGRATING: &str = "StorageMigrating";

/// Does the definition say, as it is now, that this migration goes on?
pub(super) fn names(definition: &Definition, migration: &str) -> bool {
    let is_current = |it: &DefinitionCondition| it.observed_generation == Some(definition.metadata.generation);
    running(definition, migration).is_some_and(is_current)
}

pub(super) fn begun(definition: &Definition, migration: &str, now: Time) -> Effect {
    told(definition, ("True", "MigrationRunning", &message(migration)), now, None)
}

/// Nothing where the definition does not say that this migration goes on.
pub(super) fn succeeded(definition: &Definition, migration: &str, now: Time) -> Option<Effect> {
    running(definition, migration)?;
    let stored = definition.stored_as().filter(|_| names(definition, migration));
    let message = if stored.is_some() {
        "The migration has succeeded and the stored versions have been updated"
    } else {
        "The migration has succeeded but the stored versions have not been updated due to a generation mismatch"
    };
    Some(told(definition, ("False", "MigrationSucceeded", message), now, stored))
}

/// As [`succeeded`].
pub(super) fn failed(definition: &Definition, migration: &str, now: Time) -> Option<Effect> {
    running(definition, migration)?;
    Some(told(definition, ("False", "MigrationFailed", "The migration has failed"), now, None))
}

fn message(migration: &str) -> String {
    format!("Migration {migration} is running")
}

fn running<'a>(definition: &'a Definition, migration: &str) -> Option<&'a DefinitionCondition> {
    let is_it = |it: &&DefinitionCondition| &*it.r#type == MIGRATING && &*it.status == "True";
    definition.status.conditions.iter().find(is_it).filter(|it| *it.message == message(migration))
}

/// On condition that nobody has written the definition meanwhile: the others of its conditions are written again.
fn told(
    definition: &Definition,
    (status, reason, message): (&str, &str, &str),
    now: Time,
    stored: Option<&str>,
) -> Effect {
    let mut conditions = definition.status.conditions.clone();
    let before = conditions.iter().find(|it| &*it.r#type == MIGRATING && &*it.status == status);
    let since = before.and_then(|it| it.last_transition_time).unwrap_or(now);
    let condition = DefinitionCondition {
        r#type: MIGRATING.into(),
        status: status.into(),
        last_transition_time: Some(since),
        reason: reason.into(),
        message: message.into(),
        observed_generation: Some(definition.metadata.generation),
    };
    match conditions.iter_mut().find(|it| &*it.r#type == MIGRATING) {
        Some(it) => *it = condition,
        None => conditions.push(condition),
    }
    let meta = &definition.metadata;
    let mut patch: Value = json!({
        "metadata": { "uid": meta.uid, "resourceVersion": meta.resource_version },
        "status": { "conditions": conditions },
    });
    if let Some(stored) = stored {
        patch["status"]["storedVersions"] = json!([stored]);
    }
    let resource = resources::CUSTOM_RESOURCE_DEFINITIONS;
    Effect::Patch { resource, key: meta.key(), subresource: Some("status"), patch }
}
