//! Ciphers whose keys are here: AES-GCM, AES-CBC and secretbox, in the form in which kube-apiserver stores what they make.

use aws_lc_rs::{
    aead::{AES_128_GCM, AES_192_GCM, AES_256_GCM, Aad, LessSafeKey, NONCE_LEN, Nonce, UnboundKey},
    cipher::{
        AES_128, AES_192, AES_256, DecryptionContext, EncryptionContext, PaddedBlockDecryptingKey,
        PaddedBlockEncryptingKey, UnboundCipherKey,
    },
    iv::FixedLength,
    rand,
};
use crypto_secretbox::{
    XSalsa20Poly1305,
    aead::{AeadInPlace, KeyInit},
};

/// What it says of a value that no key of this cipher made. The key and the value are never part of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum CipherError {
    #[error("the stored data was shorter than the required size")]
    TooShort,
    /// Go's words.
    #[error("cipher: message authentication failed")]
    Authentication,
    #[error("output array was not large enough for encryption")]
    Secretbox,
    #[error("the stored data is not a multiple of the block size")]
    BlockSize,
    #[error("invalid padding on input")]
    Padding,
    #[error("the key is of a length that the cipher does not take")]
    KeyLength,
    /// The machine gives no random numbers.
    #[error("unable to read sufficient random bytes")]
    Random,
}

pub(crate) enum Cipher {
    AesGcm(Gcm),
    AesCbc(Box<Cbc>),
    Secretbox(Box<XSalsa20Poly1305>),
}

impl Cipher {
    /// The sealed value behind `prefix`. `key` is where it is stored.
    pub(crate) fn seal(&self, prefix: &[u8], key: &[u8], plain: &[u8]) -> Result<Vec<u8>, CipherError> {
        let mut out = Vec::with_capacity(prefix.len() + plain.len() + ROOM);
        out.extend_from_slice(prefix);
        match self {
            Self::AesGcm(it) => it.seal(&mut out, key, plain)?,
            Self::AesCbc(it) => it.seal(&mut out, plain)?,
            Self::Secretbox(it) => seal_box(it, &mut out, plain)?,
        }
        Ok(out)
    }

    /// May that be what was sealed? CBC opens some values under a key that is not theirs, to something that is no object.
    pub(crate) fn is_plausible(&self, plain: &[u8]) -> bool {
        !matches!(self, Self::AesCbc(_)) || plain.starts_with(b"{") || plain.starts_with(b"k8s\0")
    }

    pub(crate) fn open(&self, key: &[u8], sealed: &[u8]) -> Result<Vec<u8>, CipherError> {
        match self {
            Self::AesGcm(it) => it.open(key, sealed),
            Self::AesCbc(it) => it.open(sealed),
            Self::Secretbox(it) => open_box(it, sealed),
        }
    }
}

/// More than any nonce, tag and padding of these take.
const ROOM: usize = 48;

/// AES-GCM with a random nonce. What is authenticated beside the value is the key it is stored at.
pub(crate) struct Gcm(LessSafeKey);

const TAG: usize = 16;

impl Gcm {
    pub(crate) fn new(key: &[u8]) -> Result<Self, CipherError> {
        let algorithm = match key.len() {
            16 => &AES_128_GCM,
            24 => &AES_192_GCM,
            32 => &AES_256_GCM,
            _ => return Err(CipherError::KeyLength),
        };
        UnboundKey::new(algorithm, key).map(|it| Self(LessSafeKey::new(it))).map_err(|_| CipherError::KeyLength)
    }

    /// Appends nonce, ciphertext and tag.
    pub(crate) fn seal(&self, out: &mut Vec<u8>, key: &[u8], plain: &[u8]) -> Result<(), CipherError> {
        let mut nonce = [0; NONCE_LEN];
        rand::fill(&mut nonce).map_err(|_| CipherError::Random)?;
        out.extend_from_slice(&nonce);
        let start = out.len();
        out.extend_from_slice(plain);
        let nonce = Nonce::assume_unique_for_key(nonce);
        let tag = self.0.seal_in_place_separate_tag(nonce, Aad::from(key), &mut out[start..]);
        out.extend_from_slice(tag.map_err(|_| CipherError::Authentication)?.as_ref());
        Ok(())
    }

    pub(crate) fn open(&self, key: &[u8], sealed: &[u8]) -> Result<Vec<u8>, CipherError> {
        let (nonce, sealed) = sealed.split_at_checked(NONCE_LEN).ok_or(CipherError::TooShort)?;
        let nonce = Nonce::try_assume_unique_for_key(nonce).map_err(|_| CipherError::TooShort)?;
        let mut out = sealed.to_vec();
        let length = match self.0.open_in_place(nonce, Aad::from(key), &mut out) {
            Ok(plain) => plain.len(),
            Err(_) => return Err(CipherError::Authentication),
        };
        debug_assert_eq!(length + TAG, out.len());
        out.truncate(length);
        Ok(out)
    }
}

/// AES-CBC with PKCS#7. It authenticates nothing, and is there for what is stored in this form (upstream's provider `aescbc`).
pub(crate) struct Cbc {
    sealing: PaddedBlockEncryptingKey,
    opening: PaddedBlockDecryptingKey,
}

const BLOCK: usize = 16;

impl Cbc {
    pub(crate) fn new(key: &[u8]) -> Result<Self, CipherError> {
        let algorithm = match key.len() {
            16 => &AES_128,
            24 => &AES_192,
            32 => &AES_256,
            _ => return Err(CipherError::KeyLength),
        };
        let key = || UnboundCipherKey::new(algorithm, key).map_err(|_| CipherError::KeyLength);
        Ok(Self {
            sealing: PaddedBlockEncryptingKey::cbc_pkcs7(key()?).map_err(|_| CipherError::KeyLength)?,
            opening: PaddedBlockDecryptingKey::cbc_pkcs7(key()?).map_err(|_| CipherError::KeyLength)?,
        })
    }

    /// Appends the initialization vector and the ciphertext.
    fn seal(&self, out: &mut Vec<u8>, plain: &[u8]) -> Result<(), CipherError> {
        let mut vector = [0; BLOCK];
        rand::fill(&mut vector).map_err(|_| CipherError::Random)?;
        let mut sealed = plain.to_vec();
        let context = EncryptionContext::Iv128(FixedLength::from(vector));
        self.sealing.less_safe_encrypt(&mut sealed, context).map_err(|_| CipherError::Padding)?;
        out.extend_from_slice(&vector);
        out.extend_from_slice(&sealed);
        Ok(())
    }

    fn open(&self, sealed: &[u8]) -> Result<Vec<u8>, CipherError> {
        let (vector, sealed) = sealed.split_first_chunk::<BLOCK>().ok_or(CipherError::TooShort)?;
        if sealed.is_empty() {
            return Err(CipherError::TooShort);
        }
        if !sealed.len().is_multiple_of(BLOCK) {
            return Err(CipherError::BlockSize);
        }
        let mut out = sealed.to_vec();
        let context = DecryptionContext::Iv128(FixedLength::from(vector));
        let length = self.opening.decrypt(&mut out, context).map_err(|_| CipherError::Padding)?.len();
        out.truncate(length);
        Ok(out)
    }
}

const BOX_NONCE: usize = 24;

pub(crate) fn secretbox(key: &[u8]) -> Result<Box<XSalsa20Poly1305>, CipherError> {
    XSalsa20Poly1305::new_from_slice(key).map(Box::new).map_err(|_| CipherError::KeyLength)
}

/// Appends nonce, tag and ciphertext: NaCl's order.
fn seal_box(cipher: &XSalsa20Poly1305, out: &mut Vec<u8>, plain: &[u8]) -> Result<(), CipherError> {
    let mut nonce = [0; BOX_NONCE];
    rand::fill(&mut nonce).map_err(|_| CipherError::Random)?;
    out.extend_from_slice(&nonce);
    let tag_at = out.len();
    out.extend_from_slice(&[0; TAG]);
    out.extend_from_slice(plain);
    let tag = cipher
        .encrypt_in_place_detached(&nonce.into(), b"", &mut out[tag_at + TAG..])
        .map_err(|_| CipherError::Secretbox)?;
    out[tag_at..tag_at + TAG].copy_from_slice(&tag);
    Ok(())
}

fn open_box(cipher: &XSalsa20Poly1305, sealed: &[u8]) -> Result<Vec<u8>, CipherError> {
    let (nonce, sealed) = sealed.split_first_chunk::<BOX_NONCE>().ok_or(CipherError::TooShort)?;
    let (tag, sealed) = sealed.split_first_chunk::<TAG>().ok_or(CipherError::TooShort)?;
    let mut out = sealed.to_vec();
    cipher.decrypt_in_place_detached(nonce.into(), b"", &mut out, tag.into()).map_err(|_| CipherError::Secretbox)?;
    Ok(out)
}
