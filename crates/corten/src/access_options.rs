//! Who may come and who decides what they may do, as the command line says it, in upstream's words.

use std::{path::PathBuf, sync::Arc, time::Duration};

use anyhow::{Context, Result, bail};
use clap::ArgMatches;
use corten_access::{
    AuthorizationOptions, AuthorizationSettings, Issuers,
    tokens::{StaticTokens, TokenWebhookSettings},
};
use corten_apiserver::Guard;
use corten_options::server_options::{any_given, file, list, time, word};

pub(crate) struct AccessOptions {
    static_tokens: Option<PathBuf>,
    authentication: Option<PathBuf>,
    /// With its version, and how long its answers hold.
    token_webhook: Option<(PathBuf, String, Duration)>,
    authorization: Authorization,
}

enum Authorization {
    Config(PathBuf),
    Options(AuthorizationOptions),
}

impl AccessOptions {
    /// # Errors
    /// Options that exclude each other were given.
    pub(crate) fn of(matches: &ArgMatches) -> Result<Self> {
        let of_webhook = |path| {
            let version = word(matches, "authentication-token-webhook-version").to_owned();
            (path, version, time(matches, "authentication-token-webhook-cache-ttl"))
        };
        let authorization = match file(matches, "authorization-config") {
            Some(_) if any_given(matches, "authorization-mode") || any_given(matches, "authorization-webhook-") => {
                bail!(
                    "--authorization-config can not be specified when --authorization-mode or --authorization-webhook-* flags are defined"
                )
            }
            Some(path) => Authorization::Config(path),
            None => Authorization::Options(AuthorizationOptions {
                modes: list(matches, "authorization-mode").into_iter().map(str::to_owned).collect(),
                webhook_config_file: file(matches, "authorization-webhook-config-file"),
                webhook_version: word(matches, "authorization-webhook-version").to_owned(),
                webhook_authorized_ttl: time(matches, "authorization-webhook-cache-authorized-ttl"),
                webhook_unauthorized_ttl: time(matches, "authorization-webhook-cache-unauthorized-ttl"),
            }),
        };
        Ok(Self {
            static_tokens: matches.get_one::<PathBuf>("token-auth-file").cloned(),
            authentication: file(matches, "authentication-config"),
            token_webhook: file(matches, "authentication-token-webhook-config-file").map(of_webhook),
            authorization,
        })
    }

    /// Reads what the options name.
    ///
    /// # Errors
    /// A file cannot be read, or says what cannot be.
    pub(crate) fn apply(&self, guard: &mut Guard) -> Result<()> {
        let reading = |path: &PathBuf| format!("reading {}", path.display());
        if let Some(path) = &self.static_tokens {
            guard.static_tokens = StaticTokens::load(path).with_context(|| reading(path))?;
        }
        if let Some(path) = &self.authentication {
            guard.issuers = Arc::new(Issuers::load(path).with_context(|| reading(path))?);
        }
        if let Some((path, version, ttl)) = &self.token_webhook {
            let webhook = TokenWebhookSettings::load(path, version, *ttl);
            guard.token_webhook = Some(webhook.context("reading the webhook for tokens")?);
        }
        guard.authorization = match &self.authorization {
            Authorization::Config(path) => AuthorizationSettings::load(path).with_context(|| reading(path))?,
            Authorization::Options(options) => {
                AuthorizationSettings::of_options(options).context("reading the options of authorization")?
            }
        };
        Ok(())
    }
}
