//! The node's way to its API servers: a connection that shows the node's certificate, which is replaced before it ends, and trusts
//! the authorities that the cluster publishes, which may be others tomorrow. Where a server is gone, another one is asked.

use std::{
    net::{IpAddr, SocketAddr},
    sync::{
        Arc, OnceLock, PoisonError, RwLock,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
    time::{Duration, SystemTime},
};

use anyhow::{Context, Result};
use bytes::Bytes;
use corten_cli::Failure;
use corten_client::{
    Body, BoxFuture, Client, Error, RequestTallies, Transport, TransportError,
    https::{API_SERVER_NAME, FailoverTransport},
    kubeconfig::{Kubeconfig, RestConfig},
};
use corten_meta::Time;
use corten_pki::{Credential, node_request, public_key_hashes};
use corten_runner::{CertificateWish, request_certificate, signed_certificate};
use http::{Request, Response};
use tokio::{sync::watch, time::MissedTickBehavior};

use super::{
    DEADLINE, JoinedFiles, SIGNER, USAGES, client, discovery,
    servers::{self, KeptServers},
};
use crate::cluster_access::{ClientCertificate, ClusterTrust};

/// How often to look whether the certificate's end is near, or another authority is published.
const PERIOD: Duration = Duration::from_secs(60);
/// How often to ask the API server whether it is ready.
const READY_PERIOD: Duration = Duration::from_secs(10);
/// After so much of its life a certificate is replaced, in parts of ten, as what the kubelet serves with.
const TENTHS: u32 = 8;
/// Beyond it the request is made anew.
const SIGNED_WITHIN: Duration = Duration::from_secs(15 * 60);

/// Who the node is in its cluster. Clones are the same.
#[derive(Clone)]
pub(crate) struct NodeIdentity {
    node: Arc<str>,
    files: Arc<JoinedFiles>,
    current: Arc<RwLock<Current>>,
    changes: Arc<watch::Sender<()>>,
    /// Where the kubelet of this machine serves.
    kubelet: Arc<OnceLock<String>>,
    requests: RequestTallies,
    renew_errors: Arc<AtomicU64>,
}

struct Current {
    /// Its server is the one that the machine joined by.
    target: RestConfig,
    /// Those that the cluster told of, in the order in which they are asked.
    servers: Vec<String>,
    transport: Arc<FailoverTransport>,
    /// The server in the kubeconfig, which a start begins with.
    kept: String,
}

impl Current {
    fn new(target: RestConfig, servers: Vec<String>, first: &str) -> Result<Self> {
        let transport = FailoverTransport::new(target.clone(), &servers, first).context("preparing the connection")?;
        Ok(Self { target, servers, transport: Arc::new(transport), kept: first.to_owned() })
    }

    fn kept_servers(&self) -> KeptServers {
        KeptServers { joined: Some(self.target.server.clone()), learnt: self.servers.clone() }
    }
}

impl NodeIdentity {
    /// What an earlier `join` has kept; `None` where there was none.
    ///
    /// # Errors
    /// The files cannot be read, or do not belong together.
    pub(crate) fn load(node: &str, files: JoinedFiles) -> Result<Option<Self>> {
        if !files.kubeconfig.exists() {
            return Ok(None);
        }
        let config = Kubeconfig::load(&files.kubeconfig)?;
        let Some(credential) = Credential::load(&files.certificate).context("reading the node's certificate")? else {
            return Ok(None);
        };
        anyhow::ensure!(credential.is_whole(), "{} is no certificate with its key", files.certificate.display());
        let mut target = config.target(None)?;
        target.identity = Some(pair(&credential));
        let KeptServers { joined, learnt } = KeptServers::load(&files.servers)?;
        let first = target.server.clone();
        target.server = joined.unwrap_or_else(|| first.clone());
        target.server_name = Some(API_SERVER_NAME.to_owned());
        let current = Arc::new(RwLock::new(Current::new(target, learnt, &first)?));
        let changes = Arc::new(watch::Sender::new(()));
        Ok(Some(Self {
            node: node.into(),
            files: Arc::new(files),
            current,
            changes,
            kubelet: Arc::default(),
            requests: RequestTallies::default(),
            renew_errors: Arc::default(),
        }))
    }

    /// Where it is counted what the node asks of API servers.
    pub(crate) fn requests(&self) -> RequestTallies {
        self.requests.clone()
    }

    fn client(&self) -> Client {
        Client::new(Arc::new(self.clone())).with_deadline(DEADLINE).with_request_tallies(self.requests())
    }

    /// Says where the kubelet of this machine serves, for who asks the node itself.
    ///
    /// # Errors
    /// The kubeconfig for that cannot be written.
    pub(crate) fn serves_at(&self, address: IpAddr, port: u16) -> Result<()> {
        // The first word holds.
        let _ = self.kubelet.set(format!("https://{}", SocketAddr::new(address, port)));
        self.keep_node_kubeconfig()
    }

    /// With it root of the machine asks the node itself, by the node's own certificate.
    fn keep_node_kubeconfig(&self) -> Result<()> {
        let Some(kubelet) = self.kubelet.get() else { return Ok(()) };
        let target = RestConfig { server: kubelet.clone(), server_name: None, ..self.target() };
        let config = Kubeconfig::with_files(&target, &format!("system:node:{}", self.node), &self.files.certificate);
        config.save(&self.files.node_kubeconfig).context("keeping how the node itself is asked")
    }

    /// The server that is asked now.
    pub(crate) fn server(&self) -> String {
        self.transport().server()
    }

    /// Is this the address of a server of the node's cluster, or the hash of an authority that it trusts?
    pub(crate) fn is_of(&self, server: &str, ca_hash: Option<&str>) -> bool {
        self.has_server(server) || public_key_hashes(&self.ca_pem()).iter().any(|it| Some(it.0.as_str()) == ca_hash)
    }

    fn has_server(&self, server: &str) -> bool {
        [self.server(), self.target().server].iter().chain(&self.servers()).any(|it| it == server)
    }

    /// The machine was told to join the same cluster by this URL. Where it is a new one it is asked first from now on: those that are
    /// known may all be gone. It has to answer as an API server whose authority is trusted already.
    ///
    /// # Errors
    /// It is no URL of a server, it is not reached or is another's, or it cannot be kept.
    pub(crate) async fn join_by(&self, server: &str) -> Result<()> {
        if self.has_server(server) {
            return Ok(());
        }
        let target = RestConfig { server: server.to_owned(), ..self.target() };
        if let Err(Error::Transport(error)) = client(&target)?.get_path("/readyz").await {
            let mut failure = Failure::new(format!("the API server {server} is not reached: {error}"));
            failure.details.push(format!("this machine goes on asking {}", self.server()));
            return Err(failure.next("corten join # as before").into());
        }
        let current = Current::new(target, self.servers(), server)?;
        current.kept_servers().save(&self.files.servers)?;
        self.keep_kubeconfig(&current.transport.current_target())?;
        *self.current.write().unwrap_or_else(PoisonError::into_inner) = current;
        Ok(())
    }

    /// When the certificate ends, where that has passed.
    pub(crate) fn has_ended(&self) -> Option<SystemTime> {
        let (_, end) = self.credential()?.lifetime()?;
        (end <= SystemTime::now()).then_some(end)
    }

    /// Keeps certificate and trust good until `stopping` is ready.
    pub(crate) async fn keep(self, stopping: impl Future<Output = ()> + Send) {
        let work = async {
            loop {
                if let Err(error) = self.look().await {
                    tracing::warn!(error = format!("{error:#}"), "the node's certificate is not looked after");
                }
                self.until_due().await;
            }
        };
        tokio::select! {
            biased;
            () = stopping => {}
            () = work => {}
            // Beside the work, which may wait for a server that is not ready.
            () = self.check_ready() => {}
        }
    }

    /// Leaves a server that is not ready where another one is.
    async fn check_ready(&self) {
        let mut checks = tokio::time::interval(READY_PERIOD);
        checks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            checks.tick().await;
            self.transport().check_ready().await;
        }
    }

    /// Until it is time to look again. Meanwhile it is kept on disk which server is asked.
    async fn until_due(&self) {
        let due = tokio::time::Instant::now() + PERIOD;
        let mut moves = self.transport().moves();
        loop {
            if let Err(error) = self.keep_server() {
                tracing::warn!(error = format!("{error:#}"), "which API server is asked is not kept");
            }
            if !matches!(tokio::time::timeout_at(due, moves.changed()).await, Ok(Ok(()))) {
                return;
            }
        }
    }

    /// Writes which server is asked, where that is another one than what is written.
    fn keep_server(&self) -> Result<()> {
        let target = self.transport().current_target();
        if target.server == self.current.read().unwrap_or_else(PoisonError::into_inner).kept {
            return Ok(());
        }
        self.keep_kubeconfig(&target)?;
        self.current.write().unwrap_or_else(PoisonError::into_inner).kept = target.server;
        Ok(())
    }

    async fn look(&self) -> Result<()> {
        // An authority that follows another is told of by a server whom one that is trusted now has signed for, and where only who
        // runs the cluster writes: not in kube-public, as before this node was one.
        let client = self.client();
        match discovery::trusted(&client).await {
            Ok(published) if is_other(&published, &self.ca_pem()) => {
                tracing::info!("the cluster trusts other authorities");
                self.replace(|target| target.ca = published.into_bytes())?;
                self.changes.send_replace(());
            }
            Ok(_) => {}
            // What is trusted stays.
            Err(reason) => tracing::debug!(reason, "which authorities the cluster trusts is not known"),
        }
        match servers::published(&client, &self.node).await {
            Ok(published) if !published.is_empty() && published != self.servers() => {
                tracing::info!(servers = published.join(" "), "the cluster has these API servers");
                let mut current = self.current.write().unwrap_or_else(PoisonError::into_inner);
                current.transport.set_servers(&published).context("preparing the connections")?;
                current.servers = published;
                current.kept_servers().save(&self.files.servers)?;
            }
            Ok(_) => {}
            // Those that are known stay.
            Err(reason) => tracing::debug!(reason, "which API servers the cluster has is not known"),
        }
        let Some(credential) = self.credential() else { return Ok(()) };
        if credential.is_signed_by(&self.signer_pem()) && !is_due(&credential, SystemTime::now()) {
            return Ok(());
        }
        let renewed = self.renew().await;
        if renewed.is_err() {
            self.renew_errors.fetch_add(1, Relaxed);
        }
        renewed
    }

    async fn renew(&self) -> Result<()> {
        let (request, key) = node_request(&self.node).context("making the node's key")?;
        let client = self.client();
        let wish = CertificateWish { request: &request, signer: SIGNER, usages: USAGES };
        let asked = request_certificate(&client, wish).await.context("asking for the node's next certificate")?;
        let signed = tokio::time::timeout(SIGNED_WITHIN, signed_certificate(&client, &asked)).await;
        let certificate = signed.context("the request was not answered in time")?.map_err(anyhow::Error::msg)?;
        let credential = Credential { certificate, key };
        anyhow::ensure!(credential.is_whole(), "the certificate of {} is for another key", asked.name);
        credential.save(&self.files.certificate).context("keeping the node's certificate")?;
        self.replace(|target| target.identity = Some(pair(&credential)))?;
        tracing::info!(request = asked.name, "the node shows a new certificate");
        Ok(())
    }

    fn replace(&self, change: impl FnOnce(&mut RestConfig)) -> Result<()> {
        let mut target = self.target();
        change(&mut target);
        let current = Current::new(target, self.servers(), &self.server())?;
        self.keep_kubeconfig(&current.transport.current_target())?;
        *self.current.write().unwrap_or_else(PoisonError::into_inner) = current;
        self.keep_node_kubeconfig()
    }

    fn keep_kubeconfig(&self, target: &RestConfig) -> Result<()> {
        let user = format!("system:node:{}", self.node);
        let config = Kubeconfig::with_files(target, &user, &self.files.certificate);
        config.save(&self.files.kubeconfig).context("keeping whom the node trusts")
    }

    fn target(&self) -> RestConfig {
        self.current.read().unwrap_or_else(PoisonError::into_inner).target.clone()
    }

    fn servers(&self) -> Vec<String> {
        self.current.read().unwrap_or_else(PoisonError::into_inner).servers.clone()
    }

    fn transport(&self) -> Arc<FailoverTransport> {
        self.current.read().unwrap_or_else(PoisonError::into_inner).transport.clone()
    }

    fn credential(&self) -> Option<Credential> {
        let (certificate, key) = self.target().identity?;
        let text = |it: Vec<u8>| String::from_utf8(it).ok();
        Some(Credential { certificate: text(certificate)?, key: text(key)? })
    }
}

impl Transport for NodeIdentity {
    fn send(&self, request: Request<Bytes>) -> BoxFuture<'_, Result<Response<Body>, TransportError>> {
        let transport = self.transport();
        Box::pin(async move { transport.send(request).await })
    }

    fn host(&self) -> Option<Arc<str>> {
        self.transport().host()
    }
}

impl ClusterTrust for NodeIdentity {
    fn ca_pem(&self) -> String {
        String::from_utf8_lossy(&self.target().ca).into_owned()
    }

    /// The first that is published: the one that signs.
    fn signer_pem(&self) -> String {
        public_key_hashes(&self.ca_pem()).into_iter().next().map(|it| it.1).unwrap_or_default()
    }

    fn changes(&self) -> watch::Receiver<()> {
        self.changes.subscribe()
    }

    fn client_certificate(&self) -> ClientCertificate {
        let until = self.credential().and_then(|it| it.lifetime()).map(|it| time(it.1));
        ClientCertificate { until, renew_errors: self.renew_errors.load(Relaxed) }
    }
}

fn pair(credential: &Credential) -> (Vec<u8>, Vec<u8>) {
    (credential.certificate.clone().into_bytes(), credential.key.clone().into_bytes())
}

fn time(at: SystemTime) -> Time {
    let since = at.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    Time::from_unix_seconds(i64::try_from(since.as_secs()).unwrap_or(i64::MAX))
}

/// However the same certificates are written.
fn is_other(published: &str, trusted: &str) -> bool {
    let published = public_key_hashes(published);
    !published.is_empty() && published != public_key_hashes(trusted)
}

fn is_due(credential: &Credential, now: SystemTime) -> bool {
    let Some((begin, end)) = credential.lifetime() else { return true };
    let life = end.duration_since(begin).unwrap_or_default();
    now >= begin + life / 10 * TENTHS
}

#[cfg(test)]
mod tests {
    use corten_pki::Authority;

    use super::*;

    /// Its cluster signs with another key now, and nobody answers.
    #[tokio::test]
    async fn a_certificate_that_is_not_renewed_is_counted_and_tells_its_end() {
        let dir = tempfile::tempdir().expect("a temporary folder");
        let files = JoinedFiles::of(dir.path());
        let (before, now) = (Authority::in_memory().expect("a key"), Authority::in_memory().expect("a key"));
        let credential = before.issue_client("system:node:n1", &["system:nodes"]).expect("issued");
        let target = RestConfig {
            // Nobody listens at the port of discarded data.
            server: "https://127.0.0.1:9".into(),
            ca: now.ca_pem().into_bytes(),
            identity: None,
            token: None,
            server_name: None,
            insecure_skip_tls_verify: false,
            namespace: String::new(),
        };
        std::fs::create_dir_all(files.certificate.parent().expect("a folder")).expect("made");
        credential.save(&files.certificate).expect("written");
        let config = Kubeconfig::with_files(&target, "system:node:n1", &files.certificate);
        config.save(&files.kubeconfig).expect("written");
        let identity = NodeIdentity::load("n1", files).expect("readable").expect("there");
        for n in 1..=2 {
            identity.look().await.expect_err("nobody signs");
            assert_eq!(identity.client_certificate().renew_errors, n);
        }
        let end = credential.lifetime().map(|it| time(it.1));
        assert_eq!(identity.client_certificate().until, end);
        let asked = identity.requests().tallies();
        let rows: Vec<String> = asked.iter().flat_map(|it| it.rows()).map(|it| it.labels.join(" ")).collect();
        assert!(rows.contains(&"<error> POST 127.0.0.1:9".to_owned()), "{rows:?}");
    }
}
