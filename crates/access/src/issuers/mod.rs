//! Issuers of tokens that somebody else runs (OpenID Connect), and who may come without any credential: what
//! `--authentication-config` says. The file is read again when it changes.
//!
//! Requests look at keys that are here already. Whoever shows a token that a key signed which is not, waits a moment for the
//! issuer to tell of it; nobody else waits for an issuer.

mod claims;
mod config;
mod distributed;
mod expressions;
mod fetch;
mod keys;
mod record;
#[cfg(test)]
mod tests;
mod words;

use std::{
    path::{Path, PathBuf},
    sync::{Arc, OnceLock},
    time::Duration,
};

use arc_swap::{ArcSwap, ArcSwapOption};
use corten_files::RefusedFile;
use corten_meta::Time;
use corten_metrics::HistogramVec;
use corten_webhook::Clients;
use tokio::{
    sync::{Notify, watch},
    task::JoinSet,
    time::Instant,
};

use crate::{
    evaluation::evaluated,
    hash::hash,
    identity::Identity,
    problems::{ConfigError, LoadError},
    reloads::Reloads,
    remote::Unanswering,
};
use config::{Compiled, CompiledIssuer};
use distributed::DistributedClaims;
pub use keys::{Keys, Signed};
use record::FetchRecord;
pub use record::KeyFetch;

/// How often the file is looked at.
const LOOK: Duration = Duration::from_secs(1);
/// What an issuer has taken back is forgotten after this time at the latest.
const REFRESH: Duration = Duration::from_secs(300);
/// An issuer without keys is asked again after this time, as upstream's `oidc.New` does.
const RETRY: Duration = Duration::from_secs(10);
/// However many tokens name keys that nobody knows, no issuer is asked more often.
const PAUSE: Duration = Duration::from_secs(1);
const FETCH_DEADLINE: Duration = Duration::from_secs(10);
/// So long a request waits for the key of its token.
const WAIT: Duration = Duration::from_secs(2);

/// What the file says now. By default there is no file: no other issuer, and whoever shows nothing is anonymous.
#[derive(Default)]
pub struct Issuers {
    file: Option<PathBuf>,
    /// What the file says, as it was read last and was good.
    text: ArcSwap<String>,
    current: ArcSwap<Current>,
    reloads: Reloads,
    /// Who asks others; there as soon as keys are kept up.
    clients: OnceLock<Arc<Clients>>,
    /// How long it takes to look at a token, by what comes of it and by the hash of its issuer.
    seconds: OnceLock<HistogramVec>,
}

#[derive(Default)]
struct Current {
    issuers: Vec<Arc<Issuer>>,
    anonymous: Option<words::Anonymous>,
}

struct Issuer {
    compiled: CompiledIssuer,
    /// Of its URL, as metrics name it.
    hash: String,
    keys: ArcSwapOption<Keys>,
    /// Somebody shows a token whose key is not here.
    wanted: Notify,
    /// How often it was asked, and when it is being asked, since when.
    asked: watch::Sender<KeyFetches>,
    /// What came of it.
    record: Arc<FetchRecord>,
    distributed: DistributedClaims,
}

/// Why the token of an issuer proves nothing.
#[derive(Clone, Debug)]
pub(crate) struct Refusal {
    pub(crate) reason: String,
    /// It does not prove it; else somebody could not be asked.
    pub(crate) is_certain: bool,
}

impl Refusal {
    fn uncertain(reason: String) -> Self {
        Self { reason, is_certain: false }
    }
}

impl From<String> for Refusal {
    fn from(reason: String) -> Self {
        Self { reason, is_certain: true }
    }
}

#[derive(Clone, Copy, Default)]
struct KeyFetches {
    times: u64,
    since: Option<Instant>,
}

impl Issuers {
    /// # Errors
    /// The file cannot be read, or is no configuration.
    pub fn load(path: &Path) -> Result<Self, LoadError> {
        let text = corten_files::read_to_string(path)?;
        Ok(Self { file: Some(path.to_owned()), ..Self::parse(&text)? })
    }

    /// # Errors
    /// The text is no configuration.
    pub fn parse(text: &str) -> Result<Self, ConfigError> {
        let current = Current::of(config::read(text)?, &Current::default());
        Ok(Self {
            text: ArcSwap::from_pointee(text.to_owned()),
            current: ArcSwap::from_pointee(current),
            ..Self::default()
        })
    }

    pub fn reloads(&self) -> &Reloads {
        &self.reloads
    }

    /// The hash of what the file says that is used; none where there is no file.
    pub(crate) fn configuration_hash(&self) -> Option<String> {
        self.file.is_some().then(|| hash(&self.text.load()))
    }

    /// Where it is counted how long tokens take.
    pub(crate) fn measured_by(&self, seconds: &HistogramVec) {
        // Issuers are those of one server.
        let _ = self.seconds.set(seconds.clone());
    }

    /// The file as it is now, where it is not used.
    pub(crate) fn refused(&self) -> Option<RefusedFile> {
        self.reloads.refusal.of("the authentication configuration", self.file.as_deref()?)
    }

    /// The issuers whose keys could not be read the last time; they are not asked for this.
    pub(crate) fn unanswering(&self) -> Vec<Unanswering> {
        self.current.load().issuers.iter().filter_map(|it| it.trouble()).collect()
    }

    /// What came of asking each issuer for its keys.
    pub fn key_fetches(&self) -> Vec<KeyFetch> {
        self.current.load().issuers.iter().map(|it| it.record.last(&it.compiled.issuer.url)).collect()
    }

    /// Does nobody else issue tokens?
    pub(crate) fn is_empty(&self) -> bool {
        self.current.load().issuers.is_empty()
    }

    /// May who shows nothing ask for this path?
    pub(crate) fn lets_in_strangers(&self, path: &str) -> bool {
        match &self.current.load().anonymous {
            None => true,
            Some(it) => it.enabled && (it.conditions.is_empty() || it.conditions.iter().any(|it| it.path == path)),
        }
    }

    /// Whose token is this? `None` where no issuer of the file has made it.
    pub(crate) async fn holder(&self, now: Time, token: &str) -> Option<Result<Identity, Refusal>> {
        let signed = Signed::read(token)?;
        let issuer = self.current.load().of_token(&signed)?.clone();
        let begun = Instant::now();
        let found = issuer.holder(self.clients.get().map(|it| &**it), now, token, signed).await;
        if let Some(seconds) = self.seconds.get() {
            let result = if found.is_ok() { "success" } else { "failure" };
            seconds.with_label_values(&[result, &issuer.hash]).observe(begun.elapsed().as_secs_f64());
        }
        Some(found)
    }

    /// Waits a moment where the token's key is not here yet.
    pub(crate) async fn prepare(&self, token: &str) {
        let issuer = {
            let current = self.current.load();
            if current.issuers.is_empty() {
                return;
            }
            let Some(token) = Signed::read(token) else { return };
            let Some(issuer) = current.of_token(&token) else { return };
            if issuer.knows(&token.key) {
                return;
            }
            issuer.clone()
        };
        issuer.asked_again().await;
    }

    /// Keeps keys and file up until the server ends.
    pub async fn keep(self: Arc<Self>, clients: Arc<Clients>, mut ended: watch::Receiver<bool>) {
        // Whoever set them before set the same: there is one task that keeps the keys.
        let _ = self.clients.set(clients.clone());
        let mut tasks = self.follow(&clients);
        loop {
            let has_ended = tokio::select! {
                biased;
                _ = ended.wait_for(|it| *it) => return,
                Some(_) = tasks.join_next() => true,
                () = tokio::time::sleep(LOOK), if self.file.is_some() => false,
            };
            if has_ended {
                tracing::error!("the task that follows an issuer ended; it begins again");
            }
            let is_new = has_ended || self.look().await;
            if is_new {
                // Those of before end with what owned them.
                tasks = self.follow(&clients);
            }
        }
    }

    fn follow(&self, clients: &Arc<Clients>) -> JoinSet<()> {
        let issuers = self.current.load().issuers.clone();
        issuers.into_iter().map(|it| it.follow(clients.clone())).collect()
    }

    /// Reads the file; true where it says something else now. What is no configuration changes nothing.
    async fn look(&self) -> bool {
        let Some(file) = &self.file else { return false };
        let path = file.clone();
        let read = tokio::task::spawn_blocking(move || corten_files::read_to_string(&path)).await;
        let text = match read.unwrap_or_else(|it| Err(std::io::Error::other(it))) {
            Ok(text) => text,
            Err(error) => {
                self.failed(&error.to_string());
                return false;
            }
        };
        if text == **self.text.load() {
            self.reloads.nothing_new();
            return false;
        }
        match config::read(&text) {
            Ok(compiled) => {
                let current = Current::of(compiled, &self.current.load());
                self.current.store(Arc::new(current));
                self.text.store(Arc::new(text));
                self.reloads.succeeded();
                tracing::info!(file = %file.display(), "reloaded the authentication configuration");
                true
            }
            Err(error) => {
                self.failed(&error.to_string());
                false
            }
        }
    }

    /// Told once for each different reason, and counted so: the file is looked at again and again.
    fn failed(&self, reason: &str) {
        if self.reloads.failed(reason) {
            tracing::error!(reason, "the authentication configuration stays as it was");
        }
    }
}

impl Current {
    /// An issuer that is asked in the same way goes on with the keys it has.
    fn of(compiled: Compiled, before: &Self) -> Self {
        let with_keys = |it: CompiledIssuer| {
            let same = before.issuers.iter().find(|old| {
                let (old, new) = (&old.compiled.issuer, &it.issuer);
                (&old.url, &old.discovery_url, &old.certificate_authority)
                    == (&new.url, &new.discovery_url, &new.certificate_authority)
            });
            Arc::new(Issuer {
                hash: hash(&it.issuer.url),
                keys: ArcSwapOption::new(same.and_then(|it| it.keys.load_full())),
                compiled: it,
                wanted: Notify::new(),
                asked: watch::Sender::new(KeyFetches::default()),
                record: same.map(|it| it.record.clone()).unwrap_or_default(),
                distributed: DistributedClaims::default(),
            })
        };
        Self { issuers: compiled.issuers.into_iter().map(with_keys).collect(), anonymous: compiled.anonymous }
    }

    fn of_token(&self, token: &Signed<'_>) -> Option<&Arc<Issuer>> {
        self.issuers.iter().find(|it| it.compiled.issuer.url == token.issuer())
    }
}

impl Issuer {
    async fn holder(
        &self,
        clients: Option<&Clients>,
        now: Time,
        text: &str,
        mut token: Signed<'_>,
    ) -> Result<Identity, Refusal> {
        let Some(keys) = self.keys.load_full() else { return Err(self.is_not_initialized().into()) };
        if !keys.has_signed(&token) {
            return Err("oidc: verify token: failed to verify signature".to_owned().into());
        }
        claims::check(&self.compiled, &token, now)?;
        self.expand(clients, now, text, &mut token.claims).await?;
        Ok(evaluated(|| claims::holder(&self.compiled, &token.claims))?)
    }

    fn is_not_initialized(&self) -> String {
        format!("oidc: authenticator for issuer {:?} is not initialized", self.compiled.issuer.url)
    }

    fn trouble(&self) -> Option<Unanswering> {
        self.record.trouble(&self.compiled.issuer.url, self.keys.load().is_some())
    }

    /// Is the key here that a token names?
    fn knows(&self, key: &str) -> bool {
        self.keys.load().as_ref().is_some_and(|it| it.knows(key))
    }

    /// Waits until the issuer was asked once more; not longer than [`WAIT`] since it began to be asked.
    async fn asked_again(&self) {
        let mut asked = self.asked.subscribe();
        let before = *asked.borrow_and_update();
        self.wanted.notify_one();
        let end = before.since.unwrap_or_else(Instant::now) + WAIT;
        // The end of the wait is the end of patience: what is known then decides.
        let _ = tokio::time::timeout_at(end, asked.wait_for(|it| it.times > before.times)).await;
    }

    async fn follow(self: Arc<Self>, clients: Arc<Clients>) {
        let mut last = String::new();
        loop {
            self.asked.send_modify(|it| it.since = Some(Instant::now()));
            let asking = tokio::time::timeout(FETCH_DEADLINE, fetch::keys(&clients, &self.compiled.issuer));
            let found = asking.await.unwrap_or_else(|_| Err("the issuer did not answer in time".into()));
            let issuer = &self.compiled.issuer.url;
            match found {
                Ok(fetched) => {
                    self.keys.store(Some(Arc::new(fetched.keys)));
                    self.record.succeeded(fetched.hash);
                    last.clear();
                }
                // Keys that were good stay so: who cannot be reached has taken nothing back.
                Err(error) => {
                    self.record.failed(&error);
                    if error != last {
                        tracing::warn!(issuer, error, "cannot read the keys of an issuer");
                        last = error;
                    }
                }
            }
            self.asked.send_modify(|it| *it = KeyFetches { times: it.times + 1, since: None });
            tokio::time::sleep(PAUSE).await;
            let rest = if self.keys.load().is_some() { REFRESH } else { RETRY };
            // Either is a reason to ask again.
            let _ = tokio::time::timeout(rest, self.wanted.notified()).await;
        }
    }
}
