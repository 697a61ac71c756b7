//! `AuthorizationConfiguration` of `apiserver.config.k8s.io`, as it is written. An unknown field is refused.

use serde::Deserialize;

use crate::configuration;

#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Configuration {
    pub(super) api_version: String,
    pub(super) kind: String,
    #[serde(default)]
    pub(super) authorizers: Vec<Authorizer>,
}

impl configuration::Configuration for Configuration {
    const KIND: &str = "AuthorizationConfiguration";
    const NAME: &str = "AuthorizationConfiguration from file";

    fn api_version(&self) -> &str {
        &self.api_version
    }

    fn kind(&self) -> &str {
        &self.kind
    }
}

#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct Authorizer {
    #[serde(rename = "type")]
    pub(super) of: String,
    pub(super) name: String,
    pub(super) webhook: Option<Webhook>,
}

#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub(super) struct Webhook {
    /// Lengths of time as Go writes them.
    #[serde(rename = "authorizedTTL")]
    pub(super) authorized_ttl: String,
    pub(super) cache_authorized_requests: Option<bool>,
    #[serde(rename = "unauthorizedTTL")]
    pub(super) unauthorized_ttl: String,
    pub(super) cache_unauthorized_requests: Option<bool>,
    pub(super) timeout: String,
    pub(super) subject_access_review_version: String,
    pub(super) match_condition_subject_access_review_version: String,
    pub(super) failure_policy: String,
    pub(super) connection_info: ConnectionInfo,
    pub(super) match_conditions: Vec<MatchCondition>,
}

/// As `SetDefaults_WebhookConfiguration`.
impl Default for Webhook {
    fn default() -> Self {
        Self {
            authorized_ttl: "5m".into(),
            cache_authorized_requests: None,
            unauthorized_ttl: "30s".into(),
            cache_unauthorized_requests: None,
            timeout: String::new(),
            subject_access_review_version: String::new(),
            match_condition_subject_access_review_version: String::new(),
            failure_policy: String::new(),
            connection_info: ConnectionInfo::default(),
            match_conditions: Vec::new(),
        }
    }
}

#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub(super) struct ConnectionInfo {
    #[serde(rename = "type")]
    pub(super) of: String,
    pub(super) kube_config_file: Option<String>,
}

#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct MatchCondition {
    pub(super) expression: String,
}
