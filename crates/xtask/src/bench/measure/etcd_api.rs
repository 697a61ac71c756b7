//! etcd's API over the embedded store (`corten etcd`), beside the etcd that Debian packages, where `cargo xtask etcd --fetch` has
//! fetched it: both on one disk, one after the other, with TLS, asked by the client that `corten server --etcd-servers` has.

use std::{
    fs,
    path::Path,
    process::{Child, Command, Stdio},
    sync::Arc,
    time::{Duration, Instant},
};

use anyhow::{Context, Result};
use corten_etcd::{EtcdStore, Options, TlsFiles};
use corten_store::{Limits, Operation, Range, Store, Txn};
use futures_util::future::join_all;

use super::super::report::{Row, Unit};
use crate::{
    etcd,
    real::{Data, Launcher, free_port},
    tidy::root,
};

const VALUE_BYTES: usize = 1_024;
const CLIENTS: [usize; 2] = [1, 64];
const KEYS_OF_RANGE: usize = 1_000;
const READY_WAIT: Duration = Duration::from_secs(30);
const RETRY: Duration = Duration::from_millis(100);

#[derive(Clone, Copy)]
pub(super) struct Load {
    pub(super) time: Duration,
    pub(super) watchers: usize,
    pub(super) watched_writes: usize,
}

/// What was measured of one of the two, in the order of [`NAMES`].
type Figures = [f64; 4];

const NAMES: [(&str, Unit); 4] = [
    ("etcd's API: puts of 1 KiB, 1 client", Unit::PerSecond),
    ("etcd's API: puts of 1 KiB, 64 clients", Unit::PerSecond),
    ("etcd's API: ranges of 1,000 keys of 1 KiB, 1 client", Unit::PerSecond),
    ("etcd's API: a put until all watchers are told", Unit::Milliseconds),
];

pub(super) async fn measure(launcher: &Launcher, load: Load, rows: &mut Vec<Row>) -> Result<()> {
    let data = Data::new()?;
    let own = Running::corten(launcher.program(), data.path())?;
    let ours = figures(&own, load).await.context("measuring corten etcd")?;
    drop(own);
    let theirs = match etcd::fetched(&root()?) {
        // It shows and trusts the same certificates.
        Some(programs) => Some(figures(&Running::etcd(&programs, data.path())?, load).await.context("measuring etcd")?),
        None => None,
    };
    for (at, (name, unit)) in NAMES.into_iter().enumerate() {
        let of = if at == 3 { format!("{} watchers of one key; ", load.watchers) } else { String::new() };
        let row = Row::new(name, ours[at], unit);
        rows.push(match theirs {
            Some(theirs) => row.note(format!("{of}beside it etcd on the same disk")).kubernetes(theirs[at]),
            None => row.note(format!("{of}`cargo xtask etcd --fetch` puts etcd beside it")),
        });
    }
    Ok(())
}

/// A server of etcd's API, which ends when it is dropped.
struct Running {
    process: Child,
    options: Options,
}

impl Drop for Running {
    fn drop(&mut self) {
        // It may be gone already.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

impl Running {
    fn corten(program: &Path, data: &Path) -> Result<Self> {
        let port = free_port()?;
        let mut command = Command::new(program);
        command.args(["etcd", "--listen", &format!("127.0.0.1:{port}"), "--data-dir"]).arg(data);
        Self::start(command, data, port)
    }

    fn etcd(programs: &Path, data: &Path) -> Result<Self> {
        let (port, peer) = (free_port()?, format!("http://127.0.0.1:{}", free_port()?));
        let url = format!("https://127.0.0.1:{port}");
        let file = |name: &str| data.join("pki/etcd").join(name);
        let mut command = Command::new(programs.join("etcd"));
        command
            .arg("--data-dir")
            .arg(data.join("debian"))
            .args(["--listen-client-urls", &url, "--advertise-client-urls", &url])
            .args(["--listen-peer-urls", &peer, "--initial-advertise-peer-urls", &peer])
            .args(["--initial-cluster", &format!("default={peer}"), "--log-level", "error", "--client-cert-auth"])
            .arg("--trusted-ca-file")
            .arg(file("ca.crt"))
            .arg("--cert-file")
            .arg(file("server.crt"))
            .arg("--key-file")
            .arg(file("server.key"));
        Self::start(command, data, port)
    }

    fn start(mut command: Command, data: &Path, port: u16) -> Result<Self> {
        let log = fs::File::create(data.join("etcd-api.log")).context("writing its log")?;
        let process = command.stdout(Stdio::null()).stderr(log).spawn().context("starting a server of etcd's API")?;
        let pki = data.join("pki");
        let client = Some((pki.join("apiserver-etcd-client.crt"), pki.join("apiserver-etcd-client.key")));
        let tls = Some(TlsFiles { ca: pki.join("etcd/ca.crt"), client });
        let servers = vec![format!("https://127.0.0.1:{port}")];
        Ok(Self { process, options: Options { servers, tls, prefix: "/registry".into() } })
    }

    /// A client with a connection of its own.
    async fn connect(&self) -> Result<Arc<EtcdStore>> {
        let end = Instant::now() + READY_WAIT;
        loop {
            match EtcdStore::connect(&self.options, Limits::default()).await {
                Ok(store) => return Ok(Arc::new(store)),
                Err(_) if Instant::now() < end => tokio::time::sleep(RETRY).await,
                Err(error) => return Err(error.into()),
            }
        }
    }
}

async fn figures(server: &Running, load: Load) -> Result<Figures> {
    let mut puts = Vec::new();
    for n_clients in CLIENTS {
        puts.push(puts_per_second(server, n_clients, load.time).await?);
    }
    Ok([puts[0], puts[1], ranges_per_second(server, load.time).await?, told_in(server, load).await?])
}

async fn put(store: &EtcdStore, key: String) -> Result<u64> {
    let operations = vec![Operation::Put { key: key.into(), value: vec![b'x'; VALUE_BYTES].into() }];
    store.commit(Txn { compares: Vec::new(), operations }).await?;
    Ok(store.revision())
}

async fn puts_per_second(server: &Running, n_clients: usize, time: Duration) -> Result<f64> {
    let connected = join_all((0..n_clients).map(|_| server.connect())).await;
    let stores = connected.into_iter().collect::<Result<Vec<_>>>()?;
    let begun = Instant::now();
    let writing = stores.iter().enumerate().map(async |(client, store)| {
        let mut n = 0_u64;
        while begun.elapsed() < time {
            put(store, format!("/registry/puts/{client}/{}", n % 1_000)).await?;
            n += 1;
        }
        Ok::<_, anyhow::Error>(n)
    });
    let written = join_all(writing).await.into_iter().sum::<Result<u64>>()?;
    Ok(written as f64 / begun.elapsed().as_secs_f64())
}

async fn ranges_per_second(server: &Running, time: Duration) -> Result<f64> {
    let store = server.connect().await?;
    for n in 0..KEYS_OF_RANGE {
        put(&store, format!("/registry/ranges/{n:04}")).await?;
    }
    let (begun, mut n) = (Instant::now(), 0_u64);
    while begun.elapsed() < time {
        let page = store.range(Range::prefix("/registry/ranges/"), None, KEYS_OF_RANGE).await?;
        anyhow::ensure!(page.entries.len() == KEYS_OF_RANGE, "a range is not whole");
        n += 1;
    }
    Ok(n as f64 / begun.elapsed().as_secs_f64())
}

/// Milliseconds, the middle of several puts.
async fn told_in(server: &Running, load: Load) -> Result<f64> {
    let store = server.connect().await?;
    let after = store.newest().await?;
    let range = || Range::prefix("/registry/watched");
    let begun = join_all((0..load.watchers).map(|_| store.watch(range(), after))).await;
    let mut watches = begun.into_iter().collect::<Result<Vec<_>, _>>()?;
    let mut times = Vec::new();
    for _ in 0..load.watched_writes {
        let begun = Instant::now();
        put(&store, "/registry/watched".into()).await?;
        for told in join_all(watches.iter_mut().map(|it| it.next())).await {
            told?;
        }
        times.push(begun.elapsed());
    }
    times.sort();
    Ok(times[times.len() / 2].as_secs_f64() * 1e3)
}
