//! The configuration that is in use, and what keeps it up: the file that says it, the plugins it names.

use corten_metrics::MetricFamily;
use std::{
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use arc_swap::ArcSwap;
use bytes::Bytes;
use corten_files::{Refusal, RefusedFile};
use corten_meta::aggregate;
use corten_store::Revision;
use futures_util::future::join_all;
use parking_lot::Mutex;
use tokio::{
    sync::watch,
    task::JoinSet,
    time::{Instant, sleep, timeout_at},
};

use crate::{
    group_resource::GroupResource,
    kms::Kms,
    load::{self, ConfigError, Loaded},
    lost_key::LostKey,
    metrics::Metrics,
    transformers::{Opened, Transformers, maker},
    wrong_keys::{Stored, WrongKeys},
};

/// How often the file is looked at (upstream: each minute).
const LOOK: Duration = Duration::from_secs(1);
/// Plugins of a new configuration must be well within this time, or twice what all of them together may take, before it is used
/// (`minKMSPluginCloseGracePeriod`).
const GRACE: Duration = Duration::from_secs(10);
const GRACE_LOOK: Duration = Duration::from_millis(100);

/// What encrypts the objects of which resources.
pub struct Encryption {
    file: PathBuf,
    /// The file is read again when it changes.
    is_reloaded: bool,
    current: ArcSwap<Loaded>,
    metrics: Arc<Metrics>,
    refusal: Refusal,
    /// What was found when the configuration became another.
    lost: Mutex<Vec<LostKey>>,
}

impl Encryption {
    /// Reads the file, and asks each plugin it names once. A plugin that is not well is no error: it may start later.
    ///
    /// # Errors
    /// The file cannot be read, or is no configuration.
    pub async fn load(file: &Path, is_reloaded: bool) -> Result<Self, ConfigError> {
        let metrics = Arc::new(Metrics::default());
        let loaded = load::load(&load::read_file(file)?, &[], &metrics)?;
        metrics.configured(&loaded.hash);
        // What is wrong is told by the checks.
        join_all(loaded.kms.iter().map(|it| it.check())).await;
        Ok(Self {
            file: file.to_owned(),
            is_reloaded,
            current: ArcSwap::from_pointee(loaded),
            metrics,
            refusal: Refusal::default(),
            lost: Mutex::default(),
        })
    }

    /// The file as it is now, where it is not used.
    pub fn refused(&self) -> Option<RefusedFile> {
        self.refusal.of("the encryption configuration", &self.file)
    }

    /// What nobody can read after the next start, a line each.
    pub fn lost_keys(&self) -> Vec<String> {
        self.lost.lock().iter().map(LostKey::line).collect()
    }

    /// The lines that are about a resource: `secrets`, or `things.example.org`.
    pub fn lost_keys_of(&self, resource: &str) -> Vec<String> {
        self.lost.lock().iter().filter(|it| it.resource == resource).map(LostKey::line).collect()
    }

    /// Why nobody can read what is stored there, and is called `what`, after the next start; `None` where its own key is there.
    pub fn lost_key_of(&self, what: &str, stored_at: &[u8], revision: Revision) -> Option<String> {
        self.lost.lock().iter().find_map(|it| it.line_of(what, stored_at, revision))
    }

    pub(crate) fn has_lost_keys(&self) -> bool {
        !self.lost.lock().is_empty()
    }

    /// Told once for each that was not known before.
    pub(crate) fn found_lost(&self, keys: Vec<LostKey>) {
        self.metrics.lost(&keys);
        let mut lost = self.lost.lock();
        for it in &keys {
            if !lost.iter().any(|known| (&known.resource, &known.key) == (&it.resource, &it.key)) {
                tracing::error!(resource = it.resource, key = it.key, "{}", it.line());
            }
        }
        *lost = keys;
    }

    pub(crate) fn has_key_of(&self, resource: &GroupResource, stored: &[u8]) -> bool {
        self.of(resource).is_some_and(|it| it.has_key_of(stored))
    }

    /// Is there anything that `kms-providers` is about? Always where the file is read again.
    pub fn has_plugins(&self) -> bool {
        self.is_reloaded || !self.current.load().kms.is_empty()
    }

    /// # Errors
    /// Which plugins are not well, and why.
    pub fn plugins_ready(&self) -> Result<(), String> {
        let current = self.current.load();
        let health = current.kms.iter().enumerate();
        let wrong = health.filter_map(|(at, it)| it.ready().err().map(|error| format!("kms-provider-{at}: {error}")));
        aggregate(wrong).map_or(Ok(()), Err)
    }

    /// What is measured.
    pub fn measured(&self) -> Vec<MetricFamily> {
        self.metrics.registry().gather()
    }

    fn of(&self, resource: &GroupResource) -> Option<Arc<Transformers>> {
        self.current.load().by_resource.of(resource).cloned()
    }

    /// The value as it is to be stored; `None` where it is stored as it is.
    ///
    /// # Errors
    /// Its key is not to be had.
    pub(crate) fn seal(&self, resource: &GroupResource, key: &[u8], plain: &Bytes) -> Result<Option<Bytes>, String> {
        let Some(transformers) = self.of(resource) else { return Ok(None) };
        transformers.seal(key, plain, &self.metrics).map(Some)
    }

    pub(crate) fn open(&self, resource: Option<&GroupResource>, key: &[u8], stored: &Bytes) -> Opened {
        match resource.and_then(|it| self.of(it)) {
            Some(transformers) => transformers.open(key, stored, &self.metrics),
            None => match maker(stored) {
                None => Opened::Plain { value: stored.clone(), is_stale: false },
                Some(maker) => Opened::Unreadable(format!(
                    "identity transformer tried to read encrypted data: {maker} encrypted it, and no provider is configured for this resource"
                )),
            },
        }
    }

    pub(crate) fn plugins(&self) -> Vec<Arc<Kms>> {
        self.current.load().kms.clone()
    }

    /// Follows the file and the plugins until `ended`. Tells of everything after which what was unreadable may be readable.
    pub(crate) async fn keep(
        &self,
        stored: &impl Stored,
        changed: &watch::Sender<()>,
        mut ended: watch::Receiver<bool>,
    ) {
        let mut wrong_keys = WrongKeys::default();
        loop {
            let mut tasks = self.follow(changed);
            let goes_on = tokio::select! {
                biased;
                _ = ended.wait_for(|it| *it) => return,
                () = self.until_reloaded(stored, &mut wrong_keys) => {
                    changed.send_replace(());
                    true
                }
                Some(_) = tasks.join_next() => false,
            };
            if !goes_on {
                tracing::error!("the task that follows a KMS plugin ended; it begins again");
            }
        }
    }

    fn follow(&self, changed: &watch::Sender<()>) -> JoinSet<()> {
        let mut tasks = JoinSet::new();
        for kms in self.plugins() {
            tasks.spawn(kms.clone().keep());
            let (changed, mut health) = (changed.clone(), kms.health());
            tasks.spawn(async move {
                let mut was_well = matches!(&*health.borrow_and_update(), Some((_, Ok(()))));
                while health.changed().await.is_ok() {
                    let is_well = matches!(&*health.borrow_and_update(), Some((_, Ok(()))));
                    if is_well && !was_well {
                        kms.forget_failures();
                        changed.send_replace(());
                    }
                    was_well = is_well;
                }
            });
        }
        tasks
    }

    async fn until_reloaded(&self, stored: &impl Stored, wrong_keys: &mut WrongKeys) {
        loop {
            if !self.is_reloaded {
                return std::future::pending().await;
            }
            sleep(LOOK).await;
            match self.reload(stored, wrong_keys).await {
                Ok(true) => return,
                Ok(false) => self.refusal.end(),
                Err(error) => self.refuse(&error),
            }
        }
    }

    /// Told once for each different reason, and counted so: the file is looked at again and again.
    fn refuse(&self, error: &str) {
        if self.refusal.refuse(error) {
            self.metrics.reloaded(true);
            tracing::error!(file = %self.file.display(), error, "the encryption configuration stays as it was");
        }
    }

    /// True where another configuration is in use now. What is none, names plugins that are not well, or has wrong keys under names
    /// that are stored, changes nothing.
    async fn reload(&self, stored: &impl Stored, wrong_keys: &mut WrongKeys) -> Result<bool, String> {
        let file = self.file.clone();
        let read = tokio::task::spawn_blocking(move || load::read_file(&file)).await;
        let text = read.map_err(|it| it.to_string())?.map_err(|it| it.to_string())?;
        let before = self.current.load_full();
        if crate::envelope::hash_text(text.as_bytes()) == before.hash {
            return Ok(false);
        }
        let loaded = load::load(&text, &before.kms, &self.metrics).map_err(|it| it.to_string())?;
        until_well(&loaded.kms).await?;
        wrong_keys.none_in(stored, &before, &loaded).await?;
        self.metrics.configured(&loaded.hash);
        self.current.store(Arc::new(loaded));
        self.metrics.reloaded(false);
        self.refusal.end();
        tracing::info!(file = %self.file.display(), "reloaded the encryption configuration");
        Ok(true)
    }
}

async fn until_well(plugins: &[Arc<Kms>]) -> Result<(), String> {
    let together: Duration = plugins.iter().map(|it| it.settings().timeout).sum();
    let end = Instant::now() + GRACE.max(together.saturating_mul(2));
    loop {
        let asked = timeout_at(end, join_all(plugins.iter().map(|it| it.check()))).await;
        let error = match asked {
            Ok(health) => match health.into_iter().find_map(Result::err) {
                None => return Ok(()),
                Some(error) => error,
            },
            Err(_) => "context deadline exceeded".to_owned(),
        };
        if Instant::now() + GRACE_LOOK >= end {
            return Err(format!("health check for new transformers failed: {error}"));
        }
        sleep(GRACE_LOOK).await;
    }
}
