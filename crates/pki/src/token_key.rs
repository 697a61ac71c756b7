//! The key that signs service account tokens, kept beside the certificates: ECDSA on P-256 where Corten made it. Clusters of kubeadm
//! have RSA, and go on with that.

use aws_lc_rs::{
    digest::{SHA256, digest},
    rand::SystemRandom,
    rsa,
    signature::{
        ECDSA_P256_SHA256_FIXED, ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, EcdsaSigningAlgorithm,
        RSA_PKCS1_2048_8192_SHA256, RSA_PKCS1_SHA256, RsaPublicKeyComponents, UnparsedPublicKey,
    },
};
use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use rcgen::{KeyPair, PKCS_ECDSA_P256_SHA256, PublicKeyData};
use rustls_pki_types::{SubjectPublicKeyInfoDer, pem::PemObject};
use serde_json::{Value, json};
use x509_parser::{prelude::FromDer, public_key::PublicKey, x509::SubjectPublicKeyInfo};

use crate::{Error, certificate};

/// The first byte of an uncompressed point: two coordinates of 32 bytes follow.
const COORDINATE_BYTES: usize = 32;
/// What RFC 7518 asks of RS256.
const MODULUS_BYTES_MIN: usize = 256;

pub struct TokenKey {
    /// `None` for one that signs nothing any more.
    pair: Option<Pair>,
    public: Public,
    /// DER.
    public_info: Vec<u8>,
    id: String,
}

enum Pair {
    Curve(EcdsaKeyPair),
    Rsa(rsa::KeyPair),
}

enum Public {
    /// On P-256, uncompressed.
    Point(Vec<u8>),
    /// Big-endian, without zeros in front.
    Rsa { modulus: Vec<u8>, exponent: Vec<u8> },
}

impl TokenKey {
    pub(super) fn generate() -> Result<(Self, String), Error> {
        let pair = KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256).map_err(failed)?;
        let pem = pair.serialize_pem();
        Ok((Self::from_pem(&pem)?, pem))
    }

    /// PKCS #8, as Corten writes it, or what kubeadm does: PKCS #1 of an RSA key and SEC 1 of the other.
    pub(super) fn from_pem(pem: &str) -> Result<Self, Error> {
        let key = KeyPair::from_pem(pem).map_err(failed)?;
        let (der, public) = (key.serialize_der(), key.subject_public_key_info());
        let pair = match Public::of(&public)? {
            Public::Point(_) => {
                const CURVE: &EcdsaSigningAlgorithm = &ECDSA_P256_SHA256_FIXED_SIGNING;
                let pair = EcdsaKeyPair::from_pkcs8(CURVE, &der);
                Pair::Curve(pair.or_else(|_| EcdsaKeyPair::from_private_key_der(CURVE, &der)).map_err(failed)?)
            }
            Public::Rsa { .. } => {
                let pair = rsa::KeyPair::from_pkcs8(&der).or_else(|_| rsa::KeyPair::from_der(&der));
                Pair::Rsa(pair.map_err(failed)?)
            }
        };
        Self::of_public(public, Some(pair))
    }

    /// One that only checks what it signed before.
    pub(super) fn from_public_pem(pem: &str) -> Result<Self, Error> {
        let public = SubjectPublicKeyInfoDer::from_pem_slice(pem.as_bytes()).map_err(failed)?;
        Self::of_public(public.to_vec(), None)
    }

    fn of_public(public_info: Vec<u8>, pair: Option<Pair>) -> Result<Self, Error> {
        let (public, id) = (Public::of(&public_info)?, URL_SAFE_NO_PAD.encode(digest(&SHA256, &public_info)));
        Ok(Self { pair, public, public_info, id })
    }

    pub(super) fn public_pem(&self) -> String {
        certificate::pem("PUBLIC KEY", &self.public_info)
    }

    /// Names the key in tokens and in the key set: the hash of its public half, as in `keyIDFromPublicKey`.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// As RFC 7518 names it: `ES256` or `RS256`.
    pub fn algorithm(&self) -> &'static str {
        match self.public {
            Public::Point(_) => "ES256",
            Public::Rsa { .. } => "RS256",
        }
    }

    /// `None` where the system gives no randomness, or the key signs nothing any more.
    pub fn sign(&self, message: &[u8]) -> Option<Vec<u8>> {
        let random = SystemRandom::new();
        match self.pair.as_ref()? {
            Pair::Curve(pair) => pair.sign(&random, message).ok().map(|it| it.as_ref().to_vec()),
            Pair::Rsa(pair) => {
                let mut signature = vec![0; pair.public_modulus_len()];
                pair.sign(&RSA_PKCS1_SHA256, &random, message, &mut signature).ok().map(|()| signature)
            }
        }
    }

    pub fn verifies(&self, message: &[u8], signature: &[u8]) -> bool {
        match &self.public {
            Public::Point(point) => {
                UnparsedPublicKey::new(&ECDSA_P256_SHA256_FIXED, point).verify(message, signature).is_ok()
            }
            Public::Rsa { modulus, exponent } => {
                let public = RsaPublicKeyComponents { n: modulus, e: exponent };
                public.verify(&RSA_PKCS1_2048_8192_SHA256, message, signature).is_ok()
            }
        }
    }

    /// The public half as RFC 7517 writes it.
    pub fn jwk(&self) -> Value {
        let text = |it: &[u8]| URL_SAFE_NO_PAD.encode(it);
        let (kid, alg) = (&self.id, self.algorithm());
        match &self.public {
            Public::Point(point) => {
                let (x, y) = point[1..].split_at(COORDINATE_BYTES);
                json!({ "use": "sig", "kty": "EC", "kid": kid, "crv": "P-256", "alg": alg, "x": text(x), "y": text(y) })
            }
            Public::Rsa { modulus, exponent } => {
                json!({ "use": "sig", "kty": "RSA", "kid": kid, "alg": alg, "n": text(modulus), "e": text(exponent) })
            }
        }
    }
}

impl Public {
    /// Of a DER `SubjectPublicKeyInfo`.
    fn of(info: &[u8]) -> Result<Self, Error> {
        let (_, info) = SubjectPublicKeyInfo::from_der(info).map_err(failed)?;
        match info.parsed().map_err(failed)? {
            PublicKey::EC(point) if point.data().len() == 1 + 2 * COORDINATE_BYTES => {
                Ok(Self::Point(point.data().to_vec()))
            }
            PublicKey::RSA(key) => {
                let whole = |it: &[u8]| it.iter().copied().skip_while(|it| *it == 0).collect::<Vec<u8>>();
                let (modulus, exponent) = (whole(key.modulus), whole(key.exponent));
                if modulus.len() < MODULUS_BYTES_MIN {
                    return Err(failed("an RSA key that signs tokens has 2048 bits at least"));
                }
                Ok(Self::Rsa { modulus, exponent })
            }
            _ => Err(failed("it is neither an ECDSA key on P-256 nor an RSA key")),
        }
    }
}

fn failed(error: impl std::fmt::Display) -> Error {
    Error::TokenKey(error.to_string())
}

#[cfg(test)]
mod tests {
    use rcgen::{PKCS_RSA_SHA256, RsaKeySize};

    use super::*;

    #[test]
    fn a_key_of_either_kind_checks_what_it_has_signed_and_nothing_else() {
        let (curve, _) = TokenKey::generate().expect("a key");
        let pair = KeyPair::generate_rsa_for(&PKCS_RSA_SHA256, RsaKeySize::_2048).expect("a key");
        let rsa = TokenKey::from_pem(&pair.serialize_pem()).expect("a key");
        assert_eq!((curve.algorithm(), rsa.algorithm()), ("ES256", "RS256"));
        for (key, other) in [(&curve, &rsa), (&rsa, &curve)] {
            let signature = key.sign(b"what is signed").expect("it signs");
            assert!(key.verifies(b"what is signed", &signature));
            assert!(!key.verifies(b"another thing", &signature));
            assert!(!other.verifies(b"what is signed", &signature));
            let public = TokenKey::from_public_pem(&key.public_pem()).expect("a public key");
            assert!(public.verifies(b"what is signed", &signature) && public.sign(b"x").is_none());
            assert_eq!(public.id(), key.id());
        }
        assert_eq!((rsa.jwk()["e"].as_str(), rsa.jwk()["kty"].as_str()), (Some("AQAB"), Some("RSA")));
        assert!(rsa.jwk()["n"].as_str().is_some_and(|it| it.len() == 342), "256 bytes");
    }

    #[test]
    fn a_key_is_read_as_kubeadm_writes_it() {
        let pair = KeyPair::generate_rsa_for(&PKCS_RSA_SHA256, RsaKeySize::_2048).expect("a key");
        // What stands before the key itself in PKCS #8, of a key of 2048 bits.
        const HEADER_BYTES: usize = 26;
        let bare = certificate::pem("RSA PRIVATE KEY", &pair.serialize_der()[HEADER_BYTES..]);
        let (read, expected) = (TokenKey::from_pem(&bare), TokenKey::from_pem(&pair.serialize_pem()));
        let (read, expected) = (read.expect("PKCS #1"), expected.expect("PKCS #8"));
        assert!(expected.verifies(b"what is signed", &read.sign(b"what is signed").expect("it signs")));
    }

    #[test]
    fn other_keys_are_refused() {
        let key = KeyPair::generate_for(&rcgen::PKCS_ECDSA_P384_SHA384).expect("a key").serialize_pem();
        let refused = TokenKey::from_pem(&key).err().map(|it| it.to_string()).unwrap_or_default();
        assert!(refused.contains("neither an ECDSA key on P-256 nor an RSA key"), "{refused}");
        assert!(TokenKey::from_pem("nothing").is_err());
    }
}
