//! What is counted of who comes and what they are allowed, under the names of kube-apiserver's metrics. What each request counts up is
//! looked up once.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use corten_meta::Time;
use corten_metrics::{HistogramVec, HistogramsPerThread, IntCounter, IntCounterVec, Registry, registered};

use crate::{
    credential::{Attempted, Proof},
    question::Decision,
};

/// What is told of users: few names, so that nobody fills the server's memory with theirs, and nobody's name is told.
const USERS: [&str; 5] = ["admin", "client", "kube_proxy", "kubelet", "system:serviceaccount:kube-system:default"];

/// Of the time that a certificate still has.
const SECONDS_LEFT: [f64; 14] = [
    0.0,
    1_800.0,
    3_600.0,
    7_200.0,
    21_600.0,
    43_200.0,
    86_400.0,
    172_800.0,
    345_600.0,
    604_800.0,
    2_592_000.0,
    7_776_000.0,
    15_552_000.0,
    31_104_000.0,
];

const SECONDS_OF_TOKENS: [f64; 12] = [0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0];

pub(crate) struct Measures {
    known: Outcome,
    unknown: Outcome,
    refused: Outcome,
    users: Vec<(&'static str, IntCounter)>,
    emails: IntCounter,
    others: IntCounter,
    seconds_left: HistogramsPerThread,
    allowed: Outcome,
    denied: Outcome,
    undecided: Outcome,
    failed: Outcome,
    /// By what came of it, and the hash of the issuer.
    pub(crate) tokens_of_issuers: HistogramVec,
}

/// One that a question can have.
struct Outcome {
    times: IntCounter,
    seconds: HistogramsPerThread,
    result: &'static str,
    /// Of its histogram.
    place: usize,
}

/// So many outcomes a question has at most.
const OUTCOMES: usize = 4;

impl Outcome {
    fn count(&self, took: Duration) {
        self.times.inc();
        self.seconds.observe(self.place, || [self.result], took.as_secs_f64());
    }
}

impl Measures {
    pub(crate) fn new(registry: &Registry) -> Self {
        let counter = |name, help, label| registered::counter(registry, name, help, &[label]);
        let histogram =
            |name, help| registered::histogram_per_thread(registry, name, help, doubling(), &["result"], OUTCOMES);
        let attempts = counter("authentication_attempts", "Counter of authenticated attempts.", "result");
        let durations =
            histogram("authentication_duration_seconds", "Authentication duration in seconds broken out by result.");
        let users = counter(
            "authenticated_user_requests",
            "Counter of authenticated requests broken out by username.",
            "username",
        );
        let decisions = counter(
            "authorization_attempts_total",
            "Counter of authorization attempts broken down by result. It can be either 'allowed', 'denied', 'no-opinion' or 'error'.",
            "result",
        );
        let deciding =
            histogram("authorization_duration_seconds", "Authorization duration in seconds broken out by result.");
        let seconds_left = registered::histogram_per_thread(
            registry,
            "apiserver_client_certificate_expiration_seconds",
            "Distribution of the remaining lifetime on the certificate used to authenticate a request.",
            SECONDS_LEFT.to_vec(),
            &[],
            1,
        );
        let of = |times: &IntCounterVec, seconds: &HistogramsPerThread, result: &'static str, place: usize| Outcome {
            times: times.with_label_values(&[result]),
            seconds: seconds.clone(),
            result,
            place,
        };
        let user = |name: &'static str| (name, users.with_label_values(&[name]));
        Self {
            known: of(&attempts, &durations, "success", 0),
            unknown: of(&attempts, &durations, "failure", 1),
            refused: of(&attempts, &durations, "error", 2),
            users: USERS.into_iter().map(user).collect(),
            emails: users.with_label_values(&["email_id"]),
            others: users.with_label_values(&["other"]),
            seconds_left,
            allowed: of(&decisions, &deciding, "allowed", 0),
            denied: of(&decisions, &deciding, "denied", 1),
            undecided: of(&decisions, &deciding, "no-opinion", 2),
            failed: of(&decisions, &deciding, "error", 3),
            tokens_of_issuers: registered::histogram(
                registry,
                "apiserver_authentication_jwt_authenticator_latency_seconds",
                "Latency of jwt authentication operations in seconds. This is the time spent authenticating a token for cache miss only (i.e. when the token is not found in the cache).",
                SECONDS_OF_TOKENS.to_vec(),
                &["result", "jwt_issuer_hash"],
            ),
        }
    }

    /// Who sends a request was looked at.
    pub(crate) fn identified(&self, found: &Result<Proof, Attempted>, took: Duration, now: Time) {
        match found {
            Ok(proof) => {
                self.known.count(took);
                self.user(&proof.identity.user).inc();
                if let Some(end) = proof.certificate_end {
                    self.seconds_left.observe(0, || [], seconds_until(end, now));
                }
            }
            // Nothing was shown, and something must be.
            Err(Attempted("")) => self.unknown.count(took),
            Err(_) => self.refused.count(took),
        }
    }

    /// Whether a request may be made was decided.
    pub(crate) fn decided(&self, decision: &Decision, took: Duration) {
        let outcome = match decision {
            Decision::Allowed(_) => &self.allowed,
            Decision::Denied(it) if !it.error.is_empty() => &self.failed,
            Decision::Denied(it) if it.is_explicit => &self.denied,
            Decision::Denied(_) => &self.undecided,
        };
        outcome.count(took);
    }

    /// As `compressUsername` puts them together.
    fn user(&self, name: &str) -> &IntCounter {
        match self.users.iter().find(|it| it.0 == name) {
            Some((_, counter)) => counter,
            None if name.contains('@') => &self.emails,
            None => &self.others,
        }
    }
}

/// Fifteen bounds from a millisecond on, each twice the one before.
fn doubling() -> Vec<f64> {
    std::iter::successors(Some(0.001), |it| Some(it * 2.0)).take(15).collect()
}

fn seconds_until(end: SystemTime, now: Time) -> f64 {
    let now = UNIX_EPOCH + Duration::from_millis(u64::try_from(now.unix_millis()).unwrap_or_default());
    end.duration_since(now).map_or_else(|late| -late.duration().as_secs_f64(), |left| left.as_secs_f64())
}
