//! What extends the API and is not well: definitions, whoever converts their objects, whoever wrote a condition.

use corten_api::resources::{CUSTOM_RESOURCE_DEFINITIONS, SERVICES};
use corten_meta::Key;
use serde_json::Value;

use super::{
    case::{Advice, Case},
    servers,
};
use crate::why::{
    command::kubectl,
    custom,
    fields::{items, text},
    findings::{conditions, refusal::between, refusers},
    misdirected, trust,
};

/// Of a condition: of a definition what it is about, of an APIService whose server it is, of a custom object who wrote it.
pub(super) async fn condition(case: &Case<'_>) -> Option<Advice> {
    let condition = conditions::condition_of(case.wait)?;
    if case.at.subject.starts_with("customresourcedefinition/") {
        return match condition {
            "NamesAccepted" => names(case).await,
            "KubernetesAPIApprovalPolicyConformant" => Some(approval(case)),
            _ => None,
        };
    }
    if case.at.subject.starts_with("apiservice/") && case.object["spec"]["service"].is_object() {
        return Some(api_service(case).await);
    }
    if case.at.subject.starts_with("storageversionmigration/") {
        let who = format!("whoever wrote {}: once its cause is mended, it must be made anew", case.author);
        return Some(Advice::run(case.describe()).who(who));
    }
    custom::definition_name(case.reader, case.object).await?;
    let writer = conditions::writer(case.object, condition)?;
    let who = if writer.starts_with("kubectl") {
        format!("whoever wrote the condition, with {writer}")
    } else {
        format!("the controller {writer:?}, which wrote the condition")
    };
    Some(Advice::run(case.describe()).who(who))
}

/// Another server answers in its place, or does not.
async fn api_service(case: &Case<'_>) -> Advice {
    let spec = &case.object["spec"];
    let key = Key::new(text(spec, "/service/namespace"), text(spec, "/service/name"));
    let place = refusers::place(spec);
    let service = case.reader.get(&SERVICES, &key).await;
    let owner = service.as_deref().and_then(refusers::owner).or_else(|| refusers::owner(case.object));
    let owner = owner.map(|it| format!(", {it}")).unwrap_or_default();
    let (message, author) = (&case.wait.message, &case.at.subject);
    let who = trust::who(message, author, &place).or_else(|| misdirected::who(message, author, &place));
    let down = || match servers::answered_code(message) {
        Some("404") => format!(
            "whoever wrote {author}: the server answers, and has no {}/{}; or whoever runs {place}, which is to serve it",
            text(spec, "/group"),
            text(spec, "/version")
        ),
        Some(code) => {
            format!("whoever runs {place}: it answers {code}, and what it serves can be neither read nor written")
        }
        None => format!("whoever runs {place}: until it answers, what it serves can be neither read nor written"),
    };
    let next = servers::next(case.reader, spec, message).await.filter(|_| who.is_none());
    Advice::run(next.unwrap_or_else(|| case.describe()))
        .who(who.unwrap_or_else(down))
        .hint(format!("it is asked at {place}{owner}"))
}

/// Requests go to a Service, or a port of one, that is not there.
pub(super) fn service(case: &Case<'_>) -> Advice {
    let (message, names) = (&case.wait.message, format!("whoever wrote {}, which names it", case.author));
    let missing = between(message, "it sends requests to the service ", ", which is not there");
    let port = between(message, "it sends requests to port ", ", which has").and_then(|it| it.split_once(" of "));
    let who = match (missing, port) {
        (Some(service), _) => format!("whoever is to make the service {service}; or {names}"),
        (None, Some((port, service))) => format!("whoever wrote {service}: it has no port {port}; or {names}"),
        (None, None) => names,
    };
    Advice::run(case.describe()).who(who)
}

/// Another definition of the group has a name already: which one?
async fn names(case: &Case<'_>) -> Option<Advice> {
    let name = case.wait.message.split('"').nth(1)?;
    let definitions = case.reader.list(&CUSTOM_RESOURCE_DEFINITIONS, "").await;
    let own = text(case.object, "/metadata/name");
    let holder = definitions.iter().find(|it| {
        text(it, "/spec/group") == text(case.object, "/spec/group")
            && text(it, "/metadata/name") != own
            && has_name(&it["status"]["acceptedNames"], name)
    })?;
    let holder = text(holder, "/metadata/name");
    Some(
        Advice::run(kubectl("", &["get", "customresourcedefinitions", own, holder, "-o", "yaml"]))
            .headline(format!("customresourcedefinition/{holder} of its group has the name {name:?} already"))
            .who(format!("whoever wrote {own}: it needs another name; or whoever wrote {holder}")),
    )
}

fn has_name(names: &Value, name: &str) -> bool {
    ["plural", "singular", "kind", "listKind"].iter().any(|it| names[it] == name)
        || items(names, "/shortNames").iter().any(|it| it == name)
}

/// Objects are stored in a version that the definition does not have any more.
pub(super) fn stored_version(case: &Case<'_>) -> Advice {
    Advice::run(kubectl("", &["edit", &case.at.subject]))
        .who(format!("whoever wrote {}: that version must be put back into spec.versions", case.at.subject))
        .hint("it may be put back with served: false, as long as another one is served")
        .hint("take it away again when all objects have been written anew, and status.storedVersions does not have it")
}

/// The server itself says no more of its objects than that they cannot be listed.
pub(super) fn unlisted(case: &Case<'_>) -> Advice {
    if case.at.subject.starts_with("apiservice/") {
        return Advice::run(case.describe()).who(format!("whoever runs {}", refusers::place(&case.object["spec"])));
    }
    Advice::run(kubectl("", &["get", text(case.object, "/metadata/name"), "--all-namespaces"]))
        .who("whoever runs the cluster")
}

fn approval(case: &Case<'_>) -> Advice {
    let group = text(case.object, "/spec/group");
    Advice::run(case.describe())
        .who(format!("whoever wrote {}: another group than {group}, which is Kubernetes's own", case.author))
        .hint("or the annotation api-approved.kubernetes.io names the URL where it was approved, or \"unapproved, …\"")
}

/// Who converts the objects of a definition, and whose that is.
pub(super) async fn conversion(case: &Case<'_>) -> Advice {
    let own = Some(text(case.object, "/metadata/name").to_owned());
    let is_definition = case.at.subject.starts_with("customresourcedefinition/");
    let name = if is_definition { own } else { custom::definition_name(case.reader, case.object).await };
    let Some(name) = name else { return Advice::run(case.describe()).who("whoever runs the conversion webhook") };
    let next = kubectl("", &["describe", &format!("customresourcedefinition/{name}")]);
    let advice = Advice::run(next);
    let Some(definition) = case.reader.get(&CUSTOM_RESOURCE_DEFINITIONS, &Key::cluster(&*name)).await else {
        return advice.who(format!("whoever runs the conversion webhook of {name}"));
    };
    let client = &definition["spec"]["conversion"]["webhook"]["clientConfig"];
    let place = refusers::place(client);
    let key = Key::new(text(client, "/service/namespace"), text(client, "/service/name"));
    let service = if key.name.is_empty() { None } else { case.reader.get(&SERVICES, &key).await };
    if service.is_none() && !key.name.is_empty() && case.reader.is_missing(&SERVICES, &key).await {
        return advice
            .who(format!("whoever wrote {name}: {place}, which it names, is not there; or whoever runs that service"));
    }
    let owner = service.as_deref().and_then(refusers::owner).or_else(|| refusers::owner(&definition));
    let (message, author) = (&case.wait.message, format!("customresourcedefinition/{name}"));
    let who = trust::who(message, &author, &place).or_else(|| misdirected::who(message, &author, &place));
    let next = servers::next(case.reader, client, message).await.filter(|_| who.is_none());
    Advice { next: next.unwrap_or(advice.next), ..Advice::default() }
        .who(who.unwrap_or_else(|| format!("whoever runs the webhook that converts {name}")))
        .hint(format!("it is asked at {place}{}", owner.map(|it| format!(", {it}")).unwrap_or_default()))
}
