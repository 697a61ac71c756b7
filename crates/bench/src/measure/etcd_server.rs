//! Servers of etcd's API, each of which ends when it is dropped: the etcd that Debian packages, and `corten etcd`.

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    sync::Arc,
    time::{Duration, Instant},
};

use anyhow::{Context, Result};
use corten_etcd::{EtcdStore, Options, TlsFiles};
use corten_store::Limits;
use corten_testbed::{cpu_of, free_port};

/// Of a folder: what `corten etcd` has to itself, with the certificates.
const OWN: &str = "corten";
const READY_WAIT: Duration = Duration::from_secs(30);
const RETRY: Duration = Duration::from_millis(100);

/// What a server shows and trusts, and what it is asked with: certificates with their keys.
#[derive(Clone, Debug)]
pub(super) struct EtcdFiles {
    pub(super) ca: PathBuf,
    pub(super) server: (PathBuf, PathBuf),
    pub(super) client: (PathBuf, PathBuf),
}

pub(super) struct EtcdServer {
    process: Child,
    port: u16,
    files: EtcdFiles,
}

impl Drop for EtcdServer {
    fn drop(&mut self) {
        // It may be gone already.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

impl EtcdServer {
    /// It makes its certificates itself.
    pub(super) fn corten(program: &Path, folder: &Path) -> Result<Self> {
        let port = free_port()?;
        let mut command = Command::new(program);
        command.args(["etcd", "--listen", &format!("127.0.0.1:{port}"), "--data-dir"]).arg(folder.join(OWN));
        let file = |name: &str| folder.join(OWN).join("pki").join(name);
        let pair = |name: &str| (file(&format!("{name}.crt")), file(&format!("{name}.key")));
        let files =
            EtcdFiles { ca: file("etcd/ca.crt"), server: pair("etcd/server"), client: pair("apiserver-etcd-client") };
        Self::start(command, folder, port, files)
    }

    /// With every write on the disk before it is answered.
    pub(super) fn etcd(programs: &Path, folder: &Path, files: &EtcdFiles) -> Result<Self> {
        let (port, peer) = (free_port()?, format!("http://127.0.0.1:{}", free_port()?));
        let url = format!("https://127.0.0.1:{port}");
        let mut command = Command::new(programs.join("etcd"));
        command
            .arg("--data-dir")
            .arg(folder.join("debian"))
            .args(["--listen-client-urls", &url, "--advertise-client-urls", &url])
            .args(["--listen-peer-urls", &peer, "--initial-advertise-peer-urls", &peer])
            .args(["--initial-cluster", &format!("default={peer}"), "--log-level", "error", "--client-cert-auth"])
            .arg("--trusted-ca-file")
            .arg(&files.ca)
            .arg("--cert-file")
            .arg(&files.server.0)
            .arg("--key-file")
            .arg(&files.server.1);
        Self::start(command, folder, port, files.clone())
    }

    fn start(mut command: Command, folder: &Path, port: u16, files: EtcdFiles) -> Result<Self> {
        let log = fs::File::create(folder.join(format!("etcd-api-{port}.log"))).context("writing its log")?;
        let process = command.stdout(Stdio::null()).stderr(log).spawn().context("starting a server of etcd's API")?;
        Ok(Self { process, port, files })
    }

    pub(super) fn files(&self) -> &EtcdFiles {
        &self.files
    }

    pub(super) fn url(&self) -> String {
        format!("https://127.0.0.1:{}", self.port)
    }

    /// Processor time used so far.
    pub(super) fn cpu(&self) -> Result<Duration> {
        cpu_of(self.process.id())
    }

    /// A client with a connection of its own.
    pub(super) async fn connect(&self) -> Result<Arc<EtcdStore>> {
        self.connect_below("/registry").await
    }

    /// Of what has this prefix.
    pub(super) async fn connect_below(&self, prefix: &str) -> Result<Arc<EtcdStore>> {
        let tls = Some(TlsFiles { ca: self.files.ca.clone(), client: Some(self.files.client.clone()) });
        let options = Options { servers: vec![self.url()], tls, prefix: prefix.into() };
        let end = Instant::now() + READY_WAIT;
        loop {
            match EtcdStore::connect(&options, Limits::default()).await {
                Ok(store) => return Ok(Arc::new(store)),
                Err(_) if Instant::now() < end => tokio::time::sleep(RETRY).await,
                Err(error) => return Err(error.into()),
            }
        }
    }
}
