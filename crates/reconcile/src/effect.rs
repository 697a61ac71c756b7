//! What a mind can want done. An effect says everything that is needed to do it; the runner adds nothing but the caller.

use std::fmt;

use corten_meta::{Key, ObjectReference, Resource};
use serde_json::Value;

use crate::Count;

#[derive(Clone, Debug, PartialEq)]
pub enum Effect {
    /// Creates `object`, whose metadata carries namespace and name (or generateName). Creates of one resource that follow
    /// each other in a plan are carried out side by side: none may rest on another.
    Create { resource: Resource, object: Value },
    /// A JSON merge patch (RFC 7386). Put `metadata.uid` and `metadata.resourceVersion` into it to make it conditional.
    Patch { resource: Resource, key: Key, subresource: Option<&'static str>, patch: Value },
    /// As [`Effect::Patch`], as a strategic merge patch: one entry of a list that is merged by key (a condition by its type)
    /// is changed without saying the others.
    StrategicPatch { resource: Resource, key: Key, subresource: Option<&'static str>, patch: Value },
    /// Deletes the object with this uid; already gone is success. As creates, deletes that follow each other go side by side.
    Delete { resource: Resource, key: Key, uid: String, propagation: Propagation, grace_seconds: Option<i64> },
    /// Tells users what happened. Repetitions are counted into one Event.
    Event { about: ObjectReference, event_type: EventType, reason: &'static str, message: String },
    /// Reads the live object past the cache; the answer is in a later [`crate::View`].
    Ask { resource: Resource, key: Key },
    /// Asks whether a user may do something: `spec` is a SubjectAccessReview's. The answer stands under the resource
    /// SubjectAccessReview and the key `about`.
    AskAccess { about: Key, spec: Value },
    /// Gets what is at a path of the API, whoever serves it. Until a plan of the same key fetches nothing, its views hold what
    /// came, or why nothing did: see [`crate::View::fetched`]. That nothing came is no failure of the plan.
    Fetch(ApiPath),
    /// As [`Effect::Fetch`], for what tells of more keys than the plan's own: for a second ([`crate::SHARED_FOR`]) the views of
    /// all keys of the controller hold it. See [`crate::View::brought_for_all`].
    FetchForAll(ApiPath),
    /// Keeps a note about the plan's own key, in place of the one before: see [`crate::View::note`]. It goes with the object
    /// (but see [`crate::Controller::remembers_what_is_gone`] and [`crate::Controller::is_made_up`]), and with the process.
    Remember { note: Value },
    /// Counts what the effect before it did: where that fails nothing is counted.
    Count(Count),
    /// One of many things that do not rest on each other, of more than one effect: they are carried out one after the other, and
    /// end where one fails. Sequences that follow each other in a plan go side by side. Of what is fetched there is none in it.
    Sequence(Vec<Effect>),
}

impl Effect {
    /// What a sequence is made of; of anything else itself.
    pub fn parts(&self) -> &[Self] {
        match self {
            Self::Sequence(parts) => parts,
            other => std::slice::from_ref(other),
        }
    }

    /// Does it only bring what a later plan is made from?
    pub fn is_fetch(&self) -> bool {
        matches!(self, Self::Fetch(_) | Self::FetchForAll(_))
    }
}

/// What a GET asks for.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ApiPath {
    /// As [`Resource::path`] writes it: names in it are escaped.
    pub path: String,
    /// Names and values, not yet escaped.
    pub query: Vec<(&'static str, String)>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EventType {
    Normal,
    Warning,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Propagation {
    #[default]
    Background,
    Foreground,
    Orphan,
}

impl EventType {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Normal => "Normal",
            Self::Warning => "Warning",
        }
    }
}

impl Propagation {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Background => "Background",
            Self::Foreground => "Foreground",
            Self::Orphan => "Orphan",
        }
    }
}

impl fmt::Display for Effect {
    /// One line, as fixtures and the journal show it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Create { resource, object } => {
                let meta = &object["metadata"];
                let name = meta["name"].as_str().map(str::to_owned);
                let name =
                    name.or_else(|| meta["generateName"].as_str().map(|it| format!("{it}*"))).unwrap_or_default();
                let key = Key::new(meta["namespace"].as_str().unwrap_or_default(), name);
                write!(f, "create {} {key}", resource.kind)
            }
            Self::Patch { resource, key, subresource, patch }
            | Self::StrategicPatch { resource, key, subresource, patch } => {
                write!(f, "patch {} {key}", resource.kind)?;
                if let Some(subresource) = subresource {
                    write!(f, "/{subresource}")?;
                }
                write!(f, " {patch}")
            }
            Self::Delete { resource, key, .. } => write!(f, "delete {} {key}", resource.kind),
            Self::Event { about, event_type, reason, message } => {
                write!(f, "event {} {}/{} {reason}: {message}", event_type.as_str(), about.kind, about.name)
            }
            Self::Ask { resource, key } => write!(f, "ask {} {key}", resource.kind),
            Self::AskAccess { about, spec } => write!(f, "ask access for {about} {spec}"),
            Self::Fetch(path) => write!(f, "fetch {path}"),
            Self::FetchForAll(path) => write!(f, "fetch for all {path}"),
            Self::Remember { note } => write!(f, "remember {note}"),
            Self::Count(count) => write!(f, "{count}"),
            Self::Sequence(parts) => parts.iter().enumerate().try_for_each(|(at, part)| {
                let then = if at == 0 { "" } else { ", then " };
                write!(f, "{then}{part}")
            }),
        }
    }
}

impl fmt::Display for ApiPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.path)?;
        let mut query = self.query.iter();
        query.try_for_each(|(name, value)| write!(f, " {name}={value}"))
    }
}
