//! What the server itself knows of objects: those that ask others and get no answer, definitions that do not get on, and what is
//! stored under a key that is gone.

use std::collections::BTreeMap;

use corten_api::resources::{
    CUSTOM_RESOURCE_DEFINITIONS, FLOW_SCHEMAS, MUTATING_ADMISSION_POLICIES, MUTATING_ADMISSION_POLICY_BINDINGS,
    MUTATING_WEBHOOK_CONFIGURATIONS, PRIORITY_LEVEL_CONFIGURATIONS, VALIDATING_ADMISSION_POLICIES,
    VALIDATING_ADMISSION_POLICY_BINDINGS, VALIDATING_WEBHOOK_CONFIGURATIONS,
};
use corten_meta::{Key, Resource};
use corten_reconcile::{Actor, Decision, Wait};

use crate::state::State;

/// Policies, and what binds them.
const POLICIES: [Resource; 4] = [
    MUTATING_ADMISSION_POLICIES,
    MUTATING_ADMISSION_POLICY_BINDINGS,
    VALIDATING_ADMISSION_POLICIES,
    VALIDATING_ADMISSION_POLICY_BINDINGS,
];

pub(super) fn of(state: &State, resource: &Resource, key: &Key) -> Vec<Decision> {
    let mut decisions = of_its_work(state, resource, key);
    let waits = lost_keys(state, resource, key);
    if !waits.is_empty() {
        decisions.push(Decision { by: "encryption".into(), waits, ..Decision::default() });
    }
    decisions
}

/// That nobody can read it after the next start; of a definition as well, that nobody can read its objects. Not among [`all`]: it may be
/// thousands of objects, and the server's own check tells how many.
fn lost_keys(state: &State, resource: &Resource, key: &Key) -> Vec<Wait> {
    let Some(encryption) = state.config().encryption.as_ref().map(|it| it.encryption()) else { return Vec::new() };
    let is_definition = *resource == CUSTOM_RESOURCE_DEFINITIONS;
    // What a definition's journal says stands in the accounts of its objects, too.
    let what = if is_definition { "the definition itself" } else { "it" };
    let own = state.caches().get(resource).and_then(|cache| {
        let stored = cache.get(&key.namespace, &key.name)?;
        encryption.lost_key_of(what, &cache.store_key(&key.namespace, &key.name), stored.revision())
    });
    let of_objects = if is_definition { encryption.lost_keys_of(&key.name) } else { Vec::new() };
    own.into_iter().chain(of_objects).map(|it| Wait::new("KeyStillUsed", it, Actor::Operator)).collect()
}

fn of_its_work(state: &State, resource: &Resource, key: &Key) -> Vec<Decision> {
    if *resource == CUSTOM_RESOURCE_DEFINITIONS {
        let conversion = state.conversion().failing(&key.name).map(|it| it.decision());
        return conversion.into_iter().chain(state.refused_definitions().of(&key.name)).collect();
    }
    if POLICIES.contains(resource) {
        return failing_policies(state).remove(&(resource.clone(), key.clone())).into_iter().collect();
    }
    if [FLOW_SCHEMAS, PRIORITY_LEVEL_CONFIGURATIONS].contains(resource) {
        return refusing_levels(state).filter(|it| it.0 == (resource.clone(), key.clone())).map(|it| it.1).collect();
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
    definitions.chain(failing_webhooks(state)).chain(failing_policies(state)).chain(refusing_levels(state))
}

/// Levels that turn requests away, and the flow schemas that lead these there.
fn refusing_levels(state: &State) -> impl Iterator<Item = ((Resource, Key), Decision)> + use<> {
    let levels = state.fairness().refusing(state.cluster().now()).into_iter();
    levels.flat_map(|it| {
        let decision = Decision { by: "flowcontrol".into(), waits: vec![it.wait()], ..Decision::default() };
        let schema = (FLOW_SCHEMAS, Key::cluster(it.flow_schema().to_owned()));
        [((PRIORITY_LEVEL_CONFIGURATIONS, Key::cluster(it.level)), decision.clone()), (schema, decision)]
    })
}

/// By their configurations.
fn failing_webhooks(state: &State) -> BTreeMap<(Resource, Key), Decision> {
    let mut decisions: BTreeMap<(Resource, Key), Decision> = BTreeMap::new();
    for (resource, configuration, failing) in state.cluster().webhooks.failing(state.caches(), state.cluster().now()) {
        let decision = decisions.entry((resource, Key::cluster(configuration))).or_default();
        decision.by = "admission".into();
        decision.waits.push(failing.wait());
    }
    decisions
}

/// By the policies, and by the bindings that cannot give them their parameters.
fn failing_policies(state: &State) -> BTreeMap<(Resource, Key), Decision> {
    let mut decisions: BTreeMap<(Resource, Key), Decision> = BTreeMap::new();
    for (resource, name, failing) in state.cluster().policies.failing(state.caches(), state.cluster().now()) {
        let (is_validating, mut wait) = (resource == VALIDATING_ADMISSION_POLICIES, failing.wait());
        let mut add = |resource, name, wait| {
            let decision = decisions.entry((resource, Key::cluster(name))).or_default();
            decision.by = "admission".into();
            decision.waits.push(wait);
        };
        if !failing.binding.is_empty() {
            let bindings =
                if is_validating { VALIDATING_ADMISSION_POLICY_BINDINGS } else { MUTATING_ADMISSION_POLICY_BINDINGS };
            add(bindings.clone(), failing.binding.clone(), wait.clone());
            wait = wait.on(&bindings.kind, &failing.binding);
        }
        add(resource, name, wait);
    }
    decisions
}
