//! What a rotation leaves in the folder: what was decided, and what is of before.

use std::{
    fs::{self, File},
    io::ErrorKind,
    path::Path,
};

use crate::{Error, TokenKey, files};

pub(crate) const NEXT: &str = "ca-next";
pub(crate) const OLD: &str = "ca-old.crt";
pub(crate) const BRIDGE: &str = "ca-bridge.crt";
pub(crate) const OLD_TOKEN_KEY: &str = "sa-old.pub";

/// What was decided is done. Others may do so at the same time.
pub(super) fn finish(dir: &Path) -> Result<(), Error> {
    let next = |extension: &str| dir.join(format!("{NEXT}.{extension}"));
    if !next("crt").exists() {
        return Ok(());
    }
    replace(&next("key"), &dir.join("ca.key"))?;
    replace(&next("crt"), &dir.join("ca.crt"))?;
    sync(dir)
}

pub(super) fn forget_authority(dir: &Path) -> Result<(), Error> {
    remove(&dir.join(OLD))?;
    remove(&dir.join(BRIDGE))?;
    sync(dir)
}

/// The certificate of the authority of before, and its bridge to the one of now.
pub(super) fn old_authority(dir: &Path) -> Result<Option<(String, String)>, Error> {
    let (old, bridge) = (files::read(&dir.join(OLD))?, files::read(&dir.join(BRIDGE))?);
    Ok(old.zip(bridge))
}

pub(super) fn old_token_key(dir: &Path) -> Result<Option<TokenKey>, Error> {
    let path = dir.join(OLD_TOKEN_KEY);
    let malformed =
        |it: Error| Error::Malformed { path: path.clone(), why: format!("{it}; remove it to trust that key no more") };
    files::read(&path)?.map(|it| TokenKey::from_public_pem(&it).map_err(malformed)).transpose()
}

fn replace(from: &Path, to: &Path) -> Result<(), Error> {
    match fs::rename(from, to) {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(files::failed("replace", to)(error)),
        _ => Ok(()),
    }
}

pub(crate) fn remove(path: &Path) -> Result<(), Error> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(files::failed("remove", path)(error)),
        _ => Ok(()),
    }
}

pub(crate) fn sync(dir: &Path) -> Result<(), Error> {
    File::open(dir).and_then(|it| it.sync_all()).map_err(files::failed("sync", dir))
}
