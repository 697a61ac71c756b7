//! Credentials on disk: a `.crt` and a `.key` each, replaced as a whole, keys readable by their owner only.

use std::{
    fs::{self, DirBuilder, File, OpenOptions},
    io::{ErrorKind, Write},
    os::unix::fs::{DirBuilderExt, OpenOptionsExt},
    path::{Path, PathBuf},
};

use crate::{Credential, Error};

/// As kubeadm names it: service accounts' key.
pub(crate) const TOKEN_KEY: &str = "sa";

pub(super) fn failed<'a>(action: &'static str, path: &'a Path) -> impl FnOnce(std::io::Error) -> Error + use<'a> {
    move |cause| Error::File { action, path: path.to_owned(), cause }
}

pub(super) fn create_dir(dir: &Path) -> Result<(), Error> {
    DirBuilder::new().recursive(true).mode(0o700).create(dir).map_err(failed("create", dir))
}

fn paths(dir: &Path, name: &str) -> (PathBuf, PathBuf) {
    (dir.join(format!("{name}.crt")), dir.join(format!("{name}.key")))
}

/// `None` where the pair is not complete: the half that a crash left is overwritten.
pub(super) fn load(dir: &Path, name: &str) -> Result<Option<Credential>, Error> {
    let (certificate, key) = paths(dir, name);
    let (Some(certificate), Some(key)) = (read(&certificate)?, read(&key)?) else { return Ok(None) };
    Ok(Some(Credential { certificate, key }))
}

/// As [`load`], of what cannot be made again without loss: a certificate whose key is gone is not replaced. A key alone is what
/// a crash leaves of the first start.
pub(super) fn load_authority(dir: &Path, name: &str) -> Result<Option<Credential>, Error> {
    let (certificate, key) = paths(dir, name);
    if read(&certificate)?.is_some() && read(&key)?.is_none() {
        let why = format!(
            "it is gone, and {} is there: put it back, or remove both to begin with a new authority, which no kubeconfig and no \
             token of before is valid with",
            certificate.display()
        );
        return Err(Error::Malformed { path: key, why });
    }
    load(dir, name)
}

/// A key without a certificate.
pub(super) fn load_key(dir: &Path, name: &str) -> Result<Option<String>, Error> {
    read(&paths(dir, name).1)
}

pub(super) fn store_key(dir: &Path, name: &str, key: &str) -> Result<(), Error> {
    write(&paths(dir, name).1, key.as_bytes(), 0o600)
}

pub(super) fn read(path: &Path) -> Result<Option<String>, Error> {
    match fs::read(path) {
        // What is no text is no PEM either, and who parses it says so.
        Ok(bytes) => Ok(Some(String::from_utf8_lossy(&bytes).into_owned())),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(failed("read", path)(error)),
    }
}

/// The key goes first: a certificate is on disk only together with its key.
pub(super) fn store(dir: &Path, name: &str, credential: &Credential) -> Result<(), Error> {
    let (certificate, key) = paths(dir, name);
    write(&key, credential.key.as_bytes(), 0o600)?;
    write(&certificate, credential.certificate.as_bytes(), 0o644)
}

pub(super) fn write(path: &Path, bytes: &[u8], mode: u32) -> Result<(), Error> {
    let mut partial = path.as_os_str().to_owned();
    partial.push(".new");
    let partial = PathBuf::from(partial);
    // One that a crash left may have another mode.
    match fs::remove_file(&partial) {
        Err(error) if error.kind() != ErrorKind::NotFound => return Err(failed("remove", &partial)(error)),
        _ => {}
    }
    let mut options = OpenOptions::new();
    let mut file =
        options.write(true).create_new(true).mode(mode).open(&partial).map_err(failed("create", &partial))?;
    file.write_all(bytes).and_then(|()| file.sync_all()).map_err(failed("write", &partial))?;
    fs::rename(&partial, path).map_err(failed("replace", path))?;
    match path.parent().filter(|it| !it.as_os_str().is_empty()) {
        Some(dir) => File::open(dir).and_then(|it| it.sync_all()).map_err(failed("sync", dir)),
        None => Ok(()),
    }
}
