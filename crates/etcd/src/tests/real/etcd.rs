//! One etcd in a folder of its own, which ends with the test.

use std::{
    os::unix::net::UnixDatagram,
    path::PathBuf,
    process::{Child, Command, Stdio},
    time::Duration,
};

/// A slow disk, and all processors taken.
const READY_WAIT: Duration = Duration::from_secs(60);

pub(super) struct Etcd {
    url: String,
    process: Child,
    _folder: tempfile::TempDir,
}

impl Etcd {
    pub(super) fn start(options: &[&str]) -> Self {
        let programs = std::env::var_os("CORTEN_ETCD").expect("`cargo xtask etcd` names the folder with etcd");
        let folder = tempfile::tempdir().expect("a folder");
        let url = free_address();
        let peer = free_address();
        // etcd says when it is ready, as it says to systemd.
        let socket = folder.path().join("notify");
        let ready = UnixDatagram::bind(&socket).expect("a socket");
        let process = Command::new(PathBuf::from(programs).join("etcd"))
            .arg("--data-dir")
            .arg(folder.path().join("data"))
            .args(["--listen-client-urls", &url, "--advertise-client-urls", &url])
            .args(["--listen-peer-urls", &peer, "--initial-advertise-peer-urls", &peer])
            .args(["--initial-cluster", &format!("default={peer}"), "--initial-cluster-token", &url])
            .args(["--unsafe-no-fsync", "--log-level", "error"])
            .args(options)
            .env("NOTIFY_SOCKET", &socket)
            .stdout(Stdio::null())
            .spawn()
            .expect("etcd starts");
        let this = Self { url, process, _folder: folder };
        ready.set_read_timeout(Some(READY_WAIT)).expect("a deadline");
        let mut said = [0; 64];
        let n = ready.recv(&mut said).expect("etcd becomes ready");
        assert!(said[..n].starts_with(b"READY=1"), "{:?}", &said[..n]);
        this
    }

    pub(super) fn url(&self) -> &str {
        &self.url
    }
}

impl Drop for Etcd {
    fn drop(&mut self) {
        // It may be gone already.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn free_address() -> String {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a free port");
    format!("http://{}", listener.local_addr().expect("it is bound"))
}
