//! `audit.k8s.io/v1 Policy`: how much of which request is recorded. The first rule that matches decides; without a match
//! there is no record.

use std::path::Path;

use corten_access::Identity;
use corten_routes::RequestInfo;
use serde::{Deserialize, Serialize};

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Level {
    #[default]
    None,
    /// Who, what, when; no bodies.
    Metadata,
    /// With the request's body.
    Request,
    /// With the answer's body, too.
    RequestResponse,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Stage {
    RequestReceived,
    /// Only of answers that go on for long: their head is sent.
    ResponseStarted,
    ResponseComplete,
    Panic,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Policy {
    #[serde(rename = "apiVersion")]
    api_version: String,
    kind: String,
    #[serde(default, rename = "metadata")]
    _metadata: serde_json::Value,
    #[serde(default)]
    rules: Vec<Rule>,
    #[serde(default)]
    omit_stages: Vec<Stage>,
    #[serde(default)]
    omit_managed_fields: bool,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
struct Rule {
    level: Level,
    users: Vec<String>,
    user_groups: Vec<String>,
    verbs: Vec<String>,
    resources: Vec<GroupResources>,
    namespaces: Vec<String>,
    #[serde(rename = "nonResourceURLs")]
    non_resource_urls: Vec<String>,
    omit_stages: Vec<Stage>,
    omit_managed_fields: Option<bool>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
struct GroupResources {
    group: String,
    resources: Vec<String>,
    resource_names: Vec<String>,
}

#[derive(Debug, thiserror::Error)]
pub enum PolicyError {
    #[error("cannot read the audit policy")]
    Read(#[from] std::io::Error),
    #[error("cannot read the audit policy as YAML: {0}")]
    Malformed(String),
    #[error("the audit policy is a {0}, not a Policy of audit.k8s.io/v1")]
    Kind(String),
    #[error("the audit policy has no rules")]
    NoRules,
    #[error("rules[{0}] of the audit policy is about resources and nonResourceURLs; a rule is about one of the two")]
    Both(usize),
    #[error(
        "rules[{0}] of the audit policy has the nonResourceURL {1:?}: it must be \"*\" or begin with a slash, with a \"*\" at its end only"
    )]
    Url(usize, String),
    #[error("rules[{0}] of the audit policy names resources {1:?} in resourceNames without naming a resource")]
    Names(usize, Vec<String>),
}

/// What the policy wants of one request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Verdict {
    pub level: Level,
    omit_stages: Vec<Stage>,
    pub omit_managed_fields: bool,
}

impl Verdict {
    pub fn omits(&self, stage: Stage) -> bool {
        self.omit_stages.contains(&stage)
    }
}

impl Default for Policy {
    /// Without a file: who changed what, once it is done.
    fn default() -> Self {
        let verbs = ["create", "update", "patch", "delete", "deletecollection"].map(str::to_owned).to_vec();
        Self {
            api_version: API_VERSION.into(),
            kind: KIND.into(),
            _metadata: serde_json::Value::Null,
            rules: vec![Rule { level: Level::Metadata, verbs, ..Rule::default() }],
            omit_stages: vec![Stage::RequestReceived],
            omit_managed_fields: false,
        }
    }
}

const API_VERSION: &str = "audit.k8s.io/v1";
const KIND: &str = "Policy";

impl Policy {
    /// # Errors
    /// The file cannot be read or is no policy.
    pub fn load(path: &Path) -> Result<Self, PolicyError> {
        Self::parse(&corten_files::read_to_string(path)?)
    }

    /// # Errors
    /// The text is no policy.
    pub fn parse(yaml: &str) -> Result<Self, PolicyError> {
        let policy: Self = serde_saphyr::from_str(yaml).map_err(|it| PolicyError::Malformed(it.to_string()))?;
        if (&*policy.api_version, &*policy.kind) != (API_VERSION, KIND) {
            return Err(PolicyError::Kind(format!("{} of {}", policy.kind, policy.api_version)));
        }
        if policy.rules.is_empty() {
            return Err(PolicyError::NoRules);
        }
        for (at, rule) in policy.rules.iter().enumerate() {
            rule.check(at)?;
        }
        Ok(policy)
    }

    pub fn judge(&self, who: Option<&Identity>, info: &RequestInfo) -> Verdict {
        let nobody = Identity::default();
        let who = who.unwrap_or(&nobody);
        let Some(rule) = self.rules.iter().find(|it| it.matches(who, info)) else { return Verdict::default() };
        Verdict {
            level: rule.level,
            omit_stages: [&*self.omit_stages, &rule.omit_stages].concat(),
            omit_managed_fields: rule.omit_managed_fields.unwrap_or(self.omit_managed_fields),
        }
    }
}

fn has(list: &[String], wanted: &str) -> bool {
    list.iter().any(|it| it == wanted)
}

/// An empty list stands for everything.
fn has_or_any(list: &[String], wanted: &str) -> bool {
    list.is_empty() || has(list, wanted)
}

impl Rule {
    fn check(&self, at: usize) -> Result<(), PolicyError> {
        let of_resources = !self.resources.is_empty() || !self.namespaces.is_empty();
        if of_resources && !self.non_resource_urls.is_empty() {
            return Err(PolicyError::Both(at));
        }
        for url in self.non_resource_urls.iter().filter(|it| *it != "*") {
            if !url.starts_with('/') || url[..url.len() - 1].contains('*') {
                return Err(PolicyError::Url(at, url.clone()));
            }
        }
        for it in &self.resources {
            if !it.resource_names.is_empty() && it.resources.is_empty() {
                return Err(PolicyError::Names(at, it.resource_names.clone()));
            }
        }
        Ok(())
    }

    fn matches(&self, who: &Identity, info: &RequestInfo) -> bool {
        let in_group = || self.user_groups.is_empty() || who.groups.iter().any(|it| has(&self.user_groups, it));
        if !has_or_any(&self.users, &who.user) || !in_group() || !has_or_any(&self.verbs, info.verb) {
            return false;
        }
        if !self.namespaces.is_empty() || !self.resources.is_empty() {
            let of_one = || self.resources.is_empty() || self.resources.iter().any(|it| it.matches(info));
            return info.is_resource() && has_or_any(&self.namespaces, &info.namespace) && of_one();
        }
        let matches_url =
            |it: &String| it == &info.path || it.strip_suffix('*').is_some_and(|it| info.path.starts_with(it));
        self.non_resource_urls.is_empty() || !info.is_resource() && self.non_resource_urls.iter().any(matches_url)
    }
}

impl GroupResources {
    fn matches(&self, info: &RequestInfo) -> bool {
        if self.group != info.group {
            return false;
        }
        let (resource, sub) = (&*info.plural, &*info.subresource);
        self.resources.is_empty()
            || has_or_any(&self.resource_names, &info.name)
                && self.resources.iter().any(|it| match it.split_once('/') {
                    None => it == "*" || it == resource && sub.is_empty(),
                    Some((head, "*")) => head == resource,
                    Some(("*", tail)) => !sub.is_empty() && tail == sub,
                    Some((head, tail)) => head == resource && tail == sub,
                })
    }
}

#[cfg(test)]
mod tests {

    use super::*;
    use corten_routes::RequestInfo;

    const POLICY: &str = r#"
apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
omitManagedFields: true
rules:
- level: None
  users: [system:kube-proxy]
  verbs: [watch]
- level: None
  userGroups: [system:nodes]
  verbs: [get]
  resources: [{ group: "", resources: [nodes, nodes/status] }]
- level: Metadata
  resources: [{ group: "", resources: [secrets, configmaps, "*/token"] }]
  omitManagedFields: false
- level: Request
  resources: [{ group: "", resources: [pods], resourceNames: [important] }]
- level: RequestResponse
  namespaces: [prod]
  omitStages: [ResponseStarted]
- level: Request
  resources: [{ group: apps }]
- level: Metadata
  nonResourceURLs: [/metrics, "/logs*"]
"#;

    #[test]
    fn the_first_rule_that_matches_decides() {
        let policy = Policy::parse(POLICY).expect("a policy");
        for (user, groups, method, uri, expected) in [
            ("system:kube-proxy", &[][..], "GET", "/api/v1/services?watch=1", Level::None),
            ("n", &["system:nodes"], "GET", "/api/v1/nodes/n", Level::None),
            ("n", &["system:nodes"], "GET", "/api/v1/nodes/n/status", Level::None),
            ("jane", &[], "GET", "/api/v1/namespaces/a/secrets/s", Level::Metadata),
            ("jane", &[], "POST", "/api/v1/namespaces/a/serviceaccounts/s/token", Level::Metadata),
            ("jane", &[], "PUT", "/api/v1/namespaces/a/pods/important", Level::Request),
            ("jane", &[], "PUT", "/api/v1/namespaces/a/pods/other", Level::None),
            ("jane", &[], "PUT", "/api/v1/namespaces/prod/pods/other", Level::RequestResponse),
            ("jane", &[], "GET", "/apis/apps/v1/namespaces/a/deployments/d/scale", Level::Request),
            ("jane", &[], "GET", "/metrics", Level::Metadata),
            ("jane", &[], "GET", "/logs/a", Level::Metadata),
            ("jane", &[], "GET", "/version", Level::None),
        ] {
            let uri: http::Uri = uri.parse().expect("an address");
            let info = RequestInfo::read(&corten_kinds::Kinds::default(), method, uri.path(), uri.query());
            let verdict = policy.judge(Some(&Identity::new(user, groups)), &info.expect("a path"));
            assert_eq!(verdict.level, expected, "{user} {method} {uri}");
            if expected != Level::None {
                assert!(verdict.omits(Stage::RequestReceived));
                assert_eq!(verdict.omits(Stage::ResponseStarted), expected == Level::RequestResponse);
            }
        }
    }

    #[test]
    fn bad_policies_are_named() {
        let of = |rules: &str| format!("apiVersion: audit.k8s.io/v1\nkind: Policy\nrules:\n{rules}\n");
        for (text, expected) in [
            (of("- {level: Metadata, resources: [{group: \"\"}], nonResourceURLs: [/a]}"), "is about resources and"),
            (of("- {level: Metadata, nonResourceURLs: [\"/a*b\"]}"), "has the nonResourceURL \"/a*b\""),
            (of("- {level: Metadata, resources: [{resourceNames: [a]}]}"), "without naming a resource"),
            (of("- {level: Everything}"), "cannot read the audit policy as YAML"),
            (of("- {level: Metadata, verb: [get]}"), "cannot read the audit policy as YAML"),
            ("apiVersion: audit.k8s.io/v1\nkind: Policy\nrules: []".into(), "has no rules"),
            ("apiVersion: v1\nkind: Policy\nrules: []".into(), "is a Policy of v1"),
        ] {
            let found = Policy::parse(&text).expect_err("it is bad").to_string();
            assert!(found.contains(expected), "{found}");
        }
    }
}
