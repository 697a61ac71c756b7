//! The store itself: every operation is a request to etcd, and every watch a stream of its own.

use std::sync::{
    Arc,
    atomic::{AtomicBool, AtomicU64, Ordering::Relaxed},
};

use bytes::Bytes;
use corten_etcd_api::{
    CompactionRequest, CompactionResponse, RangeRequest, RangeResponse,
    method::{COMPACT, RANGE},
};
use corten_store::{BoxFuture, Changes, DiskUse, Entry, Error, Limits, Outcome, Page, Range, Revision, Store, Txn};
use parking_lot::Mutex;
use tokio::{
    sync::watch,
    time::{Duration, timeout},
};

use crate::{
    client::{Client, Shared},
    commit::Commit,
    forgotten::Forgotten,
    health::Health,
    keys::Keys,
    reads::Reads,
    watch::{EtcdChanges, Follower},
};

/// Watches tell what was committed before the end for so long.
const CLOSE_WAIT: Duration = Duration::from_secs(3);

pub struct EtcdStore {
    client: Shared,
    keys: Keys,
    limits: Limits,
    forgotten: Arc<Forgotten>,
    health: Arc<Health>,
    closing: watch::Sender<bool>,
    is_closed: AtomicBool,
    newest: Arc<NewestReads>,
}

/// Who asks for the newest revision at the same time shares an answer: one that was asked for after they came.
#[derive(Default)]
struct NewestReads {
    n_begun: AtomicU64,
    last: Mutex<Option<Result<Revision, Error>>>,
    turn: tokio::sync::Mutex<()>,
}

impl NewestReads {
    async fn read(&self, n_begun: u64, client: &Client, health: &Health, key: Bytes) -> Result<Revision, Error> {
        let _turn = self.turn.lock().await;
        if self.n_begun.load(Relaxed) > n_begun
            && let Some(last) = self.last.lock().clone()
        {
            return last;
        }
        self.n_begun.fetch_add(1, Relaxed);
        *self.last.lock() = None;
        let revision = ask_newest(client, health, key).await;
        *self.last.lock() = Some(revision.clone());
        revision
    }
}

/// A read that goes through etcd's consensus, of no key that there is: kube-apiserver asks for its health so.
async fn ask_newest(client: &Client, health: &Health, key: Bytes) -> Result<Revision, Error> {
    let question = RangeRequest { key, count_only: true, ..RangeRequest::default() };
    let before = client.newest();
    let answer: RangeResponse = client.read(RANGE, &question).await.map_err(|it| it.unavailable())?;
    let revision = answer.header.map_or(0, |it| it.revision.unsigned_abs());
    if revision < before {
        let lost = format!(
            "etcd has gone back from revision {before} to {revision}, as after it was restored from a snapshot: start again"
        );
        health.break_down(lost.clone());
        return Err(Error::Unavailable(lost));
    }
    Ok(revision)
}

impl EtcdStore {
    pub(crate) fn new(client: Shared, keys: Keys, limits: Limits) -> Self {
        Self {
            client,
            keys,
            limits,
            forgotten: Arc::default(),
            health: Arc::default(),
            closing: watch::Sender::new(false),
            is_closed: AtomicBool::new(false),
            newest: Arc::new(NewestReads::default()),
        }
    }

    /// Looks after etcd's members and their disk until `ended`.
    pub fn keep(&self, ended: watch::Receiver<bool>) -> impl Future<Output = ()> + Send + use<> {
        self.health.clone().follow(self.client.clone(), ended)
    }

    /// The number by which etcd tells its clusters apart, in the form that etcdctl shows.
    pub fn cluster(&self) -> String {
        format!("{:x}", self.client.cluster().unwrap_or_default())
    }

    /// Asks these members from now on.
    ///
    /// # Errors
    /// An address is none; then those of before are asked.
    pub fn set_members(&self, urls: &[String]) -> Result<(), String> {
        self.client.set_members(urls)
    }

    pub(crate) fn client(&self) -> &Client {
        &self.client
    }

    pub(crate) fn outside(&self, key: &Bytes) -> Bytes {
        self.keys.outside(key)
    }

    fn reads(&self) -> Reads<'_> {
        Reads { client: &self.client, keys: &self.keys, forgotten: &self.forgotten }
    }

    fn open(&self) -> Result<(), Error> {
        if self.is_closed.load(Relaxed) { Err(Error::Closed) } else { Ok(()) }
    }

    /// A task of its own takes its turn: a reader that is no longer polled, and not dropped either, would keep it from all others.
    async fn read_newest(&self) -> Result<Revision, Error> {
        let n_begun = self.newest.n_begun.load(Relaxed);
        let key = self.keys.outside(&Bytes::from_static(b"/registry/health"));
        let (newest, client, health) = (self.newest.clone(), self.client.clone(), self.health.clone());
        let reading = tokio::spawn(async move { newest.read(n_begun, &client, &health, key).await });
        reading.await.unwrap_or_else(|it| Err(Error::Unavailable(format!("the newest revision was not read: {it}"))))
    }

    async fn begin_watch(&self, range: Range, after: Revision) -> Result<Box<dyn Changes>, Error> {
        self.open()?;
        if after < self.forgotten.oldest() {
            return Err(self.forgotten.error(after));
        }
        if after > self.client.newest() {
            let newest = self.read_newest().await?;
            if after > newest {
                return Err(Error::Future { asked: after, newest });
            }
        }
        let follower = Follower {
            client: self.client.clone(),
            keys: self.keys.clone(),
            forgotten: self.forgotten.clone(),
            range,
            position: after,
            closing: self.closing.subscribe(),
        };
        Ok(Box::new(EtcdChanges::begin(follower, self.limits)))
    }

    async fn forget(&self, revision: Revision) -> Result<(), Error> {
        self.open()?;
        let question = CompactionRequest { revision: revision.cast_signed(), physical: false };
        match self.client.read::<_, CompactionResponse>(COMPACT, &question).await {
            Ok(_) => {}
            // It is done already.
            Err(failure) if failure.is_compacted() => {}
            Err(failure) => return Err(self.reads().error(&failure, revision)),
        }
        self.forgotten.note(revision);
        Ok(())
    }
}

impl Store for EtcdStore {
    /// The newest that this process has seen.
    fn revision(&self) -> Revision {
        self.client.newest()
    }

    fn newest(&self) -> BoxFuture<'_, Result<Revision, Error>> {
        Box::pin(async move {
            self.open()?;
            self.read_newest().await
        })
    }

    fn is_shared(&self) -> bool {
        true
    }

    fn get(&self, key: &[u8]) -> BoxFuture<'_, Result<Option<Entry>, Error>> {
        let key = self.keys.outside(&Bytes::copy_from_slice(key));
        Box::pin(async move {
            self.open()?;
            let question = RangeRequest { key, ..RangeRequest::default() };
            let answer: RangeResponse = self.client.read(RANGE, &question).await.map_err(|it| it.unavailable())?;
            Ok(answer.kvs.into_iter().next().map(|it| self.keys.entry(it)))
        })
    }

    fn range(&self, range: Range, revision: Option<Revision>, limit: usize) -> BoxFuture<'_, Result<Page, Error>> {
        Box::pin(async move {
            self.open()?;
            self.reads().range(&range, revision, limit).await
        })
    }

    fn commit(&self, txn: Txn) -> BoxFuture<'_, Result<Outcome, Error>> {
        Box::pin(async move {
            self.open()?;
            let outcome = Commit::new(&self.keys, txn)?.run(&self.client).await;
            if let Err(error) = &outcome {
                self.health.refused(error);
            }
            outcome
        })
    }

    fn watch(&self, range: Range, after: Revision) -> BoxFuture<'_, Result<Box<dyn Changes>, Error>> {
        Box::pin(self.begin_watch(range, after))
    }

    fn compact(&self, revision: Revision) -> BoxFuture<'_, Result<(), Error>> {
        Box::pin(self.forget(revision))
    }

    fn writable(&self) -> Result<(), Error> {
        self.open()?;
        self.health.writable(self.client.trouble())
    }

    fn must_be_reopened(&self) -> bool {
        self.health.is_broken_down()
    }

    fn disk_use(&self) -> Option<DiskUse> {
        self.health.disk_use()
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        Box::pin(async move {
            self.is_closed.store(true, Relaxed);
            self.closing.send_replace(true);
            // Until each watch has let go of its end.
            let _ = timeout(CLOSE_WAIT, self.closing.closed()).await;
        })
    }
}
