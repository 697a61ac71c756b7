//! A plugin of version 2: what it encrypts is a seed, from which a key for each object is derived here. So it is asked when its
//! key changes and when a seed is met that is not known here; never for each object.

#[cfg(any(test, feature = "plugin"))]
pub mod plugin;
mod seeds;
mod service;

use std::{
    sync::{Arc, OnceLock},
    time::Duration,
};

use arc_swap::ArcSwapOption;
use aws_lc_rs::rand;
use bytes::Bytes;
use corten_meta::aggregate;
use parking_lot::Mutex;
use prost::Message;
use tokio::{
    sync::{Notify, watch},
    time::{Instant, sleep},
};
use uuid::Uuid;

use crate::{
    envelope::{EncryptedObject, HKDF_SHA256_XNONCE_AES_GCM_SEED, Opener, SEED, check_key_id, key_id_hash},
    metrics::{Direction, Metrics},
};
use seeds::{Seed, SeedLookup, Seeds};
use service::{DecryptRequest, EncryptRequest, Service, StatusResponse};

/// `kmsv2PluginHealthzPositiveInterval`.
const HEALTHY: Duration = Duration::from_secs(60);
/// `kmsv2PluginHealthzNegativeInterval`.
const UNHEALTHY: Duration = Duration::from_secs(10);
/// `kmsv2PluginWriteDEKSourceMaxTTL`: so long a seed is written with after the plugin was last well.
const WRITE_AGE: Duration = Duration::from_secs(180);
/// What readiness says may be so old before the plugin is asked again (`kmsPluginHealthzPositiveTTL` and its negative).
const GOOD_NEWS: Duration = Duration::from_secs(20);
const BAD_NEWS: Duration = Duration::from_secs(3);

/// So long a plugin that kept still is asked for no seed.
const SILENCE: Duration = Duration::from_secs(10);

/// Of the API that a plugin may speak, by its own word; `KmsConfiguration::VERSIONS` are those of the file.
const VERSIONS: [&str; 2] = ["v2", "v2beta1"];

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct KmsSettings {
    pub(crate) name: String,
    pub(crate) endpoint: String,
    pub(crate) timeout: Duration,
}

/// What became of a value that the plugin's seeds are for.
pub(crate) enum OpenedBySeed {
    Plain {
        value: Bytes,
        /// Today another key of the plugin is written with.
        is_other: bool,
    },
    /// Only the plugin can say.
    Unknown(Box<EncryptedObject>),
}

pub(crate) struct Kms {
    settings: KmsSettings,
    prefix: String,
    service: Service,
    /// What is written with.
    state: ArcSwapOption<State>,
    seeds: Mutex<Seeds>,
    /// When it gave no answer for a seed the last time, and why.
    silent: Mutex<Option<(Instant, String)>>,
    health: watch::Sender<Health>,
    /// What the plugin said first; it may not change.
    version: OnceLock<String>,
    /// Somebody wants newer news.
    wanted: Notify,
    metrics: Arc<Metrics>,
}

/// When the plugin was asked, and how it is.
pub(crate) type Health = Option<(Instant, Result<(), String>)>;

#[derive(Clone)]
struct State {
    opener: Arc<Opener>,
    /// All but the data.
    envelope: EncryptedObject,
    key_id_hash: String,
    expires: Instant,
}

impl Kms {
    /// # Errors
    /// The endpoint is none.
    pub(crate) fn new(settings: KmsSettings, metrics: Arc<Metrics>) -> Result<Self, String> {
        let service = Service::new(&settings.name, &settings.endpoint, settings.timeout, metrics.clone())
            .map_err(|it| format!("could not configure KMSv2-Plugin's probe {:?}, error: {it}", settings.name))?;
        Ok(Self {
            prefix: format!("k8s:enc:kms:v2:{}:", settings.name),
            settings,
            service,
            state: ArcSwapOption::empty(),
            seeds: Mutex::default(),
            silent: Mutex::default(),
            health: watch::Sender::new(None),
            version: OnceLock::new(),
            wanted: Notify::new(),
            metrics,
        })
    }

    pub(crate) fn settings(&self) -> &KmsSettings {
        &self.settings
    }

    pub(crate) fn prefix(&self) -> &str {
        &self.prefix
    }

    /// Tells of every time the plugin was asked.
    pub(crate) fn health(&self) -> watch::Receiver<Health> {
        self.health.subscribe()
    }

    /// How the plugin was when it was asked last; has it asked again where that is long ago.
    pub(crate) fn ready(&self) -> Result<(), String> {
        let Some((at, health)) = self.health.borrow().clone() else {
            self.wanted.notify_one();
            return Err(format!("KMS Provider {} was not asked yet", self.settings.name));
        };
        if at.elapsed() > if health.is_ok() { GOOD_NEWS } else { BAD_NEWS } {
            self.wanted.notify_one();
        }
        health
    }

    /// Asks the plugin again and again, until it is dropped.
    pub(crate) async fn keep(self: Arc<Self>) {
        loop {
            let is_well = matches!(&*self.health.borrow(), Some((_, Ok(()))));
            tokio::select! {
                () = sleep(if is_well { HEALTHY } else { UNHEALTHY }) => {}
                () = self.wanted.notified() => {}
            }
            // Its failure is told by the check.
            let _ = self.check().await;
        }
    }

    /// Asks the plugin how it is, and for a new seed where its key is another.
    ///
    /// # Errors
    /// It is not well, or does not do what it is for.
    pub(crate) async fn check(&self) -> Result<(), String> {
        let health = self.probe().await;
        let was = self.health.borrow().as_ref().map(|it| it.1.clone());
        if was.as_ref() != Some(&health) {
            let name = &self.settings.name;
            match &health {
                Ok(()) => tracing::info!(name, "the KMS plugin is well"),
                Err(error) => tracing::error!(name, error, "the KMS plugin is not well"),
            }
        }
        self.health.send_replace(Some((Instant::now(), health.clone())));
        health
    }

    async fn probe(&self) -> Result<(), String> {
        let name = &self.settings.name;
        let status = self.service.status().await.map_err(|it| {
            format!("failed to perform status section of the healthz check for KMS Provider {name}, error: {it}")
        })?;
        let mut wrong: Vec<String> = self.wrong_status(&status);
        match check_key_id(&status.key_id) {
            Err((fault, error)) => {
                self.metrics.invalid_id(name, fault);
                wrong.push(format!("got invalid KMSv2 KeyID hash {:?}: {error}", key_id_hash(&status.key_id)));
            }
            Ok(()) => {
                self.metrics.told(name, &status.key_id);
                wrong.extend(self.follow(&status.key_id).await.err());
            }
        }
        let unhealthy = |wrong| Err(format!("kmsv2 Provider {name} is not healthy, error: {wrong}"));
        aggregate(wrong).map_or(Ok(()), unhealthy)
    }

    fn wrong_status(&self, status: &StatusResponse) -> Vec<String> {
        const SHOWN: usize = 256;
        let shown = |text: &str| text.chars().take(SHOWN).collect::<String>();
        let mut wrong = Vec::new();
        if status.healthz != "ok" {
            wrong.push(format!("got unexpected healthz status: {}", shown(&status.healthz)));
        }
        if !VERSIONS.contains(&&*status.version) {
            wrong.push(format!("expected KMSv2 API version v2, got {}", shown(&status.version)));
            return wrong;
        }
        let first = self.version.get_or_init(|| status.version.clone());
        if *first != status.version {
            wrong.push(format!(
                "KMSv2 API version should not change after the initial status response version {first}, got {}",
                status.version
            ));
        }
        wrong
    }

    /// `rotateDEKOnKeyIDChange`: a seed for each key of the plugin. Where there is none to be had, the one of before is written
    /// with until it expires.
    async fn follow(&self, key_id: &str) -> Result<(), String> {
        let expires = Instant::now() + WRITE_AGE;
        if let Some(state) = self.state.load_full()
            && state.envelope.key_id == key_id
        {
            self.state.store(Some(Arc::new(State { expires, ..State::clone(&state) })));
            return Ok(());
        }
        let begun = Instant::now();
        let uid = Uuid::new_v4().to_string();
        let made = self.generate(&uid, key_id, expires).await;
        self.metrics.generated(made.is_ok().then(|| begun.elapsed()));
        match made {
            Ok(state) => {
                tracing::info!(
                    name = self.settings.name,
                    key_id_hash = state.key_id_hash,
                    "a new seed is written with"
                );
                let seed = Seed { opener: state.opener.clone(), is_proven: true };
                self.seeds.lock().known(state.envelope.seed_id(), seed);
                self.state.store(Some(Arc::new(state)));
                Ok(())
            }
            Err(error) => {
                // Apart from the reason: another uid is not another reason.
                tracing::debug!(name = self.settings.name, uid, "no new seed");
                Err(format!(
                    "failed to rotate DEK statusKeyIDHash={:?}, stateKeyIDHash={:?}: {error}",
                    key_id_hash(key_id),
                    self.state.load().as_ref().map_or("", |it| &*it.key_id_hash),
                ))
            }
        }
    }

    async fn generate(&self, uid: &str, key_id: &str, expires: Instant) -> Result<State, String> {
        let mut seed = [0; SEED];
        rand::fill(&mut seed).map_err(|_| "unable to read sufficient random bytes".to_owned())?;
        let question = EncryptRequest { plaintext: seed.to_vec(), uid: uid.to_owned() };
        let answer =
            self.service.encrypt(question).await.map_err(|it| format!("failed to encrypt DEK, error: {it}"))?;
        let envelope = EncryptedObject {
            encrypted_data: Bytes::new(),
            key_id: answer.key_id,
            encrypted_dek_source: answer.ciphertext.into(),
            annotations: answer.annotations,
            encrypted_dek_source_type: HKDF_SHA256_XNONCE_AES_GCM_SEED,
        };
        envelope.check()?;
        if envelope.key_id != key_id {
            let hash = key_id_hash(&envelope.key_id);
            return Err(format!("encryptKeyIDHash={hash:?}: it encrypts with another key than it says"));
        }
        // Not upstream's: what a plugin cannot decrypt again would be lost with this process.
        let again = self.decrypt(&envelope).await?;
        if again != seed {
            return Err("it does not decrypt what it has encrypted".into());
        }
        let opener = Arc::new(Opener::new(HKDF_SHA256_XNONCE_AES_GCM_SEED, &seed)?);
        Ok(State { opener, key_id_hash: key_id_hash(&envelope.key_id), envelope, expires })
    }

    async fn decrypt(&self, envelope: &EncryptedObject) -> Result<Vec<u8>, String> {
        if let Some(error) = self.silence() {
            return Err(error);
        }
        let question = DecryptRequest {
            ciphertext: envelope.encrypted_dek_source.to_vec(),
            uid: Uuid::new_v4().to_string(),
            key_id: envelope.key_id.clone(),
            annotations: envelope.annotations.clone(),
        };
        let answer = self.service.decrypt(question).await;
        *self.silent.lock() = match &answer {
            Err(error) if error.is_silence => Some((Instant::now(), error.to_string())),
            _ => None,
        };
        answer.map_err(|it| format!("failed to decrypt DEK, error: {it}"))
    }

    /// Who has just kept still for one seed is not asked for the next: a server that starts would wait for each of them.
    fn silence(&self) -> Option<String> {
        let silent = self.silent.lock();
        let (since, error) = silent.as_ref().filter(|it| it.0.elapsed() < SILENCE)?;
        Some(format!("failed to decrypt DEK, error: it was not asked, for {}s ago: {error}", since.elapsed().as_secs()))
    }

    /// Asks the plugin for the seed of an object, and remembers it, or that there is none to be had.
    pub(crate) async fn fetch(&self, object: &EncryptedObject) {
        self.metrics.missed();
        let id = object.seed_id();
        let opener = self.decrypt(object).await.and_then(|it| Opener::new(object.encrypted_dek_source_type, &it));
        let mut seeds = self.seeds.lock();
        match opener {
            Ok(opener) => seeds.known(id, Seed { opener: Arc::new(opener), is_proven: false }),
            Err(error) => seeds.failed(id, error),
        }
    }

    /// Forgets for which seeds the plugin was asked in vain.
    pub(crate) fn forget_failures(&self) {
        *self.silent.lock() = None;
        self.seeds.lock().forget_failures();
    }

    pub(crate) fn seal(&self, key: &[u8], plain: &[u8]) -> Result<Vec<u8>, String> {
        let name = &self.settings.name;
        // A write that must fail has the plugin asked, where its news are old.
        let why = || self.ready().err().unwrap_or_default();
        let Some(state) = self.state.load_full() else {
            return Err(format!("KMS provider {name:?} has given no key yet: {}", why()));
        };
        let now = Instant::now();
        if now > state.expires {
            let (hash, ago) = (&state.key_id_hash, (now - state.expires).as_secs());
            return Err(format!("encryptedDEKSource with keyID hash {hash:?} expired {ago}s ago: {}", why()));
        }
        let data = state.opener.seal(key, plain).map_err(|it| it.to_string())?;
        let object = EncryptedObject { encrypted_data: data.into(), ..state.envelope.clone() };
        let mut out = Vec::with_capacity(self.prefix.len() + object.encoded_len());
        out.extend_from_slice(self.prefix.as_bytes());
        object.encode(&mut out).map_err(|it| it.to_string())?;
        self.metrics.used(Direction::ToStorage, name, &state.key_id_hash);
        Ok(out)
    }

    /// `Ok(None)` where another encrypted it.
    pub(crate) fn open(&self, key: &[u8], stored: &Bytes) -> Result<Option<OpenedBySeed>, String> {
        if !stored.starts_with(self.prefix.as_bytes()) {
            return Ok(None);
        }
        let name = &self.settings.name;
        let wrong = |it: String| format!("KMS provider {name:?}: {it}");
        let object = EncryptedObject::read(stored.slice(self.prefix.len()..)).map_err(wrong)?;
        let id = object.seed_id();
        let found = self.seeds.lock().find(&id);
        let seed = match found {
            SeedLookup::Known(seed) => seed,
            SeedLookup::Failed(error) => return Err(wrong(error)),
            SeedLookup::Unknown => return Ok(Some(OpenedBySeed::Unknown(Box::new(object)))),
        };
        let hash = key_id_hash(&object.key_id);
        let plain = seed.opener.open(key, &object.encrypted_data).map_err(|it| {
            let error = format!("the seed it gave for keyID hash {hash:?} does not open it: {it}");
            // A plugin that gave another one gets another chance.
            if !seed.is_proven {
                self.seeds.lock().failed(id, error.clone());
            }
            wrong(error)
        })?;
        if !seed.is_proven {
            self.seeds.lock().proven(&id);
        }
        self.metrics.used(Direction::FromStorage, name, &hash);
        // Before the plugin has told its key, nobody knows.
        let is_other = self.state.load().as_ref().is_some_and(|it| {
            it.envelope.key_id != object.key_id
                || it.envelope.encrypted_dek_source_type != object.encrypted_dek_source_type
        });
        Ok(Some(OpenedBySeed::Plain { value: plain.into(), is_other }))
    }
}
