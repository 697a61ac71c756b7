//! Replaces the authority and the key of tokens, in steps that each leave the folder whole.
//!
//! ```text
//!   ca.crt  ca.key                          one authority
//!      │ begin: ca-next.key ca-bridge.crt ca-old.crt, and last ca-next.crt: from then on it is decided
//!      │ finish, by whoever looks next: ca-next.key and ca-next.crt take the places of ca.key and ca.crt
//!   ca.crt  ca.key  ca-old.crt  ca-bridge.crt   the new one signs, both are trusted
//!      │ drop: ca-old.crt goes, then ca-bridge.crt
//!   ca.crt  ca.key                          the new authority
//! ```
//!
//! There is no time between that in which clients must learn of the new authority: what it signs comes with `ca-bridge.crt`,
//! the new authority signed by the old one, so that who knows only the old one believes it, too.
//!
//! The front proxy's authority goes through the same steps at the same time, under names of its own.

use std::{
    fs,
    path::{Path, PathBuf},
    time::{SystemTime, UNIX_EPOCH},
};

use rustls_pki_types::CertificateDer;

use crate::{
    Credential, Error, TokenKey, certificate,
    files::{self, TOKEN_KEY},
    folder::{
        AUTHORITIES, CLUSTER, FRONT_PROXY, FRONT_PROXY_CLIENT, Names, OLD_TOKEN_KEY, finish, forget_authority, remove,
        sync,
    },
    issue::{self, LEAF_LIFETIME},
    trust::Trust,
};

/// What there is to a folder's authority and key of tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rotating {
    /// The authority of before is still trusted.
    pub authority: bool,
    /// The key of before is still trusted.
    pub token_key: bool,
}

/// # Errors
/// The folder cannot be read, or does not hold an authority.
pub fn state(dir: &Path) -> Result<Rotating, Error> {
    let trust = Trust::load(dir, CLUSTER)?;
    let mut is_rotating = false;
    for names in present(dir)? {
        is_rotating |= Trust::load(dir, names)?.old.is_some();
    }
    Ok(Rotating { authority: is_rotating, token_key: trust.token_keys.old.is_some() })
}

/// Puts a new authority into the place of the one that signs. The one of before stays trusted until [`drop_authority`],
/// unless nothing it signed is valid now. `false` where such a rotation goes on already: its last step is done again.
///
/// # Errors
/// The folder cannot be read or written, or does not hold an authority.
pub fn begin_authority(dir: &Path, now: SystemTime) -> Result<bool, Error> {
    // The cluster's own is there, or the first step says what is wrong.
    let is_begun = begin(dir, CLUSTER, now)?;
    for names in present(dir)?.into_iter().filter(|it| *it != CLUSTER) {
        begin(dir, names, now)?;
    }
    Ok(is_begun)
}

/// The authorities that the folder has. A cluster of an earlier release has no front proxy's until its next start.
fn present(dir: &Path) -> Result<Vec<Names>, Error> {
    let mut found = vec![CLUSTER];
    finish(dir, FRONT_PROXY)?;
    if files::load_authority(dir, FRONT_PROXY.0)?.is_some() {
        found.push(FRONT_PROXY);
    }
    Ok(found)
}

fn begin(dir: &Path, names: Names, now: SystemTime) -> Result<bool, Error> {
    let trust = Trust::load(dir, names)?;
    if trust.old.is_some() {
        return Ok(false);
    }
    forget_authority(dir, names)?;
    // Another name than the one before: authorities of one name are mistaken for each other.
    let seconds = now.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
    let (next, bridge) = issue::next_authority(&format!("{}@{seconds}", names.common_name()), &trust.issuer, now)?;
    files::store_key(dir, &names.next(), &next.key)?;
    let serves = certificate::lifetime(&trust.certificate).is_some_and(|(start, end)| start <= now && now < end);
    if serves {
        files::write(&dir.join(names.bridge()), bridge.as_bytes(), 0o644)?;
        files::write(&dir.join(names.old()), trust.pem.as_bytes(), 0o644)?;
    }
    files::write(&dir.join(format!("{}.crt", names.next())), next.certificate.as_bytes(), 0o644)?;
    finish(dir, names)?;
    Ok(true)
}

/// Trusts the authority of before no more. `false` where there is none.
///
/// # Errors
/// The folder cannot be read or written.
pub fn drop_authority(dir: &Path) -> Result<bool, Error> {
    let has_old = state(dir)?.authority;
    for names in AUTHORITIES {
        forget_authority(dir, names)?;
    }
    Ok(has_old)
}

/// Puts a new key into the place of the one that signs tokens, whose public half stays until [`drop_token_key`]. `false` where
/// such a rotation goes on already.
///
/// # Errors
/// The folder cannot be read or written, or does not hold a key.
pub fn begin_token_key(dir: &Path) -> Result<bool, Error> {
    let trust = Trust::load(dir, CLUSTER)?;
    if trust.token_keys.old.is_some() {
        return Ok(false);
    }
    let (_, next) = TokenKey::generate()?;
    files::write(&dir.join(OLD_TOKEN_KEY), trust.token_keys.signing.public_pem().as_bytes(), 0o600)?;
    files::store_key(dir, TOKEN_KEY, &next)?;
    Ok(true)
}

/// Believes no token any more that the key of before signed. `false` where there is none.
///
/// # Errors
/// The folder cannot be read or written.
pub fn drop_token_key(dir: &Path) -> Result<bool, Error> {
    let has_old = Trust::load(dir, CLUSTER)?.token_keys.old.is_some();
    remove(&dir.join(OLD_TOKEN_KEY))?;
    sync(dir)?;
    Ok(has_old)
}

/// Issues a kept certificate anew, under the names it has. `false` where there is none of that name.
///
/// # Errors
/// The folder cannot be read or written.
pub fn renew(dir: &Path, name: &str, now: SystemTime) -> Result<bool, Error> {
    let authority = if name == FRONT_PROXY_CLIENT { FRONT_PROXY } else { CLUSTER };
    let trust = Trust::load(dir, authority)?;
    let Some(stored) = files::load(dir, name)? else { return Ok(false) };
    let malformed = |why| Error::Malformed { path: dir.join(format!("{name}.crt")), why };
    let subject =
        certificate::certificate_of(&stored).and_then(|it| issue::parsed_subject(&it).ok_or("no subject".into()));
    let subject = subject.map_err(malformed)?;
    files::store(dir, name, &trust.issue(&subject, now, LEAF_LIFETIME)?)?;
    Ok(true)
}

/// A certificate of the folder.
#[derive(Clone, Debug)]
pub struct CertificateInfo {
    /// `admin`, `apiserver`, `ca`, `ca-old`, `front-proxy-ca`.
    pub name: String,
    pub is_authority: bool,
    pub start: SystemTime,
    pub end: SystemTime,
    /// Who signed it: `ca`, `ca-old`, the same of `front-proxy-ca`, or nobody that is trusted. Empty for authorities.
    pub signer: String,
}

/// Every certificate that the folder keeps, and the kubelet's where `kubelet` is.
///
/// # Errors
/// The folder cannot be read, or does not hold an authority.
pub fn list(dir: &Path, kubelet: &Path) -> Result<Vec<CertificateInfo>, Error> {
    let trusted = present(dir)?.into_iter().map(|it| Ok((it, Trust::load(dir, it)?)));
    let trusted: Vec<(Names, Trust)> = trusted.collect::<Result<_, Error>>()?;
    let entries = fs::read_dir(dir).map_err(files::failed("read", dir))?;
    let mut paths: Vec<PathBuf> = entries.flatten().map(|it| it.path()).collect();
    paths.retain(|it| {
        it.extension().is_some_and(|it| it == "crt") && !AUTHORITIES.iter().any(|names| it.ends_with(names.bridge()))
    });
    paths.sort_by(|a, b| a.file_stem().cmp(&b.file_stem()));
    paths.push(kubelet.to_owned());
    let listed = |path: &PathBuf| {
        let credential = Credential { certificate: files::read(path).ok()??, key: String::new() };
        let certificate = certificate::certificate_of(&credential).ok()?;
        let (start, end) = certificate::lifetime(&certificate)?;
        let name = path.file_stem()?.to_string_lossy().into_owned();
        let is_authority = AUTHORITIES.iter().any(|it| name == it.0 || format!("{name}.crt") == it.old());
        let signer = if is_authority { String::new() } else { signer_of(&certificate, &trusted) };
        Some(CertificateInfo { name, is_authority, start, end, signer })
    };
    Ok(paths.iter().filter_map(listed).collect())
}

fn signer_of(certificate: &CertificateDer<'_>, trusted: &[(Names, Trust)]) -> String {
    for (names, trust) in trusted {
        if certificate::is_signed_by(certificate, &trust.certificate) {
            return names.0.to_owned();
        }
        if trust.old.as_ref().is_some_and(|it| certificate::is_signed_by(certificate, &it.certificate)) {
            return format!("{}-old", names.0);
        }
    }
    "unknown".to_owned()
}
