//! What a look at authentication and authorization tells: how their configurations were read, and the keys of issuers.

use std::time::Duration;

use corten_meta::Time;
use corten_metrics::{
    MetricFamily,
    scraped::{counter, gauge, number},
};

use crate::{Access, KeyFetch, Reloads};

impl Access {
    /// Of the server with this name.
    pub fn measured(&self, host_name: &str, now: Time) -> Vec<MetricFamily> {
        let identity = hash(host_name);
        let issuers = self.authenticator().issuers();
        let mut families = Vec::new();
        for (what, of) in [("authentication", issuers.reloads()), ("authorization", self.authorization_reloads())] {
            families.extend(reloads(what, of, &identity, now));
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

/// As upstream shows a name that not all are to read: which server it is, which issuer.
fn hash(name: &str) -> String {
    let hash = aws_lc_rs::digest::digest(&aws_lc_rs::digest::SHA256, name.as_bytes());
    let digits: String = hash.as_ref().iter().map(|it| format!("{it:02x}")).collect();
    format!("sha256:{digits}")
}
