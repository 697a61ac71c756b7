//! What a joined node keeps of its cluster, for a start while no control plane answers: its Pods and what they are started with, and
//! what their packets and policies follow from.
//!
//! ```text
//! DATA/kubelet/kept/key      one half of the key that all is sealed with
//! DATA/kubelet/kept/<hash>   one list, or what was answered for one Pod: sealed, replaced as a whole, synced
//! ```
//! What cannot be opened counts as nothing: the node then waits for the API. Nothing here is ever the truth while a server answers.

mod book;

use std::{
    collections::{BTreeMap, BTreeSet},
    fs::{self, DirBuilder},
    os::unix::fs::DirBuilderExt,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use anyhow::{Context, Result};
use aws_lc_rs::digest::{SHA256, digest};
use book::{Book, Text};
use bytes::Bytes;
use corten_client::{Kept, KeptChange, KeptList};
use corten_machine::write_whole;
use corten_meta::Key;
use corten_pki::MachineKey;
use parking_lot::Mutex;
use tokio::{sync::Notify, time::Instant};

/// Below the node's data.
const FOLDER: &str = "kubelet/kept";
const KEY: &str = "key";
const MACHINE_ID: &str = "/etc/machine-id";
/// All files together hold no more.
const BYTES_MAX: u64 = 256 << 20;
/// What nobody has asked for by so long after a server has answered belongs to Pods that are gone.
const PRUNED_AFTER: Duration = Duration::from_secs(600);

pub(crate) struct KeptStore {
    dir: PathBuf,
    key: MachineKey,
    state: Mutex<State>,
    changed: Notify,
}

#[derive(Default)]
struct State {
    /// What an earlier run has written, as text, until it is known anew.
    before: BTreeMap<String, Vec<u8>>,
    books: BTreeMap<String, Book>,
    asked: BTreeSet<String>,
    /// Files that are to go.
    doomed: BTreeSet<String>,
    /// When what nobody has asked for is to go.
    prune_at: Option<Instant>,
    /// They are larger than anything that is kept, and it was said.
    too_large: BTreeSet<String>,
}

impl KeptStore {
    /// # Errors
    /// The folder or its key cannot be made.
    pub(crate) fn load(data: &Path) -> Result<Arc<Self>> {
        let dir = data.join(FOLDER);
        let made = DirBuilder::new().recursive(true).mode(0o700).create(&dir);
        made.with_context(|| format!("making {}", dir.display()))?;
        let machine_id = fs::read(MACHINE_ID).unwrap_or_default();
        let key = MachineKey::load_or_create(&dir.join(KEY), &machine_id)
            .context("reading the key of what the node keeps")?;
        let state = State { before: load(&dir, &key), ..State::default() };
        tracing::debug!(lists = state.before.len(), "what the node has kept is read");
        Ok(Arc::new(Self { dir, key, state: Mutex::new(state), changed: Notify::new() }))
    }

    /// Writes what changes until `stopping` is ready, and then what is not written yet.
    pub(crate) async fn run(self: Arc<Self>, stopping: impl Future<Output = ()> + Send) {
        let work = async {
            loop {
                let due = self.state.lock().due();
                tokio::select! {
                    () = self.changed.notified() => {}
                    () = until(due) => self.write(Some(Instant::now())).await,
                }
            }
        };
        tokio::select! {
            () = stopping => {}
            () = work => {}
        }
        self.write(None).await;
    }

    /// Writes what is due by then, or all that has changed.
    async fn write(self: &Arc<Self>, due: Option<Instant>) {
        let (doomed, texts) = {
            let mut state = self.state.lock();
            state.prune(Instant::now());
            (std::mem::take(&mut state.doomed), state.begin(due))
        };
        let this = self.clone();
        let work = tokio::task::spawn_blocking(move || {
            for name in doomed {
                let _ = fs::remove_file(this.dir.join(file_name(&name)));
            }
            for (name, text) in texts {
                let written = this.write_one(&name, &text);
                if let Err(error) = &written {
                    tracing::warn!(
                        error = format!("{error:#}"),
                        "the node does not keep what it would need without the API"
                    );
                }
                if let Some(book) = this.state.lock().books.get_mut(&name) {
                    book.written(&text, written.is_ok(), Instant::now());
                }
            }
        });
        if work.await.is_err() {
            tracing::error!("what the node keeps is not written: its writer broke");
        }
    }

    fn write_one(&self, name: &str, text: &Text) -> Result<()> {
        let file = file_name(name);
        let sealed = self.key.seal(&file, &text.text)?;
        let path = self.dir.join(&file);
        write_whole(&path, 0o600, &sealed).with_context(|| format!("writing {}", path.display()))
    }
}

async fn until(due: Option<Instant>) {
    match due {
        Some(due) => tokio::time::sleep_until(due).await,
        None => std::future::pending().await,
    }
}

/// All files that this machine has sealed, by what they are about.
fn load(dir: &Path, key: &MachineKey) -> BTreeMap<String, Vec<u8>> {
    let (mut found, mut bytes) = (BTreeMap::new(), 0);
    for entry in fs::read_dir(dir).into_iter().flatten().flatten() {
        let file = entry.file_name().to_string_lossy().into_owned();
        if file == KEY {
            continue;
        }
        let size = entry.metadata().map_or(0, |it| it.len());
        if bytes + size > BYTES_MAX {
            tracing::warn!(file, size, most = BYTES_MAX, "too large beside what else the node has kept, and goes");
            let _ = fs::remove_file(entry.path());
            continue;
        }
        bytes += size;
        let text = fs::read(entry.path()).ok().and_then(|it| key.open(&file, &it));
        match text.and_then(|it| Some((book::name(&it)?, it))) {
            Some((name, text)) => drop(found.insert(name, text)),
            None => {
                tracing::warn!(file, "what the node has kept cannot be opened on this machine, and goes");
                let _ = fs::remove_file(entry.path());
            }
        }
    }
    found
}

fn file_name(name: &str) -> String {
    digest(&SHA256, name.as_bytes()).as_ref().iter().take(16).map(|it| format!("{it:02x}")).collect()
}

impl State {
    fn due(&self) -> Option<Instant> {
        let doomed = (!self.doomed.is_empty()).then(Instant::now);
        self.books.values().filter_map(Book::due).chain(self.prune_at).chain(doomed).min()
    }

    fn begin(&mut self, due: Option<Instant>) -> Vec<(String, Text)> {
        let now = Instant::now();
        let is_due = |it: &Book| it.due().is_some_and(|at| due.is_none_or(|due| at <= due));
        let mut texts = Vec::new();
        for (name, book) in self.books.iter_mut().filter(|it| is_due(it.1)) {
            if book.is_too_large() {
                book.not_written();
                self.doomed.insert(name.clone());
                if self.too_large.insert(name.clone()) {
                    tracing::warn!(name, most = book::BYTES_MAX, "too large to be kept for a start without the API");
                }
            } else {
                texts.extend(book.begin(name, now).map(|it| (name.clone(), it)));
            }
        }
        texts
    }

    fn prune(&mut self, now: Instant) {
        if self.prune_at.is_none_or(|it| it > now) {
            return;
        }
        self.prune_at = None;
        let is_gone = |name: &&String| !self.asked.contains(*name);
        let gone: Vec<String> = self.before.keys().filter(is_gone).cloned().collect();
        self.before.retain(|name, _| self.asked.contains(name));
        self.doomed.extend(gone);
    }

    fn answers(&mut self, owner: &str) -> &mut Book {
        let name = answers_of(owner);
        self.asked.insert(name.clone());
        self.doomed.remove(&name);
        let before = &mut self.before;
        self.books.entry(name).or_insert_with_key(|name| Book::of_answers(before.remove(name).as_deref()))
    }

    fn forget(&mut self, name: &str) {
        self.books.remove(name);
        self.before.remove(name);
        self.doomed.insert(name.to_owned());
    }
}

fn answers_of(owner: &str) -> String {
    format!("answers: {owner}")
}

impl Kept for KeptStore {
    fn has_before(&self, of: &str) -> bool {
        let mut state = self.state.lock();
        state.asked.insert(of.to_owned());
        state.before.contains_key(of)
    }

    fn before(&self, of: &str) -> Option<KeptList> {
        book::list(self.state.lock().before.get(of)?)
    }

    fn change(&self, of: &str, change: KeptChange) {
        let (mut state, now) = (self.state.lock(), Instant::now());
        let state = &mut *state;
        if change == KeptChange::Forgotten {
            state.forget(of);
            return self.changed.notify_one();
        }
        if !state.books.contains_key(of) {
            let book = Book::of_list(state.before.get(of).map(Vec::as_slice));
            state.books.insert(of.to_owned(), book);
            state.asked.insert(of.to_owned());
            state.doomed.remove(of);
        }
        let Some(book) = state.books.get_mut(of) else { return };
        match change {
            KeptChange::Applied { key, object, essence } => book.apply(key, Some(object), essence, now),
            KeptChange::Gone(key) => book.remove(&key, now),
            KeptChange::Whole { version, pause } => {
                book.whole(version, pause, now);
                state.before.remove(of);
                state.prune_at.get_or_insert(now + PRUNED_AFTER);
            }
            KeptChange::Forgotten => {}
        }
        if state.books.get(of).is_some_and(Book::is_whole) {
            self.changed.notify_one();
        }
    }

    fn answer(&self, owner: &str, what: &str) -> Option<Option<Bytes>> {
        self.state.lock().answers(owner).object(&Key::cluster(what))
    }

    fn keep_answer(&self, owner: &str, what: &str, answer: Option<Bytes>) {
        self.state.lock().answers(owner).answer(Key::cluster(what), answer, Instant::now());
        self.changed.notify_one();
    }

    fn forget_owner(&self, owner: &str) {
        self.state.lock().forget(&answers_of(owner));
        self.changed.notify_one();
    }
}

#[cfg(test)]
mod tests;
