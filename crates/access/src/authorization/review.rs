//! A question as a SubjectAccessReview writes it, and the answer.

use corten_meta::{
    FieldSelector,
    selector::{Requirement, requirements},
};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::compiled::ReviewVersion;
use crate::question::{Attributes, ResourceOrPath};

/// The `spec` in version `v1`. What is empty is left out, as Go does.
pub(super) fn spec(question: &Attributes<'_>) -> Value {
    let mut spec = Map::new();
    match question.target {
        ResourceOrPath::Path(path) => {
            spec.insert("nonResourceAttributes".into(), texts([("path", path), ("verb", question.verb)]).into());
        }
        ResourceOrPath::Resource { group, resource, subresource, namespace, name } => {
            let mut of = texts([
                ("namespace", namespace),
                ("verb", question.verb),
                ("group", group),
                ("version", question.version),
                ("resource", resource),
                ("subresource", subresource),
                ("name", name),
            ]);
            // One that cannot be read narrows nothing: that never allows more.
            let fields = FieldSelector::parse(question.field_selector).map(|it| of_fields(&it)).unwrap_or_default();
            let labels = requirements(question.label_selector).map(|it| of_labels(&it)).unwrap_or_default();
            for (name, requirements) in [("fieldSelector", fields), ("labelSelector", labels)] {
                if !requirements.is_empty() {
                    of.insert(name.into(), json!({ "requirements": requirements }));
                }
            }
            spec.insert("resourceAttributes".into(), of.into());
        }
    }
    spec.extend(texts([("user", question.user)]));
    if !question.groups.is_empty() {
        spec.insert("groups".into(), json!(question.groups));
    }
    if !question.extra.is_empty() {
        spec.insert("extra".into(), json!(question.extra));
    }
    spec.extend(texts([("uid", question.uid)]));
    spec.into()
}

/// The `spec` as expressions see it: what is left out of a review is there, and empty (`convertObjectToUnstructured`).
pub(super) fn shown(spec: &Value) -> Value {
    let mut shown = json!({ "user": "", "groups": [], "uid": "", "extra": {} });
    let of_resource = ["namespace", "verb", "group", "version", "resource", "subresource", "name"];
    for (part, names) in [("resourceAttributes", &of_resource[..]), ("nonResourceAttributes", &["path", "verb"])] {
        if spec.get(part).is_some() {
            shown[part] = names.iter().map(|it| ((*it).to_owned(), json!(""))).collect::<Map<_, _>>().into();
        }
    }
    merge(&mut shown, spec);
    shown
}

fn merge(whole: &mut Value, part: &Value) {
    match (whole, part) {
        (Value::Object(whole), Value::Object(part)) => {
            for (name, value) in part {
                merge(whole.entry(name.clone()).or_insert(Value::Null), value);
            }
        }
        (whole, part) => whole.clone_from(part),
    }
}

fn texts<const N: usize>(of: [(&str, &str); N]) -> Map<String, Value> {
    of.into_iter().filter(|it| !it.1.is_empty()).map(|(name, value)| (name.to_owned(), json!(value))).collect()
}

fn of_fields(selector: &FieldSelector) -> Vec<Value> {
    let requirement = |it: &corten_meta::FieldRequirement| json!({ "key": it.path, "operator": if it.negated { "NotIn" } else { "In" }, "values": [it.value] });
    selector.0.iter().map(requirement).collect()
}

/// `labelSelectorToAuthorizationAPI`: comparisons of numbers are left out: the API of reviews has no words for them.
fn of_labels(requirements: &[Requirement]) -> Vec<Value> {
    let requirement = |it: &Requirement| {
        Some(match it {
            Requirement::In(key, values) => json!({ "key": key, "operator": "In", "values": values }),
            Requirement::NotIn(key, values) => json!({ "key": key, "operator": "NotIn", "values": values }),
            Requirement::Exists(key) => json!({ "key": key, "operator": "Exists" }),
            Requirement::DoesNotExist(key) => json!({ "key": key, "operator": "DoesNotExist" }),
            Requirement::GreaterThan(..) | Requirement::LessThan(..) => return None,
        })
    };
    requirements.iter().filter_map(requirement).collect()
}

/// The review that is sent.
pub(super) fn body(version: ReviewVersion, mut spec: Value) -> Value {
    if version == ReviewVersion::V1Beta1
        && let Some(of) = spec.as_object_mut()
        && let Some(groups) = of.shift_remove("groups")
    {
        of.insert("group".into(), groups);
    }
    json!({
        "kind": KIND,
        "apiVersion": format!("{GROUP}/{}", version.as_str()),
        "metadata": {},
        "spec": spec,
        "status": { "allowed": false },
    })
}

const KIND: &str = "SubjectAccessReview";
const GROUP: &str = "authorization.k8s.io";

/// What a webhook says.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Answer {
    pub(super) allowed: bool,
    pub(super) denied: bool,
    pub(super) reason: String,
}

/// # Errors
/// It is no review of the version that was sent.
pub(super) fn answer(version: ReviewVersion, body: &[u8]) -> Result<Answer, String> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase", default)]
    #[derive(Default)]
    struct Review {
        api_version: String,
        kind: String,
        status: Answer,
    }
    let review: Review = serde_json::from_slice(body).map_err(|it| format!("cannot read the answer: {it}"))?;
    let wanted = format!("{GROUP}/{}", version.as_str());
    // As a decoder that knows what it expects, where the answer does not say what it is.
    let is_one = matches!(&*review.kind, "" | KIND) && (review.api_version.is_empty() || review.api_version == wanted);
    if !is_one {
        return Err(format!("expected {wanted} {KIND}, got {:?} {:?}", review.api_version, review.kind));
    }
    Ok(review.status)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_question_becomes_a_review() {
        let groups = ["dev".to_owned()];
        let extra = [("k".to_owned(), vec!["v".to_owned()])].into();
        let question = Attributes {
            uid: "u1",
            extra: &extra,
            verb: "list",
            target: ResourceOrPath::Resource { group: "", resource: "pods", subresource: "", namespace: "n", name: "" },
            version: "v1",
            field_selector: "spec.nodeName=a,x!=b",
            label_selector: "a in (b,c),!d,e>1",
            ..Attributes::of_user("jane", &groups)
        };
        let spec = spec(&question);
        assert_eq!(
            spec,
            json!({
                "resourceAttributes": {
                    "namespace": "n", "verb": "list", "version": "v1", "resource": "pods",
                    "fieldSelector": { "requirements": [
                        { "key": "spec.nodeName", "operator": "In", "values": ["a"] },
                        { "key": "x", "operator": "NotIn", "values": ["b"] },
                    ] },
                    "labelSelector": { "requirements": [
                        { "key": "a", "operator": "In", "values": ["b", "c"] },
                        { "key": "d", "operator": "DoesNotExist" },
                    ] },
                },
                "user": "jane", "groups": ["dev"], "extra": { "k": ["v"] }, "uid": "u1",
            })
        );
        let seen = shown(&spec);
        assert_eq!(
            (
                &seen["resourceAttributes"]["name"],
                &seen["resourceAttributes"]["verb"],
                seen.get("nonResourceAttributes")
            ),
            (&json!(""), &json!("list"), None)
        );
        let body = body(ReviewVersion::V1Beta1, spec);
        assert_eq!(
            (&body["apiVersion"], &body["spec"]["group"], &body["spec"]["groups"]),
            (&json!("authorization.k8s.io/v1beta1"), &json!(["dev"]), &Value::Null)
        );
    }

    #[test]
    fn only_a_review_is_an_answer() {
        for (text, is_one) in [
            (
                r#"{"apiVersion":"authorization.k8s.io/v1","kind":"SubjectAccessReview","status":{"allowed":true}}"#,
                true,
            ),
            (r#"{"status":{"allowed":true}}"#, true),
            ("{}", true),
            (r#"{"apiVersion":"authorization.k8s.io/v1beta1","kind":"SubjectAccessReview"}"#, false),
            (r#"{"apiVersion":"v1","kind":"Pod","status":{"allowed":true}}"#, false),
            (r#"{"status":{"allowed":"yes"}}"#, false),
            ("", false),
        ] {
            assert_eq!(answer(ReviewVersion::V1, text.as_bytes()).is_ok(), is_one, "{text}");
        }
    }
}
