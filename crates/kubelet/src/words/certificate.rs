//! A certificate for a pod, and what a signer says of it.

use std::{collections::BTreeMap, fmt};

use corten_meta::Time;

/// One source of a projected volume: the volume's name, and which of its sources it is.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct CertificatePlace {
    pub volume: String,
    pub source: usize,
}

/// What a certificate is asked for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CertificateWish {
    pub signer: String,
    /// In the API's words: `ED25519`, `ECDSAP256`, `RSA3072` and others.
    pub key_type: String,
    pub max_seconds: Option<i32>,
    /// For the signer: `userAnnotations`.
    pub annotations: BTreeMap<String, String>,
}

/// A private key as PEM (PKCS #8).
#[derive(Clone, PartialEq, Eq)]
pub struct PrivateKey(pub String);

/// Without the key: what is printed is kept.
impl fmt::Debug for PrivateKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("PrivateKey")
    }
}

/// A PodCertificateRequest that was made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CertificateAsked {
    /// Its name.
    pub request: String,
    pub key: PrivateKey,
}

/// A PodCertificateRequest as the API has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CertificateNews {
    /// The uid of the pod it is for.
    pub pod_uid: String,
    pub answer: CertificateAnswer,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CertificateAnswer {
    Pending,
    Issued {
        /// PEM: the pod's certificate, then those between it and the signer's root.
        chain: String,
        begin_refresh_at: Time,
        not_after: Time,
    },
    Denied {
        reason: String,
        message: String,
    },
    Failed {
        reason: String,
        message: String,
    },
}
