//! What a joined node keeps of its cluster, for a start while no control plane answers: its Pods and what they are started with, and
//! what their packets and policies follow from.
//!
//! ```text
//! DATA/kubelet/kept/key      one half of the key that all is sealed with
//! DATA/kubelet/kept/<hash>   one list, or what was answered for one Pod: sealed, replaced as a whole, synced
//! ```
//! What cannot be opened counts as nothing: the node then waits for the API. Nothing here is ever the truth while a server answers.

mod kept_file;
mod room;

use std::{
    collections::{BTreeMap, BTreeSet},
    fs::{self, DirBuilder},
    io::ErrorKind,
    os::unix::fs::DirBuilderExt,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use anyhow::{Context, Result};
use aws_lc_rs::digest::{SHA256, digest};
use bytes::Bytes;
use corten_client::{Kept, KeptChange, KeptList};
use corten_machine::write_whole;
use corten_meta::Key;
use corten_pki::MachineKey;
use kept_file::{KeptFile, Text};
use parking_lot::Mutex;
use room::Share;
use tokio::{sync::Notify, time::Instant};

/// Below the node's data.
const FOLDER: &str = "kubelet/kept";
const KEY: &str = "key";
const MACHINE_ID: &str = "/etc/machine-id";
/// Of the name of what was answered for one Pod.
const ANSWERS: &str = "answers: ";
/// What a file holds beside its text.
const SEAL_BYTES_MAX: usize = 4096;
/// What nobody has asked for by so long after a server has answered belongs to Pods that are gone.
const PRUNED_AFTER: Duration = Duration::from_secs(600);

pub(crate) struct KeptStore {
    dir: PathBuf,
    key: MachineKey,
    state: Mutex<State>,
    changed: Notify,
    /// Held while files are written: at the end another writer may come before the one that is under way is done.
    files: Mutex<()>,
}

#[derive(Default)]
struct State {
    /// What an earlier run has written, as text, until it is known anew.
    before: BTreeMap<String, Vec<u8>>,
    kept_files: BTreeMap<String, KeptFile>,
    asked: BTreeSet<String>,
    /// Files that are to go.
    doomed: BTreeSet<String>,
    /// When what nobody has asked for is to go.
    prune_at: Option<Instant>,
    /// There is no room for them beside the others.
    left_out: BTreeSet<String>,
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
        let mut state = State { before: load(&dir, &key), ..State::default() };
        state.fit(Instant::now());
        tracing::debug!(lists = state.before.len(), "what the node has kept is read");
        Ok(Arc::new(Self { dir, key, state: Mutex::new(state), changed: Notify::new(), files: Mutex::default() }))
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
            state.fit(Instant::now());
            (std::mem::take(&mut state.doomed), state.begin(due))
        };
        let this = self.clone();
        let work = tokio::task::spawn_blocking(move || {
            let _alone = this.files.lock();
            for name in doomed {
                match fs::remove_file(this.dir.join(file_name(&name))) {
                    Err(error) if error.kind() != ErrorKind::NotFound => {
                        tracing::warn!(name, %error, "what the node need not keep any more cannot be removed");
                    }
                    _ => {}
                }
            }
            for (name, text) in texts {
                let written = this.write_one(&name, &text);
                if let Err(error) = &written {
                    tracing::warn!(
                        error = format!("{error:#}"),
                        "the node does not keep what it would need without the API"
                    );
                }
                if let Some(kept_file) = this.state.lock().kept_files.get_mut(&name) {
                    kept_file.written(&text, written.is_ok(), Instant::now());
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
    let mut found = BTreeMap::new();
    for entry in fs::read_dir(dir).into_iter().flatten().flatten() {
        let file = entry.file_name().to_string_lossy().into_owned();
        if file == KEY {
            continue;
        }
        let size = entry.metadata().map_or(0, |it| it.len());
        if size > (2 * kept_file::BYTES_MAX + SEAL_BYTES_MAX) as u64 {
            tracing::warn!(file, size, "larger than anything that is kept, and goes");
            let _ = fs::remove_file(entry.path());
            continue;
        }
        let text = fs::read(entry.path()).ok().and_then(|it| key.open(&file, &it));
        match text.and_then(|it| Some((kept_file::name(&it)?, it))) {
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
        self.kept_files.values().filter_map(KeptFile::due).chain(self.prune_at).chain(doomed).min()
    }

    fn begin(&mut self, due: Option<Instant>) -> Vec<(String, Text)> {
        let now = Instant::now();
        let is_due = |it: &KeptFile| it.due().is_some_and(|at| due.is_none_or(|due| at <= due));
        let mut texts = Vec::new();
        for (name, kept_file) in self.kept_files.iter_mut().filter(|it| is_due(it.1)) {
            if self.left_out.contains(name) {
                kept_file.not_written();
            } else if kept_file.is_too_large() {
                kept_file.not_written();
                self.doomed.insert(name.clone());
                if self.too_large.insert(name.clone()) {
                    tracing::warn!(
                        name,
                        most = kept_file::BYTES_MAX,
                        "too large to be kept for a start without the API"
                    );
                }
            } else {
                texts.extend(kept_file.begin(name, now).map(|it| (name.clone(), it)));
            }
        }
        texts
    }

    /// Finds what there is no room for, and what there is room for again.
    fn fit(&mut self, now: Instant) {
        let (mut left_out, mut sizes) = (BTreeSet::new(), BTreeMap::new());
        for (name, text) in &self.before {
            sizes.insert(name, text.len());
        }
        // Until it is whole, what is on the disk is that of before.
        for (name, kept_file) in self.kept_files.iter().filter(|it| it.1.is_whole()) {
            sizes.insert(name, kept_file.bytes());
        }
        for share in Share::BOUNDED {
            let all = sizes.iter().map(|(name, bytes)| (*name, Share::of(name), *bytes));
            let own = all.filter(|it| it.1.0 == share).map(|(name, (_, whose), bytes)| (name, whose, bytes));
            left_out.extend(room::over(own, share.bytes_max()).into_iter().cloned());
        }
        for name in left_out.difference(&self.left_out) {
            let whose = Share::of(name).1;
            tracing::warn!(name, whose, "no room for it beside the others: not kept for a start without the API");
            self.doomed.insert(name.clone());
            self.before.remove(name);
            if let Some(kept_file) = self.kept_files.get_mut(name) {
                kept_file.not_written();
            }
        }
        for name in self.left_out.difference(&left_out) {
            if let Some(kept_file) = self.kept_files.get_mut(name) {
                kept_file.touch(now);
                self.doomed.remove(name);
            }
        }
        self.left_out = left_out;
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

    /// Where anything is kept for it.
    fn answers(&mut self, owner: &str) -> Option<&mut KeptFile> {
        let name = answers_of(owner);
        if let Some(text) = self.before.remove(&name) {
            self.kept_files.entry(name.clone()).or_insert_with(|| KeptFile::of_answers(Some(&text)));
        }
        self.kept_files.get_mut(&name)
    }

    fn begin_answers(&mut self, owner: &str) -> &mut KeptFile {
        let name = answers_of(owner);
        self.doomed.remove(&name);
        let before = &mut self.before;
        self.kept_files.entry(name).or_insert_with_key(|name| KeptFile::of_answers(before.remove(name).as_deref()))
    }

    fn forget(&mut self, name: &str) {
        self.kept_files.remove(name);
        self.before.remove(name);
        self.asked.remove(name);
        self.too_large.remove(name);
        self.doomed.insert(name.to_owned());
    }
}

fn answers_of(owner: &str) -> String {
    format!("{ANSWERS}{owner}")
}

impl Kept for KeptStore {
    fn has_before(&self, of: &str) -> bool {
        let mut state = self.state.lock();
        state.asked.insert(of.to_owned());
        if let Some(kept_file) = state.kept_files.get_mut(of) {
            kept_file.begin_anew();
        }
        state.before.contains_key(of)
    }

    fn before(&self, of: &str) -> Option<KeptList> {
        kept_file::list(self.state.lock().before.get(of)?)
    }

    fn change(&self, of: &str, change: KeptChange) {
        let (mut state, now) = (self.state.lock(), Instant::now());
        let state = &mut *state;
        if change == KeptChange::Forgotten {
            state.forget(of);
            return self.changed.notify_one();
        }
        if !state.kept_files.contains_key(of) {
            let kept_file = KeptFile::of_list(state.before.get(of).map(Vec::as_slice));
            state.kept_files.insert(of.to_owned(), kept_file);
            state.asked.insert(of.to_owned());
            state.doomed.remove(of);
        }
        let Some(kept_file) = state.kept_files.get_mut(of) else { return };
        match change {
            KeptChange::Applied { key, object, essence } => kept_file.apply(key, Some(object), essence, now),
            KeptChange::Gone(key) => kept_file.remove(&key, now),
            KeptChange::Whole { version, pause, leaves_out } => {
                kept_file.whole(version, (pause, leaves_out), now);
                state.before.remove(of);
                state.prune_at.get_or_insert(now + PRUNED_AFTER);
            }
            KeptChange::Forgotten => {}
        }
        if state.kept_files.get(of).is_some_and(KeptFile::is_whole) {
            self.changed.notify_one();
        }
    }

    fn begin_owner(&self, owner: &str) {
        self.state.lock().asked.insert(answers_of(owner));
    }

    fn answer(&self, owner: &str, what: &str) -> Option<Option<Bytes>> {
        self.state.lock().answers(owner)?.object(&Key::cluster(what))
    }

    fn keep_answer(&self, owner: &str, what: &str, answer: Option<Bytes>) {
        self.state.lock().begin_answers(owner).answer(Key::cluster(what), answer, Instant::now());
        self.changed.notify_one();
    }

    fn forget_answer(&self, owner: &str, what: &str) {
        if let Some(kept_file) = self.state.lock().answers(owner) {
            kept_file.remove(&Key::cluster(what), Instant::now());
        }
        self.changed.notify_one();
    }

    fn forget_owner(&self, owner: &str) {
        self.state.lock().forget(&answers_of(owner));
        self.changed.notify_one();
    }
}

#[cfg(test)]
mod tests;
