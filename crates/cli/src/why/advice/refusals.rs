//! What the API server refused: raise, ask for less, or change the namespace's rule.

use corten_api::resources::SERVICE_ACCOUNTS;
use corten_meta::{Key, Quantity};
use serde_json::{Map, Value, json};

use super::{
    case::{Advice, Case},
    servers,
};
use crate::why::{
    command::{kubectl, merge},
    custom,
    fields::text,
    findings::{refusal::between, refusers},
    misdirected,
    nearest::nearest,
    trust,
};

/// What keeps it from answering is its server's own.
const SILENT: [&str; 2] = [refusers::WEBHOOK_FAILED, "WebhookFailing"];
/// The reason of [`refuses_its_own`].
const OWN_REFUSED: &str = "WebhookRefusesItsOwn";

pub(super) async fn quota(case: &Case<'_>) -> Advice {
    let name = case.wait.on.as_deref().and_then(|it| it.split_once('/')).map_or("", |it| it.1);
    let mut hard = Map::new();
    for part in case.wait.message.split_once("is full: ").map_or("", |it| it.1).split("; ") {
        // "pods used 3 of 3, 1 more asked"
        let words: Vec<&str> = part.split([' ', ',']).filter(|it| !it.is_empty()).collect();
        let [resource, "used", used, "of", limit, asked, "more", "asked"] = words[..] else { continue };
        let amount = |it: &str| it.parse::<Quantity>().unwrap_or_default();
        let needed = amount(used).plus(missing(case).map_or(amount(asked), |n| times(amount(asked), n)));
        if needed > amount(limit) {
            hard.insert(resource.into(), json!(needed.to_string()));
        }
    }
    let patch = json!({"spec": {"hard": hard}});
    Advice::run(merge(case.namespace, &format!("resourcequota/{name}"), &patch))
        .headline(case.wait.message.clone())
        .who(format!("whoever runs the cluster: raise the quota; or its author: {} must ask for less", case.author))
        .hints(
            missing(case)
                .filter(|it| *it > 1)
                .map(|it| format!("{it} pods are missing; the command makes room for all of them")),
        )
}

fn times(amount: Quantity, n: i64) -> Quantity {
    (0..n.clamp(1, 1000)).fold(Quantity::default(), |sum, _| sum.plus(amount))
}

/// How many Pods are still to be made.
fn missing(case: &Case<'_>) -> Option<i64> {
    let wanted = case.object["spec"]["replicas"].as_i64()?;
    Some(wanted.saturating_sub(case.object["status"]["replicas"].as_i64().unwrap_or(0))).filter(|it| *it > 0)
}

/// What a template that says nothing is given, so that the command can be pasted; a person knows better numbers.
fn default_amount(resource: &str) -> &'static str {
    match resource {
        "cpu" => "100m",
        "ephemeral-storage" => "1Gi",
        _ => "128Mi",
    }
}

pub(super) fn requests(case: &Case<'_>) -> Advice {
    let rest = case.wait.message.split_once("must specify ").map_or("", |it| it.1);
    let (resources, containers) = rest.split_once(" for: ").unwrap_or((rest, ""));
    let mut words = vec!["set".to_owned(), "resources".into(), case.author.clone()];
    words.extend(Some(containers).filter(|it| !it.is_empty()).map(|it| format!("-c={it}")));
    for kind in ["requests", "limits"] {
        let of_kind = resources.split(',').filter_map(|it| {
            let it = it.trim();
            it.strip_prefix(&format!("{kind}.")).or_else(|| (kind == "requests" && !it.contains('.')).then_some(it))
        });
        let amounts: Vec<String> = of_kind.map(|it| format!("{it}={}", default_amount(it))).collect();
        words.extend((!amounts.is_empty()).then(|| format!("--{kind}={}", amounts.join(","))));
    }
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let is_job = case.author.starts_with("job/");
    let next = if is_job {
        kubectl(case.namespace, &["get", &case.author, "-o", "yaml"])
    } else {
        kubectl(case.namespace, &words)
    };
    Advice::run(next)
        .headline(format!(
            "its namespace has a quota for {resources}, and container {containers} does not say how much"
        ))
        .hint("or the namespace gets defaults: a LimitRange with defaultRequest")
        .hints(
            is_job.then(|| "a Job's template cannot be changed: correct its manifest, delete it, make it again".into()),
        )
}

pub(super) fn pod_security(case: &Case<'_>) -> Advice {
    let (level, what) =
        case.wait.message.split_once("PodSecurity ").map_or(("", ""), |it| it.1.split_once(": ").unwrap_or((it.1, "")));
    let level = level.trim_matches('"').split(':').next().unwrap_or_default().to_owned();
    // `x != false (container "c" must set …), y (…)`: what each asks for stands in brackets.
    let asks = what.split("), ").map(|it| it.split_once(" (").map_or(it, |it| it.1).trim_end_matches(')').to_owned());
    let is_pod = case.is_bare_pod();
    Advice::run(case.edit())
        .headline(format!(
            "namespace {} enforces PodSecurity {level:?}, and its pods do not keep to it",
            case.namespace
        ))
        .who(format!("whoever wrote {}; or whoever runs the namespace: relax it", case.author))
        .hints(asks.take(5))
        .hints(is_pod.then(|| "a pod's spec cannot be changed".into()))
}

pub(super) fn limit_range(case: &Case<'_>) -> Advice {
    Advice::run(case.edit())
        .headline(format!("a LimitRange of {} does not allow it: {}", case.namespace, case.wait.message))
        .who(format!("whoever wrote {}; or whoever runs the namespace: change the LimitRange", case.author))
        .hint(format!("the rule: {}", kubectl(case.namespace, &["describe", "limitrange"])))
}

pub(super) async fn service_account(case: &Case<'_>) -> Advice {
    let name = case.wait.on.as_deref().and_then(|it| it.split_once('/')).map_or("", |it| it.1);
    let list = case.reader.list(&SERVICE_ACCOUNTS, case.namespace).await;
    let near = nearest(name, list.iter().map(|it| text(it, "/metadata/name")));
    Advice::run(kubectl(case.namespace, &["create", "serviceaccount", name]))
        .headline(format!("there is no service account {name:?} in {}", case.namespace))
        .hints(near.map(|it| format!("there is one called {it:?}")))
}

pub(super) async fn webhook(case: &Case<'_>) -> Advice {
    let name = refusers::webhook_of(case.wait).unwrap_or_default();
    let who = match &*case.wait.reason {
        refusers::WEBHOOK_FAILED if name.is_empty() => {
            "whoever runs that webhook: until it answers otherwise, what it is about is refused".into()
        }
        refusers::CONDITION_FAILED => {
            let on = case.wait.on.as_deref().unwrap_or(&case.at.subject);
            format!("whoever wrote {on}: its condition must change")
        }
        refusers::WEBHOOK_FAILED if case.wait.message.contains(": it changes metadata.") => {
            format!("whoever runs the webhook {name}: until it leaves that alone, what it is about is refused")
        }
        refusers::WEBHOOK_FAILED => {
            format!("whoever runs the webhook {name}: until it answers, what it is about is refused")
        }
        OWN_REFUSED => return refuses_its_own(case),
        "WebhookFailing" => format!("whoever runs the webhook {name}; or whoever wrote {}", case.author),
        "WebhookDenying" => format!("whoever runs the webhook {name}: is it meant to deny all?"),
        _ => format!("whoever runs the webhook {name}; or {} must keep to what it asks", case.author),
    };
    if name.is_empty() {
        return Advice::run(kubectl("", &["get", "mutatingwebhookconfigurations", "-o", "wide"]))
            .who(who)
            .hint("the API does not say which: `corten why mutatingwebhookconfigurations` says which fail");
    }
    let Some(found) = refusers::configuration(case.reader, name).await else {
        return Advice::run(kubectl("", &["get", "validatingwebhookconfigurations,mutatingwebhookconfigurations"]))
            .who(who)
            .hint("no configuration has this webhook now: it is not asked any more");
    };
    let owner = refusers::owner(&found.object).map(|it| format!(", {it}")).unwrap_or_default();
    let message = &case.wait.message;
    let of_server = trust::who(message, &found.subject, &found.place)
        .or_else(|| misdirected::who(message, &found.subject, &found.place));
    let is_silent = of_server.is_none() && SILENT.contains(&&*case.wait.reason);
    let next = if is_silent { servers::next(case.reader, &found.client, message).await } else { None };
    Advice::run(next.unwrap_or_else(|| kubectl("", &["describe", &found.subject])))
        .who(of_server.unwrap_or(who))
        .hint(format!("it is in {}{owner}", found.subject))
        .hint(format!("it is asked at {}", found.place))
}

/// Neither goes on by itself: its server has no Pods because they are refused, and they are because it has none.
fn refuses_its_own(case: &Case<'_>) -> Advice {
    let on = &case.at.subject;
    Advice::run(kubectl("", &["edit", on]))
        .who(format!(
            "whoever wrote {on}: it must leave out that namespace (namespaceSelector) or those pods (objectSelector)"
        ))
        .hint(format!("or delete it until its server runs: {}", kubectl("", &["delete", on])))
}

/// What a binding names as parameter is not there.
pub(super) fn parameter(case: &Case<'_>) -> Advice {
    let on = case.wait.on.as_deref().filter(|it| it.contains("policybinding/"));
    let binding = on.unwrap_or(&case.at.subject);
    let named = case.wait.message.split_once("its parameter, the ").and_then(|it| it.1.split_once(", is not there"));
    let who = match named {
        Some((parameter, _)) => {
            format!("whoever is to make the {parameter}; or whoever wrote {binding}, which names it")
        }
        None => format!("whoever wrote {binding}: it must change, or what it asks for must be made"),
    };
    Advice::run(kubectl("", &["describe", binding])).who(who)
}

/// Who asks so much is seen best where they wait.
pub(super) fn turned_away() -> Advice {
    Advice::run("kubectl get --raw /debug/api_priority_and_fairness/dump_requests".into())
        .who("whoever runs the cluster: the level needs more nominalConcurrencyShares, or its user fewer requests")
}

/// A policy takes parameters of a kind that nobody serves.
pub(super) fn param_kind(case: &Case<'_>) -> Advice {
    let policy = case.wait.on.as_deref().unwrap_or(&case.at.subject);
    let kind = between(&case.wait.message, "its parameters are of the ", ", which nobody serves");
    let kind = kind.unwrap_or("kind of its parameters");
    let who = format!("whoever is to define the {kind}; or whoever wrote {policy}, which names it in its paramKind");
    Advice::run(kubectl("", &["describe", policy])).who(who)
}

pub(super) async fn policy(case: &Case<'_>) -> Advice {
    // One that fails or denies whatever it is asked is what the wait is about.
    let is_itself = ["PolicyFailing", "PolicyDenying"].contains(&&*case.wait.reason);
    let on = if is_itself { &*case.at.subject } else { case.wait.on.as_deref().unwrap_or_default() };
    let (kind, name) = on.split_once('/').unwrap_or_default();
    let object = match corten_kinds::by_name(kind) {
        Some(kind) => case.reader.get(&kind.resource, &Key::new("", name)).await,
        None => None,
    };
    if let Some(policy) = &object
        && let Some(advice) = of_parameter(case, on, policy).await
    {
        return advice;
    }
    let owner = object.and_then(|it| refusers::owner(&it)).map(|it| format!("it is {it}"));
    let who = match &*case.wait.reason {
        "PolicyFailed" | "PolicyFailing" => format!("whoever wrote {on}"),
        "PolicyDenying" => format!("whoever wrote {on}: is it meant to deny all?"),
        _ => format!("whoever wrote {}; or whoever wrote {on}: relax it", case.author),
    };
    Advice::run(kubectl("", &["describe", on])).who(who).hints(owner)
}

/// It fails with one of its parameters, and may be well with others.
async fn of_parameter(case: &Case<'_>, on: &str, policy: &Value) -> Option<Advice> {
    let parameter = between(&case.wait.message, "with its parameter, the ", ": ")?;
    let name = parameter.split('"').nth(1)?;
    let namespace = parameter.split_once("\" in ").map_or("", |it| it.1);
    let (version, kind) = (text(policy, "/spec/paramKind/apiVersion"), text(policy, "/spec/paramKind/kind"));
    // Its short name may be that of another kind, too.
    let kind = custom::kind_served(case.reader, version, kind).await;
    let next = match kind {
        Some(kind) => kubectl(namespace, &["describe", &kind.resource.qualified(), name]),
        None => kubectl("", &["describe", on]),
    };
    Some(
        Advice::run(next)
            .who(format!("whoever wrote the {parameter}, which does not fit {on}; or whoever wrote that policy"))
            .hint(format!("the policy: {}", kubectl("", &["describe", on]))),
    )
}
