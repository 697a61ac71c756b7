//! What one control plane hands to another: the files of the cluster's authorities, sealed by a key that who joins is told
//! beside the cluster.

use std::{fs, io::ErrorKind, path::Path};

use aws_lc_rs::{
    aead::{AES_256_GCM, Aad, LessSafeKey, NONCE_LEN, Nonce, UnboundKey},
    rand,
};

use crate::{
    Error, files,
    folder::{self, AUTHORITIES, OLD_TOKEN_KEY},
};

const KEY_BYTES: usize = 32;

/// A key for what is handed over once: 64 hexadecimal digits, as kubeadm's `--certificate-key`.
#[derive(Clone, PartialEq, Eq)]
pub struct CertificateKey([u8; KEY_BYTES]);

/// Without the key.
impl std::fmt::Debug for CertificateKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("CertificateKey")
    }
}

impl CertificateKey {
    /// # Errors
    /// The system gives no randomness.
    pub fn generate() -> Result<Self, Error> {
        Ok(Self(random()?))
    }

    pub(crate) fn of(key: [u8; KEY_BYTES]) -> Self {
        Self(key)
    }

    pub fn parse(text: &str) -> Option<Self> {
        if text.len() != 2 * KEY_BYTES || !text.is_ascii() {
            return None;
        }
        let mut key = [0; KEY_BYTES];
        for (idx, byte) in key.iter_mut().enumerate() {
            *byte = u8::from_str_radix(text.get(2 * idx..2 * idx + 2)?, 16).ok()?;
        }
        Some(Self(key))
    }

    pub fn text(&self) -> String {
        self.0.iter().map(|it| format!("{it:02x}")).collect()
    }

    /// The nonce, what is encrypted, and the tag. It opens under the same `name` only, so that nobody puts one file in another's
    /// place.
    ///
    /// # Errors
    /// The system gives no randomness.
    pub fn seal(&self, name: &str, plain: &[u8]) -> Result<Vec<u8>, Error> {
        let nonce: [u8; NONCE_LEN] = random()?;
        let mut sealed = plain.to_vec();
        let key = self.cipher()?;
        key.seal_in_place_append_tag(Nonce::assume_unique_for_key(nonce), Aad::from(name), &mut sealed)
            .map_err(|_| Error::Tls(format!("{name} cannot be encrypted")))?;
        Ok([&nonce[..], &sealed].concat())
    }

    /// What was sealed; `None` under another key or name.
    pub fn open(&self, name: &str, sealed: &[u8]) -> Option<Vec<u8>> {
        let (nonce, sealed) = sealed.split_at_checked(NONCE_LEN)?;
        let nonce = Nonce::try_assume_unique_for_key(nonce).ok()?;
        let mut sealed = sealed.to_vec();
        let n = self.cipher().ok()?.open_in_place(nonce, Aad::from(name), &mut sealed).ok()?.len();
        sealed.truncate(n);
        Some(sealed)
    }

    fn cipher(&self) -> Result<LessSafeKey, Error> {
        let key = UnboundKey::new(&AES_256_GCM, &self.0);
        key.map(LessSafeKey::new).map_err(|_| Error::Tls("the certificate key is no key".to_owned()))
    }
}

fn random<const N: usize>() -> Result<[u8; N], Error> {
    let mut bytes = [0; N];
    rand::fill(&mut bytes).map_err(|_| Error::Tls("the system gives no random numbers".to_owned()))?;
    Ok(bytes)
}

/// The authorities, the key of tokens, and what a rotation that is under way has left: all that servers of one cluster have in
/// common. What each issues for itself is not among it.
fn shared_names() -> Vec<String> {
    let of = |it: folder::Names| {
        let (name, next) = (it.0, it.next());
        [
            format!("{name}.crt"),
            format!("{name}.key"),
            it.old(),
            it.bridge(),
            format!("{next}.crt"),
            format!("{next}.key"),
        ]
    };
    let mut names: Vec<String> = AUTHORITIES.into_iter().flat_map(of).collect();
    names.extend([format!("{}.key", files::TOKEN_KEY), OLD_TOKEN_KEY.to_owned()]);
    names
}

/// Those of `dir` that every server of the cluster has, by name.
///
/// # Errors
/// They cannot be read, or one without which there is no cluster is not there.
pub fn shared_files(dir: &Path) -> Result<Vec<(String, Vec<u8>)>, Error> {
    let mut found = Vec::new();
    for name in shared_names() {
        let path = dir.join(&name);
        match fs::read(&path) {
            Ok(bytes) => found.push((name, bytes)),
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            Err(error) => return Err(files::failed("read", &path)(error)),
        }
    }
    if let Some(lacking) = lacking(&found) {
        return Err(Error::Malformed { path: dir.join(lacking), why: "it is not there".to_owned() });
    }
    Ok(found)
}

/// The first that every cluster has and that is not among `found`.
pub fn lacking(found: &[(String, Vec<u8>)]) -> Option<String> {
    let pairs = AUTHORITIES.into_iter().flat_map(|it| [format!("{}.crt", it.0), format!("{}.key", it.0)]);
    let mut needed = pairs.chain([format!("{}.key", files::TOKEN_KEY)]);
    needed.find(|name| !found.iter().any(|it| it.0 == *name))
}

/// Puts `found` into `dir` as a whole, for its owner alone: `dir` is there with all of it, or not at all. Durable when it returns.
///
/// # Errors
/// A name that leads out of the folder, a folder that holds something already, or files that cannot be written.
pub fn place(dir: &Path, found: &[(String, Vec<u8>)]) -> Result<(), Error> {
    let mut partial = dir.as_os_str().to_owned();
    partial.push(".new");
    let partial = std::path::PathBuf::from(partial);
    match fs::remove_dir_all(&partial) {
        Err(error) if error.kind() != ErrorKind::NotFound => return Err(files::failed("remove", &partial)(error)),
        _ => files::create_dir(&partial)?,
    }
    for (name, bytes) in found {
        let is_plain = !name.is_empty()
            && name.bytes().all(|it| it.is_ascii_alphanumeric() || b"-._".contains(&it))
            && !name.starts_with('.');
        if !is_plain {
            let why = "no file of a control plane has this name".to_owned();
            return Err(Error::Malformed { path: name.into(), why });
        }
        files::write(&partial.join(name), bytes, 0o600)?;
    }
    // The kernel renames onto a folder only where that is empty.
    fs::rename(&partial, dir).map_err(files::failed("replace", dir))?;
    match dir.parent() {
        Some(parent) => folder::sync(parent),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;
    use crate::Authority;

    #[test]
    fn what_is_sealed_opens_by_its_key_and_name_alone() {
        let key = CertificateKey::generate().expect("a key");
        assert_eq!(CertificateKey::parse(&key.text()), Some(key.clone()));
        for wrong in ["", "00", &"g".repeat(64), &"ü".repeat(32)] {
            assert_eq!(CertificateKey::parse(wrong), None, "{wrong}");
        }
        let mut sealed = key.seal("ca.key", b"secret").expect("it is sealed");
        assert_eq!(key.open("ca.key", &sealed).as_deref(), Some(&b"secret"[..]));
        assert_ne!(sealed, key.seal("ca.key", b"secret").expect("it is sealed"), "a nonce is never used twice");
        assert_eq!(key.open("ca.crt", &sealed), None);
        assert_eq!(CertificateKey::generate().expect("another").open("ca.key", &sealed), None);
        *sealed.last_mut().expect("a tag") ^= 1;
        assert_eq!(key.open("ca.key", &sealed), None);
        assert_eq!(key.open("ca.key", &sealed[..5]), None);
    }

    #[test]
    fn another_control_plane_has_the_same_authorities() {
        let folder = tempfile::tempdir().expect("a folder");
        let (one, two) = (folder.path().join("one/pki"), folder.path().join("two/pki"));
        let first = Authority::load_or_create(&one).expect("an authority");
        let shared = shared_files(&one).expect("they are read");
        fs::create_dir_all(&two).expect("an empty folder");
        place(&two, &shared).expect("they are placed");
        let second = Authority::load_or_create(&two).expect("an authority");
        assert_eq!(second.signer_pem(), first.signer_pem());
        assert_eq!(second.front_proxy().signer_pem(), first.front_proxy().signer_pem());
        let key = |dir: &Path| fs::read(dir.join("sa.key")).expect("it is read");
        assert_eq!(key(&one), key(&two));
        for (name, _) in &shared {
            let mode = fs::metadata(two.join(name)).expect("it is there").permissions().mode();
            assert_eq!(mode & 0o777, 0o600, "{name}");
        }
    }

    #[test]
    fn what_does_not_belong_there_is_not_placed() {
        let folder = tempfile::tempdir().expect("a folder");
        let dir = folder.path().join("pki");
        let place = |name: &str| place(&dir, &[(name.to_owned(), Vec::new())]).map_err(|it| it.to_string());
        for name in ["../x", "a/b", ".hidden", ""] {
            assert!(place(name).is_err(), "{name}");
        }
        assert!(!dir.exists());
        place("ca.crt").expect("it is placed");
        let error = place("ca.key").expect_err("the folder holds something");
        assert!(error.contains("cannot replace"), "{error}");
        assert!(dir.join("ca.crt").exists() && !dir.join("ca.key").exists());
        let error = shared_files(&dir).expect_err("the key is not there").to_string();
        assert!(error.contains("ca.key"), "{error}");
    }
}
