//! What the cluster signs with, and what it trusts. While the authority or the key of tokens is replaced, that of before is
//! trusted beside the new one.

use std::{
    path::Path,
    sync::Arc,
    time::{Duration, SystemTime},
};

use rcgen::{Issuer, KeyPair};
use rustls::RootCertStore;
use rustls_pki_types::CertificateDer;

use crate::{
    Credential, Error, TokenKey, certificate,
    files::{self, TOKEN_KEY},
    folder::{self, Names},
    issue::{self, Subject},
};

/// What can be done about an authority that cannot be read.
const NEW_AUTHORITY: &str = "put ca.crt and ca.key back, or remove both to begin with a new authority, which no kubeconfig \
                             and no token of before is valid with";

/// One state of the folder.
pub(super) struct Trust {
    /// Of the authority that signs.
    pub(super) certificate: CertificateDer<'static>,
    pub(super) pem: String,
    pub(super) issuer: Issuer<'static, KeyPair>,
    pub(super) old: Option<Old>,
    pub(super) token_keys: TokenKeys,
}

/// The authority of before, which signs nothing any more.
pub(super) struct Old {
    pub(super) certificate: CertificateDer<'static>,
    pub(super) pem: String,
    /// The authority of now, signed by this one: who trusts only this one follows it to what the new one signs. PEM.
    pub(super) bridge: String,
}

/// The keys that tokens are checked by.
#[derive(Clone)]
pub struct TokenKeys {
    pub signing: Arc<TokenKey>,
    pub old: Option<Arc<TokenKey>>,
}

impl TokenKeys {
    /// The one that signs comes first.
    pub fn all(&self) -> impl Iterator<Item = &TokenKey> {
        [Some(&*self.signing), self.old.as_deref()].into_iter().flatten()
    }
}

impl Trust {
    /// Reads the folder, and makes what is not there; says whether the authority is new.
    pub(super) fn load_or_create(dir: &Path, names: Names, now: SystemTime) -> Result<(Self, bool), Error> {
        folder::finish(dir, names)?;
        let stored = files::load_authority(dir, names.0)?;
        let is_new = stored.is_none();
        let credential = match stored {
            Some(credential) => credential,
            None => issue::authority(&names.common_name(), now)?,
        };
        if files::load_key(dir, TOKEN_KEY)?.is_none() {
            files::store_key(dir, TOKEN_KEY, &TokenKey::generate()?.1)?;
        }
        let this = Self::of(&credential, token_keys(dir)?, &dir.join(format!("{}.crt", names.0)))?;
        if is_new {
            files::store(dir, names.0, &credential)?;
            folder::forget_authority(dir, names)?;
            return Ok((this, true));
        }
        Ok((Self { old: old(dir, names, &this)?, ..this }, false))
    }

    /// Reads the folder of a cluster that is there.
    pub(super) fn load(dir: &Path, names: Names) -> Result<Self, Error> {
        folder::finish(dir, names)?;
        let path = dir.join(format!("{}.crt", names.0));
        let missing = || Error::Malformed { path: path.clone(), why: format!("it is not there; {NEW_AUTHORITY}") };
        let credential = files::load_authority(dir, names.0)?.ok_or_else(missing)?;
        let this = Self::of(&credential, token_keys(dir)?, &path)?;
        Ok(Self { old: old(dir, names, &this)?, ..this })
    }

    pub(super) fn of(credential: &Credential, token_keys: TokenKeys, path: &Path) -> Result<Self, Error> {
        let malformed =
            |why: String| Error::Malformed { path: path.to_owned(), why: format!("{why}; {NEW_AUTHORITY}") };
        let certificate = certificate::certificate_of(credential).map_err(malformed)?;
        let of_key =
            |why: String| Error::Malformed { path: path.with_extension("key"), why: format!("{why}; {NEW_AUTHORITY}") };
        let key = KeyPair::from_pem(&credential.key).map_err(|it| of_key(it.to_string()))?;
        if !certificate::belongs(&certificate, &key) {
            return Err(malformed("the key does not belong to the certificate".into()));
        }
        let issuer = Issuer::from_ca_cert_der(&certificate, key).map_err(|it| malformed(it.to_string()))?;
        Ok(Self { certificate, pem: credential.certificate.clone(), issuer, old: None, token_keys })
    }

    /// All that is trusted, as PEM.
    pub(super) fn bundle(&self) -> String {
        self.pem.clone() + self.old.as_ref().map_or("", |it| &it.pem)
    }

    /// What is shown after each certificate that the authority signs, as PEM.
    pub(super) fn bridge(&self) -> &str {
        self.old.as_ref().map_or("", |it| &it.bridge)
    }

    /// With all that must be shown beside it.
    pub(super) fn issue(&self, subject: &Subject, now: SystemTime, lifetime: Duration) -> Result<Credential, Error> {
        issue::leaf((&self.issuer, self.bridge()), subject, now, lifetime)
    }

    /// The same certificate with what must be shown beside it now.
    pub(super) fn with_bridge(&self, stored: &Credential) -> Option<Credential> {
        let certificate = certificate::certificate_of(stored).ok()?;
        let pem = certificate::pem("CERTIFICATE", &certificate);
        Some(Credential { certificate: pem + self.bridge(), key: stored.key.clone() })
    }

    pub(super) fn roots(&self) -> Result<RootCertStore, Error> {
        let mut roots = RootCertStore::empty();
        let old = self.old.as_ref().map(|it| &it.certificate);
        for certificate in [Some(&self.certificate), old].into_iter().flatten() {
            roots.add(certificate.clone()).map_err(Error::of_tls)?;
        }
        Ok(roots)
    }

    /// Is all as in the other?
    pub(super) fn is_as(&self, other: &Self) -> bool {
        let ids = |it: &Self| it.token_keys.all().map(|it| it.id().to_owned()).collect::<Vec<_>>();
        self.bundle() == other.bundle() && self.bridge() == other.bridge() && ids(self) == ids(other)
    }
}

fn token_keys(dir: &Path) -> Result<TokenKeys, Error> {
    let path = dir.join(format!("{TOKEN_KEY}.key"));
    let malformed = |error: String| {
        let why = format!(
            "{error}; put it back, or remove it to begin with a new one, which makes every token of a service account void"
        );
        Error::Malformed { path: path.clone(), why }
    };
    let pem = files::load_key(dir, TOKEN_KEY)?.ok_or_else(|| malformed("it is not there".into()))?;
    let signing = Arc::new(TokenKey::from_pem(&pem).map_err(|it| malformed(it.to_string()))?);
    let old = folder::old_token_key(dir)?.filter(|it| it.id() != signing.id());
    Ok(TokenKeys { signing, old: old.map(Arc::new) })
}

/// The authority of before, where the one of now follows it: what an interrupted beginning left is none.
fn old(dir: &Path, names: Names, now: &Trust) -> Result<Option<Old>, Error> {
    let Some((pem, bridge)) = folder::old_authority(dir, names)? else { return Ok(None) };
    let of = |pem: &str| certificate::certificate_of(&Credential { certificate: pem.to_owned(), key: String::new() });
    let malformed = |why| Error::Malformed {
        path: dir.join(names.old()),
        why: format!("{why}; remove it to trust the authority of before no more"),
    };
    let (certificate, bridged) = (of(&pem).map_err(malformed)?, of(&bridge).map_err(malformed)?);
    let follows = certificate::is_signed_by(&bridged, &certificate) && certificate::belongs(&bridged, now.issuer.key());
    Ok(follows.then_some(Old { certificate, pem, bridge }))
}
