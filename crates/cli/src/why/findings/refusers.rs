//! Which webhook or policy of others refused a write, read off the server's words; and whose that is.
//!
//! The words are upstream's, and name the webhook but not its configuration: that is looked for.

use corten_api::resources::{MUTATING_WEBHOOK_CONFIGURATIONS, VALIDATING_WEBHOOK_CONFIGURATIONS};
use corten_meta::Resource;
use corten_reconcile::{Actor, Wait};
use serde_json::Value;

use super::refusal::between;
use crate::why::{
    fields::{items, one_line, text},
    reader::Reader,
};

pub(crate) const WEBHOOK_FAILED: &str = "WebhookFailed";
/// Whether a webhook is asked at all cannot be found out.
pub(crate) const CONDITION_FAILED: &str = "WebhookConditionFailed";
const DENIED: &str = " denied the request";

/// A wait of its own for each refusal by others.
pub(crate) fn read(message: &str) -> Option<Wait> {
    policy(message).or_else(|| webhook(message))
}

fn webhook(message: &str) -> Option<Wait> {
    if let Some((_, rest)) = message.split_once("failed calling webhook \"") {
        let (name, why) = rest.split_once("\": ")?;
        let why = one_line(why.strip_prefix("failed to call webhook: ").unwrap_or(why));
        let message = format!("webhook {name} gives no valid answer: {why}");
        return Some(Wait::new(WEBHOOK_FAILED, message, Actor::External));
    }
    let (_, rest) = message.split_once("admission webhook \"")?;
    let (name, rest) = rest.split_once('"')?;
    let says = match rest.split_once(DENIED) {
        Some(("", why)) => why.strip_prefix(": ").map(|it| format!("denies it: {}", one_line(it))),
        _ => Some(one_line(rest)),
    };
    let says = says.unwrap_or_else(|| "denies it, and does not say why".into());
    Some(Wait::new("WebhookRefused", format!("webhook {name} {says}"), Actor::External))
}

/// `ValidatingAdmissionPolicy 'P' with binding 'B' denied request: …`, and the same of one that changes objects.
fn policy(message: &str) -> Option<Wait> {
    let (kind, mark) =
        [("ValidatingAdmissionPolicy", "ValidatingAdmissionPolicy '"), ("MutatingAdmissionPolicy", "policy '")]
            .into_iter()
            .find(|(_, mark)| message.contains(mark))?;
    let (_, rest) = message.split_once(mark)?;
    let (name, rest) = rest.split_once('\'')?;
    let (binding, why) = rest.split_once(" denied request: ")?;
    let binding = between(binding, "with binding '", "'").map(|it| format!(", bound by {it},")).unwrap_or_default();
    let why = one_line(why);
    let is_broken =
        ["failed to configure ", "compilation error: ", "resulted in error: "].iter().any(|it| why.contains(it));
    let wait = if is_broken {
        Wait::new("PolicyFailed", format!("policy {name}{binding} cannot be asked: {why}"), Actor::Operator)
    } else {
        Wait::new("PolicyRefused", format!("policy {name}{binding} denies it: {why}"), Actor::Author)
    };
    Some(wait.on(kind, name))
}

/// The webhook that a wait names.
pub(crate) fn webhook_of(wait: &Wait) -> Option<&str> {
    wait.message.strip_prefix("webhook ")?.split(' ').next()
}

/// Where a webhook is configured.
pub(crate) struct Configured {
    /// `validatingwebhookconfiguration/guard`.
    pub(crate) subject: String,
    pub(crate) object: Value,
    /// Where it is asked: `service/guard in guards`, or a URL.
    pub(crate) place: String,
    /// The same, as the webhook's `clientConfig` says it.
    pub(crate) client: Value,
}

/// The first configuration that has a webhook of this name.
pub(crate) async fn configuration(reader: &Reader<'_>, webhook: &str) -> Option<Configured> {
    const KINDS: [(&str, &Resource); 2] = [
        ("validatingwebhookconfiguration", &VALIDATING_WEBHOOK_CONFIGURATIONS),
        ("mutatingwebhookconfiguration", &MUTATING_WEBHOOK_CONFIGURATIONS),
    ];
    for (kind, resource) in KINDS {
        for object in reader.list(resource, "").await.iter() {
            let Some(found) = items(object, "/webhooks").iter().find(|it| it["name"] == webhook) else { continue };
            let subject = format!("{kind}/{}", text(object, "/metadata/name"));
            let client = found["clientConfig"].clone();
            return Some(Configured { subject, object: object.clone(), place: place(&client), client });
        }
    }
    None
}

pub(crate) fn place(client: &Value) -> String {
    match client["url"].as_str() {
        Some(url) => url.to_owned(),
        None => format!("service/{} in {}", text(client, "/service/name"), text(client, "/service/namespace")),
    }
}

/// A webhook that does not answer waits for what keeps it: its configuration says where to look.
pub(crate) async fn place_webhook(reader: &Reader<'_>, wait: &mut Wait) {
    if wait.reason != WEBHOOK_FAILED {
        return;
    }
    let Some(webhook) = webhook_of(wait) else { return };
    wait.on = configuration(reader, webhook).await.map(|it| it.subject);
}

/// Whose an object is, as those who install things say of it.
pub(crate) fn owner(object: &Value) -> Option<String> {
    let metadata = &object["metadata"];
    let note = |name: &str| metadata["annotations"][name].as_str().filter(|it| !it.is_empty());
    let label =
        |name: &str| metadata["labels"][format!("app.kubernetes.io/{name}")].as_str().filter(|it| !it.is_empty());
    if let Some(release) = note("meta.helm.sh/release-name") {
        let place = note("meta.helm.sh/release-namespace").map(|it| format!(" of {it}")).unwrap_or_default();
        return Some(format!("installed by the Helm release {release}{place}"));
    }
    let part = ["instance", "part-of", "name"].into_iter().find_map(label);
    if let Some(manager) = label("managed-by") {
        return Some(format!("managed by {manager}{}", part.map(|it| format!(" as part of {it}")).unwrap_or_default()));
    }
    if let Some(owner) = items(metadata, "/ownerReferences").iter().find(|it| it["controller"] == true) {
        return Some(format!("owned by {}/{}", text(owner, "/kind").to_lowercase(), text(owner, "/name")));
    }
    part.map(|it| format!("part of {it}")).or_else(|| Some(format!("last written by {}", writer(metadata)?)))
}

/// Whoever wrote it last, a status aside.
fn writer(metadata: &Value) -> Option<&str> {
    let entries = items(metadata, "/managedFields").iter().filter(|it| text(it, "/subresource").is_empty());
    // Of several with the same time the later one in the list.
    entries.max_by_key(|it| text(it, "/time")).map(|it| text(it, "/manager")).filter(|it| !it.is_empty())
}

#[cfg(test)]
mod tests;
