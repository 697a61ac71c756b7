//! Which requests belong to which priority level.

use corten_api::resources::FLOW_SCHEMAS;
use corten_meta::{Violation, field};
use corten_schema::{Cursor, violations};
use corten_validation::{
    fill::{made, means_the_same},
    read::{items, number, text},
};
use serde_json::{Value, json};

use super::{bootstrap, conditions};
use crate::{
    BuiltIn, MetadataChecks, Policy, Subresource, Verb,
    columns::{AGE, column},
};

pub(crate) const KIND: BuiltIn = BuiltIn {
    resource: FLOW_SCHEMAS,
    singular: "flowschema",
    short_names: &[],
    categories: &[],
    verbs: Verb::ALL,
    subresources: &[Subresource::Status],
    schema: "io.k8s.api.flowcontrol.v1.FlowSchema",
    view_of: None,
    selectable_fields: &[],
    columns: &[
        column("PriorityLevel", "The priority level of its requests.", |object, _| {
            json!(text(object, "/spec/priorityLevelConfiguration/name"))
        }),
        column("MatchingPrecedence", "Requests belong to the matching schema with the lowest one.", |object, _| {
            json!(number(object, "/spec/matchingPrecedence"))
        }),
        column("DistinguisherMethod", "What tells its flows apart.", |object, _| {
            json!(object.pointer("/spec/distinguisherMethod/type").and_then(Value::as_str).unwrap_or("<none>"))
        }),
        AGE,
        column("MissingPL", "Whether its priority level is missing.", |object, _| {
            let dangling = items(object, "/status/conditions").iter().find(|it| it["type"] == "Dangling");
            json!(dangling.and_then(|it| it["status"].as_str()).unwrap_or("?"))
        }),
    ],
    policy: &FlowSchema,
};

struct FlowSchema;

const PRECEDENCE_MAX: i64 = 10_000;
const PRECEDENCE_DEFAULT: i64 = 1000;
const VERBS: &[&str] = &["create", "delete", "deletecollection", "get", "list", "patch", "proxy", "update", "watch"];

impl Policy for FlowSchema {
    fn default(&self, object: &mut Value) {
        let Some(spec) = object.as_object_mut().and_then(|it| made(it, "spec")) else { return };
        if spec.get("matchingPrecedence").and_then(Value::as_i64).unwrap_or_default() == 0 {
            spec.insert("matchingPrecedence".into(), PRECEDENCE_DEFAULT.into());
        }
    }

    fn validate(&self, object: &Value) -> Vec<Violation> {
        violations(object, |schema| {
            let (name, spec) = (schema.at("metadata").at("name").str(), schema.at("spec"));
            precedence(spec.at("matchingPrecedence"), name);
            if spec.at("distinguisherMethod").exists() {
                spec.at("distinguisherMethod").at("type").one_of(&["ByNamespace", "ByUser"]);
            }
            let level = spec.at("priorityLevelConfiguration").at("name");
            if level.is_empty() {
                level.missing("must reference a priority level");
            } else {
                level.follows(field::dns1123_subdomain);
            }
            spec.list("rules").for_each(rule);
            let fixed = bootstrap::mandatory(bootstrap::flow_schemas(), name);
            if fixed.is_some_and(|it| !means_the_same(&it, spec.value())) {
                spec.invalid(&format!("spec of '{name}' must equal the fixed value"));
            }
        })
    }

    fn validate_status_update(&self, new: &Value, _old: &Value) -> Vec<Violation> {
        violations(new, |schema| conditions(schema.at("status")))
    }

    fn metadata_checks(&self) -> MetadataChecks {
        MetadataChecks::Change
    }

    fn status_keeps(&self) -> &'static [&'static str] {
        crate::policy::RESET_METADATA
    }
}

fn precedence(precedence: Cursor<'_>, name: &str) {
    if precedence.int() <= 0 {
        precedence.invalid("must be a positive value");
    }
    if precedence.int() > PRECEDENCE_MAX {
        precedence.invalid(&format!("must not be greater than {PRECEDENCE_MAX}"));
    }
    if precedence.int() == 1 && name != "exempt" {
        precedence.invalid("only the schema named 'exempt' may have matchingPrecedence 1");
    }
}

fn rule(rule: Cursor<'_>) {
    let (subjects, resources, paths) = (rule.at("subjects"), rule.at("resourceRules"), rule.at("nonResourceRules"));
    if subjects.is_empty() {
        subjects.missing("subjects must contain at least one value");
    }
    subjects.each().for_each(subject);
    if resources.is_empty() && paths.is_empty() {
        rule.missing("at least one of resourceRules and nonResourceRules has to be non-empty");
    }
    resources.each().for_each(resource_rule);
    paths.each().for_each(path_rule);
}

fn subject(subject: Cursor<'_>) {
    const KINDS: [(&str, &str); 3] = [("Group", "group"), ("ServiceAccount", "serviceAccount"), ("User", "user")];
    if !subject.at("kind").one_of(&KINDS.map(|it| it.0)) {
        return;
    }
    for (kind, field) in KINDS {
        let named = subject.at(field);
        if kind != subject.at("kind").str() {
            if named.exists() {
                named.forbidden(&format!("{field} is forbidden when subject kind is not '{kind}'"));
            }
        } else if !named.exists() {
            named.missing(&format!("{field} is required when subject kind is '{kind}'"));
        } else if named.at("name").required() && kind == "ServiceAccount" && named.at("name").str() != "*" {
            named.at("name").follows(field::dns1123_subdomain);
        }
    }
    let namespace = subject.at("serviceAccount").at("namespace");
    if subject.at("kind").str() == "ServiceAccount" && subject.at("serviceAccount").exists() {
        if namespace.is_empty() {
            namespace.missing("must specify namespace for service account");
        } else {
            namespace.follows(field::dns1123_label);
        }
    }
}

/// True where the list holds a star; it then holds nothing else.
fn wildcard(list: Cursor<'_>, others: &str) -> bool {
    let has_star = list.items().iter().any(|it| it == "*");
    if has_star && list.items().len() > 1 {
        list.invalid(&format!("if '*' is present, must not specify other {others}"));
    }
    has_star
}

fn verbs(verbs: Cursor<'_>) {
    if verbs.is_empty() {
        verbs.missing("verbs must contain at least one value");
    } else if !wildcard(verbs, "verbs") && verbs.each().any(|it| !VERBS.contains(&it.str())) {
        let shown = verbs.value().to_string();
        verbs.report(Violation::not_supported(verbs.path(), &shown, VERBS));
    }
}

fn resource_rule(rule: Cursor<'_>) {
    verbs(rule.at("verbs"));
    for (name, what, others) in [("apiGroups", "api group", "api groups"), ("resources", "resource", "resources")] {
        let list = rule.at(name);
        if list.is_empty() {
            list.missing(&format!("resource rules must supply at least one {what}"));
        }
        wildcard(list, others);
    }
    let namespaces = rule.at("namespaces");
    if namespaces.is_empty() && !rule.at("clusterScope").bool() {
        namespaces.missing("resource rules that are not cluster scoped must supply at least one namespace");
    } else if !wildcard(namespaces, "namespaces") {
        for namespace in namespaces.each() {
            for reason in field::dns1123_label(namespace.str()) {
                namespace.invalid(&format!("each member of this list must be '*' or a DNS-1123 label; {reason}"));
            }
        }
    }
}

fn path_rule(rule: Cursor<'_>) {
    verbs(rule.at("verbs"));
    let paths = rule.at("nonResourceURLs");
    if paths.is_empty() {
        paths.missing("nonResourceURLs must contain at least one value");
    } else if !wildcard(paths, "non-resource URLs") {
        paths.each().for_each(path);
    }
}

fn path(path: Cursor<'_>) {
    let text = path.str();
    let stars = text.matches('*').count();
    let wrong = match text {
        "/" => return,
        "" => "must not be empty",
        _ if !text.starts_with('/') => "must start with slash",
        _ if text.contains(' ') => "must not contain white-space",
        _ if text.contains("//") => "must not contain double slash",
        _ if stars > 1 || (stars == 1 && !text.ends_with("/*")) => "wildcard can only do suffix matching",
        _ => return,
    };
    path.invalid_as(text, wrong);
}
