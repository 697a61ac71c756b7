//! The key that a machine seals with what it keeps for itself. It is made of a file of root's and of what the machine is called, so
//! that neither a copy of the one nor a machine with the other opens anything. A disk that holds both opens everything: that is for
//! an encryption of the disk to prevent.

use std::path::Path;

use aws_lc_rs::hmac;

use crate::{Error, files, sharing::CertificateKey};

/// What is derived from the file's key.
const PURPOSE: &[u8] = b"corten: kept by the node\n";

/// Clones are the same.
#[derive(Clone, Debug)]
pub struct MachineKey(CertificateKey);

impl MachineKey {
    /// The key of this file on the machine of this id. Where there is no such file, or none that holds a key, it is made anew, and
    /// what the one before has sealed opens no more.
    ///
    /// # Errors
    /// The file cannot be read or written, or the system gives no randomness.
    pub fn load_or_create(path: &Path, machine_id: &[u8]) -> Result<Self, Error> {
        let found = files::read(path)?.and_then(|it| CertificateKey::parse(it.trim()));
        let seed = match found {
            Some(seed) => seed,
            None => {
                let seed = CertificateKey::generate()?;
                files::write(path, seed.text().as_bytes(), 0o600)?;
                seed
            }
        };
        let seed = hmac::Key::new(hmac::HMAC_SHA256, seed.text().as_bytes());
        let derived = hmac::sign(&seed, &[PURPOSE, machine_id].concat());
        let key = derived.as_ref().try_into().expect("SHA-256 gives as many bytes as the cipher takes");
        Ok(Self(CertificateKey::of(key)))
    }

    /// As [`CertificateKey::seal`].
    ///
    /// # Errors
    /// The system gives no randomness.
    pub fn seal(&self, name: &str, plain: &[u8]) -> Result<Vec<u8>, Error> {
        self.0.seal(name, plain)
    }

    /// What was sealed; `None` under another key, on another machine, or of another name.
    pub fn open(&self, name: &str, sealed: &[u8]) -> Option<Vec<u8>> {
        self.0.open(name, sealed)
    }
}

#[cfg(test)]
mod tests {
    use std::{fs, os::unix::fs::PermissionsExt};

    use super::*;

    #[test]
    fn only_the_machine_with_its_file_opens_what_it_has_sealed() {
        let dir = tempfile::tempdir().expect("a folder");
        let path = dir.path().join("key");
        let key = |machine: &[u8]| MachineKey::load_or_create(&path, machine).expect("a key");
        let sealed = key(b"one").seal("pods", b"secret").expect("it is sealed");
        assert_eq!(key(b"one").open("pods", &sealed).as_deref(), Some(&b"secret"[..]));
        assert_eq!(key(b"one").open("secrets", &sealed), None);
        assert_eq!(key(b"two").open("pods", &sealed), None);
        assert_eq!(fs::metadata(&path).expect("there").permissions().mode() & 0o777, 0o600);
        // A crash has left half of it.
        fs::write(&path, "12").expect("written");
        assert_eq!(key(b"one").open("pods", &sealed), None);
        let again = key(b"one").seal("pods", b"secret").expect("it is sealed");
        assert!(key(b"one").open("pods", &again).is_some());
    }
}
