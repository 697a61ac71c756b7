//! Has every object of a resource stored again, in the version and the form that objects are written in now (KEP-4192;
//! `pkg/controller/storageversionmigrator`).
//!
//! What is stored again is what was last written before the migration began: a patch that changes nothing, on condition that
//! the object is still the one that was seen. How far it has come stands in an annotation, so that a restart goes on there.
//!
//! ```text
//! another of it runs  -> waits
//! of a definition     -> StorageMigrating there, with its generation
//! no checkpoint       -> Running, with the revision of now
//! objects older       -> patched, page by page, in the order of their uids
//! none is left        -> Succeeded; a definition's status.storedVersions is one version
//! a patch is refused  -> Failed
//! ```

mod stored_versions;

use std::time::Duration;

use corten_api::resources;
use corten_kinds::by_qualified;
use corten_meta::{Key, ObjectMeta, Resource, Time};
use corten_reconcile::{
    Actor, Controller, DEFINED, EFFECTS_MAX, Effect, Failure, Plan, Table, Verb, View, Wait, Wake, Watch, Write,
    served,
    status::{exact_patch, status_patch},
};
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::{
    everything::{with_cluster_scoped, with_namespaced},
    projections::{Condition, Definition, any, defined, projection},
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
            Write {
                verb: Verb::Patch,
                resource: resources::CUSTOM_RESOURCE_DEFINITIONS,
                fields: &["status.conditions", "status.storedVersions"],
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

#[derive(PartialEq, Eq, Deserialize)]
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

    fn has_begun(&self) -> bool {
        !self.status.resource_version.is_empty() && self.holds("Running")
    }

    /// The one of the same resource that runs, or else is to run, before this.
    fn goes_first<'a>(&self, view: &'a View) -> Option<&'a Self> {
        let is_rival = |it: &&Self| {
            it.metadata.uid != self.metadata.uid
                && it.spec.resource == self.spec.resource
                && !it.is_over()
                && !it.metadata.is_deleting()
        };
        let turn = |it: &Self| (it.metadata.creation_timestamp, it.metadata.name.clone());
        let rivals = || view.list::<Self>().filter(is_rival);
        rivals().find(|it| it.has_begun()).or_else(|| rivals().find(|it| turn(it) < turn(self)))
    }

    fn definition<'a>(&self, view: &'a View) -> Option<&'a Definition> {
        let ResourceName { group, resource } = &self.spec.resource;
        view.get::<Definition>(&Key::new("", format!("{resource}.{group}")))
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
        let apart =
            [resources::STORAGE_VERSION_MIGRATIONS, resources::CUSTOM_RESOURCE_DEFINITIONS, resources::API_SERVICES];
        let all = MIGRATED.iter().filter(|it| !apart.contains(it)).map(watch);
        let definitions = Watch::new::<Definition>(Wake::With(migrations)).leading_to(defined_watches);
        let registrations = served::registrations(Wake::Nobody);
        let own = [Watch::new::<Migration>(Wake::With(itself_and_waiting)), definitions, registrations];
        own.into_iter().chain(all).collect()
    }

    fn writes(&self) -> &'static [Write] {
        WRITES
    }

    fn about(&self) -> Option<Resource> {
        Some(resources::STORAGE_VERSION_MIGRATIONS)
    }

    fn reconcile(&self, view: &View, key: &Key, now: Time) -> Plan {
        let Some(migration) = view.get::<Migration>(key) else { return taken_back(view, key, now) };
        if migration.is_over() || migration.metadata.is_deleting() {
            return Plan::default();
        }
        let Some(resource) = migration.resource(view) else { return unknown(migration, now) };
        let definition = migration.definition(view);
        if !migration.has_begun() {
            return match migration.goes_first(view) {
                Some(other) => wait_for(other),
                None => begin(migration, definition, now),
            };
        }
        match view.failure(key).filter(|it| it.is_final && is_about_others(it)) {
            Some(failure) => {
                let told = definition.and_then(|it| stored_versions::failed(it, &key.name, now));
                let effects = told.into_iter().chain(fail(migration, &failure.message, now)).collect();
                Plan { effects, ..Plan::default() }
            }
            None => go_on(view, migration, &resource, now),
        }
    }
}

/// Others may wait for it.
fn itself_and_waiting(view: &View, migration: &ObjectMeta) -> Vec<Key> {
    let is_waiting = |it: &&Migration| !it.is_over() && !it.has_begun() && it.metadata.uid != migration.uid;
    let waiting = view.list::<Migration>().filter(is_waiting).map(|it| it.metadata.key());
    std::iter::once(migration.key()).chain(waiting).collect()
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

/// It was deleted before it was over: no definition says any longer that it goes on.
fn taken_back(view: &View, key: &Key, now: Time) -> Plan {
    let effects = view.list::<Definition>().filter_map(|it| stored_versions::failed(it, &key.name, now)).collect();
    Plan { effects, ..Plan::default() }
}

fn wait_for(other: &Migration) -> Plan {
    let message = format!("migration {} of the same resource goes first", other.metadata.name);
    let wait = Wait::new("StorageVersionMigrationQueued", message, Actor::Cluster);
    Plan { waits: vec![wait.on("StorageVersionMigration", &other.metadata.name)], ..Plan::default() }
}

/// No object that is stored later than the migration itself, and its definition, need be stored again.
fn begin(migration: &Migration, definition: Option<&Definition>, now: Time) -> Plan {
    let name = &migration.metadata.name;
    if let Some(definition) = definition.filter(|it| !stored_versions::names(it, name)) {
        return Plan { effects: vec![stored_versions::begun(definition, name, now)], ..Plan::default() };
    }
    let mut status = migration.status.clone();
    if status.resource_version.is_empty() {
        let newest = definition.map(|it| &it.metadata).into_iter().chain([&migration.metadata]);
        let newest = newest.map(|it| &it.resource_version).max_by_key(|it| number(it));
        status.resource_version = newest.cloned().unwrap_or_default();
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
        // First the definition: who waits for the end may take the old version out of it then.
        let definition = migration.definition(view);
        let freed = definition.and_then(|it| stored_versions::succeeded(it, &migration.metadata.name, now));
        let effects = freed.into_iter().chain(told(migration, &status)).collect();
        return Plan { effects, ..Plan::default() };
    };
    let mut effects: Vec<Effect> = page.iter().map(|it| exact_patch(resource.clone(), it, json!({}))).collect();
    let cursor = json!({ "metadata": { "annotations": { CURSOR: last.uid } } });
    effects.push(exact_patch(resources::STORAGE_VERSION_MIGRATIONS, &migration.metadata, cursor));
    let message = format!("{n_left} {resource} are still to be stored again");
    Plan {
        effects,
        waits: vec![Wait::new("StorageVersionMigrationInProgress", message, Actor::Cluster)],
        ..Plan::default()
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
