//! The key that signs service account tokens: ECDSA on P-256, kept beside the certificates.

use aws_lc_rs::{
    digest::{SHA256, digest},
    rand::SystemRandom,
    signature::{ECDSA_P256_SHA256_FIXED, ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, UnparsedPublicKey},
};
use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use rcgen::{KeyPair, PKCS_ECDSA_P256_SHA256, PublicKeyData};
use rustls_pki_types::{SubjectPublicKeyInfoDer, pem::PemObject};
use serde_json::{Value, json};
use x509_parser::{prelude::FromDer, x509::SubjectPublicKeyInfo};

use crate::{Error, certificate};

/// The first byte of an uncompressed point: two coordinates of 32 bytes follow.
const COORDINATE_BYTES: usize = 32;

pub struct TokenKey {
    /// `None` for one that signs nothing any more.
    pair: Option<EcdsaKeyPair>,
    /// DER.
    public: Vec<u8>,
    id: String,
}

impl TokenKey {
    pub(super) fn generate() -> Result<(Self, String), Error> {
        let pair = KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256).map_err(failed)?;
        let pem = pair.serialize_pem();
        Ok((Self::from_pem(&pem)?, pem))
    }

    pub(super) fn from_pem(pem: &str) -> Result<Self, Error> {
        let key = KeyPair::from_pem(pem).map_err(failed)?;
        let pair = EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &key.serialize_der()).map_err(failed)?;
        Self::of_public(key.subject_public_key_info(), Some(pair))
    }

    /// One that only checks what it signed before.
    pub(super) fn from_public_pem(pem: &str) -> Result<Self, Error> {
        let public = SubjectPublicKeyInfoDer::from_pem_slice(pem.as_bytes()).map_err(failed)?;
        Self::of_public(public.to_vec(), None)
    }

    fn of_public(public: Vec<u8>, pair: Option<EcdsaKeyPair>) -> Result<Self, Error> {
        let this = Self { pair, id: URL_SAFE_NO_PAD.encode(digest(&SHA256, &public)), public };
        let is_point = this.point().is_some_and(|it| it.len() == 1 + 2 * COORDINATE_BYTES);
        if is_point { Ok(this) } else { Err(failed("it is no ECDSA key on P-256")) }
    }

    pub(super) fn public_pem(&self) -> String {
        certificate::pem("PUBLIC KEY", &self.public)
    }

    fn point(&self) -> Option<&[u8]> {
        let (_, info) = SubjectPublicKeyInfo::from_der(&self.public).ok()?;
        // It is borrowed from the DER.
        let bytes = info.subject_public_key.data.len();
        self.public.len().checked_sub(bytes).map(|at| &self.public[at..])
    }

    fn known_point(&self) -> &[u8] {
        self.point().expect("it was looked at when the key was read")
    }

    /// Names the key in tokens and in the key set: the hash of its public half, as in `keyIDFromPublicKey`.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// `None` where the system gives no randomness, or the key signs nothing any more.
    pub fn sign(&self, message: &[u8]) -> Option<Vec<u8>> {
        self.pair.as_ref()?.sign(&SystemRandom::new(), message).ok().map(|it| it.as_ref().to_vec())
    }

    pub fn verifies(&self, message: &[u8], signature: &[u8]) -> bool {
        let public = UnparsedPublicKey::new(&ECDSA_P256_SHA256_FIXED, self.known_point());
        public.verify(message, signature).is_ok()
    }

    /// The public half as RFC 7517 writes it.
    pub fn jwk(&self) -> Value {
        let point = &self.known_point()[1..];
        let (x, y) = point.split_at(COORDINATE_BYTES);
        let text = |it: &[u8]| URL_SAFE_NO_PAD.encode(it);
        json!({ "use": "sig", "kty": "EC", "kid": self.id, "crv": "P-256", "alg": "ES256", "x": text(x), "y": text(y) })
    }
}

fn failed(error: impl std::fmt::Display) -> Error {
    Error::TokenKey(error.to_string())
}
