//! The configurations as they are asked: read once, when one of them has changed.

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use corten_api::resources::{MUTATING_WEBHOOK_CONFIGURATIONS, VALIDATING_WEBHOOK_CONFIGURATIONS};
use corten_cacher::{
    derived::{ByName, Derived, Made, by_name},
    watch_cache::{Caches, Snapshot, Stored},
};
use corten_meta::{Resource, Time};
use corten_metrics::{CelMetrics, Metrics};
use corten_policies::matching::{Conditions, Criteria, Index};
use corten_webhook::{Client, ClientConfig, Clients};
use serde_json::Value;
use tokio::time::Instant;

use super::{
    failing::{FailingWebhook, FailingWebhooks, Trouble},
    measures::{Measures, Phase},
};

const TIMEOUT_SECONDS: u64 = 10;

/// All webhooks of the cluster.
pub struct Webhooks {
    clients: Arc<Clients>,
    compiled: Derived<Compiled, 2>,
    pub(crate) measures: Measures,
    cel: CelMetrics,
    failing: FailingWebhooks,
}

#[derive(Default)]
pub(crate) struct Compiled {
    pub(crate) mutating: Hooks,
    pub(crate) validating: Hooks,
}

/// Webhooks in the order in which they are called.
#[derive(Default)]
pub(crate) struct Hooks {
    pub(crate) index: Index,
    pub(crate) all: Vec<Arc<Hook>>,
    configurations: ByName<Vec<Arc<Hook>>>,
}

pub(crate) struct Hook {
    pub(crate) configuration: String,
    /// Of its configuration.
    pub(crate) resource_version: String,
    pub(crate) name: String,
    /// Names it among all.
    pub(crate) id: String,
    pub(crate) criteria: Criteria,
    pub(crate) conditions: Conditions,
    pub(crate) client: Result<Arc<Client>, String>,
    pub(crate) timeout: Duration,
    /// `failurePolicy: Ignore`.
    pub(crate) may_fail: bool,
    pub(crate) takes_dry_run: bool,
    /// The first that both sides know; `None` where there is none.
    pub(crate) version: Option<&'static str>,
    /// `reinvocationPolicy: IfNeeded`.
    pub(crate) is_reinvoked: bool,
}

impl Webhooks {
    /// What is counted of calls is registered.
    pub fn new(clients: Arc<Clients>, metrics: &Metrics) -> Self {
        let measures = Measures::new(metrics);
        Self {
            clients,
            compiled: Derived::new(Compiled::default()),
            measures,
            cel: metrics.cel.clone(),
            failing: FailingWebhooks::default(),
        }
    }

    pub(crate) fn compiled(&self, caches: &Caches) -> Arc<Made<Compiled, 2>> {
        let look = || {
            let sources = [&MUTATING_WEBHOOK_CONFIGURATIONS, &VALIDATING_WEBHOOK_CONFIGURATIONS];
            let sources = sources.map(|it| snapshot(caches, it));
            (sources.each_ref().map(|it| it.revision), sources)
        };
        let make = |before: &Compiled, [mutating, validating]: [Arc<Snapshot>; 2]| Compiled {
            mutating: self.hooks(&before.mutating, &mutating),
            validating: self.hooks(&before.validating, &validating),
        };
        self.compiled.get(look, make, |_, now| {
            self.forget(now);
            let names: BTreeSet<&str> =
                now.mutating.all.iter().chain(&now.validating.all).map(|it| &*it.name).collect();
            self.measures.make_room(|it| names.contains(it));
        })
    }

    /// The webhooks that fail now, with kind and name of their configurations.
    pub fn failing(&self, caches: &Caches, now: Time) -> Vec<(Resource, String, FailingWebhook)> {
        self.forget(&self.compiled(caches));
        self.failing.all(now)
    }

    /// Webhooks that are configured otherwise now, or not at all; of those a call may have ended late.
    fn forget(&self, now: &Compiled) {
        self.failing.retain(&MUTATING_WEBHOOK_CONFIGURATIONS, now.mutating.all.iter().map(|it| &**it));
        self.failing.retain(&VALIDATING_WEBHOOK_CONFIGURATIONS, now.validating.all.iter().map(|it| &**it));
    }

    /// Notes what came of a call: none where it was answered, with yes.
    pub(crate) fn note(&self, phase: Phase, hook: &Hook, trouble: Option<(Trouble, &str)>, now: Time) {
        let of = &configurations_of(phase);
        match trouble {
            Some((trouble, message)) => self.failing.failed(of, hook, trouble, message, now),
            None => self.failing.answered(of, hook, now),
        }
    }

    /// Notes that the conditions of a webhook left a request out.
    pub(crate) fn note_excluded(&self, phase: Phase, hook: &Hook, now: Time) {
        self.failing.excluded(&configurations_of(phase), hook, now);
    }

    /// Sorted by the names of the configurations, as a snapshot is. Of those that have not changed the webhooks stay what they are.
    fn hooks(&self, before: &Hooks, configurations: &Snapshot) -> Hooks {
        let configurations = by_name(&before.configurations, configurations, |it| self.of_configuration(it));
        let mut hooks = Hooks::default();
        for hook in configurations.values().flat_map(|it| it.1.iter()) {
            hooks.index.add(hooks.all.len(), &hook.criteria);
            hooks.all.push(hook.clone());
        }
        hooks.configurations = configurations;
        hooks
    }

    fn of_configuration(&self, stored: &Stored) -> Vec<Arc<Hook>> {
        let configuration = stored.parse();
        let version = configuration["metadata"]["resourceVersion"].as_str().unwrap_or_default();
        let webhooks = configuration["webhooks"].as_array().into_iter().flatten().enumerate();
        webhooks.map(|(at, webhook)| Arc::new(self.hook(stored.name(), version, at, webhook))).collect()
    }

    fn hook(&self, configuration: &str, resource_version: &str, at: usize, webhook: &Value) -> Hook {
        let name = webhook["name"].as_str().unwrap_or_default().to_owned();
        let begun = Instant::now();
        let conditions = Conditions::read(webhook, false);
        if !conditions.is_empty() {
            self.cel.compiled(begun.elapsed());
        }
        let client = ClientConfig::of_json(&webhook["clientConfig"]).and_then(|it| self.clients.client(&it));
        let versions = webhook["admissionReviewVersions"].as_array().into_iter().flatten().filter_map(Value::as_str);
        let known = |it| match it {
            "v1" => Some("admission.k8s.io/v1"),
            "v1beta1" => Some("admission.k8s.io/v1beta1"),
            _ => None,
        };
        Hook {
            configuration: configuration.to_owned(),
            resource_version: resource_version.to_owned(),
            id: format!("{configuration}/{name}/{at}"),
            name,
            criteria: Criteria::of_webhook(webhook),
            conditions,
            client: client.map_err(|it| it.0),
            timeout: Duration::from_secs(webhook["timeoutSeconds"].as_u64().unwrap_or(TIMEOUT_SECONDS)),
            may_fail: webhook["failurePolicy"] == "Ignore",
            takes_dry_run: matches!(webhook["sideEffects"].as_str(), Some("None" | "NoneOnDryRun")),
            version: versions.filter_map(known).next(),
            is_reinvoked: webhook["reinvocationPolicy"] == "IfNeeded",
        }
    }
}

fn configurations_of(phase: Phase) -> Resource {
    match phase {
        Phase::Admit => MUTATING_WEBHOOK_CONFIGURATIONS,
        Phase::Validating => VALIDATING_WEBHOOK_CONFIGURATIONS,
    }
}

fn snapshot(caches: &Caches, resource: &Resource) -> Arc<Snapshot> {
    caches.get(resource).expect("webhook configurations are rows of the table").snapshot()
}
