//! An object that is not there: what was last heard of it, and the names that are nearly its own.

use corten_client::Error;
use corten_kinds::Kind;
use corten_meta::Key;

use super::{
    aggregated::{self, Handed},
    command::kubectl,
    fields::one_line,
    gather,
    nearest::nearest,
    reader::Reader,
};
use corten_console::failure::Failure;

/// Of API services that do not answer so many are named.
const SILENT_MAX: usize = 5;

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

/// A word that names no kind; which API services do not answer, whose kinds are not known.
pub(crate) async fn unknown_kind(reader: &Reader<'_>, word: &str) -> Failure {
    let mut silent = aggregated::unavailable(reader).await;
    // A word with a group is of no other.
    if let Some((_, group)) = word.split_once('.') {
        silent.retain(|it| group == it.group || group.ends_with(&format!(".{}", it.group)));
    }
    let Some(first) = silent.first() else {
        return Failure::new(format!("there is no kind {word:?}: `kubectl api-resources` lists what there is"));
    };
    let said = format!("no kind {word:?} is known; a server that does not answer may serve it");
    let mut failure = Failure::new(said).next(format!("corten why {}", first.subject));
    let line = |it: &Handed| {
        let reason = it.reason.as_deref().unwrap_or_default();
        format!("   {} is not available: {reason}", it.subject)
    };
    failure.details = silent.iter().take(SILENT_MAX).map(line).collect();
    if silent.len() > SILENT_MAX {
        failure.details.push(format!("   and {} more: kubectl get apiservices", silent.len() - SILENT_MAX));
    }
    let others = if silent.len() > 1 { ", and whoever runs the others" } else { "" };
    failure.details.push(format!("who must act:  whoever runs {}{others}", first.server));
    failure
}

/// What is there and the server cannot show, an object or all of a kind: its definition says why, or the APIService of its server.
pub(crate) async fn unreadable(reader: &Reader<'_>, error: &Error, kind: &Kind, what: &str) -> Option<Failure> {
    let status = error.status().filter(|it| it.code >= 500)?;
    let said = format!("{what} cannot be read: {}", one_line(&status.message));
    if !kind.is_custom() {
        let mut failure = Failure::new(said).next("kubectl get --raw '/readyz?verbose'");
        failure.details = vec!["who must act:  whoever runs the cluster".to_owned()];
        return status.message.contains(UNDECRYPTED).then_some(failure);
    }
    if let Some(it) = aggregated::server_of(reader, kind).await {
        let mut failure = Failure::new(said).next(format!("corten why {}", it.subject));
        failure.details = vec![
            format!("   {} hands such requests to {}", it.subject, it.server),
            format!("who must act:  whoever runs {}", it.server),
        ];
        return Some(failure);
    }
    let definition = format!("customresourcedefinition/{}", kind.resource.qualified());
    let who = if said.contains("conversion webhook") {
        format!("; who must act: whoever runs the webhook that converts what {definition} defines")
    } else {
        String::new()
    };
    Some(Failure::new(format!("{said}{who}")).next(format!("corten why {definition}")))
}

/// What the server says, in upstream's words, of what its keys do not open.
const UNDECRYPTED: &str = "unable to transform key";

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
