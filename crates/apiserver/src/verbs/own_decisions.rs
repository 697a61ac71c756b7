//! What the server itself knows of objects: those that ask others and get no answer, and definitions that do not get on.

use std::collections::BTreeMap;

use corten_admission::{FailingPolicy, FailingWebhook, PolicyTrouble, Trouble};
use corten_api::resources::{
    CUSTOM_RESOURCE_DEFINITIONS, MUTATING_ADMISSION_POLICIES, MUTATING_WEBHOOK_CONFIGURATIONS,
    VALIDATING_ADMISSION_POLICIES, VALIDATING_WEBHOOK_CONFIGURATIONS,
};
use corten_meta::{Key, Resource};
use corten_reconcile::{Actor, Decision, Wait};

use crate::state::State;

pub(super) fn of(state: &State, resource: &Resource, key: &Key) -> Vec<Decision> {
    if *resource == CUSTOM_RESOURCE_DEFINITIONS {
        let conversion = state.conversion().failing(&key.name).map(|it| it.decision());
        return conversion.into_iter().chain(state.refused_definitions().of(&key.name)).collect();
    }
    if [MUTATING_ADMISSION_POLICIES, VALIDATING_ADMISSION_POLICIES].contains(resource) {
        return failing_policies(state).remove(&(resource.clone(), key.clone())).into_iter().collect();
    }
    if ![MUTATING_WEBHOOK_CONFIGURATIONS, VALIDATING_WEBHOOK_CONFIGURATIONS].contains(resource) {
        return Vec::new();
    }
    failing_webhooks(state).remove(&(resource.clone(), key.clone())).into_iter().collect()
}

pub(super) fn all(state: &State) -> impl Iterator<Item = ((Resource, Key), Decision)> + use<> {
    let conversion = state.conversion().all_failing().into_iter();
    let conversion = conversion.map(|(name, it)| (name, it.decision()));
    let definitions = conversion.chain(state.refused_definitions().all());
    let definitions = definitions.map(|(name, it)| ((CUSTOM_RESOURCE_DEFINITIONS, Key::cluster(name)), it));
    definitions.chain(failing_webhooks(state)).chain(failing_policies(state))
}

/// By their configurations.
fn failing_webhooks(state: &State) -> BTreeMap<(Resource, Key), Decision> {
    let mut decisions: BTreeMap<(Resource, Key), Decision> = BTreeMap::new();
    for (resource, configuration, failing) in state.cluster().webhooks.failing(state.caches()) {
        let decision = decisions.entry((resource, Key::cluster(configuration))).or_default();
        decision.by = "admission".into();
        decision.waits.push(wait(&failing));
    }
    decisions
}

/// By the policies.
fn failing_policies(state: &State) -> BTreeMap<(Resource, Key), Decision> {
    let mut decisions: BTreeMap<(Resource, Key), Decision> = BTreeMap::new();
    for (resource, name, failing) in state.cluster().policies.failing(state.caches()) {
        let decision = decisions.entry((resource, Key::cluster(name))).or_default();
        decision.by = "admission".into();
        decision.waits.push(wait_of_policy(failing));
    }
    decisions
}

fn wait_of_policy(failing: FailingPolicy) -> Wait {
    let FailingPolicy { trouble, operation, since, message, n_in_a_row, may_fail } = failing;
    let mut wait = match trouble {
        PolicyTrouble::Fails => {
            let becomes = if may_fail { "passes without it" } else { "is refused" };
            let times = if n_in_a_row == 1 { String::new() } else { format!(" {n_in_a_row} times in a row") };
            let message = format!("it failed{times}, and what it is about {becomes}: {message}");
            Wait::new("PolicyFailing", message, Actor::Author)
        }
        PolicyTrouble::Denies => {
            let message = format!(
                "it denied the last {n_in_a_row} requests to {operation} that it was asked about, by {message}"
            );
            Wait::new("PolicyDenying", message, Actor::Author)
        }
    };
    wait.since = Some(since);
    wait
}

fn wait(failing: &FailingWebhook) -> Wait {
    let FailingWebhook { webhook, message, n_in_a_row, .. } = failing;
    let mut wait = match failing.trouble {
        Trouble::NoAnswer => {
            let begin = format!("failed calling webhook {webhook:?}: ");
            let why = message.strip_prefix(&begin).unwrap_or(message);
            let why = why.strip_prefix("failed to call webhook: ").unwrap_or(why);
            let becomes = if failing.may_fail { "passes without it" } else { "is refused" };
            let times = if *n_in_a_row == 1 { String::new() } else { format!(", {n_in_a_row} times in a row") };
            let message =
                format!("webhook {webhook} gives no valid answer{times}, and what it is about {becomes}: {why}");
            Wait::new("WebhookFailing", message, Actor::External)
        }
        Trouble::Denies => {
            let message = format!("webhook {webhook} denied all of the last {n_in_a_row} requests: {message}");
            Wait::new("WebhookDenying", message, Actor::External)
        }
    };
    wait.since = Some(failing.since);
    wait
}
