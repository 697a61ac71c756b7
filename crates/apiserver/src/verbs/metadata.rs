//! The rules of `metadata`, the same for every kind: who sets which field, what names and labels look like, what may change.

use std::{collections::BTreeSet, fmt, time::Duration};

use corten_admission::{SUFFIX_BYTES, name_suffix};
use corten_kinds::{Kind, MetadataChecks};
use corten_meta::{Status, Violation, Violations, field};
use serde_json::{Map, Value, json};

use super::request_scope::RequestScope;
use crate::context::Context;

/// Set by the server alone; what a client sends is dropped.
const SERVER_FIELDS: &[&str] = &[
    "uid",
    "selfLink",
    "managedFields",
    "generation",
    "creationTimestamp",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
    "resourceVersion",
];
/// Those of them that no new object has.
const LATER_FIELDS: &[&str] = &["selfLink", "deletionTimestamp", "deletionGracePeriodSeconds", "resourceVersion"];
/// Kept from the stored object where an update leaves them out; changing them is refused.
const IMMUTABLE: &[&str] =
    &["name", "namespace", "uid", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds"];
const GENERATED_NAME_BYTES_MAX: usize = 63;
const ANNOTATIONS_BYTES_MAX: usize = 256 * 1024;
/// Upstream has no bound but the size of the object. Whatever becomes of one of the owners, all of them are looked at.
const OWNERS_MAX: usize = 5_000;
pub(super) const ORPHAN: &str = "orphan";
pub(super) const FOREGROUND: &str = "foregroundDeletion";

pub(super) fn of(object: &mut Value) -> &mut Map<String, Value> {
    if !object["metadata"].is_object() {
        object["metadata"] = json!({});
    }
    object["metadata"].as_object_mut().expect("made an object a line above")
}

fn text<'a>(object: &'a Value, name: &str) -> &'a str {
    object["metadata"][name].as_str().unwrap_or_default()
}

pub(super) fn finalizers(object: &Value) -> Vec<&str> {
    object["metadata"]["finalizers"].as_array().into_iter().flatten().filter_map(Value::as_str).collect()
}

/// Makes the object's namespace the path's.
///
/// # Errors
/// 400 where the object names another.
pub(super) fn place(object: &mut Value, target: &RequestScope, on: &str) -> Result<(), Status> {
    let named = text(object, "namespace");
    if !target.kind.resource.namespaced {
        return Ok(());
    }
    if !named.is_empty() && named != target.namespace {
        return Err(Status::bad_request(if on.is_empty() {
            "the namespace of the provided object does not match the namespace sent on the request".to_owned()
        } else {
            format!(
                "the namespace of the object ({named}) does not match the namespace on the URL ({})",
                target.namespace
            )
        }));
    }
    of(object).insert("namespace".into(), target.namespace.clone().into());
    Ok(())
}

/// Makes an update's name the path's.
pub(super) fn rename(object: &mut Value, target: &RequestScope) -> Result<(), Status> {
    let named = text(object, "name");
    if named.is_empty() {
        return Err(Status::bad_request(format!(
            "the name of the object ({} based on URL) was undeterminable: name must be provided",
            target.name
        )));
    }
    if named != target.name {
        let message = format!("the name of the object ({named}) does not match the name on the URL ({})", target.name);
        return Err(Status::bad_request(message));
    }
    place(object, target, "URL")
}

/// Gives a new object what the server gives: uid, creation time, generation, a name where it asks for one.
pub(super) fn begin(ctx: &Context, kind: &Kind, object: &mut Value) {
    let generated = generated_name(ctx, object);
    let metadata = of(object);
    for name in SERVER_FIELDS {
        metadata.shift_remove(*name);
    }
    if let Some(name) = generated {
        metadata.insert("name".into(), name.into());
    }
    metadata.insert("uid".into(), ctx.state.new_uid().into());
    metadata.insert("creationTimestamp".into(), ctx.state.now().to_string().into());
    if kind.policy.has_generation() {
        metadata.insert("generation".into(), 1.into());
    }
}

/// Removes from a new object what a deletion or the store sets, and admission may not (`WipeObjectMetaSystemFields`).
pub(super) fn drop_later_fields(object: &mut Value) {
    for name in LATER_FIELDS {
        of(object).shift_remove(*name);
    }
}

/// `generateName` and five characters that make no words, where no name is given.
fn generated_name(ctx: &Context, object: &Value) -> Option<String> {
    let base = text(object, "generateName");
    if base.is_empty() || !text(object, "name").is_empty() {
        return None;
    }
    let base: String = base.chars().take(GENERATED_NAME_BYTES_MAX - SUFFIX_BYTES).collect();
    Some(base + &name_suffix(&ctx.state.new_uid()))
}

/// Keeps what an update may leave out, and gives what it may not change.
pub(super) fn carry_over(new: &mut Value, old: &Value) -> Vec<Violation> {
    let metadata = of(new);
    metadata.shift_remove("selfLink");
    match old["metadata"].get("generation") {
        Some(generation) => metadata.insert("generation".into(), generation.clone()),
        None => metadata.shift_remove("generation"),
    };
    metadata.insert("resourceVersion".into(), old["metadata"]["resourceVersion"].clone());
    let mut violations = Vec::new();
    for name in IMMUTABLE {
        let before = old["metadata"].get(*name);
        match (metadata.get(*name), before) {
            (None | Some(Value::Null), Some(before)) => {
                metadata.insert((*name).into(), before.clone());
            }
            (Some(now), before) if Some(now) != before && !now.is_null() => {
                violations.push(Violation::invalid(format!("metadata.{name}"), now, "field is immutable"));
            }
            _ => {}
        }
    }
    if !old["metadata"]["deletionTimestamp"].is_null() {
        let before: BTreeSet<&str> = finalizers(old).into_iter().collect();
        let added: Vec<_> =
            finalizers(new).into_iter().filter(|it| !before.contains(it)).map(|it| format!("{it:?}")).collect();
        if !added.is_empty() {
            let detail = format!(
                "no new finalizers can be added if the object is being deleted, found new finalizers []string{{{}}}",
                added.join(", ")
            );
            violations.push(Violation::forbidden("metadata.finalizers", &detail));
        }
    }
    violations
}

/// Everything `metadata` must be for objects of any kind.
pub(super) fn violations(kind: &Kind, object: &Value, old: Option<&Value>) -> Vec<Violation> {
    let mut found = Violations::default();
    names(kind, object, &mut found);
    labels(object, &mut found);
    annotations(object, &mut found);
    finalizer_names(kind, object, &mut found);
    owners(object, old, &mut found);
    found.into_vec()
}

/// What is wrong with the metadata of a changed object, as often as it is looked at: by rest.BeforeUpdate, then by the kind's
/// own validation. `changes` is what a change may not do.
pub(super) fn change_violations(
    kind: &Kind,
    object: &Value,
    old: &Value,
    changes: &[Violation],
    checks: MetadataChecks,
) -> Vec<Violation> {
    let whole = violations(kind, object, Some(old));
    let mut change = Violations::default();
    change.extend(changes.iter().cloned());
    labels(object, &mut change);
    annotations(object, &mut change);
    owners(object, Some(old), &mut change);
    let change = change.into_vec();
    let mut found = Violations::default();
    found.extend(whole.iter().chain(&change).cloned());
    if checks == MetadataChecks::WholeAndChange {
        found.extend(whole);
    }
    if checks != MetadataChecks::None {
        found.extend(change);
    }
    found.into_vec()
}

fn names(kind: &Kind, object: &Value, found: &mut Violations) {
    let (name, prefix) = (text(object, "name"), text(object, "generateName"));
    if !prefix.is_empty() {
        // As in `maskTrailingDash`: a prefix may end in a dash, for something always follows it.
        let masked = prefix.strip_suffix('-').map_or_else(|| prefix.to_owned(), |it| format!("{it}a"));
        let reasons = kind.policy.name_violations(&masked);
        found.extend(reasons.iter().map(|it| Violation::invalid("metadata.generateName", format!("{prefix:?}"), it)));
    }
    if name.is_empty() {
        found.push(Violation::required("metadata.name", "name or generateName is required"));
    } else {
        let reasons = kind.policy.name_violations(name);
        found.extend(reasons.iter().map(|it| Violation::invalid("metadata.name", format!("{name:?}"), it)));
    }
    let namespace = text(object, "namespace");
    if !kind.resource.namespaced && !namespace.is_empty() {
        found.push(Violation::forbidden("metadata.namespace", "not allowed on this type"));
    }
}

fn entries<'a>(object: &'a Value, name: &str) -> impl Iterator<Item = (&'a str, &'a str)> {
    let map = object["metadata"][name].as_object();
    map.into_iter().flatten().map(|(key, value)| (&**key, value.as_str().unwrap_or_default()))
}

fn labels(object: &Value, found: &mut Violations) {
    for (key, value) in entries(object, "labels") {
        let reasons = field::qualified_name(key);
        found.extend(reasons.iter().map(|it| Violation::invalid("metadata.labels", format!("{key:?}"), it)));
        let reasons = field::label_value(value);
        found.extend(reasons.iter().map(|it| Violation::invalid("metadata.labels", format!("{value:?}"), it)));
    }
}

fn annotations(object: &Value, found: &mut Violations) {
    let mut bytes = 0;
    for (key, value) in entries(object, "annotations") {
        bytes += key.len() + value.len();
        // As in `ValidateAnnotations`: keys of annotations may be written in capitals.
        let reasons = field::qualified_name(&key.to_lowercase());
        found.extend(reasons.iter().map(|it| Violation::invalid("metadata.annotations", format!("{key:?}"), it)));
    }
    if bytes > ANNOTATIONS_BYTES_MAX {
        found.push(Violation::too_long("metadata.annotations", ANNOTATIONS_BYTES_MAX));
    }
}

fn finalizer_names(kind: &Kind, object: &Value, found: &mut Violations) {
    let names = finalizers(object);
    for name in &names {
        let reasons = field::qualified_name(name);
        found.extend(reasons.iter().map(|it| Violation::invalid("metadata.finalizers", format!("{name:?}"), it)));
        let is_short = !name.contains('/') && !kind.policy.takes_short_finalizers();
        if is_short && ![ORPHAN, FOREGROUND, "kubernetes"].contains(name) {
            let detail = "name is neither a standard finalizer name nor is it fully qualified";
            found.push(Violation::invalid("metadata.finalizers", format!("{name:?}"), detail));
        }
    }
    if names.contains(&ORPHAN) && names.contains(&FOREGROUND) {
        let detail = format!("finalizers {ORPHAN} and {FOREGROUND} cannot be both set");
        found.push(Violation::invalid("metadata.finalizers", json!(names), &detail));
    }
}

/// What has too many owners already keeps them, and gets no more.
fn owners(object: &Value, old: Option<&Value>, found: &mut Violations) {
    let of = |it: &'_ Value| it["metadata"]["ownerReferences"].as_array().map_or(0, Vec::len);
    let owners = object["metadata"]["ownerReferences"].as_array().map_or(&[][..], Vec::as_slice);
    let most = OWNERS_MAX.max(old.map_or(0, of));
    if owners.len() > most {
        return found.push(Violation::too_many("metadata.ownerReferences", owners.len(), most));
    }
    let mut controller: Option<&str> = None;
    for owner in owners {
        let text = |name: &str| owner[name].as_str().unwrap_or_default();
        for (name, detail) in [
            ("apiVersion", "version must not be empty"),
            ("kind", "must not be empty"),
            ("name", "must not be empty"),
            ("uid", "must not be empty"),
        ] {
            if text(name).is_empty() {
                found.push(Violation::invalid(format!("metadata.ownerReferences.{name}"), "\"\"", detail));
            }
        }
        if owner["controller"] == true {
            if let Some(other) = controller {
                let detail = format!(
                    "Only one reference can have Controller set to true. Found \"true\" in references for {other} and {}",
                    text("name")
                );
                found.push(Violation::invalid("metadata.ownerReferences", List(owners), &detail));
            }
            controller = Some(text("name"));
        }
        if found.is_full() {
            return;
        }
    }
}

/// A list as JSON, of which no more is written than is shown.
struct List<'a>(&'a [Value]);

impl fmt::Display for List<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[")?;
        for (at, item) in self.0.iter().enumerate() {
            write!(f, "{}{item}", if at > 0 { "," } else { "" })?;
        }
        f.write_str("]")
    }
}

/// Marks the object as being deleted, `grace_seconds` from now.
pub(super) fn mark_deleted(ctx: &Context, object: &mut Value, grace_seconds: i64) {
    let grace = Duration::from_secs(u64::try_from(grace_seconds).unwrap_or_default());
    let at = ctx.state.now().after(grace).to_string();
    let metadata = of(object);
    metadata.insert("deletionTimestamp".into(), at.into());
    metadata.insert("deletionGracePeriodSeconds".into(), grace_seconds.into());
    count_up(object);
}

/// The next generation, for objects that have one.
pub(super) fn count_up(object: &mut Value) {
    let metadata = of(object);
    if let Some(generation) = metadata.get("generation").and_then(Value::as_i64) {
        metadata.insert("generation".into(), generation.saturating_add(1).into());
    }
}
