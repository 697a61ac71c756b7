//! The running authority: what it trusts and signs with, and what it keeps good.

mod etcd;
mod in_use;
mod profile;
mod renew;
mod sign;
mod tls;

use std::{
    net::IpAddr,
    path::{Path, PathBuf},
    sync::{Arc, Weak},
    time::{Duration, SystemTime},
};

use arc_swap::ArcSwap;
use base64::{Engine, engine::general_purpose::STANDARD};
use parking_lot::Mutex;
use tokio::sync::{Notify, watch};

use crate::{
    Credential, Error, TokenKey, TokenKeys, certificate, files,
    folder::{CLUSTER, FRONT_PROXY, FRONT_PROXY_CLIENT, Names},
    issue::{self, LEAF_LIFETIME, Subject},
    trust::Trust,
};

pub use etcd::{EtcdAuthority, EtcdFiles};
pub use in_use::InUse;
pub use renew::{DynamicCertificate, RENEWAL_INTERVAL};
pub use sign::{SIGNERS, SigningFiles, SigningRequest};
pub use tls::unverified_client_config;

/// Tells the time by which certificates begin and end.
type Now = Arc<dyn Fn() -> SystemTime + Send + Sync>;

/// The cluster's certificate authority, and the key that signs tokens.
pub struct Authority {
    names: Names,
    /// The authority of those who say on whose behalf they ask; `None` for that one itself.
    front_proxy: Option<Box<Self>>,
    trust: ArcSwap<Trust>,
    /// Where credentials are kept; `None` for an authority that lives in memory only.
    dir: Option<PathBuf>,
    known: tls::VerifiedCertificates,
    servers: Arc<tls::Servers>,
    /// What [`Authority::renew`] looks after.
    kept: Mutex<Vec<Weak<DynamicCertificate>>>,
    in_use: Mutex<InUse>,
    sighted: Notify,
    changes: watch::Sender<()>,
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
        let cluster = Self::load_one(dir, CLUSTER)?;
        let this = Self { front_proxy: Some(Box::new(Self::load_one(dir, FRONT_PROXY)?)), ..cluster };
        this.begin_in_use()?;
        Ok(this)
    }

    fn load_one(dir: &Path, names: Names) -> Result<Self, Error> {
        let now = SystemTime::now();
        let (trust, is_new) = Trust::load_or_create(dir, names, now)?;
        if !is_new && !certificate::valid_at(&trust.certificate, now) {
            return Err(Error::Expired(dir.to_owned()));
        }
        Ok(Self { dir: Some(dir.to_owned()), ..Self::of(trust, names)? })
    }

    /// An authority that is never written anywhere, for tests and simulation.
    ///
    /// # Errors
    /// The system gives no randomness.
    pub fn in_memory() -> Result<Self, Error> {
        let token_keys = TokenKeys { signing: Arc::new(TokenKey::generate()?.0), old: None };
        let made = |names: Names| {
            let credential = issue::authority(&names.common_name(), SystemTime::now())?;
            Self::of(Trust::of(&credential, token_keys.clone(), Path::new("memory"))?, names)
        };
        Ok(Self { front_proxy: Some(Box::new(made(FRONT_PROXY)?)), ..made(CLUSTER)? })
    }

    fn of(trust: Trust, names: Names) -> Result<Self, Error> {
        Ok(Self {
            names,
            front_proxy: None,
            servers: tls::Trusted::servers(&trust)?,
            trust: ArcSwap::from_pointee(trust),
            dir: None,
            known: tls::VerifiedCertificates::default(),
            kept: Mutex::default(),
            in_use: Mutex::default(),
            sighted: Notify::new(),
            changes: watch::Sender::new(()),
            now: Arc::new(SystemTime::now),
            leaf_lifetime: LEAF_LIFETIME,
        })
    }

    /// Takes up what [`rotation`] did to the folder, and issues anew what another authority signed. Says whether anything else
    /// is trusted now.
    ///
    /// # Errors
    /// The folder cannot be read or written, or does not hold an authority.
    pub fn reload(&self) -> Result<bool, Error> {
        let mut is_other = self.front_proxy.as_ref().map_or(Ok(false), |it| it.reload_one())?;
        if self.reload_one()? {
            self.begin_in_use()?;
            is_other = true;
        }
        self.renew()?;
        if is_other {
            self.changes.send_replace(());
        }
        Ok(is_other)
    }

    fn reload_one(&self) -> Result<bool, Error> {
        let Some(dir) = &self.dir else { return Ok(false) };
        let trust = Trust::load(dir, self.names)?;
        let is_other = !trust.is_as(&self.trust());
        if is_other {
            self.servers.identity.trust(&trust)?;
            self.trust.store(Arc::new(trust));
            self.known.clear();
        }
        Ok(is_other)
    }

    /// The authority of those who say on whose behalf they ask (the front proxy). What it signs is nobody's identity; for itself,
    /// itself.
    pub fn front_proxy(&self) -> &Self {
        self.front_proxy.as_deref().unwrap_or(self)
    }

    /// What the API server shows to servers that it passes requests on to: they believe its headers for it.
    ///
    /// # Errors
    /// As of issuing and of writing files.
    pub fn front_proxy_client(&self) -> Result<Arc<DynamicCertificate>, Error> {
        self.front_proxy().keep(Some(FRONT_PROXY_CLIENT), &Subject::client(FRONT_PROXY_CLIENT, &[])?)
    }

    /// Has everybody look again who asked for [`Authority::changes`].
    pub fn announce(&self) {
        self.changes.send_replace(());
    }

    /// Tells when anything else is trusted, or a certificate may have ended before its holder reckoned with it.
    pub fn changes(&self) -> watch::Receiver<()> {
        self.changes.subscribe()
    }

    /// Where the authority reads the time, instead of the machine's clock.
    pub fn tell_time(&mut self, now: impl Fn() -> SystemTime + Send + Sync + 'static) {
        self.now = Arc::new(now);
        if let Some(front_proxy) = &mut self.front_proxy {
            front_proxy.now = self.now.clone();
        }
    }

    fn now(&self) -> SystemTime {
        (self.now)()
    }

    fn trust(&self) -> Arc<Trust> {
        self.trust.load_full()
    }

    /// The keys of service accounts' tokens.
    pub fn token_keys(&self) -> TokenKeys {
        self.trust.load().token_keys.clone()
    }

    /// Every authority that is trusted, as PEM: the one that signs, and while it is replaced the one of before.
    pub fn ca_pem(&self) -> String {
        self.trust.load().bundle()
    }

    /// The authority that signs, as PEM.
    pub fn signer_pem(&self) -> String {
        self.trust.load().pem.clone()
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
        self.trust().issue(subject, self.now(), self.leaf_lifetime)
    }

    /// The API server's own credential, good for every name a client may know it by.
    ///
    /// # Errors
    /// As of issuing and of writing files.
    pub fn serving(
        &self,
        host_name: &str,
        domain: &str,
        addresses: &[IpAddr],
    ) -> Result<Arc<DynamicCertificate>, Error> {
        let mut names: Vec<String> = ["localhost", "127.0.0.1", "kubernetes", "kubernetes.default"]
            .into_iter()
            .chain(["kubernetes.default.svc", &*format!("kubernetes.default.svc.{domain}"), host_name])
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
    pub fn kubelet_client(&self) -> Result<Arc<DynamicCertificate>, Error> {
        self.keep(Some("apiserver-kubelet-client"), &Subject::client("kube-apiserver-kubelet-client", &[])?)
    }

    /// A kubeconfig that carries the administrator's credential within.
    ///
    /// # Errors
    /// As of issuing and of writing files.
    pub fn admin_kubeconfig(&self, server_url: &str) -> Result<String, Error> {
        let admin = self.keep(Some("admin"), &Subject::client("kubernetes-admin", &["system:masters"])?)?.credential();
        let (ca, certificate, key) =
            (STANDARD.encode(self.ca_pem()), STANDARD.encode(&admin.certificate), STANDARD.encode(&admin.key));
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

    /// Writes [`Authority::admin_kubeconfig`] to `path`, readable by its owner only, where what it leads to is not there already.
    /// What else somebody has put into the file, such as a namespace, stays until then.
    ///
    /// # Errors
    /// As of [`Authority::admin_kubeconfig`].
    pub fn write_admin_kubeconfig(&self, path: &Path, server_url: &str) -> Result<(), Error> {
        let text = self.admin_kubeconfig(server_url)?;
        let values = text.lines().filter_map(|it| it.trim().split_once(": "));
        let mut values = values.filter(|it| it.0 == "server" || it.0.ends_with("-data"));
        if std::fs::read_to_string(path).is_ok_and(|there| values.all(|it| there.contains(it.1))) {
            return Ok(());
        }
        files::write(path, text.as_bytes(), 0o600)
    }
}

#[cfg(test)]
mod tests;
