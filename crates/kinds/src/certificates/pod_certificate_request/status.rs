//! What a signer answers: a certificate for the key that was asked about, or why there is none; said once.

use std::time::Duration;

use corten_meta::{Time, Violation};
use corten_schema::Cursor;
use corten_validation::{fill::means_the_same, rules};
use serde_json::{Value, json};
use x509_parser::{
    extensions::GeneralName,
    pem::Pem,
    prelude::{FromDer, X509Certificate},
};

use super::{key, state};

const CHAIN_BYTES_MAX: usize = 100 * 1024;
const LIFETIME_SECONDS_MIN: i64 = 3600;
/// So long after its beginning and before its end a certificate is not yet, or no more, to be replaced.
const REFRESH_MARGIN: Duration = Duration::from_secs(600);
const CERTIFICATE: &str = "CERTIFICATE";

/// As upstream's `ValidatePodCertificateRequestStatusUpdate`, without what needs a clock.
pub(super) fn validate(request: Cursor<'_>, old: &Value) {
    let status = request.at("status");
    let before = request.reported();
    conditions(status);
    if request.reported() > before {
        return;
    }
    if state(old) != "Pending" {
        if !means_the_same(status.value(), &old["status"]) {
            status.invalid("immutable after PodCertificateRequest is issued, denied, or failed");
        }
        return;
    }
    match state(request.value()) {
        "Issued" => issued(status, &old["spec"]),
        "Pending" => {
            if !means_the_same(status.value(), &old["status"]) {
                status.invalid("status is immutable unless transitioning to \"Issued\", \"Denied\", or \"Failed\"");
            }
        }
        _ => {
            if !means_the_same(status.value(), &json!({ "conditions": status.value()["conditions"] })) {
                status.invalid(
                    "non-condition status fields must be empty when denying or failing the PodCertificateRequest",
                );
            }
        }
    }
}

fn conditions(status: Cursor<'_>) {
    for (at, condition) in status.list("conditions").enumerate() {
        if condition.at("type").one_of(&["Denied", "Failed", "Issued"]) && at > 0 {
            let detail = "There may be at most one condition with type \"Issued\", \"Denied\", or \"Failed\"";
            condition.at("type").invalid(detail);
        }
        condition.at("status").one_of(&["True"]);
    }
    rules::conditions(status.at("conditions"));
}

fn issued(status: Cursor<'_>, spec: &Value) {
    let chain = status.at("certificateChain");
    if chain.str().len() > CHAIN_BYTES_MAX {
        return chain.report(Violation::too_long(chain.path(), CHAIN_BYTES_MAX));
    }
    let blocks = match blocks(chain.str()) {
        Ok(blocks) => blocks,
        Err(reason) => return chain.invalid(reason),
    };
    let Ok((_, leaf)) = X509Certificate::from_der(&blocks[0]) else {
        return chain.invalid("leaf certificate does not parse as valid X.509");
    };
    let before = chain.reported();
    names(chain, &leaf);
    if key::of_spec(spec).is_none_or(|it| it != leaf.public_key().raw) {
        chain.invalid("leaf certificate was not issued to the requested public key");
    }
    if chain.reported() > before {
        return;
    }
    times(status, &leaf, spec);
    if blocks.iter().skip(1).any(|it| X509Certificate::from_der(it).is_err()) {
        chain.invalid("intermediate certificate does not parse as valid X.509");
    }
}

/// One certificate at least, and nothing else.
fn blocks(chain: &str) -> Result<Vec<Vec<u8>>, &'static str> {
    let mut found = Vec::new();
    for block in Pem::iter_from_buffer(chain.as_bytes()) {
        let block = block.ok().filter(|it| it.label == CERTIFICATE);
        found.push(block.ok_or("issued certificate chain must consist entirely of CERTIFICATE PEM blocks")?.contents);
    }
    if found.is_empty() { Err("issued certificate chain must contain at least one certificate") } else { Ok(found) }
}

fn names(chain: Cursor<'_>, leaf: &X509Certificate<'_>) {
    let names = leaf.subject_alternative_name().ok().flatten();
    for name in names.iter().flat_map(|it| &it.value.general_names) {
        match name {
            GeneralName::DNSName("") => chain.invalid_as("", "leaf certificate should not contain empty DNSName"),
            GeneralName::DNSName(name) if name.contains("..") => {
                chain.invalid_as(name, "leaf certificate's DNSName should not contain '..'");
            }
            GeneralName::DNSName(name) if name.starts_with('.') || name.ends_with('.') => {
                chain.invalid_as(name, "leaf certificate's DNSName should not start or end with '.'");
            }
            GeneralName::RFC822Name(name) if !is_address(name) => {
                chain.invalid_as(name, "leaf certificate should not contain invalid EmailAddress");
            }
            _ => {}
        }
    }
}

fn is_address(text: &str) -> bool {
    let is_word = |it: &str| !it.is_empty() && !it.contains(|it: char| it.is_whitespace() || "<>@".contains(it));
    text.rsplit_once('@').is_some_and(|(user, domain)| is_word(user) && is_word(domain))
}

fn times(status: Cursor<'_>, leaf: &X509Certificate<'_>, spec: &Value) {
    let (from, until, refresh) = (status.at("notBefore"), status.at("notAfter"), status.at("beginRefreshAt"));
    let before = status.reported();
    for (at, what) in [
        (from, "must be present and consistent with the issued certificate"),
        (until, "must be present and consistent with the issued certificate"),
        (refresh, "must be present and in the range [notbefore+10min, notafter-10min]"),
    ] {
        if at.is_empty() {
            at.missing(what);
        }
    }
    if status.reported() > before {
        return;
    }
    let validity = leaf.validity();
    let (begins, ends) = (validity.not_before.timestamp(), validity.not_after.timestamp());
    let is_at = |told: Cursor<'_>, seconds| time(told) == Some(Time::from_unix_seconds(seconds));
    if !is_at(from, begins) {
        return from.invalid("must be set to the NotBefore time encoded in the leaf certificate");
    }
    if !is_at(until, ends) {
        return until.invalid("must be set to the NotAfter time encoded in the leaf certificate");
    }
    let (lifetime, most) = (ends.saturating_sub(begins), spec["maxExpirationSeconds"].as_i64().unwrap_or(0));
    let chain = status.at("certificateChain");
    if lifetime < LIFETIME_SECONDS_MIN {
        return chain.invalid_as(&format!("{lifetime}s"), "leaf certificate lifetime must be >= 1 hour");
    }
    if lifetime > most {
        let detail = format!("leaf certificate lifetime must be <= spec.maxExpirationSeconds ({most})");
        return chain.invalid_as(&format!("{lifetime}s"), &detail);
    }
    let (begin, end) = (Time::from_unix_seconds(begins), Time::from_unix_seconds(ends));
    if time(refresh).is_none_or(|it| it < begin.after(REFRESH_MARGIN)) {
        refresh.invalid("must be at least 10 minutes after status.notBefore");
    } else if time(refresh).is_some_and(|it| it > end.before(REFRESH_MARGIN)) {
        refresh.invalid("must be at least 10 minutes before status.notAfter");
    }
}

fn time(at: Cursor<'_>) -> Option<Time> {
    at.str().parse().ok()
}
