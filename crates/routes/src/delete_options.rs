//! `metav1.DeleteOptions`: how, when and on what condition an object is to go.

use corten_meta::{Resource, Status, Violation};
use serde_json::Value;

use crate::Query;

const KIND: &str = DeleteOptions::KIND;
const SCHEMA: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.DeleteOptions";
const UNREADABLE: &str = "ignoreStoreReadErrorWithClusterBreakingPotential";

/// From the body or from the query.
#[derive(Clone, Debug, Default)]
pub struct DeleteOptions {
    pub grace_seconds: Option<i64>,
    pub propagation: Option<Propagation>,
    pub dry_run: bool,
    /// An object that cannot be read is to go, whatever is in it (KEP-3926).
    pub is_unreadable: bool,
    uid: Option<String>,
    revision: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Propagation {
    Background,
    Foreground,
    Orphan,
}

impl DeleteOptions {
    pub const KIND: &str = "DeleteOptions";

    /// The query's parameters, where there is no body.
    ///
    /// # Errors
    /// 400 where a parameter has another type, 422 where they contradict each other.
    pub fn of_query(query: &Query) -> Result<Self, Status> {
        let mut value = Value::Object(serde_json::Map::new());
        if let Some(seconds) = query.integer("gracePeriodSeconds")? {
            value["gracePeriodSeconds"] = seconds.into();
        }
        if let Some(policy) = query.get("propagationPolicy") {
            value["propagationPolicy"] = policy.into();
        }
        for name in ["orphanDependents", UNREADABLE] {
            if let Some(flag) = query.flag(name) {
                value[name] = flag.into();
            }
        }
        Self::of(&value)
    }

    /// # Errors
    /// 400 where the value has other types, 422 where its options contradict each other.
    pub fn of(value: &Value) -> Result<Self, Status> {
        let kind = value["kind"].as_str().filter(|it| !it.is_empty()).unwrap_or(KIND);
        if kind != KIND {
            return Err(Status::bad_request(format!("decoded object cannot be converted to DeleteOptions: {kind}")));
        }
        // As in `DeleteResource`: unknown fields are let pass, whatever `fieldValidation` says.
        if !value.is_null()
            && let Some(wrong) = corten_schema::check(SCHEMA, value).wrong_types.first()
        {
            let reason = &wrong.message;
            return Err(Status::bad_request(format!(
                "{KIND} in version \"v1\" cannot be handled as a {KIND}: {reason}"
            )));
        }
        let violations = violations(value);
        if !violations.is_empty() {
            return Err(invalid(&violations));
        }
        let text = |value: &Value| value.as_str().map(str::to_owned);
        Ok(Self {
            grace_seconds: value["gracePeriodSeconds"].as_i64(),
            uid: text(&value["preconditions"]["uid"]),
            revision: text(&value["preconditions"]["resourceVersion"]),
            propagation: propagation(value["propagationPolicy"].as_str(), value["orphanDependents"].as_bool()),
            dry_run: value["dryRun"].as_array().is_some_and(|it| !it.is_empty()),
            is_unreadable: value[UNREADABLE] == true,
        })
    }

    /// With what the query of any request may say of a dry run.
    ///
    /// # Errors
    /// 422 where an object that cannot be read is to go: that is never tried.
    pub fn in_dry_run(mut self, is_dry_run: bool) -> Result<Self, Status> {
        self.dry_run |= is_dry_run;
        if self.dry_run && self.is_unreadable {
            return Err(invalid(&[not_with("dryRun")]));
        }
        Ok(self)
    }

    /// # Errors
    /// 422 where objects that cannot be read are to go: one at a time does.
    pub fn check_of_many(&self) -> Result<(), Status> {
        let detail = "is not allowed with DELETECOLLECTION, try again after removing the option";
        if self.is_unreadable { Err(invalid(&[Violation::invalid(UNREADABLE, "true", detail)])) } else { Ok(()) }
    }

    /// What an object that can be read is not deleted by.
    pub fn not_of_readable() -> Violation {
        let detail = "is exclusively used to delete corrupt object(s), try again by removing this option";
        Violation::invalid(UNREADABLE, "true", detail)
    }

    /// Does the client say which state of the object is meant?
    pub fn names_revision(&self) -> bool {
        self.revision.is_some()
    }

    /// The same, only for this state of the object.
    #[must_use]
    pub fn at(&self, revision: u64) -> Self {
        Self { revision: Some(revision.to_string()), ..self.clone() }
    }

    /// Writes those that say something, as a body would have them.
    pub fn write(&self, out: &mut Value) {
        if let Some(seconds) = self.grace_seconds {
            out["gracePeriodSeconds"] = seconds.into();
        }
        for (name, text) in [("uid", &self.uid), ("resourceVersion", &self.revision)] {
            if let Some(text) = text {
                out["preconditions"][name] = text.clone().into();
            }
        }
        if self.is_unreadable {
            out[UNREADABLE] = true.into();
        }
        if let Some(propagation) = self.propagation {
            out["propagationPolicy"] = format!("{propagation:?}").into();
        }
    }

    /// Is the object that `name` stands for the one that is meant?
    ///
    /// # Errors
    /// 409 where it has another uid or revision (`Preconditions.Check`).
    pub fn check(&self, resource: &Resource, name: &str, uid: &str, revision: u64) -> Result<(), Status> {
        // This conflict goes by the kind's name.
        let by_kind = Resource { plural: resource.kind.clone(), ..resource.clone() };
        let conflict = |detail: String| Err(Status::conflict(&by_kind, name, &detail));
        if let Some(asked) = self.uid.as_deref().filter(|it| *it != uid) {
            return conflict(format!(
                "the UID in the precondition ({asked}) does not match the UID in record ({uid}). The object might have been deleted and then recreated"
            ));
        }
        if let Some(asked) = self.revision.as_deref().filter(|it| *it != revision.to_string()) {
            return conflict(format!(
                "the ResourceVersion in the precondition ({asked}) does not match the ResourceVersion in record ({revision}). The object might have been modified"
            ));
        }
        Ok(())
    }
}

fn violations(value: &Value) -> Vec<Violation> {
    let mut found = Vec::new();
    let policy = value["propagationPolicy"].as_str();
    if let Some(policy) = policy {
        if !value["orphanDependents"].is_null() {
            let detail = "orphanDependents and deletionPropagation cannot be both set";
            found.push(Violation::invalid("propagationPolicy", format!("{policy:?}"), detail));
        }
        let supported = ["Background", "Foreground", "Orphan"];
        if !supported.contains(&policy) {
            let supported = [&supported[..], &["nil"]].concat();
            found.push(Violation::not_supported("propagationPolicy", policy, &supported));
        }
    }
    let dry_run = value["dryRun"].as_array().into_iter().flatten().filter_map(Value::as_str);
    for other in dry_run.filter(|it| *it != "All") {
        found.push(Violation::not_supported("dryRun", other, &["All"]));
    }
    if value[UNREADABLE] == true {
        let others = ["dryRun", "propagationPolicy", "orphanDependents", "gracePeriodSeconds", "preconditions"];
        for name in others.into_iter().filter(|it| !value[*it].is_null()) {
            found.push(not_with(name));
        }
    }
    found
}

fn not_with(name: &str) -> Violation {
    Violation::invalid(UNREADABLE, "true", &format!("cannot be set together with .{name}"))
}

fn invalid(violations: &[Violation]) -> Status {
    let resource = Resource::cluster("meta.k8s.io", "v1", KIND, "deleteoptions");
    Status::invalid(&resource, "", violations)
}

fn propagation(policy: Option<&str>, orphan: Option<bool>) -> Option<Propagation> {
    match (policy, orphan) {
        (Some("Background"), _) | (None, Some(false)) => Some(Propagation::Background),
        (Some("Foreground"), _) => Some(Propagation::Foreground),
        (Some("Orphan"), _) | (None, Some(true)) => Some(Propagation::Orphan),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn options_are_checked() {
        for (value, code, said) in [
            (json!(null), 0, ""),
            (json!({ "kind": "DeleteOptions", "gracePeriodSeconds": -5, "unknown": 1 }), 0, ""),
            (json!({ "kind": "Pod" }), 400, "decoded object cannot be converted to DeleteOptions: Pod"),
            (json!({ "gracePeriodSeconds": "x" }), 400, "cannot be handled as a DeleteOptions"),
            (
                json!({ "propagationPolicy": "Orphan", "orphanDependents": true }),
                422,
                "DeleteOptions.meta.k8s.io \"\" is invalid: propagationPolicy: Invalid value: \"Orphan\": orphanDependents and deletionPropagation cannot be both set",
            ),
            (
                json!({ "propagationPolicy": "x" }),
                422,
                "propagationPolicy: Unsupported value: \"x\": supported values: \"Background\", \"Foreground\", \"Orphan\", \"nil\"",
            ),
            (json!({ "dryRun": ["Some"] }), 422, "dryRun: Unsupported value: \"Some\": supported values: \"All\""),
            (json!({ UNREADABLE: true }), 0, ""),
            (
                json!({ UNREADABLE: true, "gracePeriodSeconds": 0 }),
                422,
                "ignoreStoreReadErrorWithClusterBreakingPotential: Invalid value: true: cannot be set together with .gracePeriodSeconds",
            ),
            (json!({ UNREADABLE: true, "preconditions": { "uid": "u" } }), 422, "together with .preconditions"),
        ] {
            let found = DeleteOptions::of(&value).err().unwrap_or_default();
            assert_eq!(found.code, code, "{value}");
            assert!(found.message.contains(said), "{}", found.message);
        }
    }
}
