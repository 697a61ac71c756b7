//! The kubeconfig that `corten up` writes where kubectl looks, and keeps good.

use std::{
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result};
use corten_client::kubeconfig::{Kubeconfig, RestConfig};

/// Puts the administrator's kubeconfig where kubectl looks, unless there is one already: that may lead to another cluster, and
/// where it leads to this one, only what was renewed is put into it. Where it is then.
pub(crate) fn install(admin: &Path) -> Result<Option<PathBuf>> {
    let Some(path) = usual() else { return Ok(None) };
    if path.exists() {
        renew(&path, admin)?;
        return Ok(leads_to_same_cluster(&path, admin).then_some(path));
    }
    let config = Kubeconfig::load(admin).context("reading the administrator's kubeconfig")?;
    config.save(&path).context("writing the kubeconfig")?;
    Ok(Some(path))
}

/// The one file kubectl reads when it is told nothing.
pub(crate) fn usual() -> Option<PathBuf> {
    let told = std::env::var_os("KUBECONFIG").is_some_and(|it| !it.is_empty());
    if told { None } else { std::env::home_dir().map(|it| it.join(".kube/config")) }
}

/// Puts the authorities and the certificate of `admin` into `path`, where that leads to the same cluster; says whether anything
/// changed. All else in it stays, another user's certificate, too.
pub(crate) fn renew(path: &Path, admin: &Path) -> Result<bool> {
    // Another user's file would become ours.
    let is_ours = path.metadata().is_ok_and(|it| it.uid() == rustix::process::geteuid().as_raw());
    if !is_ours || !leads_to_same_cluster(path, admin) {
        return Ok(false);
    }
    let fresh = Kubeconfig::load(admin).context("reading the administrator's kubeconfig")?;
    let config = Kubeconfig::load(path).with_context(|| format!("reading {}", path.display()))?;
    let mut renewed = config.clone();
    renewed.take_credentials(&fresh);
    if renewed == config {
        return Ok(false);
    }
    renewed.save(path).with_context(|| format!("writing {}", path.display()))?;
    Ok(true)
}

/// Do both files' current contexts trust an authority together, at the same address?
pub(crate) fn leads_to_same_cluster(one: &Path, other: &Path) -> bool {
    let target = |path: &Path| Kubeconfig::load(path).ok()?.target(None).ok();
    target(one)
        .zip(target(other))
        .is_some_and(|(one, other)| one.server == other.server && share_authority(&one, &other))
}

/// Is there an authority that both trust? While one is replaced files differ in the others.
pub(crate) fn share_authority(one: &RestConfig, other: &RestConfig) -> bool {
    let blocks = |it: &RestConfig| -> Vec<String> {
        let text = String::from_utf8_lossy(&it.ca).into_owned();
        let blocks = text.split_inclusive("-----END CERTIFICATE-----").map(|it| it.trim().to_owned());
        blocks.filter(|it| !it.is_empty()).collect()
    };
    let others = blocks(other);
    blocks(one).iter().any(|it| others.contains(it))
}

#[cfg(test)]
mod tests;
