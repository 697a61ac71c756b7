//! CertificateSigningRequests that somebody has decided about: denied, failed, or without a certificate all the same.

use std::time::Duration;

use corten_meta::Time;
use corten_reconcile::{Actor, Wait};
use serde_json::Value;

use super::found::Findings;
use crate::why::{
    State,
    fields::{condition, text, time},
};

/// A signer of the cluster's own needs moments.
const PATIENCE: Duration = Duration::from_secs(60);
/// The signers that the cluster has.
const OWN: [&str; 4] = [
    "kubernetes.io/kube-apiserver-client",
    "kubernetes.io/kube-apiserver-client-kubelet",
    "kubernetes.io/kubelet-serving",
    "kubernetes.io/legacy-unknown",
];

pub(super) fn request(object: &Value, now: Time, found: &mut Findings) {
    let is_true = |name: &str| condition(object, name).filter(|it| it["status"] == "True");
    let said = |it: &Value| match (text(it, "/reason"), text(it, "/message")) {
        (reason, "") => reason.to_owned(),
        ("", message) => message.to_owned(),
        (reason, message) => format!("{reason}: {message}"),
    };
    let at = |it: &Value| time(&it["lastTransitionTime"]).or(time(&it["lastUpdateTime"]));
    let mut ended = |reason: &str, it: &Value, what: String, actor: Actor| {
        let mut wait = Wait::new(reason, what, actor);
        wait.since = at(it);
        found.verdict = Some((State::Failed, format!("{reason}: {}", wait.message)));
        found.wait(wait);
    };
    if let Some(denied) = is_true("Denied") {
        ended("Denied", denied, format!("it was denied ({}), and is never signed", said(denied)), Actor::Author);
        return;
    }
    if let Some(failed) = is_true("Failed") {
        ended("SigningFailed", failed, format!("its signer refused it: {}", said(failed)), Actor::Author);
        return;
    }
    let Some(approved) = is_true("Approved").filter(|_| text(object, "/status/certificate").is_empty()) else { return };
    let signer = text(object, "/spec/signerName");
    let is_own = OWN.contains(&signer);
    let is_late = at(approved).is_some_and(|it| it.after(PATIENCE) < now);
    let (message, actor) = match (is_own, is_late) {
        (true, false) => ("it is approved, and is signed next".to_owned(), Actor::Cluster),
        (true, true) => (
            format!("it is approved, and the cluster's signer {signer} has not signed it for more than a minute"),
            Actor::Operator,
        ),
        (false, _) => (
            format!("it is approved, and waits for the signer {signer:?}, which is no part of this cluster"),
            Actor::External,
        ),
    };
    let mut wait = Wait::new("CertificateMissing", message, actor);
    wait.since = at(approved);
    found.wait(wait);
}
