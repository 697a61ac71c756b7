//! The cluster's own certificate authority, the certificates it issues, and the TLS settings made of them.
//!
//! A client's certificate is checked here and not by the TLS handshake: whoever presents a bad one gets a `Status` with
//! 401 instead of a dead connection.

mod der;
mod files;
mod issue;
mod profile;
mod renew;
mod sign;
mod tls;
mod token_key;

use std::{
    net::IpAddr,
    path::{Path, PathBuf},
    sync::{Arc, Weak},
    time::{Duration, SystemTime},
};

use base64::{Engine, engine::general_purpose::STANDARD};
use parking_lot::Mutex;
use rcgen::{Issuer, KeyPair};
use rustls_pki_types::CertificateDer;

pub use issue::Subject;
pub use renew::{Kept, RENEWAL_INTERVAL};
pub use sign::{Asked, SIGNERS};
pub use tls::{Proven, unverified_client_config};
pub use token_key::TokenKey;

const CA_LIFETIME: Duration = Duration::from_secs(10 * 365 * 24 * 3600);
const LEAF_LIFETIME: Duration = Duration::from_secs(365 * 24 * 3600);
/// A certificate that ends sooner than this is issued anew; see `renew.rs`.
const RENEW_BEFORE: Duration = Duration::from_secs(30 * 24 * 3600);
/// As kubeadm names it: service accounts' key.
const TOKEN_KEY: &str = "sa";
/// Clocks of clients may be behind ours by this much.
const SKEW: Duration = Duration::from_secs(3600);

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("cannot {action} {path}: {cause}")]
    File { action: &'static str, path: PathBuf, cause: std::io::Error },
    #[error("{path} is not what the cluster's PKI expects there: {why}")]
    Malformed { path: PathBuf, why: String },
    #[error("the cluster's certificate authority in {0} has expired; remove the folder to start with a new one")]
    Expired(PathBuf),
    #[error("cannot issue a certificate for {0}: {1}")]
    Issue(String, rcgen::Error),
    #[error("a certificate can name one organization, not {0}")]
    Organizations(usize),
    #[error("cannot use the certificates for TLS: {0}")]
    Tls(String),
    #[error("cannot use the key that signs tokens: {0}")]
    TokenKey(String),
}

/// What can be done about an authority that cannot be read.
const NEW_AUTHORITY: &str = "put ca.crt and ca.key back, or remove both to begin with a new authority, which no kubeconfig \
                             and no token of before is valid with";

/// A certificate and its private key, both as PEM.
#[derive(Clone)]
pub struct Credential {
    pub certificate: String,
    pub key: String,
}

/// Without the key.
impl std::fmt::Debug for Credential {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Credential").field("certificate", &self.certificate).finish_non_exhaustive()
    }
}

/// Tells the time by which certificates begin and end.
type Now = Box<dyn Fn() -> SystemTime + Send + Sync>;

/// The cluster's certificate authority.
pub struct Authority {
    certificate: CertificateDer<'static>,
    pem: String,
    issuer: Issuer<'static, KeyPair>,
    /// Where credentials are kept; `None` for an authority that lives in memory only.
    dir: Option<PathBuf>,
    known: tls::Known,
    token_key: TokenKey,
    /// What [`Authority::renew`] looks after.
    kept: Mutex<Vec<Weak<Kept>>>,
    now: Now,
    leaf_lifetime: Duration,
}

impl Authority {
    /// Reads the authority from `dir/ca.crt` and `dir/ca.key`, or makes a new one there.
    ///
    /// # Errors
    /// The files cannot be read or written, do not belong together, or the authority has expired.
    pub fn load_or_create(dir: impl AsRef<Path>) -> Result<Self, Error> {
        let dir = dir.as_ref();
        files::create_dir(dir)?;
        let stored = files::load_authority(dir, "ca")?;
        let fresh = stored.is_none();
        let credential = match stored {
            Some(credential) => credential,
            None => issue::authority("corten-ca", SystemTime::now())?,
        };
        let token_key = match files::load_key(dir, TOKEN_KEY)? {
            Some(pem) => TokenKey::from_pem(&pem).map_err(|error| {
                let why = format!(
                    "{error}; put it back, or remove it to begin with a new one, which makes every token of a service \
                     account void"
                );
                Error::Malformed { path: dir.join(format!("{TOKEN_KEY}.key")), why }
            })?,
            None => {
                let (key, pem) = TokenKey::generate()?;
                files::store_key(dir, TOKEN_KEY, &pem)?;
                key
            }
        };
        let mut authority = Self::from_credential(&credential, token_key, &dir.join("ca.crt"))?;
        if fresh {
            files::store(dir, "ca", &credential)?;
        } else if !issue::valid_at(&authority.certificate, SystemTime::now()) {
            return Err(Error::Expired(dir.to_owned()));
        }
        authority.dir = Some(dir.to_owned());
        Ok(authority)
    }

    /// An authority that is never written anywhere, for tests and simulation.
    ///
    /// # Errors
    /// The system gives no randomness.
    pub fn in_memory() -> Result<Self, Error> {
        let credential = issue::authority("corten-ca", SystemTime::now())?;
        Self::from_credential(&credential, TokenKey::generate()?.0, Path::new("memory"))
    }

    /// Where the authority reads the time, instead of the machine's clock.
    pub fn tell_time(&mut self, now: impl Fn() -> SystemTime + Send + Sync + 'static) {
        self.now = Box::new(now);
    }

    fn from_credential(credential: &Credential, token_key: TokenKey, path: &Path) -> Result<Self, Error> {
        let malformed =
            |why: String| Error::Malformed { path: path.to_owned(), why: format!("{why}; {NEW_AUTHORITY}") };
        let certificate = issue::certificate_of(credential).map_err(malformed)?;
        let of_key =
            |why: String| Error::Malformed { path: path.with_extension("key"), why: format!("{why}; {NEW_AUTHORITY}") };
        let key = KeyPair::from_pem(&credential.key).map_err(|it| of_key(it.to_string()))?;
        if !issue::belongs(&certificate, &key) {
            return Err(malformed("the key does not belong to the certificate".into()));
        }
        let issuer = Issuer::from_ca_cert_der(&certificate, key).map_err(|it| malformed(it.to_string()))?;
        let pem = credential.certificate.clone();
        Ok(Self {
            certificate,
            pem,
            issuer,
            dir: None,
            known: tls::Known::default(),
            token_key,
            kept: Mutex::default(),
            now: Box::new(SystemTime::now),
            leaf_lifetime: LEAF_LIFETIME,
        })
    }

    fn now(&self) -> SystemTime {
        (self.now)()
    }

    /// Signs the tokens of service accounts.
    pub fn token_key(&self) -> &TokenKey {
        &self.token_key
    }

    /// The authority's certificate as PEM.
    pub fn ca_pem(&self) -> &str {
        &self.pem
    }

    /// Issues a certificate that proves to servers who a client is.
    ///
    /// # Errors
    /// More than one organization, or no randomness.
    pub fn issue_client(&self, common_name: &str, organizations: &[&str]) -> Result<Credential, Error> {
        self.issue(&Subject::client(common_name, organizations)?)
    }

    /// Issues a certificate for a server with these names and addresses.
    ///
    /// # Errors
    /// A name that no certificate can hold, or no randomness.
    pub fn issue_server(&self, common_name: &str, names: &[String]) -> Result<Credential, Error> {
        self.issue(&Subject::server(common_name, names))
    }

    fn issue(&self, subject: &Subject) -> Result<Credential, Error> {
        issue::leaf(&self.issuer, subject, self.now(), self.leaf_lifetime)
    }

    /// The API server's own credential, good for every name a client may know it by.
    ///
    /// # Errors
    /// As of issuing and of writing files.
    pub fn serving(&self, host_name: &str, addresses: &[IpAddr]) -> Result<Arc<Kept>, Error> {
        let mut names: Vec<String> = ["localhost", "127.0.0.1", "kubernetes", "kubernetes.default"]
            .into_iter()
            .chain(["kubernetes.default.svc", "kubernetes.default.svc.cluster.local", host_name])
            .map(str::to_owned)
            .chain(addresses.iter().filter(|it| !it.is_unspecified()).map(IpAddr::to_string))
            .filter(|it| !it.is_empty())
            .collect();
        names.sort();
        names.dedup();
        self.keep(Some("apiserver"), &Subject::server("kube-apiserver", &names))
    }

    /// What the API server shows to kubelets. It names no group: shown to the API server itself it opens nothing.
    ///
    /// # Errors
    /// As of issuing and of writing files.
    pub fn kubelet_client(&self) -> Result<Arc<Kept>, Error> {
        self.keep(Some("apiserver-kubelet-client"), &Subject::client("kube-apiserver-kubelet-client", &[])?)
    }

    /// A kubeconfig that carries the administrator's credential within.
    ///
    /// # Errors
    /// As of issuing and of writing files.
    pub fn admin_kubeconfig(&self, server_url: &str) -> Result<String, Error> {
        let admin = self.keep(Some("admin"), &Subject::client("kubernetes-admin", &["system:masters"])?)?.credential();
        let (ca, certificate, key) =
            (STANDARD.encode(&self.pem), STANDARD.encode(&admin.certificate), STANDARD.encode(&admin.key));
        Ok(format!(
            "apiVersion: v1\n\
             kind: Config\n\
             clusters:\n\
             - name: corten\n\
             \x20 cluster:\n\
             \x20   server: {server_url}\n\
             \x20   certificate-authority-data: {ca}\n\
             contexts:\n\
             - name: kubernetes-admin@corten\n\
             \x20 context:\n\
             \x20   cluster: corten\n\
             \x20   user: kubernetes-admin\n\
             current-context: kubernetes-admin@corten\n\
             users:\n\
             - name: kubernetes-admin\n\
             \x20 user:\n\
             \x20   client-certificate-data: {certificate}\n\
             \x20   client-key-data: {key}\n"
        ))
    }

    /// Writes [`Authority::admin_kubeconfig`] to `path`, readable by its owner only, where it is not there already.
    ///
    /// # Errors
    /// As of [`Authority::admin_kubeconfig`].
    pub fn write_admin_kubeconfig(&self, path: &Path, server_url: &str) -> Result<(), Error> {
        let text = self.admin_kubeconfig(server_url)?;
        if std::fs::read(path).is_ok_and(|it| it == text.as_bytes()) {
            return Ok(());
        }
        files::write(path, text.as_bytes(), 0o600)
    }
}

#[cfg(test)]
mod tests;
