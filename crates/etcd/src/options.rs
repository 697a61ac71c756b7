//! Which etcd it is, and how it is reached.

use std::path::PathBuf;

/// What kube-apiserver is told with the same flags.
#[derive(Clone, Debug)]
pub struct Options {
    /// `--etcd-servers`
    pub servers: Vec<String>,
    /// `--etcd-cafile`, `--etcd-certfile`, `--etcd-keyfile`
    pub tls: Option<TlsFiles>,
    /// `--etcd-prefix`
    pub prefix: String,
}

#[derive(Clone, Debug)]
pub struct TlsFiles {
    pub ca: PathBuf,
    /// The certificate that etcd is shown, and its key.
    pub client: Option<(PathBuf, PathBuf)>,
}
