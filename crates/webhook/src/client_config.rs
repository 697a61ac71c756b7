//! Where a server is, by what it is known, and by what we prove who we are.

use base64::{Engine, prelude::BASE64_STANDARD};
use serde_json::Value;

const HTTPS_PORT: u16 = 443;

#[derive(Clone, PartialEq, Eq, Hash)]
pub struct ClientConfig {
    pub location: Location,
    /// Certificates of authorities, as PEM. Empty: those that the machine trusts.
    pub ca_bundle: Vec<u8>,
    /// Whoever answers will do (`insecureSkipTLSVerify`).
    pub skip_verify: bool,
    /// The name in the server's certificate, where it is not the location's.
    pub server_name: Option<String>,
    pub proof: Option<Proof>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Location {
    /// `https://host[:port][/path]`.
    Url(String),
    Service {
        namespace: String,
        name: String,
        path: String,
        port: u16,
    },
}

#[derive(Clone, PartialEq, Eq, Hash)]
pub enum Proof {
    /// As PEM.
    Certificate {
        chain: Vec<u8>,
        key: Vec<u8>,
    },
    BearerToken(String),
}

/// What is wrong with a configuration. Those that the API accepts are mostly beyond this: only a `caBundle` is read nowhere else.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct ConfigError(pub String);

impl ClientConfig {
    pub fn new(location: Location) -> Self {
        Self { location, ca_bundle: Vec::new(), skip_verify: false, server_name: None, proof: None }
    }

    /// From the `clientConfig` of a webhook, or the `spec` of an APIService, which has the same fields.
    ///
    /// # Errors
    /// It names no server, or its `caBundle` is no base64.
    pub fn of_json(config: &Value) -> Result<Self, ConfigError> {
        let text = |it: &Value| it.as_str().unwrap_or_default().to_owned();
        let service = &config["service"];
        let location = match config["url"].as_str() {
            Some(url) => Location::Url(url.to_owned()),
            None if service.is_object() => Location::Service {
                namespace: text(&service["namespace"]),
                name: text(&service["name"]),
                path: text(&service["path"]),
                port: service["port"].as_u64().and_then(|it| it.try_into().ok()).unwrap_or(HTTPS_PORT),
            },
            None => return Err(ConfigError("webhook configuration must have either service or URL".into())),
        };
        let bundle = config["caBundle"].as_str().unwrap_or_default();
        let ca_bundle =
            BASE64_STANDARD.decode(bundle).map_err(|error| ConfigError(format!("cannot read caBundle: {error}")))?;
        let skip_verify = config["insecureSkipTLSVerify"] == true;
        Ok(Self { ca_bundle, skip_verify, ..Self::new(location) })
    }
}
