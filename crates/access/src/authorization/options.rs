//! The options of old: which authorizers there are, and one webhook.

use std::{path::PathBuf, time::Duration};

use corten_meta::aggregate;
use corten_webhook::ClientConfig;

use super::{
    compiled::{Compiled, CompiledWebhook, ReviewVersion, Type},
    conditions::Conditions,
};
use crate::problems::ConfigError;

/// Of one request to a webhook that an option names.
const TIMEOUT: Duration = Duration::from_secs(30);

/// What is said by `--authorization-mode` and the options beginning with `--authorization-webhook`.
#[derive(Clone, Debug)]
pub struct Options {
    pub modes: Vec<String>,
    pub webhook_config_file: Option<PathBuf>,
    /// `v1` or `v1beta1`.
    pub webhook_version: String,
    pub webhook_authorized_ttl: Duration,
    pub webhook_unauthorized_ttl: Duration,
}

/// # Errors
/// As `BuiltInAuthorizationOptions.Validate`, all that is wrong.
pub(super) fn read(options: &Options) -> Result<Compiled, ConfigError> {
    let (mut wrong, mut authorizers) = (Vec::new(), Vec::new());
    if options.modes.is_empty() {
        wrong.push("at least one authorization-mode must be passed".to_owned());
    }
    for (at, mode) in options.modes.iter().enumerate() {
        if options.modes[..at].contains(mode) {
            wrong.push(format!("authorization-mode {:?} has mode specified more than once", options.modes));
            continue;
        }
        // Metrics call them by their types in lower case.
        match (&**mode, Type::simple(mode)) {
            (_, Some(simple)) => authorizers.push((simple, mode.to_lowercase())),
            ("Webhook", _) => match webhook(options) {
                Ok(webhook) => authorizers.push((Type::Webhook(Box::new(webhook)), "default".to_owned())),
                Err(reason) => wrong.push(reason),
            },
            ("ABAC", _) => {
                wrong.push(
                    "authorization-mode ABAC: this server has none: write its policies as roles, and use RBAC".into(),
                );
            }
            _ => wrong.push(format!("authorization-mode {mode:?} is not a valid mode")),
        }
    }
    if options.webhook_config_file.is_some() && !options.modes.iter().any(|it| it == "Webhook") {
        wrong.push("cannot specify --authorization-webhook-config-file without mode Webhook".to_owned());
    }
    match aggregate(wrong) {
        None => Ok(Compiled { authorizers }),
        Some(wrong) => Err(ConfigError(wrong)),
    }
}

fn webhook(options: &Options) -> Result<CompiledWebhook, String> {
    let Some(path) = &options.webhook_config_file else {
        return Err("authorization-mode Webhook's authorization config file not passed".into());
    };
    let version = &options.webhook_version;
    Ok(CompiledWebhook {
        client: ClientConfig::of_kubeconfig(path).map_err(|it| it.0)?,
        timeout: TIMEOUT,
        authorized: options.webhook_authorized_ttl,
        unauthorized: options.webhook_unauthorized_ttl,
        version: ReviewVersion::of(version).ok_or_else(|| {
            format!("unsupported webhook authorizer version {version:?}, supported versions are v1, v1beta1")
        })?,
        denies_on_error: false,
        conditions: Conditions::default(),
    })
}
