//! Admission policies that cannot be asked, and bindings that bind nothing: what they name is not there.

use corten_kinds::Kind;
use corten_meta::{Key, Selector};
use corten_reconcile::{Actor, Wait};
use serde::Deserialize;
use serde_json::Value;

use super::{found::Findings, refusal::between};
use crate::why::{
    custom,
    fields::{items, key_of, one_line, text, time},
    reader::Reader,
};

/// A policy: its parameters' kind, and what the type check says of its expressions.
pub(super) async fn policy(reader: &Reader<'_>, kind: &str, object: &Value, found: &mut Findings) {
    if let Some(wait) = unserved_parameters(reader, kind, object).await {
        // That it fails whenever it is asked follows from that.
        found.explains.push("PolicyFailing");
        found.wait(wait);
    }
    for warning in items(object, "/status/typeChecking/expressionWarnings") {
        // What follows shows the place in the expression.
        let says = text(warning, "/warning").split("\n |").next().unwrap_or_default();
        let (field, says) = (text(warning, "/fieldRef"), one_line(says));
        found.add(
            "TypeCheckFailed",
            format!("the expression at {field} does not fit its types: {says}"),
            Actor::Author,
        );
    }
    let name = text(object, "/metadata/name");
    let Some(bindings) = corten_kinds::by_name(&format!("{kind}binding")) else { return };
    let all = reader.list(&bindings.resource, "").await;
    let is_bound = all.iter().any(|it| text(it, "/spec/policyName") == name);
    if !is_bound && reader.is_whole(&bindings.resource, &all) {
        found.notices.push("no binding names it: it is asked about nothing".into());
    }
}

/// Nobody writes down when a kind went: it is blamed since the server has asked for it in vain.
async fn unserved_parameters(reader: &Reader<'_>, policies: &str, policy: &Value) -> Option<Wait> {
    let (version, kind) = (text(policy, "/spec/paramKind/apiVersion"), text(policy, "/spec/paramKind/kind"));
    if kind.is_empty() || !custom::is_unserved(reader, version, kind).await {
        return None;
    }
    let message =
        format!("its parameters are of the kind {kind} of {version}, which nobody serves: {}", becomes(policy));
    let decisions = match corten_kinds::by_name(policies) {
        Some(kind) => reader.decisions_if_shown(kind, &key_of(policy)).await,
        None => Vec::new(),
    };
    let of_kind = decisions.iter().flat_map(|it| &it.waits).filter(|it| it.message.contains(NO_KIND));
    let since = of_kind.filter_map(|it| it.since).min();
    Some(Wait { since, ..Wait::new("ParamKindNotFound", message, Actor::Author) })
}

/// What the server says, in upstream's words, of a policy whose parameters are of a kind that nobody serves.
const NO_KIND: &str = "failed to find resource referenced by paramKind";

/// What becomes of requests, where it cannot be asked.
fn becomes(policy: &Value) -> &'static str {
    match text(policy, "/spec/failurePolicy") {
        "Ignore" => "what it is about passes",
        _ => "what it is about is refused",
    }
}

/// A binding: its policy, and the parameters that it names.
pub(super) async fn binding(reader: &Reader<'_>, policies: &str, object: &Value, found: &mut Findings) {
    let Some(policies) = corten_kinds::by_name(policies) else { return };
    let key = Key::cluster(text(object, "/spec/policyName"));
    let Some(policy) = reader.get(&policies.resource, &key).await else {
        if reader.is_missing(&policies.resource, &key).await {
            let message = format!("there is no {} {:?}: it binds nothing", policies.singular, key.name);
            // When the policy went nobody has written down: since then it binds nothing at the longest.
            let since = time(&object["metadata"]["creationTimestamp"]);
            found.wait(Wait { since, ..Wait::new("PolicyNotFound", message, Actor::Author) });
        }
        return;
    };
    if let Some(wait) = unserved_parameters(reader, &policies.singular, &policy).await {
        let of_policy = format!("{}/{}: {}", policies.singular, key.name, wait.message);
        found.wait(Wait { message: of_policy, ..wait }.on(&policies.singular, &key.name));
        return;
    }
    let (version, kind) = (text(&policy, "/spec/paramKind/apiVersion"), text(&policy, "/spec/paramKind/kind"));
    let Some(kind) = custom::kind_served(reader, version, kind).await else { return };
    parameters(reader, kind, object, found).await;
}

/// What the server says, in upstream's words, of a binding whose parameters are not there.
const NO_PARAMETERS: &str = "no params found for policy binding";

/// Names the binding and the parameter that a write was refused for: the server's words do not say what is missing.
pub(crate) async fn name_parameter(reader: &Reader<'_>, namespace: &str, wait: &mut Wait) {
    if wait.reason != "PolicyFailed" || !wait.message.contains(NO_PARAMETERS) {
        return;
    }
    let Some((kind, policy)) = wait.on.as_deref().and_then(|it| it.split_once('/')) else { return };
    let Some(name) = between(&wait.message, ", bound by ", ",") else { return };
    let (policies, bindings) = (corten_kinds::by_name(kind), corten_kinds::by_name(&format!("{kind}binding")));
    let (Some(policies), Some(bindings)) = (policies, bindings) else { return };
    let policy = reader.get(&policies.resource, &Key::cluster(policy)).await;
    let binding = reader.get(&bindings.resource, &Key::cluster(name)).await;
    let what = match (policy, binding) {
        (Some(policy), Some(binding)) => named(reader, &policy, &binding, namespace).await,
        _ => None,
    };
    let what = what.unwrap_or_else(|| "a parameter that it asks for is not there".into());
    let subject = format!("{}/{name}", bindings.singular);
    let message = format!("{subject} refuses what its policy is about: {what}");
    let since = wait.since;
    *wait = Wait { since, on: Some(subject), ..Wait::new("ParameterNotFound", message, Actor::Author) };
}

/// The parameter that is looked for where a request is about a namespace.
async fn named(reader: &Reader<'_>, policy: &Value, binding: &Value, namespace: &str) -> Option<String> {
    let (version, kind) = (text(policy, "/spec/paramKind/apiVersion"), text(policy, "/spec/paramKind/kind"));
    let kind = custom::kind_served(reader, version, kind).await?;
    let reference = &binding["spec"]["paramRef"];
    let place = match (kind.resource.namespaced, text(reference, "/namespace")) {
        (false, _) => "",
        (true, "") => namespace,
        (true, named) => named,
    };
    let place = if place.is_empty() { String::new() } else { format!(" in {place}") };
    Some(match text(reference, "/name") {
        "" => format!("no {}{place} has the labels that its paramRef asks for", kind.singular),
        name => format!("its parameter, the {} {name:?}{place}, is not there", kind.singular),
    })
}

/// Without a namespace they are taken from that of each request: then nobody knows which are missing.
async fn parameters(reader: &Reader<'_>, kind: &Kind, binding: &Value, found: &mut Findings) {
    let reference = &binding["spec"]["paramRef"];
    let namespace = text(reference, "/namespace");
    if !reference.is_object() || kind.resource.namespaced && namespace.is_empty() {
        return;
    }
    let place = if namespace.is_empty() { String::new() } else { format!(" in {namespace}") };
    let becomes = match text(reference, "/parameterNotFoundAction") {
        "Deny" => "what the policy is about is refused",
        _ => "the policy is not asked by it",
    };
    let name = text(reference, "/name");
    let what = if name.is_empty() {
        let objects = reader.list(&kind.resource, namespace).await;
        let selector = Selector::deserialize(&reference["selector"]).unwrap_or_default();
        let labels = |it: &Value| serde_json::from_value(it["metadata"]["labels"].clone()).unwrap_or_default();
        let is_any = objects.iter().any(|it| selector.matches(&labels(it)));
        (!is_any && reader.is_whole(&kind.resource, &objects))
            .then(|| format!("no {}{place} has the labels that its paramRef asks for", kind.singular))
    } else {
        let is_missing = reader.is_missing(&kind.resource, &Key::new(namespace, name)).await;
        is_missing.then(|| format!("its parameter, the {} {name:?}{place}, is not there", kind.singular))
    };
    if let Some(what) = what {
        let message = format!("{what}: {becomes}");
        found.add("ParameterNotFound", message, Actor::Author);
    }
}
