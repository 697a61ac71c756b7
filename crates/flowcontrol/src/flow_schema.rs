//! Which requests belong to which priority level, and to which flow within it.

use corten_meta::stable_hash_from;
use serde::Deserialize;

/// What a flow schema looks at of a request: what is asked, and by whom (`RequestDigest` of apiserver).
#[derive(Clone, Copy, Debug)]
pub struct RequestDigest<'a> {
    pub user: &'a str,
    pub groups: &'a [String],
    pub verb: &'a str,
    /// `None` where the request is for no resource.
    pub resource: Option<RequestedResource<'a>>,
    pub path: &'a str,
}

#[derive(Clone, Copy, Debug)]
pub struct RequestedResource<'a> {
    pub group: &'a str,
    pub plural: &'a str,
    pub subresource: &'a str,
    /// Empty where it is in none.
    pub namespace: &'a str,
}

/// What tells the flows of one flow schema apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
pub enum Distinguisher {
    ByUser,
    ByNamespace,
}

#[derive(Clone, Debug)]
pub struct FlowSchema {
    pub name: String,
    pub uid: String,
    /// The name of its priority level.
    pub level: String,
    precedence: i64,
    distinguisher: Option<Distinguisher>,
    rules: Vec<Rule>,
}

#[derive(Deserialize)]
struct Object {
    metadata: Metadata,
    spec: Spec,
}

#[derive(Deserialize)]
struct Metadata {
    name: String,
    #[serde(default)]
    uid: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Spec {
    priority_level_configuration: Named,
    #[serde(default)]
    matching_precedence: i64,
    #[serde(default)]
    distinguisher_method: Option<Method>,
    #[serde(default)]
    rules: Option<Vec<Rule>>,
}

#[derive(Clone, Debug, Deserialize)]
struct Named {
    name: String,
}

#[derive(Deserialize)]
struct Method {
    #[serde(rename = "type")]
    method: Distinguisher,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Rule {
    #[serde(default)]
    subjects: Vec<Subject>,
    #[serde(default)]
    resource_rules: Option<Vec<ResourceRule>>,
    #[serde(default)]
    non_resource_rules: Option<Vec<NonResourceRule>>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Subject {
    #[serde(default)]
    user: Option<Named>,
    #[serde(default)]
    group: Option<Named>,
    #[serde(default)]
    service_account: Option<Account>,
}

#[derive(Clone, Debug, Deserialize)]
struct Account {
    namespace: String,
    name: String,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct ResourceRule {
    verbs: Vec<String>,
    api_groups: Vec<String>,
    resources: Vec<String>,
    #[serde(default)]
    cluster_scope: bool,
    #[serde(default)]
    namespaces: Option<Vec<String>>,
}

#[derive(Clone, Debug, Deserialize)]
struct NonResourceRule {
    verbs: Vec<String>,
    #[serde(rename = "nonResourceURLs")]
    urls: Vec<String>,
}

impl FlowSchema {
    /// Reads a stored FlowSchema; `None` where it is none that the API would take.
    pub fn read(object: &[u8]) -> Option<Self> {
        let Object { metadata, spec } = serde_json::from_slice(object).ok()?;
        Some(Self {
            name: metadata.name,
            uid: metadata.uid,
            level: spec.priority_level_configuration.name,
            precedence: spec.matching_precedence,
            distinguisher: spec.distinguisher_method.map(|it| it.method),
            rules: spec.rules.unwrap_or_default(),
        })
    }

    /// The order in which they are asked.
    pub fn order(&self) -> (i64, &str) {
        (self.precedence, &self.name)
    }

    pub fn matches(&self, asked: &RequestDigest<'_>) -> bool {
        self.rules.iter().any(|it| it.matches(asked))
    }

    /// What tells the flow of a request from the schema's others.
    pub fn distinguisher_of<'a>(&self, asked: &RequestDigest<'a>) -> &'a str {
        match self.distinguisher {
            Some(Distinguisher::ByUser) => asked.user,
            Some(Distinguisher::ByNamespace) => asked.resource.map_or("", |it| it.namespace),
            None => "",
        }
    }

    /// The flow of a request that matches, as a number that is the same for the same flow.
    /// `seed` is secret, so that nobody can choose names that share the queues of another flow.
    pub fn flow(&self, seed: u64, asked: &RequestDigest<'_>) -> u64 {
        let distinguisher = self.distinguisher_of(asked);
        // A name holds no zero byte, so that no two pairs read the same.
        let schema = stable_hash_from(stable_hash_from(seed, self.name.as_bytes()), &[0]);
        stable_hash_from(schema, distinguisher.as_bytes())
    }
}

impl Rule {
    fn matches(&self, asked: &RequestDigest<'_>) -> bool {
        self.subjects.iter().any(|it| it.is(asked))
            && match &asked.resource {
                Some(resource) => self.resource_rules.iter().flatten().any(|it| it.matches(asked.verb, resource)),
                None => self.non_resource_rules.iter().flatten().any(|it| it.matches(asked)),
            }
    }
}

impl Subject {
    fn is(&self, asked: &RequestDigest<'_>) -> bool {
        if let Some(Named { name }) = &self.user {
            return name == "*" || name == asked.user;
        }
        if let Some(Named { name }) = &self.group {
            return name == "*" || asked.groups.contains(name);
        }
        let Some(Account { namespace, name }) = &self.service_account else { return false };
        let account = asked.user.strip_prefix("system:serviceaccount:").and_then(|it| it.split_once(':'));
        account.is_some_and(|(of, account)| of == namespace && (name == "*" || name == account))
    }
}

impl ResourceRule {
    fn matches(&self, verb: &str, asked: &RequestedResource<'_>) -> bool {
        let is_in_scope = match asked.namespace {
            "" => self.cluster_scope,
            namespace => self.namespaces.as_deref().is_some_and(|it| has(it, namespace)),
        };
        is_in_scope && has(&self.verbs, verb) && has(&self.api_groups, asked.group) && self.has_resource(asked)
    }

    fn has_resource(&self, asked: &RequestedResource<'_>) -> bool {
        let is_it = |resource: &String| match resource.split_once('/') {
            Some((plural, subresource)) => plural == asked.plural && subresource == asked.subresource,
            None => resource == "*" || (asked.subresource.is_empty() && resource == asked.plural),
        };
        self.resources.iter().any(is_it)
    }
}

impl NonResourceRule {
    fn matches(&self, asked: &RequestDigest<'_>) -> bool {
        let is_below = |url: &String| url.strip_suffix('*').is_some_and(|it| asked.path.starts_with(it));
        let is_it = |url: &String| url == "*" || url == asked.path || (url.ends_with("/*") && is_below(url));
        has(&self.verbs, asked.verb) && self.urls.iter().any(is_it)
    }
}

fn has(names: &[String], wanted: &str) -> bool {
    names.iter().any(|it| it == "*" || it == wanted)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn schema(rule: Value) -> FlowSchema {
        let spec = json!({ "priorityLevelConfiguration": { "name": "low" }, "matchingPrecedence": 7,
            "distinguisherMethod": { "type": "ByNamespace" }, "rules": [rule] });
        let object = json!({ "metadata": { "name": "s", "uid": "u" }, "spec": spec }).to_string();
        FlowSchema::read(object.as_bytes()).expect("it is one")
    }

    fn asked<'a>(
        user: &'a str,
        verb: &'a str,
        resource: Option<RequestedResource<'a>>,
        path: &'a str,
    ) -> RequestDigest<'a> {
        RequestDigest { user, groups: &[], verb, resource, path }
    }

    fn of(
        plural: &'static str,
        subresource: &'static str,
        namespace: &'static str,
    ) -> Option<RequestedResource<'static>> {
        Some(RequestedResource { group: "", plural, subresource, namespace })
    }

    #[test]
    fn a_rule_names_subjects_verbs_resources_and_places() {
        let account = json!([{ "kind": "ServiceAccount", "serviceAccount": { "namespace": "a", "name": "*" } }]);
        let pods = json!([{ "verbs": ["get", "list"], "apiGroups": [""], "resources": ["pods", "pods/log"],
            "namespaces": ["a", "b"] }]);
        let it = schema(json!({ "subjects": account, "resourceRules": pods }));
        let robot = "system:serviceaccount:a:robot";
        for (user, verb, resource, matches) in [
            (robot, "get", of("pods", "", "a"), true),
            (robot, "get", of("pods", "log", "b"), true),
            (robot, "get", of("pods", "exec", "b"), false),
            (robot, "get", of("pods", "", "c"), false),
            (robot, "list", of("pods", "", ""), false),
            (robot, "create", of("pods", "", "a"), false),
            (robot, "get", None, false),
            ("system:serviceaccount:b:robot", "get", of("pods", "", "a"), false),
            ("robot", "get", of("pods", "", "a"), false),
        ] {
            assert_eq!(it.matches(&asked(user, verb, resource, "/x")), matches, "{user} {verb} {resource:?}");
        }
        let flows = ["a", "b"].map(|it| of("pods", "", it)).map(|it| asked(robot, "get", it, ""));
        assert_ne!(it.flow(7, &flows[0]), it.flow(7, &flows[1]), "namespaces are flows of their own");
        assert_ne!(it.flow(7, &flows[0]), it.flow(8, &flows[0]), "which queues a flow has cannot be foretold");
    }

    #[test]
    fn paths_match_whole_or_below() {
        let rules = json!([{ "verbs": ["get"], "nonResourceURLs": ["/healthz", "/apis/*"] }]);
        let everybody = json!([{ "kind": "User", "user": { "name": "*" } }]);
        let it = schema(json!({ "subjects": everybody, "nonResourceRules": rules }));
        for (path, matches) in [("/healthz", true), ("/healthz/x", false), ("/apis/apps", true), ("/apis", false)] {
            assert_eq!(it.matches(&asked("u", "get", None, path)), matches, "{path}");
        }
        assert!(!it.matches(&asked("u", "get", of("pods", "", "a"), "/healthz")));
    }
}
