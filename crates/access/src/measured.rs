//! What a look at authentication and authorization tells: how their configurations were read, and the keys of issuers.

use std::time::Duration;

use corten_meta::Time;
use corten_metrics::{
    MetricFamily,
    scraped::{counter, gauge, number},
};

use crate::{Access, KeyFetch, Reloads, hash::hash};

impl Access {
    /// Of the server with this name.
    pub fn measured(&self, host_name: &str, now: Time) -> Vec<MetricFamily> {
        let identity = hash(host_name);
        let issuers = self.authenticator().issuers();
        let mut families = Vec::new();
        let authorization = self.authorizer().authorization();
        for (what, of, in_use) in [
            ("authentication", issuers.reloads(), issuers.configuration_hash()),
            ("authorization", authorization.reloads(), authorization.configuration_hash()),
        ] {
            families.extend(reloads(what, of, &identity, now));
            families.extend(configuration(what, in_use.as_deref(), &identity));
        }
        families.extend(key_fetches(&issuers.key_fetches(), &identity, now));
        families
    }
}

/// How often the configuration of authentication or authorization was read anew.
fn reloads(what: &str, reloads: &Reloads, identity: &str, now: Time) -> Vec<MetricFamily> {
    let labels = ["apiserver_id_hash", "status"];
    let (failure, success) = ([identity, "failure"], [identity, "success"]);
    let at = |ago: Duration| seconds_at(now, ago);
    let last = [(&failure[..], reloads.since_failure()), (&success[..], reloads.since_success())];
    let mut families = counter(
        &format!("apiserver_{what}_config_controller_automatic_reloads_total"),
        &format!("Total number of automatic reloads of {what} configuration split by status and apiserver identity."),
        &labels,
        [(&failure[..], reloads.failures()), (&success[..], reloads.successes())],
    );
    families.extend(gauge(
        &format!("apiserver_{what}_config_controller_automatic_reload_last_timestamp_seconds"),
        &format!(
            "Timestamp of the last automatic reload of {what} configuration split by status and apiserver identity."
        ),
        &labels,
        last.into_iter().filter_map(|(labels, ago)| Some((labels, at(ago?)))),
    ));
    families
}

/// Which one is used; nothing where there is no file of it.
fn configuration(what: &str, in_use: Option<&str>, identity: &str) -> Vec<MetricFamily> {
    let labels = in_use.map(|it| [identity, it]);
    gauge(
        &format!("apiserver_{what}_config_controller_last_config_info"),
        &format!(
            "Information about the last applied {what} configuration with hash as label, split by apiserver identity."
        ),
        &["apiserver_id_hash", "hash"],
        labels.iter().map(|it| (&it[..], 1.0)),
    )
}

/// What came of asking issuers of tokens for their keys.
fn key_fetches(fetches: &[KeyFetch], identity: &str, now: Time) -> Vec<MetricFamily> {
    let issuers: Vec<String> = fetches.iter().map(|it| hash(&it.issuer)).collect();
    let last = fetches.iter().zip(&issuers).flat_map(|(it, issuer)| {
        [("failure", it.since_failure), ("success", it.since_success)]
            .into_iter()
            .filter_map(move |(result, ago)| Some(([identity, &**issuer, result], seconds_at(now, ago?))))
    });
    let last: Vec<_> = last.collect();
    let key_sets = fetches.iter().zip(&issuers);
    let key_sets: Vec<_> =
        key_sets.filter_map(|(it, issuer)| Some([identity, it.key_set.as_deref()?, &**issuer])).collect();
    let mut families = gauge(
        "apiserver_authentication_jwt_authenticator_jwks_fetch_last_timestamp_seconds",
        "Timestamp of the last successful or failed JWKS fetch split by result, api server identity and jwt issuer for the JWT authenticator.",
        &["apiserver_id_hash", "jwt_issuer_hash", "result"],
        last.iter().map(|(labels, at)| (&labels[..], *at)),
    );
    families.extend(gauge(
        "apiserver_authentication_jwt_authenticator_jwks_fetch_last_key_set_info",
        "Information about the last JWKS fetched by the JWT authenticator with hash as label, split by api server identity and jwt issuer.",
        &["apiserver_id_hash", "hash", "jwt_issuer_hash"],
        key_sets.iter().map(|labels| (&labels[..], 1.0)),
    ));
    families
}

/// When that was, in seconds since 1970.
fn seconds_at(now: Time, ago: Duration) -> f64 {
    number(u64::try_from(now.unix_millis()).unwrap_or_default()) / 1000.0 - ago.as_secs_f64()
}
