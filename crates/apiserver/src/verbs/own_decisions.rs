//! What the server itself knows of objects: those that ask others, and get no answer.

use std::collections::BTreeMap;

use corten_admission::{Failing, FailingPolicy, Trouble};
use corten_api::resources::{
    CUSTOM_RESOURCE_DEFINITIONS, MUTATING_ADMISSION_POLICIES, MUTATING_WEBHOOK_CONFIGURATIONS,
    VALIDATING_WEBHOOK_CONFIGURATIONS,
};
use corten_meta::{Key, Resource};
use corten_reconcile::{Actor, Decision, Wait};

use crate::state::State;

pub(super) fn of(state: &State, resource: &Resource, key: &Key) -> Option<Decision> {
    if *resource == CUSTOM_RESOURCE_DEFINITIONS {
        return state.conversion().failing(&key.name).map(|it| it.decision());
    }
    if *resource == MUTATING_ADMISSION_POLICIES {
        return failing_policies(state).find(|it| it.0.1 == *key).map(|it| it.1);
    }
    if ![MUTATING_WEBHOOK_CONFIGURATIONS, VALIDATING_WEBHOOK_CONFIGURATIONS].contains(resource) {
        return None;
    }
    failing_webhooks(state).remove(&(resource.clone(), key.clone()))
}

pub(super) fn all(state: &State) -> impl Iterator<Item = ((Resource, Key), Decision)> + use<> {
    let conversion = state.conversion().all_failing().into_iter();
    let conversion = conversion.map(|(name, it)| ((CUSTOM_RESOURCE_DEFINITIONS, Key::cluster(name)), it.decision()));
    conversion.chain(failing_webhooks(state)).chain(failing_policies(state))
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

fn failing_policies(state: &State) -> impl Iterator<Item = ((Resource, Key), Decision)> + use<> {
    let decision = |(name, failing): (String, FailingPolicy)| {
        let FailingPolicy { since, message, n_in_a_row, may_fail } = failing;
        let becomes = if may_fail { "passes without it" } else { "is refused" };
        let times = if n_in_a_row == 1 { String::new() } else { format!(" {n_in_a_row} times in a row") };
        let message = format!("it failed{times}, and what it is about {becomes}: {message}");
        let mut wait = Wait::new("PolicyFailing", message, Actor::Author);
        wait.since = Some(since);
        let decision = Decision { by: "admission".into(), waits: vec![wait], ..Decision::default() };
        ((MUTATING_ADMISSION_POLICIES, Key::cluster(name)), decision)
    };
    state.cluster().policies.failing(state.caches()).into_iter().map(decision)
}

fn wait(failing: &Failing) -> Wait {
    let Failing { webhook, message, n_in_a_row, .. } = failing;
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
