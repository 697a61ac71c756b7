//! Turns the name of a PriorityClass into the number the scheduler compares, and keeps one class the default.

use std::sync::Arc;

use corten_api::resources::{POD_GROUPS, PODS, PRIORITY_CLASSES};
use corten_cacher::{
    body::BoxFuture,
    watch_cache::{ResourceCache, Stored},
};
use corten_meta::{Resource, Status};
use serde::Deserialize;
use serde_json::{Value, json};

use super::{Admission, Attributes, Operation, refusal::forbidden};

pub(crate) struct Priority;

const PREEMPTS: &str = "PreemptLowerPriority";

#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Class {
    #[serde(skip)]
    name: String,
    value: i64,
    global_default: bool,
    preemption_policy: Option<String>,
}

impl Admission for Priority {
    fn name(&self) -> &'static str {
        "Priority"
    }

    fn admit<'a>(&'a self, request: &'a Attributes<'a>, object: &'a mut Value) -> BoxFuture<'a, Result<(), Status>> {
        Box::pin(async move {
            if request.subresource.is_some() {
                return Ok(());
            }
            if is_pod_group(&request.kind.resource) && request.operation == Operation::Create {
                let resolved = resolve_group(&eligible(request, object), object);
                return resolved.map_err(|reason| forbidden(request, object, &reason));
            }
            if request.kind.resource != PODS {
                return Ok(());
            }
            match request.operation {
                Operation::Create => {
                    let resolved = resolve(&eligible(request, object), object);
                    resolved.map_err(|reason| forbidden(request, object, &reason))
                }
                Operation::Update => {
                    keep(object, request.old);
                    Ok(())
                }
                Operation::Delete | Operation::Connect => Ok(()),
            }
        })
    }

    fn validate<'a>(&'a self, request: &'a Attributes<'a>, object: &'a Value) -> BoxFuture<'a, Result<(), Status>> {
        Box::pin(async move {
            let writes = matches!(request.operation, Operation::Create | Operation::Update);
            if request.kind.resource != PRIORITY_CLASSES || !writes || object["globalDefault"] != json!(true) {
                return Ok(());
            }
            let other = defaults(cache(request)).into_iter().find(|it| it.name != request.name);
            match other {
                Some(Class { name, .. }) => {
                    let reason =
                        format!("PriorityClass {name} is already marked as default. Only one default can exist");
                    Err(forbidden(request, object, &reason))
                }
                None => Ok(()),
            }
        })
    }
}

/// In whichever version.
fn is_pod_group(resource: &Resource) -> bool {
    (&resource.group, &resource.plural) == (&POD_GROUPS.group, &POD_GROUPS.plural)
}

fn cache<'a>(request: &Attributes<'a>) -> &'a ResourceCache {
    request.cluster.caches().get(&PRIORITY_CLASSES).expect("priority classes are a row of the table")
}

/// Those among which a Pod's class is.
fn eligible(request: &Attributes<'_>, pod: &Value) -> Vec<Class> {
    let cache = cache(request);
    match pod["spec"]["priorityClassName"].as_str() {
        None | Some("") => defaults(cache),
        Some(name) => cache.get("", name).and_then(|it| read(&it)).into_iter().collect(),
    }
}

fn defaults(cache: &ResourceCache) -> Vec<Class> {
    // A look at the bytes spares almost every class being read.
    let marked = |it: &&Arc<Stored>| memchr::memmem::find(it.value(), br#""globalDefault":true"#).is_some();
    let snapshot = cache.snapshot();
    snapshot.iter().filter(marked).filter_map(|it| read(it)).filter(|it| it.global_default).collect()
}

fn read(stored: &Stored) -> Option<Class> {
    let class: Class = serde_json::from_slice(stored.value()).ok()?;
    Some(Class { name: stored.name().to_owned(), ..class })
}

/// The class of a Pod or PodGroup, if it has any.
fn class_of(classes: &[Class], spec: &Value) -> Result<Option<Class>, String> {
    match spec["priorityClassName"].as_str() {
        // As in `getDefaultPriorityClass`: of several defaults the lowest counts.
        None | Some("") => Ok(classes.iter().filter(|it| it.global_default).min_by_key(|it| it.value).cloned()),
        Some(name) => match classes.iter().find(|it| it.name == name) {
            Some(class) => Ok(Some(class.clone())),
            None => Err(format!("no PriorityClass with name {name} was found")),
        },
    }
}

fn check_given(spec: &Value, of: &str, class: &Class) -> Result<(), String> {
    match spec["priority"].as_i64() {
        Some(given) if given != class.value => Err(format!(
            "the integer value of priority ({given}) must not be provided in {of} spec; priority admission controller computed {} from the given PriorityClass name",
            class.value
        )),
        _ => Ok(()),
    }
}

/// Writes the priority of a PodGroup's class into it (KEP-5710). Without a class it has none, which counts as 0.
fn resolve_group(classes: &[Class], group: &mut Value) -> Result<(), String> {
    let spec = &mut group["spec"];
    let Some(class) = class_of(classes, spec)? else { return check_given(spec, "pod group", &Class::default()) };
    check_given(spec, "pod group", &class)?;
    spec["priorityClassName"] = json!(class.name);
    spec["priority"] = json!(class.value);
    Ok(())
}

/// Writes the priority of the Pod's class into it; `Err` says why it may not have it.
fn resolve(classes: &[Class], pod: &mut Value) -> Result<(), String> {
    let spec = &mut pod["spec"];
    let class = class_of(classes, spec)?.unwrap_or_default();
    let policy = class.preemption_policy.as_deref().unwrap_or(PREEMPTS);
    check_given(spec, "pod", &class)?;
    if let Some(given) = spec["preemptionPolicy"].as_str()
        && given != policy
    {
        return Err(format!(
            "the string value of PreemptionPolicy ({given}) must not be provided in pod spec; priority admission controller computed {policy} from the given PriorityClass name"
        ));
    }
    if !class.name.is_empty() {
        spec["priorityClassName"] = json!(class.name);
    }
    spec["priority"] = json!(class.value);
    spec["preemptionPolicy"] = json!(policy);
    Ok(())
}

/// An update that leaves the priority out keeps it.
fn keep(pod: &mut Value, old: Option<&Value>) {
    for field in ["priority", "preemptionPolicy"] {
        let before = old.map_or(&Value::Null, |it| &it["spec"][field]);
        if pod["spec"][field].is_null() && !before.is_null() {
            pod["spec"][field] = before.clone();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn class(name: &str, value: i64, global_default: bool) -> Class {
        Class { name: name.into(), value, global_default, preemption_policy: None }
    }

    #[test]
    fn names_become_numbers() {
        let classes = [class("high", 1000, false), class("normal", 10, true), class("usual", 20, true)];
        let patient = Class { preemption_policy: Some("Never".into()), ..class("patient", 5, false) };
        let classes = [&classes[..], &[patient]].concat();
        for (spec, classes, expected) in [
            (json!({}), &[][..], Ok(json!([null, 0, PREEMPTS]))),
            (json!({}), &classes, Ok(json!(["normal", 10, PREEMPTS]))),
            (json!({ "priorityClassName": "high", "priority": 1000 }), &classes, Ok(json!(["high", 1000, PREEMPTS]))),
            (json!({ "priorityClassName": "patient" }), &classes, Ok(json!(["patient", 5, "Never"]))),
            (json!({ "priorityClassName": "none" }), &classes, Err("no PriorityClass with name none was found")),
            (
                json!({ "priorityClassName": "high", "priority": 7 }),
                &classes,
                Err(
                    "the integer value of priority (7) must not be provided in pod spec; priority admission controller computed 1000 from the given PriorityClass name",
                ),
            ),
            (
                json!({ "priorityClassName": "patient", "preemptionPolicy": PREEMPTS }),
                &classes,
                Err(
                    "the string value of PreemptionPolicy (PreemptLowerPriority) must not be provided in pod spec; priority admission controller computed Never from the given PriorityClass name",
                ),
            ),
        ] {
            let mut pod = json!({ "spec": spec });
            let found = resolve(classes, &mut pod);
            let spec = &pod["spec"];
            let found = found.map(|()| json!([spec["priorityClassName"], spec["priority"], spec["preemptionPolicy"]]));
            assert_eq!(found, expected.map_err(str::to_owned));
        }
    }

    #[test]
    fn a_pod_group_has_the_priority_of_its_class_or_none() {
        let classes = [class("high", 1000, false)];
        for (spec, expected) in [
            (json!({}), Ok(json!({}))),
            (json!({ "priorityClassName": "high" }), Ok(json!({ "priorityClassName": "high", "priority": 1000 }))),
            (json!({ "priorityClassName": "none" }), Err("no PriorityClass with name none was found")),
            (
                json!({ "priority": 7 }),
                Err(
                    "the integer value of priority (7) must not be provided in pod group spec; priority admission controller computed 0 from the given PriorityClass name",
                ),
            ),
        ] {
            let mut group = json!({ "spec": spec });
            let found = resolve_group(&classes, &mut group).map(|()| group["spec"].clone());
            assert_eq!(found, expected.map_err(str::to_owned));
        }
    }

    #[test]
    fn an_update_keeps_the_priority() {
        let old = json!({ "spec": { "priority": 5, "preemptionPolicy": "Never" } });
        let mut pod = json!({ "spec": {} });
        keep(&mut pod, Some(&old));
        assert_eq!(pod, old);
    }
}
