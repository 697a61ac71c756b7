//! What a rotation leaves in the folder: what was decided, and what is of before.

use std::{
    fs::{self, File},
    io::ErrorKind,
    path::Path,
};

use crate::{Error, TokenKey, files};

/// The authority that signs what the cluster's own clients and servers show.
pub(crate) const CLUSTER: Names = Names("ca");
/// The authority of those who may say on whose behalf they ask (kubeadm's name).
pub(crate) const FRONT_PROXY: Names = Names("front-proxy-ca");
/// The name in the certificate of who may say on whose behalf they ask, and of its files (kubeadm's).
pub const FRONT_PROXY_CLIENT: &str = "front-proxy-client";
/// Both authorities of a folder.
pub(crate) const AUTHORITIES: [Names; 2] = [CLUSTER, FRONT_PROXY];

/// What an authority's files are called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Names(pub(crate) &'static str);

impl Names {
    pub(crate) fn next(self) -> String {
        format!("{}-next", self.0)
    }

    pub(crate) fn old(self) -> String {
        format!("{}-old.crt", self.0)
    }

    pub(crate) fn bridge(self) -> String {
        format!("{}-bridge.crt", self.0)
    }

    /// In the subject of its certificates.
    pub(crate) fn common_name(self) -> String {
        format!("corten-{}", self.0)
    }
}

pub(crate) const OLD_TOKEN_KEY: &str = "sa-old.pub";

/// What was decided is done. Others may do so at the same time.
pub(super) fn finish(dir: &Path, names: Names) -> Result<(), Error> {
    let next = |extension: &str| dir.join(format!("{}.{extension}", names.next()));
    if !next("crt").exists() {
        return Ok(());
    }
    replace(&next("key"), &dir.join(format!("{}.key", names.0)))?;
    replace(&next("crt"), &dir.join(format!("{}.crt", names.0)))?;
    sync(dir)
}

pub(super) fn forget_authority(dir: &Path, names: Names) -> Result<(), Error> {
    remove(&dir.join(names.old()))?;
    remove(&dir.join(names.bridge()))?;
    sync(dir)
}

/// The certificate of the authority of before, and its bridge to the one of now.
pub(super) fn old_authority(dir: &Path, names: Names) -> Result<Option<(String, String)>, Error> {
    let (old, bridge) = (files::read(&dir.join(names.old()))?, files::read(&dir.join(names.bridge()))?);
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
