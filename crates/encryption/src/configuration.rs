//! An `EncryptionConfiguration` of apiserver.config.k8s.io/v1, as it is written.

use std::fmt;

use serde::Deserialize;

pub(crate) const API_VERSION: &str = "apiserver.config.k8s.io/v1";
pub(crate) const KIND: &str = "EncryptionConfiguration";

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct Configuration {
    pub(crate) api_version: String,
    pub(crate) kind: String,
    #[serde(default)]
    pub(crate) resources: Vec<ResourceConfiguration>,
}

/// Which providers the objects of some resources have.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ResourceConfiguration {
    #[serde(default)]
    pub(crate) resources: Vec<String>,
    #[serde(default)]
    pub(crate) providers: Vec<ProviderConfiguration>,
}

/// One of them.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ProviderConfiguration {
    pub(crate) aesgcm: Option<KeysConfiguration>,
    pub(crate) aescbc: Option<KeysConfiguration>,
    pub(crate) secretbox: Option<KeysConfiguration>,
    pub(crate) identity: Option<IdentityConfiguration>,
    pub(crate) kms: Option<KmsConfiguration>,
}

impl ProviderConfiguration {
    /// The names of those that are there.
    pub(crate) fn names(&self) -> Vec<&'static str> {
        let all = [
            ("kms", self.kms.is_some()),
            ("aesgcm", self.aesgcm.is_some()),
            ("aescbc", self.aescbc.is_some()),
            ("secretbox", self.secretbox.is_some()),
            ("identity", self.identity.is_some()),
        ];
        all.into_iter().filter(|it| it.1).map(|it| it.0).collect()
    }
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct KeysConfiguration {
    #[serde(default)]
    pub(crate) keys: Vec<KeyConfiguration>,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct KeyConfiguration {
    #[serde(default)]
    pub(crate) name: String,
    #[serde(default)]
    pub(crate) secret: String,
}

impl fmt::Debug for KeyConfiguration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KeyConfiguration").field("name", &self.name).finish_non_exhaustive()
    }
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct IdentityConfiguration {}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct KmsConfiguration {
    pub(crate) api_version: Option<String>,
    #[serde(default)]
    pub(crate) name: String,
    /// In all lower case, as in upstream's `KMSConfiguration`.
    pub(crate) cachesize: Option<i32>,
    #[serde(default)]
    pub(crate) endpoint: String,
    /// As Go writes it.
    pub(crate) timeout: Option<String>,
}

impl KmsConfiguration {
    const V1: &str = "v1";
    /// Which there are.
    pub(crate) const VERSIONS: [&str; 2] = [Self::V1, "v2"];

    /// `SetDefaults_KMSConfiguration`: without a version it is the first.
    pub(crate) fn version(&self) -> &str {
        self.api_version.as_deref().filter(|it| !it.is_empty()).unwrap_or(Self::V1)
    }

    pub(crate) fn is_v1(&self) -> bool {
        self.version() == Self::V1
    }
}
