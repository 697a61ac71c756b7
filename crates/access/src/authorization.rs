//! Who decides what somebody may do, in which order: what `--authorization-config` says, or the options of old. The file, and what it
//! names, are read again when they change.

mod compiled;
mod conditions;
mod config;
mod measures;
mod options;
mod review;
mod verdict;
mod webhook;
mod words;

use std::{
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use arc_swap::ArcSwap;
use corten_files::RefusedFile;
use corten_metrics::Registry;
use corten_webhook::{ClientConfig, Clients};
use parking_lot::Mutex;
use tokio::sync::watch;

use crate::{
    hash::hash,
    problems::{ConfigError, LoadError},
    question::Attributes,
    reloads::Reloads,
    remote::{Trouble, Unanswering},
};

use compiled::{Compiled, Type};
use measures::{Decisions, Measures};
pub use options::Options;
pub(crate) use verdict::{Opinion, Verdict};
pub(crate) use webhook::Unasked;
use webhook::Webhook;

/// How often the file is looked at.
const LOOK: Duration = Duration::from_secs(1);

/// What an administrator says of it. By default: nodes have their own rights, and all others those of RBAC.
#[derive(Default)]
pub struct AuthorizationSettings {
    file: Option<PathBuf>,
    text: String,
    compiled: Compiled,
}

impl AuthorizationSettings {
    /// From an AuthorizationConfiguration.
    ///
    /// # Errors
    /// The file cannot be read, or is no configuration.
    pub fn load(path: &Path) -> Result<Self, LoadError> {
        let text = corten_files::read_to_string(path)?;
        Ok(Self { file: Some(path.to_owned()), ..Self::parse(text)? })
    }

    /// # Errors
    /// The text is no configuration.
    pub fn parse(text: String) -> Result<Self, ConfigError> {
        Ok(Self { file: None, compiled: config::read(&text)?, text })
    }

    /// # Errors
    /// What is wrong with the options.
    pub fn of_options(options: &Options) -> Result<Self, ConfigError> {
        Ok(Self { compiled: options::read(options)?, ..Self::default() })
    }
}

/// The authorizers as they are asked now.
pub(crate) struct Authorization {
    file: Option<PathBuf>,
    clients: Arc<Clients>,
    chain: ArcSwap<Chain>,
    /// What the chain was made of.
    source: Mutex<Source>,
    reloads: Reloads,
    measures: Measures,
    /// How often the chain has become another.
    changed: watch::Sender<u64>,
}

#[derive(PartialEq, Eq)]
struct Source {
    text: String,
    /// What kubeconfig files said.
    clients: Vec<ClientConfig>,
}

impl Source {
    fn of(settings: &AuthorizationSettings) -> Self {
        let client = |it: &(Type, String)| match &it.0 {
            Type::Webhook(webhook) => Some(webhook.client.clone()),
            _ => None,
        };
        Self { text: settings.text.clone(), clients: settings.compiled.authorizers.iter().filter_map(client).collect() }
    }
}

pub(crate) struct Chain {
    pub(crate) links: Vec<Link>,
}

pub(crate) struct Link {
    decisions: Decisions,
    asked: AuthorizerType,
}

/// Whom a link stands for.
enum AuthorizerType {
    Node,
    Rbac,
    All(Verdict),
    Webhook(Box<Webhook>),
    /// One that cannot be asked, and why; with what is said then.
    Broken {
        verdict: Verdict,
        name: String,
        trouble: Trouble,
    },
}

/// Whom a link asks, for who knows them.
pub(crate) enum Authority<'a> {
    Node,
    Rbac,
    /// It says the same to everything.
    All(&'a Verdict),
    Webhook(WebhookLink<'a>),
}

#[derive(Clone, Copy)]
pub(crate) struct WebhookLink<'a>(&'a AuthorizerType);

impl Link {
    pub(crate) fn authority(&self) -> Authority<'_> {
        match &self.asked {
            AuthorizerType::Node => Authority::Node,
            AuthorizerType::Rbac => Authority::Rbac,
            AuthorizerType::All(verdict) => Authority::All(verdict),
            asked @ (AuthorizerType::Webhook(_) | AuthorizerType::Broken { .. }) => {
                Authority::Webhook(WebhookLink(asked))
            }
        }
    }

    pub(crate) fn count(&self, opinion: Opinion) {
        self.decisions.count(opinion);
    }
}

impl WebhookLink<'_> {
    /// The verdict, where nobody need be asked for it.
    pub(crate) fn known(self, question: &Attributes<'_>) -> Result<Verdict, Unasked> {
        match self.0 {
            AuthorizerType::Webhook(webhook) => webhook.known(question),
            AuthorizerType::Broken { verdict, .. } => Ok(verdict.clone()),
            _ => Ok(Verdict::of(Opinion::None)),
        }
    }

    pub(crate) async fn ask(self, unasked: Unasked) -> Verdict {
        match self.0 {
            AuthorizerType::Webhook(webhook) => webhook.ask(unasked).await,
            AuthorizerType::Broken { verdict, .. } => verdict.clone(),
            _ => Verdict::of(Opinion::None),
        }
    }
}

impl Authorization {
    pub(crate) fn new(settings: AuthorizationSettings, clients: Arc<Clients>, registry: &Registry) -> Self {
        let source = Source::of(&settings);
        let measures = Measures::new(registry);
        let chain = Chain::of(settings.compiled, &clients, &measures);
        Self {
            file: settings.file,
            clients,
            chain: ArcSwap::from_pointee(chain),
            source: Mutex::new(source),
            reloads: Reloads::default(),
            measures,
            changed: watch::Sender::new(0),
        }
    }

    /// The webhooks that gave no answer the last time they were asked, or cannot be.
    pub(crate) fn unanswering(&self) -> Vec<Unanswering> {
        let chain = self.chain.load();
        let trouble = |link: &Link| match &link.asked {
            AuthorizerType::Webhook(webhook) => webhook.trouble(),
            AuthorizerType::Broken { trouble, name, .. } => trouble.of(|| webhook::words(name)),
            AuthorizerType::Node | AuthorizerType::Rbac | AuthorizerType::All(_) => None,
        };
        chain.links.iter().filter_map(trouble).collect()
    }

    pub(crate) fn chain(&self) -> arc_swap::Guard<Arc<Chain>> {
        self.chain.load()
    }

    /// How often the file was read anew.
    pub(crate) fn reloads(&self) -> &Reloads {
        &self.reloads
    }

    /// The hash of what the file says that is used; none where there is no file.
    pub(crate) fn configuration_hash(&self) -> Option<String> {
        self.file.as_ref().map(|_| hash(&self.source.lock().text))
    }

    /// The file as it is now, where it is not used.
    pub(crate) fn refused(&self) -> Option<RefusedFile> {
        self.reloads.refusal.of("the authorization configuration", self.file.as_deref()?)
    }

    /// Counts the changes of who decides.
    pub(crate) fn changes(&self) -> watch::Receiver<u64> {
        self.changed.subscribe()
    }

    /// Reads the file again and again until the server ends.
    pub(crate) async fn keep(&self, mut ended: watch::Receiver<bool>) {
        let Some(file) = &self.file else { return };
        loop {
            tokio::select! {
                biased;
                _ = ended.wait_for(|it| *it) => return,
                () = tokio::time::sleep(LOOK) => {}
            }
            let path = file.clone();
            let reading = tokio::task::spawn_blocking(move || AuthorizationSettings::load(&path));
            match reading.await {
                Ok(Ok(settings)) => self.take(settings),
                Ok(Err(error)) => self.failed(&error.told()),
                Err(error) => self.failed(&error.to_string()),
            }
        }
    }

    /// Who is asked from now on; a new chain remembers no answer of the one before.
    fn take(&self, settings: AuthorizationSettings) {
        let source = Source::of(&settings);
        {
            let mut before = self.source.lock();
            if *before == source {
                self.reloads.nothing_new();
                return;
            }
            *before = source;
        }
        self.chain.store(Arc::new(Chain::of(settings.compiled, &self.clients, &self.measures)));
        self.changed.send_modify(|it| *it += 1);
        self.reloads.succeeded();
        tracing::info!("reloaded the authorization configuration");
    }

    /// Told once for each different reason, and counted so: the file is looked at again and again.
    fn failed(&self, reason: &str) {
        if self.reloads.failed(reason) {
            tracing::error!(reason, "the authorization configuration stays as it was");
        }
    }
}

impl Chain {
    fn of(compiled: Compiled, clients: &Clients, measures: &Measures) -> Self {
        let link = |(of, name): (Type, String)| Link {
            decisions: measures.decisions(of.as_str(), &name),
            asked: match of {
                Type::Node => AuthorizerType::Node,
                Type::Rbac => AuthorizerType::Rbac,
                Type::AlwaysAllow => AuthorizerType::All(Verdict::of(Opinion::Allow)),
                // It has no opinion, so that others may still allow (`alwaysDenyAuthorizer.Authorize`).
                Type::AlwaysDeny => {
                    let reason = "Everything is forbidden.".to_owned();
                    AuthorizerType::All(Verdict { reason, ..Verdict::of(Opinion::None) })
                }
                Type::Webhook(webhook) => match clients.client(&webhook.client) {
                    Ok(client) => {
                        AuthorizerType::Webhook(Box::new(Webhook::new(*webhook, client, measures.webhook(&name))))
                    }
                    Err(error) => {
                        let opinion = if webhook.denies_on_error { Opinion::Deny } else { Opinion::None };
                        let trouble = Trouble::default();
                        trouble.goes_on(&error.0);
                        AuthorizerType::Broken {
                            verdict: Verdict { error: error.0, ..Verdict::of(opinion) },
                            name,
                            trouble,
                        }
                    }
                },
            },
        };
        Self { links: compiled.authorizers.into_iter().map(link).collect() }
    }
}
