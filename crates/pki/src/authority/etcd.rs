//! The authority of who may use etcd's API, as kubeadm has one: no certificate of the cluster's own lets anybody past RBAC there.
//!
//! ```text
//! DIR/etcd/ca.crt, ca.key               signs nothing but what follows
//! DIR/etcd/server.crt, server.key       is shown to clients
//! DIR/etcd/peer.crt, peer.key           of a member of several: is shown to the others
//! DIR/apiserver-etcd-client.crt, .key   is what clients show
//! ```

use std::{
    path::{Path, PathBuf},
    sync::Arc,
    time::SystemTime,
};

use arc_swap::ArcSwap;
use rcgen::{Issuer, KeyPair};
use rustls::{
    RootCertStore, ServerConfig,
    server::WebPkiClientVerifier,
    version::{TLS12, TLS13},
};
use rustls_pki_types::CertificateDer;

use super::{renew::is_due, tls};
use crate::{
    Credential, Error, Subject, certificate, files,
    issue::{self, LEAF_LIFETIME},
};

const CA: &str = "ca";
const SERVER: &str = "server";
const PEER: &str = "peer";
const CLIENT: &str = "apiserver-etcd-client";

pub struct EtcdAuthority {
    /// The folder of all keys.
    dir: PathBuf,
    certificate: CertificateDer<'static>,
    issuer: Issuer<'static, KeyPair>,
    server: Subject,
    /// Where it is a member of several.
    peer: Option<Subject>,
    config: ArcSwap<ServerConfig>,
}

/// The files of a member of etcd's, below the folder of all keys.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EtcdFiles {
    pub ca: PathBuf,
    pub ca_key: PathBuf,
    pub server: (PathBuf, PathBuf),
    pub peer: (PathBuf, PathBuf),
    pub client: (PathBuf, PathBuf),
}

impl EtcdFiles {
    pub fn of(dir: &Path) -> Self {
        let of_etcd = dir.join("etcd");
        let pair = |dir: &Path, name: &str| (dir.join(format!("{name}.crt")), dir.join(format!("{name}.key")));
        let (ca, ca_key) = pair(&of_etcd, CA);
        Self { ca, ca_key, server: pair(&of_etcd, SERVER), peer: pair(&of_etcd, PEER), client: pair(dir, CLIENT) }
    }
}

impl EtcdAuthority {
    /// Reads the authority, the server's and the client's certificate below `dir`, and makes what is not there. `names` are those of
    /// the server and its addresses.
    ///
    /// # Errors
    /// The files cannot be read or written, do not belong together, or the authority has expired.
    pub fn load_or_create(dir: &Path, names: &[String]) -> Result<Self, Error> {
        Self::load(dir, Subject::server("etcd", names), None)
    }

    /// As [`EtcdAuthority::load_or_create`], of a member of several: it also has a certificate for the others.
    ///
    /// # Errors
    /// As of [`EtcdAuthority::load_or_create`].
    pub fn of_member(dir: &Path, names: &[String]) -> Result<Self, Error> {
        // etcd shows the server's to itself as a client.
        Self::load(dir, Subject::peer("etcd", names), Some(Subject::peer("etcd-peer", names)))
    }

    fn load(dir: &Path, server: Subject, peer: Option<Subject>) -> Result<Self, Error> {
        let now = SystemTime::now();
        let of_etcd = dir.join("etcd");
        files::create_dir(&of_etcd)?;
        let authority = if let Some(stored) = files::load_authority(&of_etcd, CA)? {
            stored
        } else {
            let made = issue::authority("etcd-ca", now)?;
            files::store(&of_etcd, CA, &made)?;
            made
        };
        let malformed = |why: String| Error::Malformed { path: of_etcd.join("ca.crt"), why };
        let certificate = certificate::certificate_of(&authority).map_err(malformed)?;
        let key = KeyPair::from_pem(&authority.key).map_err(|it| malformed(it.to_string()))?;
        if !certificate::belongs(&certificate, &key) {
            return Err(malformed("the key does not belong to the certificate".into()));
        }
        if !certificate::valid_at(&certificate, now) {
            return Err(Error::Expired(of_etcd));
        }
        let issuer = Issuer::from_ca_cert_der(&certificate, key).map_err(|it| malformed(it.to_string()))?;
        let shown = kept(&of_etcd, SERVER, &server, &certificate, &issuer, now)?;
        let config = ArcSwap::new(config(&shown, &certificate)?);
        let this = Self { dir: dir.to_owned(), certificate, issuer, server, peer, config };
        this.renew()?;
        Ok(this)
    }

    /// TLS for clients that show a certificate of this authority: others are refused in the handshake.
    pub fn server_config(&self) -> Arc<ServerConfig> {
        self.config.load_full()
    }

    /// Replaces what ends soon. Ask every [`super::RENEWAL_INTERVAL`].
    ///
    /// # Errors
    /// As of [`EtcdAuthority::load_or_create`].
    pub fn renew(&self) -> Result<(), Error> {
        let keep = |dir: &Path, file: &str, subject: &Subject| {
            kept(dir, file, subject, &self.certificate, &self.issuer, SystemTime::now())
        };
        let shown = keep(&self.dir.join("etcd"), SERVER, &self.server)?;
        self.config.store(config(&shown, &self.certificate)?);
        if let Some(peer) = &self.peer {
            keep(&self.dir.join("etcd"), PEER, peer)?;
        }
        keep(&self.dir, CLIENT, &Subject::client(CLIENT, &[])?).map(|_| ())
    }
}

/// What is on disk where it still serves, else a new one. The pair of another authority is somebody else's way to an etcd: it stays.
fn kept(
    dir: &Path,
    file: &str,
    subject: &Subject,
    authority: &CertificateDer<'_>,
    issuer: &Issuer<'_, KeyPair>,
    now: SystemTime,
) -> Result<Credential, Error> {
    let serves = |it: &Credential| issue::still_serves(it, subject, authority) && !is_due(it, now);
    if let Some(stored) = files::load(dir, file)? {
        if serves(&stored) {
            return Ok(stored);
        }
        if certificate::certificate_of(&stored).is_ok_and(|it| !certificate::is_signed_by(&it, authority)) {
            let why = "it is of another authority than etcd/ca.crt: keep it elsewhere, or use another folder".into();
            return Err(Error::Malformed { path: dir.join(format!("{file}.crt")), why });
        }
    }
    let made = issue::leaf((issuer, ""), subject, now, LEAF_LIFETIME)?;
    files::store(dir, file, &made)?;
    Ok(made)
}

fn config(shown: &Credential, authority: &CertificateDer<'static>) -> Result<Arc<ServerConfig>, Error> {
    let mut roots = RootCertStore::empty();
    roots.add(authority.clone()).map_err(Error::of_tls)?;
    let provider = tls::provider();
    let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider.clone());
    let (chain, key) = tls::parsed(shown)?;
    let mut config = ServerConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&TLS13, &TLS12])
        .map_err(Error::of_tls)?
        .with_client_cert_verifier(verifier.build().map_err(Error::of_tls)?)
        .with_single_cert(chain, key)
        .map_err(Error::of_tls)?;
    config.alpn_protocols = vec![b"h2".to_vec()];
    Ok(Arc::new(config))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_there_is_kept_and_another_name_is_shown_anew() {
        let dir = tempfile::tempdir().expect("a directory");
        let read = |file: &str| std::fs::read_to_string(dir.path().join(file)).expect("it is there");
        let load = |names: &[&str]| {
            let names: Vec<String> = names.iter().map(|it| (*it).to_owned()).collect();
            EtcdAuthority::load_or_create(dir.path(), &names)
        };
        load(&["localhost"]).expect("it is made");
        let files = ["etcd/ca.crt", "etcd/server.crt", "apiserver-etcd-client.crt"];
        let first = files.map(read);
        load(&["localhost"]).expect("it is read");
        assert_eq!(files.map(read), first);
        load(&["localhost", "10.0.0.1"]).expect("it is read");
        let then = files.map(read);
        assert_eq!([0, 1, 2].map(|it| then[it] == first[it]), [true, false, true]);
        std::fs::copy(dir.path().join("etcd/server.key"), dir.path().join("etcd/ca.key")).expect("it is copied");
        let refused = load(&["localhost"]).err().map(|it| it.to_string()).unwrap_or_default();
        assert!(refused.contains("the key does not belong to the certificate"), "{refused}");
    }

    #[test]
    fn a_member_has_what_it_shows_to_the_others() {
        let dir = tempfile::tempdir().expect("a directory");
        let names = ["localhost".to_owned(), "10.0.0.1".to_owned()];
        let files = EtcdFiles::of(dir.path());
        let pairs = [&files.server, &files.peer, &files.client];
        let usages = || {
            pairs.map(|(certificate, _)| {
                let pem = std::fs::read(certificate).expect("it is there");
                let (_, pem) = x509_parser::pem::parse_x509_pem(&pem).expect("PEM");
                let certificate = pem.parse_x509().expect("a certificate");
                let usages = certificate.extended_key_usage().expect("once").expect("it says what it is for");
                (usages.value.server_auth, usages.value.client_auth)
            })
        };
        EtcdAuthority::of_member(dir.path(), &names).expect("it is made");
        assert_eq!(usages(), [(true, true), (true, true), (false, true)]);
        let read = || std::fs::read(&files.peer.0).expect("it is there");
        let first = read();
        EtcdAuthority::of_member(dir.path(), &names).expect("it is read");
        assert_eq!(read(), first);
        EtcdAuthority::load_or_create(dir.path(), &names).expect("it is read");
        assert_eq!(usages()[0], (true, false), "alone it asks nobody");
    }

    #[test]
    fn a_pair_of_another_authority_is_not_overwritten() {
        let (one, two) = (tempfile::tempdir().expect("a directory"), tempfile::tempdir().expect("another"));
        let names = ["localhost".to_owned()];
        EtcdAuthority::load_or_create(one.path(), &names).expect("it is made");
        let files = ["apiserver-etcd-client.crt", "apiserver-etcd-client.key"];
        for file in files {
            std::fs::copy(one.path().join(file), two.path().join(file)).expect("it is copied");
        }
        let refused =
            EtcdAuthority::load_or_create(two.path(), &names).err().map(|it| it.to_string()).unwrap_or_default();
        assert!(refused.contains("apiserver-etcd-client.crt") && refused.contains("of another authority"), "{refused}");
        for file in files {
            let read = |dir: &tempfile::TempDir| std::fs::read(dir.path().join(file)).expect("it is there");
            assert_eq!(read(&one), read(&two), "{file}");
        }
    }
}
