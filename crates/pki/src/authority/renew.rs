//! Credentials that are replaced before they end, while what uses them goes on: the next handshake shows the new one.

use std::{
    sync::Arc,
    time::{Duration, SystemTime},
};

use arc_swap::ArcSwap;
use rustls::{
    SignatureScheme,
    client::ResolvesClientCert,
    server::{ClientHello, ResolvesServerCert},
    sign::CertifiedKey,
};

use super::{Authority, tls};
use crate::{Credential, Error, Subject, certificate, files, issue};

/// A certificate that ends sooner than this is issued anew.
const RENEW_BEFORE: Duration = Duration::from_secs(30 * 24 * 3600);

/// How often to look whether something is due.
pub const RENEWAL_INTERVAL: Duration = Duration::from_secs(3600);

/// A credential of the cluster's own that is kept good.
#[derive(Debug)]
pub struct DynamicCertificate {
    subject: Subject,
    /// Its name on disk; `None` for one that lives in memory only.
    file: Option<String>,
    current: ArcSwap<Current>,
}

#[derive(Debug)]
struct Current {
    credential: Credential,
    key: Arc<CertifiedKey>,
}

impl Current {
    fn of(credential: Credential) -> Result<Self, Error> {
        let key = Arc::new(tls::certified_key(&credential)?);
        Ok(Self { credential, key })
    }
}

impl Credential {
    /// As one that nobody renews.
    ///
    /// # Errors
    /// It is no certificate with its key.
    pub fn fixed(&self) -> Result<Arc<DynamicCertificate>, Error> {
        let current = ArcSwap::from_pointee(Current::of(self.clone())?);
        Ok(Arc::new(DynamicCertificate { subject: Subject::server("", &[]), file: None, current }))
    }
}

impl DynamicCertificate {
    /// As it is now.
    pub fn credential(&self) -> Credential {
        self.current.load().credential.clone()
    }
}

impl ResolvesServerCert for DynamicCertificate {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(self.current.load().key.clone())
    }
}

impl ResolvesClientCert for DynamicCertificate {
    fn resolve(&self, _: &[&[u8]], _: &[SignatureScheme]) -> Option<Arc<CertifiedKey>> {
        Some(self.current.load().key.clone())
    }

    fn has_certs(&self) -> bool {
        true
    }
}

/// Is the end near: within a month, or a fifth of a life that is short? Or was it made while the clock was ahead?
pub(super) fn is_due(credential: &Credential, now: SystemTime) -> bool {
    let Some((start, end)) = certificate::lifetime_of(credential) else { return true };
    let life = end.duration_since(start).unwrap_or_default();
    now < start || now + RENEW_BEFORE.min(life / 5) >= end
}

impl Authority {
    /// A credential that [`Authority::renew`] keeps good. With `file` it outlives the process.
    ///
    /// # Errors
    /// As of issuing and of writing files.
    pub(super) fn keep(&self, file: Option<&str>, subject: &Subject) -> Result<Arc<DynamicCertificate>, Error> {
        let current = ArcSwap::from_pointee(Current::of(self.stored_or_new(file, subject)?)?);
        let kept = Arc::new(DynamicCertificate { subject: subject.clone(), file: file.map(str::to_owned), current });
        let mut all = self.kept.lock();
        all.retain(|it| it.strong_count() > 0);
        all.push(Arc::downgrade(&kept));
        Ok(kept)
    }

    /// Replaces every kept credential whose end is near, that another authority signed, or that was replaced on disk; says how
    /// many. Ask every [`RENEWAL_INTERVAL`].
    ///
    /// # Errors
    /// As of [`Authority::keep`]; what was replaced before stays replaced.
    pub fn renew(&self) -> Result<usize, Error> {
        let authority = Credential { certificate: self.trust().pem.clone(), key: String::new() };
        if is_due(&authority, self.now()) {
            tracing::warn!("the cluster's certificate authority ends soon, and nothing it signed outlasts it");
        }
        let mut replaced = self.front_proxy.as_ref().map_or(Ok(0), |it| it.renew())?;
        let all: Vec<Arc<DynamicCertificate>> = self.kept.lock().iter().filter_map(std::sync::Weak::upgrade).collect();
        for kept in all {
            let shown = kept.credential();
            let wanted = match (&self.dir, &kept.file) {
                (Some(_), Some(_)) => self.stored_or_new(kept.file.as_deref(), &kept.subject)?,
                _ => self.still_good(shown.clone(), &kept.subject).map_or_else(|| self.issue(&kept.subject), Ok)?,
            };
            if wanted.certificate != shown.certificate {
                kept.current.store(Arc::new(Current::of(wanted)?));
                tracing::info!(subject = ?kept.subject, "a certificate was renewed");
                replaced += 1;
            }
        }
        Ok(replaced)
    }

    /// What is on disk where that still serves, else a new one.
    fn stored_or_new(&self, file: Option<&str>, subject: &Subject) -> Result<Credential, Error> {
        let (Some(dir), Some(file)) = (&self.dir, file) else { return self.issue(subject) };
        let stored = files::load(dir, file)?;
        let good = stored.clone().and_then(|it| self.still_good(it, subject));
        let wanted = good.map_or_else(|| self.issue(subject), Ok)?;
        if stored.is_none_or(|it| it.certificate != wanted.certificate) {
            files::store(dir, file, &wanted)?;
        }
        Ok(wanted)
    }

    /// The credential, with what is to be shown beside it, where it serves and lasts.
    fn still_good(&self, stored: Credential, subject: &Subject) -> Option<Credential> {
        let trust = self.trust();
        let serves = issue::still_serves(&stored, subject, &trust.certificate) && !is_due(&stored, self.now());
        serves.then(|| trust.with_bridge(&stored)).flatten()
    }
}
