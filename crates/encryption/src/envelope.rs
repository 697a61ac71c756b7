//! What kube-apiserver stores of an object that a KMS plugin of version 2 guards: the object under a key derived from a seed,
//! and the seed as the plugin has encrypted it (upstream's `kmsv2/v2/api.proto` and `aes_extended_nonce.go`, KEP-3299).

use std::collections::BTreeMap;

use aws_lc_rs::{digest, hkdf, rand};
use bytes::Bytes;
use prost::Message;

use crate::local::{CipherError, Gcm};

/// Of the random bytes that, with the seed, make the key of one object.
const INFO: usize = 32;
pub(crate) const SEED: usize = 32;
/// What derives keys takes no longer one (upstream bounds only from below).
const SEED_MAX: usize = 64;
const KEY_ID_MAX: usize = 1024;
const ENCRYPTED_SEED_MAX: usize = 1024;
const ANNOTATIONS_MAX: usize = 32 * 1024;

const AES_GCM_KEY: i32 = 0;
pub(crate) const HKDF_SHA256_XNONCE_AES_GCM_SEED: i32 = 1;

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct EncryptedObject {
    #[prost(bytes = "bytes", tag = "1")]
    pub(crate) encrypted_data: Bytes,
    #[prost(string, tag = "2")]
    pub(crate) key_id: String,
    #[prost(bytes = "bytes", tag = "3")]
    pub(crate) encrypted_dek_source: Bytes,
    #[prost(btree_map = "string, bytes", tag = "4")]
    pub(crate) annotations: BTreeMap<String, Vec<u8>>,
    #[prost(int32, tag = "5")]
    pub(crate) encrypted_dek_source_type: i32,
}

/// Names a seed by what is stored of it.
pub(crate) type SeedId = [u8; 32];

impl EncryptedObject {
    /// # Errors
    /// The bytes are none.
    pub(crate) fn read(bytes: Bytes) -> Result<Self, String> {
        let object = Self::decode(bytes).map_err(|it| it.to_string())?;
        if object.encrypted_data.is_empty() {
            return Err("encrypted data is empty".into());
        }
        object.check()?;
        Ok(object)
    }

    /// As upstream's `ValidateEncryptedObject`, of all but the data.
    pub(crate) fn check(&self) -> Result<(), String> {
        if !matches!(self.encrypted_dek_source_type, AES_GCM_KEY | HKDF_SHA256_XNONCE_AES_GCM_SEED) {
            return Err(format!("unknown encryptedDEKSourceType: {}", self.encrypted_dek_source_type));
        }
        let n = self.encrypted_dek_source.len();
        if n == 0 {
            return Err("failed to validate encrypted DEK source: encrypted DEK source is empty".into());
        }
        if n > ENCRYPTED_SEED_MAX {
            return Err(format!(
                "failed to validate encrypted DEK source: encrypted DEK source is {n} bytes, which exceeds the max size of {ENCRYPTED_SEED_MAX}"
            ));
        }
        check_key_id(&self.key_id).map_err(|(_, it)| format!("failed to validate key id: {it}"))?;
        self.check_annotations().map_err(|it| format!("failed to validate annotations: {it}"))
    }

    fn check_annotations(&self) -> Result<(), String> {
        let total: usize = self.annotations.iter().map(|(name, value)| name.len() + value.len()).sum();
        if let Some(name) = self.annotations.keys().find(|it| !is_qualified(it)) {
            return Err(format!(
                "annotations: Invalid value: {name:?}: should be a domain with at least two segments separated by dots"
            ));
        }
        if total > ANNOTATIONS_MAX {
            return Err(format!(
                "total size of annotations is {total}, which exceeds the max size of {ANNOTATIONS_MAX}"
            ));
        }
        Ok(())
    }

    pub(crate) fn seed_id(&self) -> SeedId {
        let mut hash = digest::Context::new(&digest::SHA256);
        let mut part = |bytes: &[u8]| {
            hash.update(&(bytes.len() as u64).to_be_bytes());
            hash.update(bytes);
        };
        part(&self.encrypted_dek_source_type.to_be_bytes());
        part(&self.encrypted_dek_source);
        part(self.key_id.as_bytes());
        for (name, value) in &self.annotations {
            part(name.as_bytes());
            part(value);
        }
        let mut id = SeedId::default();
        id.copy_from_slice(hash.finish().as_ref());
        id
    }
}

/// `IsFullyQualifiedDomainName`: labels of a DNS name, at least two.
fn is_qualified(name: &str) -> bool {
    let name = name.strip_suffix('.').unwrap_or(name);
    let label = |it: &str| {
        let inner = |it: u8| it.is_ascii_lowercase() || it.is_ascii_digit() || it == b'-';
        (1..=63).contains(&it.len()) && it.bytes().all(inner) && !it.starts_with('-') && !it.ends_with('-')
    };
    name.len() <= 253 && name.split('.').count() >= 2 && name.split('.').all(label)
}

/// # Errors
/// What measurements call the fault, and the fault.
pub(crate) fn check_key_id(id: &str) -> Result<(), (&'static str, String)> {
    match id.len() {
        0 => Err(("empty", "keyID is empty".into())),
        n if n > KEY_ID_MAX => {
            Err(("too_long", format!("keyID is {n} bytes, which exceeds the max size of {KEY_ID_MAX}")))
        }
        _ => Ok(()),
    }
}

/// A key's id as logs and metrics show it : the id itself may say more than others are to know.
pub(crate) fn key_id_hash(id: &str) -> String {
    if id.is_empty() { String::new() } else { hash_text(id.as_bytes()) }
}

pub(crate) fn hash_text(bytes: &[u8]) -> String {
    let hash = digest::digest(&digest::SHA256, bytes);
    let digits: String = hash.as_ref().iter().map(|it| format!("{it:02x}")).collect();
    format!("sha256:{digits}")
}

/// What opens, and seals, the data of objects.
pub(crate) enum Opener {
    /// A key of its own for each object is derived from it.
    Seed(hkdf::Prk),
    /// Kubernetes before 1.29 used one key for many objects. Only to open.
    Key(Gcm),
}

struct KeyLength;

impl hkdf::KeyType for KeyLength {
    fn len(&self) -> usize {
        SEED
    }
}

impl Opener {
    /// # Errors
    /// The plugin gave what cannot be one.
    pub(crate) fn new(source_type: i32, secret: &[u8]) -> Result<Self, String> {
        if source_type == HKDF_SHA256_XNONCE_AES_GCM_SEED {
            if !(SEED..=SEED_MAX).contains(&secret.len()) {
                return Err(format!("invalid seed length {} used for key generation", secret.len()));
            }
            return Ok(Self::Seed(hkdf::Prk::new_less_safe(hkdf::HKDF_SHA256, secret)));
        }
        Gcm::new(secret).map(Self::Key).map_err(|_| format!("crypto/aes: invalid key size {}", secret.len()))
    }

    pub(crate) fn open(&self, key: &[u8], data: &[u8]) -> Result<Vec<u8>, CipherError> {
        match self {
            Self::Seed(seed) => {
                let (info, data) = data.split_at_checked(INFO).ok_or(CipherError::TooShort)?;
                derived(seed, info)?.open(key, data)
            }
            Self::Key(it) => it.open(key, data),
        }
    }

    /// Random bytes, and what is sealed under the key derived from them.
    pub(crate) fn seal(&self, key: &[u8], plain: &[u8]) -> Result<Vec<u8>, CipherError> {
        let Self::Seed(seed) = self else { return Err(CipherError::KeyLength) };
        let mut info = [0; INFO];
        rand::fill(&mut info).map_err(|_| CipherError::Random)?;
        let mut out = Vec::with_capacity(INFO + plain.len() + 32);
        out.extend_from_slice(&info);
        derived(seed, &info)?.seal(&mut out, key, plain)?;
        Ok(out)
    }
}

fn derived(seed: &hkdf::Prk, info: &[u8]) -> Result<Gcm, CipherError> {
    let mut key = [0; SEED];
    let infos = [info];
    let expanded = seed.expand(&infos, KeyLength).and_then(|it| it.fill(&mut key));
    expanded.map_err(|_| CipherError::KeyLength)?;
    Gcm::new(&key)
}
