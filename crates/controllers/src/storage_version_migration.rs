//! Has every object of a resource stored again, in the version and the form that objects are written in now (KEP-4192;
//! `pkg/controller/storageversionmigrator`).
//!
//! What is stored again is what was last written before the migration began: a patch that changes nothing, on condition that
//! the object is still the one that was seen. How far it has come stands in an annotation, so that a restart goes on there.
//!
//! ```text
//! no checkpoint       -> Running, with the revision of now
//! objects older       -> patched, page by page, in the order of their uids
//! none is left        -> Succeeded
//! a patch is refused  -> Failed
//! ```

use std::time::Duration;

use corten_api::resources;
use corten_kinds::by_qualified;
use corten_meta::{Key, ObjectMeta, Resource, Time};
use corten_reconcile::{
    Actor, Controller, DEFINED, Effect, Failure, Plan, Table, Verb, View, Wait, Wake, Watch, Write,
};
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::{
    EFFECTS_MAX,
    everything::{with_cluster_scoped, with_namespaced},
    projections::{Condition, Definition, any, defined, projection},
    status::{exact_patch, status_patch},
};

/// The uid of the last object that was stored again. Its name would tell who reads migrations of what they may not read.
const CURSOR: &str = "storagemigration.corten.dev/migrated-through-uid";
/// How long it may take until a resource is served that a new migration names.
const UNKNOWN_FOR: Duration = Duration::from_secs(60);

macro_rules! migrated {
    ([$($migrated:ident)*]) => {
        static MIGRATED: &[Resource] = &[resources::EVENTS, $(resources::$migrated),*];
        const WRITES: &[Write] = &[
            again(resources::EVENTS),
            $(again(resources::$migrated),)*
            again(DEFINED),
            Write {
                verb: Verb::Patch,
                resource: resources::STORAGE_VERSION_MIGRATIONS,
                fields: &["status", "metadata.annotations"],
            },
        ];
    };
}
macro_rules! with_both {
    ([$($namespaced:ident)*]) => { with_cluster_scoped! { with_both [$($namespaced)*] } };
    ([$($cluster:ident)*] [$($namespaced:ident)*]) => { migrated! { [$($namespaced)* $($cluster)*] } };
}
with_namespaced! { with_both }

/// A patch that names the state it is about, and nothing else.
const fn again(resource: Resource) -> Write {
    Write { verb: Verb::Patch, resource, fields: &["metadata.resourceVersion"] }
}

#[derive(Deserialize)]
struct Migration {
    metadata: ObjectMeta,
    spec: MigrationSpec,
    #[serde(default)]
    status: MigrationStatus,
}
projection!(Migration, resources::STORAGE_VERSION_MIGRATIONS);

#[derive(Deserialize)]
struct MigrationSpec {
    resource: ResourceName,
}

#[derive(Deserialize)]
struct ResourceName {
    #[serde(default)]
    group: String,
    #[serde(default)]
    resource: String,
}

#[derive(Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct MigrationStatus {
    #[serde(skip_serializing_if = "Vec::is_empty")]
    conditions: Vec<Condition>,
    #[serde(skip_serializing_if = "String::is_empty")]
    resource_version: String,
}

impl Migration {
    fn holds(&self, kind: &str) -> bool {
        self.status.conditions.iter().any(|it| it.r#type == kind && it.status == "True")
    }

    fn is_over(&self) -> bool {
        self.holds("Succeeded") || self.holds("Failed")
    }

    /// The resource in the version that is stored, where that is served.
    fn resource(&self, view: &View) -> Option<Resource> {
        let ResourceName { group, resource } = &self.spec.resource;
        let qualified = if group.is_empty() { resource.clone() } else { format!("{resource}.{group}") };
        let built_in = by_qualified(&qualified).filter(|it| it.stored_row().is_stored());
        built_in
            .map(|it| it.storage_resource().clone())
            .or_else(|| defined(view).find(|it| *it.group == **group && *it.plural == **resource))
    }

    fn cursor(&self) -> Option<&str> {
        self.metadata.annotations.get(CURSOR).map(String::as_str)
    }
}

pub struct StorageVersionMigrations;

impl Controller for StorageVersionMigrations {
    fn name(&self) -> &'static str {
        "storage-version-migrator"
    }

    fn watches(&self) -> Vec<Watch> {
        let apart = [resources::STORAGE_VERSION_MIGRATIONS, resources::CUSTOM_RESOURCE_DEFINITIONS];
        let all = MIGRATED.iter().filter(|it| !apart.contains(it)).map(watch);
        let definitions = Watch::new::<Definition>(Wake::With(migrations)).leading_to(defined_watches);
        [Watch::new::<Migration>(Wake::Itself), definitions].into_iter().chain(all).collect()
    }

    fn writes(&self) -> &'static [Write] {
        WRITES
    }

    fn reconcile(&self, view: &View, key: &Key, now: Time) -> Plan {
        let Some(migration) = view.get::<Migration>(key).filter(|it| !it.is_over() && !it.metadata.is_deleting())
        else {
            return Plan::default();
        };
        let Some(resource) = migration.resource(view) else { return unknown(migration, now) };
        if migration.status.resource_version.is_empty() || !migration.holds("Running") {
            return begin(migration, now);
        }
        match view.failure(key).filter(|it| it.is_final && is_about_others(it)) {
            Some(failure) => Plan { effects: fail(migration, &failure.message, now), ..Plan::default() },
            None => go_on(view, migration, &resource, now),
        }
    }
}

/// What is only looked at where something migrates costs others nothing.
fn watch(resource: &Resource) -> Watch {
    any(resource, Wake::Nobody).once(|view| view.list::<Migration>().any(|it| !it.is_over()))
}

fn defined_watches(view: &View) -> Vec<Watch> {
    defined(view).map(|it| watch(&it)).collect()
}

/// Those that may have waited for a definition.
fn migrations(view: &View, definition: &ObjectMeta) -> Vec<Key> {
    let is_of = |it: &&Migration| {
        let ResourceName { group, resource } = &it.spec.resource;
        !it.is_over() && definition.name == format!("{resource}.{group}")
    };
    view.list::<Migration>().filter(is_of).map(|it| it.metadata.key()).collect()
}

fn is_about_others(failure: &Failure) -> bool {
    matches!(&failure.effect, Effect::Patch { resource, .. } if *resource != resources::STORAGE_VERSION_MIGRATIONS)
}

/// No object that is stored later than the migration itself need be stored again.
fn begin(migration: &Migration, now: Time) -> Plan {
    let mut status = migration.status.clone();
    if status.resource_version.is_empty() {
        status.resource_version.clone_from(&migration.metadata.resource_version);
    }
    Condition::set(&mut status.conditions, "Running", "True", ("StorageVersionMigrationInProgress", ""), now);
    Plan { effects: told(migration, &status), ..Plan::default() }
}

fn unknown(migration: &Migration, now: Time) -> Plan {
    let until = migration.metadata.creation_timestamp.unwrap_or(now).after(UNKNOWN_FOR);
    if now >= until {
        return Plan { effects: fail(migration, "unable to obtain GVR from discovery", now), ..Plan::default() };
    }
    let message = "the resource that it names is not served";
    let waits = vec![Wait::new("ResourceNotServed", message, Actor::Author)];
    Plan { waits, wake_at: Some(until), ..Plan::default() }
}

fn go_on(view: &View, migration: &Migration, resource: &Resource, now: Time) -> Plan {
    let checkpoint = number(&migration.status.resource_version);
    let cursor = migration.cursor();
    let objects = view.table(resource).into_iter().flat_map(Table::iter).map(|it| it.meta());
    let is_left =
        |it: &&ObjectMeta| cursor.is_none_or(|cursor| &*it.uid > cursor) && number(&it.resource_version) <= checkpoint;
    let mut left: Vec<&ObjectMeta> = objects.filter(is_left).collect();
    let n_left = left.len();
    if n_left > EFFECTS_MAX {
        left.select_nth_unstable_by(EFFECTS_MAX, |one, other| one.uid.cmp(&other.uid));
    }
    let page = &mut left[..n_left.min(EFFECTS_MAX)];
    page.sort_unstable_by(|one, other| one.uid.cmp(&other.uid));
    let Some(last) = page.last() else {
        let mut status = migration.status.clone();
        Condition::set(&mut status.conditions, "Running", "False", ("StorageVersionMigrationInProgress", ""), now);
        Condition::set(&mut status.conditions, "Succeeded", "True", ("StorageVersionMigrationSucceeded", ""), now);
        return Plan { effects: told(migration, &status), ..Plan::default() };
    };
    let mut effects: Vec<Effect> = page.iter().map(|it| exact_patch(resource.clone(), it, json!({}))).collect();
    let cursor = json!({ "metadata": { "annotations": { CURSOR: last.uid } } });
    effects.push(exact_patch(resources::STORAGE_VERSION_MIGRATIONS, &migration.metadata, cursor));
    let message = format!("{n_left} {resource} are still to be stored again");
    Plan {
        effects,
        waits: vec![Wait::new("StorageVersionMigrationInProgress", message, Actor::Cluster)],
        wake_at: None,
    }
}

fn fail(migration: &Migration, reason: &str, now: Time) -> Vec<Effect> {
    let mut status = migration.status.clone();
    let message = format!("migration encountered unhandled error: {reason}");
    if migration.holds("Running") {
        Condition::set(&mut status.conditions, "Running", "False", ("StorageVersionMigrationInProgress", ""), now);
    }
    Condition::set(&mut status.conditions, "Failed", "True", ("StorageVersionMigrationFailed", &message), now);
    told(migration, &status)
}

fn told(migration: &Migration, status: &MigrationStatus) -> Vec<Effect> {
    let resource = resources::STORAGE_VERSION_MIGRATIONS;
    status_patch(resource, &migration.metadata, &migration.status, status).into_iter().collect()
}

/// Of one server they grow; what is none is as old as can be.
fn number(resource_version: &str) -> u64 {
    resource_version.parse().unwrap_or_default()
}
