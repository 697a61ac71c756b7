//! An object that is not there: what was last heard of it, and the names that are nearly its own.

use corten_client::Error;
use corten_kinds::Kind;
use corten_meta::Key;

use super::{command::kubectl, fields::one_line, gather, nearest::nearest, reader::Reader};
use crate::failure::Failure;

/// A namespace that is not there, whatever was asked of it; none where it is there, or may not be seen.
pub(crate) async fn missing_namespace(reader: &Reader<'_>, namespace: &str) -> Option<Failure> {
    if namespace.is_empty() || !reader.lacks_namespace(namespace).await {
        return None;
    }
    let mut said = format!("there is no namespace {namespace:?}");
    let namespaces = corten_kinds::by_name("namespace")?;
    let names = gather::names(reader, namespaces, "").await;
    if let Some(near) = nearest(namespace, names.iter().map(String::as_str)) {
        said.push_str(&format!("; there is {near:?}"));
    }
    Some(Failure::new(said).next(kubectl("", &["get", "namespaces"])))
}

/// An object that is there and that the server cannot show: its definition says why.
pub(crate) fn unreadable(error: &Error, kind: &Kind, key: &Key) -> Option<Failure> {
    let status = error.status().filter(|it| kind.is_custom() && it.code >= 500)?;
    let definition = format!("customresourcedefinition/{}", kind.resource.qualified());
    let said = format!("{}/{} cannot be read: {}", kind.singular, key.name, one_line(&status.message));
    let who = if said.contains("conversion webhook") {
        format!("; who must act: whoever runs the webhook that converts what {definition} defines")
    } else {
        String::new()
    };
    Some(Failure::new(format!("{said}{who}")).next(format!("corten why {definition}")))
}

/// Everything that can be said.
pub(crate) async fn missing(reader: &Reader<'_>, kind: &Kind, key: &Key) -> Failure {
    if let Some(failure) = missing_namespace(reader, &key.namespace).await {
        return failure;
    }
    let place = if key.namespace.is_empty() { String::new() } else { format!(" in namespace {}", key.namespace) };
    let mut said = format!("there is no {} {:?}{place}", kind.singular, key.name);
    let names = gather::names(reader, kind, &key.namespace).await;
    if let Some(near) = nearest(&key.name, names.iter().map(String::as_str)) {
        said.push_str(&format!("; there is {near:?}"));
    } else if !names.is_empty() && names.len() <= 5 {
        said.push_str(&format!("; there are: {}", names.join(", ")));
    }
    let everywhere: &[&str] = if key.namespace.is_empty() { &[] } else { &["--all-namespaces"] };
    let words = [&["get", &*kind.resource.plural], everywhere].concat();
    let mut failure = Failure::new(said).next(kubectl("", &words));
    let events = gather::events_of(reader, kind, key).await;
    if !events.is_empty() {
        failure.details.push("there was one of this name; last heard of it:".into());
        failure.details.extend(events.iter().map(|it| format!("   {it}")));
    }
    failure.unknown = reader.hidden();
    failure
}
