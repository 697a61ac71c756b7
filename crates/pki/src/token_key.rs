//! The key that signs service account tokens: ECDSA on P-256, kept beside the certificates.

use aws_lc_rs::{
    digest::{SHA256, digest},
    rand::SystemRandom,
    signature::{
        ECDSA_P256_SHA256_FIXED, ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair as _, UnparsedPublicKey,
    },
};
use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use rcgen::{KeyPair, PKCS_ECDSA_P256_SHA256, PublicKeyData};
use serde_json::{Value, json};

use super::Error;

/// The first byte of an uncompressed point: two coordinates of 32 bytes follow.
const COORDINATE_BYTES: usize = 32;

pub struct TokenKey {
    pair: EcdsaKeyPair,
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
        let id = URL_SAFE_NO_PAD.encode(digest(&SHA256, &key.subject_public_key_info()));
        Ok(Self { pair, id })
    }

    /// Names the key in tokens and in the key set: the hash of its public half, as upstream.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// `None` where the system gives no randomness.
    pub fn sign(&self, message: &[u8]) -> Option<Vec<u8>> {
        self.pair.sign(&SystemRandom::new(), message).ok().map(|it| it.as_ref().to_vec())
    }

    pub fn verifies(&self, message: &[u8], signature: &[u8]) -> bool {
        let public = UnparsedPublicKey::new(&ECDSA_P256_SHA256_FIXED, self.pair.public_key().as_ref());
        public.verify(message, signature).is_ok()
    }

    /// The public half as RFC 7517 writes it.
    pub fn jwk(&self) -> Value {
        let point = &self.pair.public_key().as_ref()[1..];
        let (x, y) = point.split_at(COORDINATE_BYTES);
        let text = |it: &[u8]| URL_SAFE_NO_PAD.encode(it);
        json!({ "use": "sig", "kty": "EC", "kid": self.id, "crv": "P-256", "alg": "ES256", "x": text(x), "y": text(y) })
    }
}

fn failed(error: impl std::fmt::Display) -> Error {
    Error::TokenKey(error.to_string())
}
