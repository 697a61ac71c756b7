//! The keys of an issuer (RFC 7517), and what they have signed (RFC 7515).

use aws_lc_rs::signature::{self, RsaParameters, RsaPublicKeyComponents, UnparsedPublicKey, VerificationAlgorithm};
use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use serde::Deserialize;

/// So many keys of one issuer are looked at.
const KEYS_MAX: usize = 100;

/// So many keys are tried for a token that names none. Upstream tries all there are; here nobody without a credential makes the server
/// check a hundred signatures at once.
const TRIED_MAX: usize = 8;

/// What an issuer signs with now.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Keys(Vec<Key>);

#[derive(Debug, PartialEq, Eq)]
struct Key {
    id: String,
    public: Public,
}

#[derive(Debug, PartialEq, Eq)]
enum Public {
    Rsa {
        n: Vec<u8>,
        e: Vec<u8>,
    },
    /// By the curve's name, an uncompressed point.
    Curve {
        name: String,
        point: Vec<u8>,
    },
}

#[derive(Deserialize)]
struct Set {
    keys: Vec<Jwk>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Jwk {
    kty: String,
    #[serde(rename = "use")]
    usage: String,
    kid: String,
    n: String,
    e: String,
    crv: String,
    x: String,
    y: String,
}

impl Keys {
    /// # Errors
    /// It is no set of keys. A key that nobody can use is left out.
    pub fn read(json: &[u8]) -> Result<Self, String> {
        let set: Set = serde_json::from_slice(json).map_err(|it| format!("failed to decode keys: {it}"))?;
        let usable = |it: &Jwk| it.usage.is_empty() || it.usage == "sig";
        let keys = set.keys.into_iter().filter(usable).filter_map(|it| Some(Key { public: public(&it)?, id: it.kid }));
        Ok(Self(keys.take(KEYS_MAX).collect()))
    }

    /// Is there a key of this name, or any where the token names none?
    pub(super) fn knows(&self, id: &str) -> bool {
        self.named(id).next().is_some()
    }

    /// Did one of them sign it, by the algorithm that it names?
    pub fn has_signed(&self, token: &Signed<'_>) -> bool {
        let fitting = self.named(&token.key).filter_map(|it| it.public.fits(&token.algorithm).then_some(&it.public));
        fitting.take(TRIED_MAX).any(|it| it.verifies(token).unwrap_or_default())
    }

    fn named<'a>(&'a self, id: &'a str) -> impl Iterator<Item = &'a Key> {
        self.0.iter().filter(move |it| id.is_empty() || it.id == id)
    }
}

fn public(key: &Jwk) -> Option<Public> {
    let number = |text: &str| URL_SAFE_NO_PAD.decode(text).ok().filter(|it| !it.is_empty());
    match &*key.kty {
        "RSA" => Some(Public::Rsa { n: number(&key.n)?, e: number(&key.e)? }),
        "EC" => {
            let (x, y) = (number(&key.x)?, number(&key.y)?);
            Some(Public::Curve { name: key.crv.clone(), point: [&[4], &x[..], &y[..]].concat() })
        }
        _ => None,
    }
}

impl Public {
    /// Can a key of this type have signed by the algorithm?
    fn fits(&self, algorithm: &str) -> bool {
        match self {
            Self::Rsa { .. } => rsa(algorithm).is_some(),
            Self::Curve { name, .. } => curve(name, algorithm).is_some(),
        }
    }

    /// `None` where a key of this type signs no such token.
    fn verifies(&self, token: &Signed<'_>) -> Option<bool> {
        let (message, signature) = (token.message.as_bytes(), &*token.signature);
        match self {
            Self::Rsa { n, e } => {
                let key = RsaPublicKeyComponents { n, e };
                Some(key.verify(rsa(&token.algorithm)?, message, signature).is_ok())
            }
            Self::Curve { name, point } => {
                let algorithm = curve(name, &token.algorithm)?;
                Some(UnparsedPublicKey::new(algorithm, point).verify(message, signature).is_ok())
            }
        }
    }
}

fn rsa(algorithm: &str) -> Option<&'static RsaParameters> {
    Some(match algorithm {
        "RS256" => &signature::RSA_PKCS1_2048_8192_SHA256,
        "RS384" => &signature::RSA_PKCS1_2048_8192_SHA384,
        "RS512" => &signature::RSA_PKCS1_2048_8192_SHA512,
        "PS256" => &signature::RSA_PSS_2048_8192_SHA256,
        "PS384" => &signature::RSA_PSS_2048_8192_SHA384,
        "PS512" => &signature::RSA_PSS_2048_8192_SHA512,
        _ => return None,
    })
}

/// RFC 7518: each algorithm has one curve.
fn curve(name: &str, algorithm: &str) -> Option<&'static dyn VerificationAlgorithm> {
    Some(match (name, algorithm) {
        ("P-256", "ES256") => &signature::ECDSA_P256_SHA256_FIXED,
        ("P-384", "ES384") => &signature::ECDSA_P384_SHA384_FIXED,
        ("P-521", "ES512") => &signature::ECDSA_P521_SHA512_FIXED,
        _ => return None,
    })
}

/// A web token, taken apart; nothing is known of its signature yet.
pub struct Signed<'a> {
    pub(super) algorithm: String,
    /// Empty where it names none.
    pub(super) key: String,
    /// Header and claims as they were signed.
    message: &'a str,
    signature: Vec<u8>,
    pub(super) claims: serde_json::Map<String, serde_json::Value>,
}

/// Longer ones are no tokens: a header of HTTP holds hardly more.
pub(super) const TOKEN_BYTES_MAX: usize = 256 * 1024;

impl<'a> Signed<'a> {
    /// `None` for what is no signed web token.
    pub fn read(token: &'a str) -> Option<Self> {
        #[derive(Default, Deserialize)]
        #[serde(default)]
        struct Header {
            alg: String,
            kid: String,
            crit: Option<serde_json::Value>,
        }
        if token.len() > TOKEN_BYTES_MAX {
            return None;
        }
        let (message, signature) = token.rsplit_once('.')?;
        let (header, claims) = message.split_once('.')?;
        let header: Header = serde_json::from_slice(&URL_SAFE_NO_PAD.decode(header).ok()?).ok()?;
        // What a token says must be understood is nothing that anybody here understands.
        if header.crit.is_some() {
            return None;
        }
        let claims = serde_json::from_slice(&URL_SAFE_NO_PAD.decode(claims).ok()?).ok()?;
        let signature = URL_SAFE_NO_PAD.decode(signature).ok()?;
        Some(Self { algorithm: header.alg, key: header.kid, message, signature, claims })
    }

    pub(super) fn issuer(&self) -> &str {
        self.claims.get("iss").and_then(serde_json::Value::as_str).unwrap_or_default()
    }
}
