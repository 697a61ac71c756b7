//! The API servers that are compared. Each ends when it is dropped.

use std::{
    fs,
    path::Path,
    process::Command,
    time::{Duration, Instant},
};

use anyhow::{Context, Result};
use corten_client::kubeconfig::Kubeconfig;
use corten_testbed::{ControlPlane, Data, Launcher, expect, free_port};
use hyper::{Method, StatusCode};

use super::{super::etcd_server::EtcdServer, certificates::Certificates};

const PATIENCE: Duration = Duration::from_secs(60);
const RETRY: Duration = Duration::from_millis(50);
const ACCOUNTS: &str = "/api/v1/namespaces/default/serviceaccounts";

pub(super) struct Server {
    pub(super) name: &'static str,
    pub(super) plane: ControlPlane,
    _data: Data,
}

impl Server {
    /// `etcd`: where it keeps the cluster, if not in its folder.
    pub(super) async fn corten(
        name: &'static str,
        launcher: &Launcher,
        etcd: Option<(&EtcdServer, &str)>,
    ) -> Result<Self> {
        let (data, options) = (Data::new()?, etcd.map(|(etcd, prefix)| etcd_options(etcd, prefix)));
        let (plane, _) = launcher.start_with(&data, &options.unwrap_or_default()).await?;
        Ok(Self { name, plane, _data: data })
    }

    /// With the admission that it has by default, and whom it needs for it.
    pub(super) async fn upstream(
        program: &Path,
        etcd: (&EtcdServer, &str),
        certificates: &Certificates,
    ) -> Result<Self> {
        let (data, port, name) = (Data::new()?, free_port()?, "kube-apiserver");
        let kubeconfig = data.path().join("kubeconfig");
        fs::write(&kubeconfig, kubeconfig_of(certificates, port)?).context("writing a kubeconfig")?;
        let (serving, accounts) = (certificates.pair(name, None)?, certificates.pair("accounts", None)?);
        let mut command = Command::new(program);
        command.args(etcd_options(etcd.0, etcd.1)).arg("--cert-dir").arg(data.path().join("certificates"));
        command.args(["--bind-address", "127.0.0.1", "--secure-port", &port.to_string()]);
        // Nobody but this asks it: no Service leads to it.
        command.args(["--advertise-address", "127.0.0.1", "--endpoint-reconciler-type", "none"]);
        command.args(["--authorization-mode", "Node,RBAC", "--service-cluster-ip-range", "10.96.0.0/16"]);
        command.args(["--service-account-issuer", "https://kubernetes.default.svc"]);
        for (option, file) in [
            ("--client-ca-file", &certificates.ca()),
            ("--tls-cert-file", &serving.0),
            ("--tls-private-key-file", &serving.1),
            ("--service-account-key-file", &accounts.0),
            ("--service-account-signing-key-file", &accounts.1),
        ] {
            command.arg(option).arg(file);
        }
        let (plane, _) = ControlPlane::start(command, &data, (&kubeconfig, port)).await?;
        make_account(&plane).await?;
        Ok(Self { name, plane, _data: data })
    }
}

fn kubeconfig_of(certificates: &Certificates, port: u16) -> Result<Vec<u8>> {
    let admin = certificates.pair("admin", Some("system:masters"))?;
    let [ca, certificate, key] = [&certificates.ca(), &admin.0, &admin.1].map(fs::read);
    let server = format!("https://127.0.0.1:{port}");
    let config = Kubeconfig::embedded("bench", "admin", &server, &ca?, &certificate?, &key?);
    Ok(serde_json::to_vec(&config)?)
}

/// Pods run as somebody, whom a controller of another program would make.
async fn make_account(server: &ControlPlane) -> Result<()> {
    let account = r#"{"kind":"ServiceAccount","apiVersion":"v1","metadata":{"name":"default"}}"#;
    let (mut connection, end) = (server.connect().await?, Instant::now() + PATIENCE);
    loop {
        match connection.send(Method::POST, ACCOUNTS, account.into()).await? {
            (StatusCode::CREATED | StatusCode::CONFLICT, _) => return Ok(()),
            // The namespace comes a moment after the server is ready.
            (StatusCode::NOT_FOUND | StatusCode::FORBIDDEN, _) if Instant::now() < end => {
                tokio::time::sleep(RETRY).await;
            }
            (status, body) => return expect(status, StatusCode::CREATED, ACCOUNTS, &body),
        }
    }
}

/// Corten has Kubernetes's words for them.
fn etcd_options(etcd: &EtcdServer, prefix: &str) -> Vec<String> {
    let files = etcd.files();
    let options = [
        ("servers", etcd.url()),
        ("prefix", prefix.to_owned()),
        ("cafile", files.ca.display().to_string()),
        ("certfile", files.client.0.display().to_string()),
        ("keyfile", files.client.1.display().to_string()),
    ];
    options.into_iter().map(|(name, value)| format!("--etcd-{name}={value}")).collect()
}
