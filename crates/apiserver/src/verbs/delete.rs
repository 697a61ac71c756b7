//! DELETE: at once, or gracefully where the kind has a grace period, and never before the finalizers are gone.

use bytes::Bytes;
use corten_kinds::Subresource;
use corten_meta::{Details, Resource, Status, Time, Violation};
use http::StatusCode;
use serde_json::Value;

use super::{
    metadata::{self, FOREGROUND, ORPHAN},
    respond,
    target::Target,
    write::{self, ATTEMPTS, Asked, Written},
};
use crate::{
    admission::Operation,
    answer,
    codec::{self, Form},
    request::{Context, Response},
    watch_cache::Stored,
};

pub(super) async fn delete(ctx: &mut Context, target: &Target, form: Form) -> Result<Response, Status> {
    let options = DeleteOptions::read(ctx).await?;
    match remove(ctx, target, &options).await? {
        Removed::Waiting(json) => respond::object(ctx, StatusCode::OK, target.kind, json, form),
        Removed::Gone(object) if returns_object(target.resource()) => {
            respond::object(ctx, StatusCode::OK, target.kind, object.json(), form)
        }
        Removed::Gone(object) => Ok(answer::json(StatusCode::OK, &gone(target, object.uid()))),
    }
}

/// As upstream: some kinds answer a delete with what was deleted.
fn returns_object(resource: &Resource) -> bool {
    resource.group.is_empty()
        && matches!(
            &*resource.plural,
            "pods" | "services" | "serviceaccounts" | "podtemplates" | "persistentvolumes" | "persistentvolumeclaims"
        )
}

fn gone(target: &Target, uid: &str) -> Status {
    let mut status = Status::success();
    let resource = target.resource();
    status.details = Some(Details {
        name: target.name.clone(),
        group: resource.group.to_string(),
        kind: resource.plural.to_string(),
        uid: uid.to_owned(),
        ..Details::default()
    });
    status
}

/// `metav1.DeleteOptions`, from the body or from the query.
#[derive(Clone, Debug, Default)]
pub(super) struct DeleteOptions {
    grace_seconds: Option<i64>,
    uid: Option<String>,
    revision: Option<String>,
    propagation: Option<Propagation>,
    dry_run: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Propagation {
    Background,
    Foreground,
    Orphan,
}

impl DeleteOptions {
    /// # Errors
    /// 400 for a body that is none, 422 for options that contradict each other.
    pub(super) async fn read(ctx: &mut Context) -> Result<Self, Status> {
        let document = codec::document_or_none(ctx, "DeleteOptions").await?;
        let body = document.map_or(Value::Null, |it| it.value);
        let mut options = Self::of(&body)?;
        let query = &ctx.info.query;
        if body.is_null() {
            options.grace_seconds = query.integer("gracePeriodSeconds")?;
            let orphan = query.get("orphanDependents").map(|it| !matches!(it, "false" | "0"));
            options.propagation = propagation(query.get("propagationPolicy"), orphan)?;
        }
        options.dry_run |= ctx.dry_run();
        Ok(options)
    }

    pub(super) fn of(body: &Value) -> Result<Self, Status> {
        let wrong = |name: &str, wanted: &str| {
            Status::bad_request(format!(
                "DeleteOptions in version \"v1\" cannot be handled as a DeleteOptions: json: cannot unmarshal {name} into {wanted}"
            ))
        };
        let text = |value: &Value, name: &str| match value {
            Value::Null => Ok(None),
            Value::String(text) => Ok(Some(text.clone())),
            _ => Err(wrong(name, "a string")),
        };
        let kind = body["kind"].as_str().unwrap_or("DeleteOptions");
        if kind != "DeleteOptions" {
            return Err(Status::bad_request(format!("{kind} cannot be handled as a DeleteOptions")));
        }
        let grace_seconds = match &body["gracePeriodSeconds"] {
            Value::Null => None,
            other => Some(other.as_i64().ok_or_else(|| wrong("gracePeriodSeconds", "an integer"))?),
        };
        let orphan = match &body["orphanDependents"] {
            Value::Null => None,
            other => Some(other.as_bool().ok_or_else(|| wrong("orphanDependents", "a truth value"))?),
        };
        let policy = text(&body["propagationPolicy"], "propagationPolicy")?;
        Ok(Self {
            grace_seconds,
            uid: text(&body["preconditions"]["uid"], "preconditions.uid")?,
            revision: text(&body["preconditions"]["resourceVersion"], "preconditions.resourceVersion")?,
            propagation: propagation(policy.as_deref(), orphan)?,
            dry_run: body["dryRun"].as_array().is_some_and(|it| !it.is_empty()),
        })
    }

    pub(super) fn pretend_if(&mut self, dry_run: bool) {
        self.dry_run |= dry_run;
    }

    fn check(&self, target: &Target, object: &Stored) -> Result<(), Status> {
        let conflict = |detail: String| Err(Status::conflict(target.resource(), &target.name, &detail));
        if let Some(uid) = self.uid.as_deref().filter(|it| *it != object.uid()) {
            return conflict(format!(
                "the UID in the precondition ({uid}) does not match the UID in record ({}). The object might have been deleted and then recreated",
                object.uid()
            ));
        }
        if let Some(revision) = self.revision.as_deref().filter(|it| *it != object.revision.to_string()) {
            return conflict(format!(
                "the ResourceVersion in the precondition ({revision}) does not match the ResourceVersion in record ({}). The object might have been modified",
                object.revision
            ));
        }
        Ok(())
    }
}

fn propagation(policy: Option<&str>, orphan: Option<bool>) -> Result<Option<Propagation>, Status> {
    let options = Resource::cluster("meta.k8s.io", "v1", "DeleteOptions", "deleteoptions");
    let invalid = |violation| Err(Status::invalid(&options, "", &[violation]));
    match (policy, orphan) {
        (Some(policy), Some(_)) => {
            let detail = "orphanDependents and deletionPropagation cannot be both set";
            invalid(Violation::invalid("propagationPolicy", format!("{policy:?}"), detail))
        }
        (None, Some(true)) => Ok(Some(Propagation::Orphan)),
        (None, Some(false)) => Ok(Some(Propagation::Background)),
        (None, None) => Ok(None),
        (Some("Background"), None) => Ok(Some(Propagation::Background)),
        (Some("Foreground"), None) => Ok(Some(Propagation::Foreground)),
        (Some("Orphan"), None) => Ok(Some(Propagation::Orphan)),
        (Some(other), None) => {
            let supported = ["Background", "Foreground", "Orphan"];
            invalid(Violation::not_supported("propagationPolicy", other, &supported))
        }
    }
}

pub(super) enum Removed {
    /// It stays until its grace period or its finalizers end; as it is now.
    Waiting(Bytes),
    /// The object as it last was.
    Gone(std::sync::Arc<Stored>),
}

/// What a deletion makes of the object as it stands.
enum Step {
    Keep,
    Mark(Value),
    Remove,
}

pub(super) async fn remove(ctx: &Context, target: &Target, options: &DeleteOptions) -> Result<Removed, Status> {
    for _ in 0..ATTEMPTS {
        let current = target.current(ctx)?;
        options.check(target, &current)?;
        let old = current.parse();
        let asked = Asked { ctx, target, operation: Operation::Delete, old: Some(&old) };
        asked.admit(&mut Value::Null).await?;
        asked.validate(&Value::Null).await?;
        match step(ctx, target, options, &old) {
            Step::Keep => return Ok(Removed::Waiting(current.json())),
            Step::Mark(new) if options.dry_run => {
                return Ok(Removed::Waiting(write::pretend(target, &new, Some(current.revision))));
            }
            Step::Mark(new) => {
                if let Written::Done(json) = write::put(ctx, target, &new, current.revision).await? {
                    return Ok(Removed::Waiting(json));
                }
            }
            Step::Remove if options.dry_run => return Ok(Removed::Gone(current)),
            Step::Remove => {
                if write::remove(ctx, target, current.revision).await? {
                    return Ok(Removed::Gone(current));
                }
            }
        }
    }
    Err(Status::stale(target.resource(), &target.name))
}

fn step(ctx: &Context, target: &Target, options: &DeleteOptions, old: &Value) -> Step {
    let mut new = old.clone();
    set_finalizers(&mut new, options.propagation);
    let marked_before = !old["metadata"]["deletionTimestamp"].is_null();
    if target.kind.subresources.contains(&Subresource::Finalize) {
        return namespace_step(ctx, old, new, marked_before);
    }
    let default_grace = target.kind.policy.default_grace_seconds(old);
    let asked_grace = options.grace_seconds.map(|it| if it < 0 { 1 } else { it });
    if marked_before {
        let grace = old["metadata"]["deletionGracePeriodSeconds"].as_i64().unwrap_or_default();
        match asked_grace {
            // Only ever sooner: a deletion cannot be put off.
            _ if grace == 0 || default_grace == 0 => {}
            Some(0) => {}
            Some(asked) if asked < grace => return Step::Mark(sooner(ctx, new, grace, asked)),
            _ if new == *old => return Step::Keep,
            _ => return Step::Mark(new),
        }
    } else if default_grace > 0 && asked_grace != Some(0) {
        metadata::mark_deleted(ctx, &mut new, asked_grace.unwrap_or(default_grace));
        return Step::Mark(new);
    }
    if metadata::finalizers(&new).is_empty() {
        return Step::Remove;
    }
    if !marked_before {
        metadata::mark_deleted(ctx, &mut new, 0);
    } else {
        metadata::of(&mut new).insert("deletionGracePeriodSeconds".into(), 0.into());
    }
    if new == *old { Step::Keep } else { Step::Mark(new) }
}

/// A Namespace goes when its contents are gone: the namespace loop empties it and then its `spec.finalizers`.
fn namespace_step(ctx: &Context, old: &Value, mut new: Value, marked_before: bool) -> Step {
    if !marked_before {
        let now = ctx.server.now().to_string();
        metadata::of(&mut new).insert("deletionTimestamp".into(), now.into());
        new["status"]["phase"] = "Terminating".into();
        return Step::Mark(new);
    }
    let emptied = old["spec"]["finalizers"].as_array().is_none_or(Vec::is_empty);
    if emptied && metadata::finalizers(&new).is_empty() {
        Step::Remove
    } else if new == *old {
        Step::Keep
    } else {
        Step::Mark(new)
    }
}

/// The finalizers by which the garbage collector knows what is to become of dependents.
fn set_finalizers(object: &mut Value, propagation: Option<Propagation>) {
    let Some(propagation) = propagation else { return };
    let wanted = match propagation {
        Propagation::Background => None,
        Propagation::Foreground => Some(FOREGROUND),
        Propagation::Orphan => Some(ORPHAN),
    };
    let mut names: Vec<String> = metadata::finalizers(object).into_iter().map(str::to_owned).collect();
    names.retain(|it| ![ORPHAN, FOREGROUND].contains(&&**it) || Some(&**it) == wanted);
    if let Some(wanted) = wanted
        && !names.iter().any(|it| it == wanted)
    {
        names.push(wanted.to_owned());
    }
    let metadata = metadata::of(object);
    if names.is_empty() {
        metadata.shift_remove("finalizers");
    } else {
        metadata.insert("finalizers".into(), names.into());
    }
}

fn sooner(ctx: &Context, mut object: Value, grace: i64, asked: i64) -> Value {
    let at = object["metadata"]["deletionTimestamp"].as_str().and_then(|it| it.parse::<Time>().ok());
    let now = ctx.server.now();
    let at = at.map_or(now, |it| Time::from_unix_millis(it.unix_millis() - (grace - asked) * 1000)).max(now);
    let metadata = metadata::of(&mut object);
    metadata.insert("deletionTimestamp".into(), at.to_string().into());
    metadata.insert("deletionGracePeriodSeconds".into(), asked.into());
    metadata::count_up(&mut object);
    object
}
