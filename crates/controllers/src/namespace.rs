//! Empties a namespace that is being deleted, says what remains in it, and lets it go when nothing does.
//!
//! Pods go first, so that nothing they use is taken from under them. Content of a namespace that is gone already (a cache
//! was behind when it went) is deleted too, once the server has confirmed that it is gone.

mod conditions;
mod listing;

use std::{collections::BTreeMap, time::Duration};

use corten_api::resources;
use corten_meta::{Key, ObjectMeta, Resource, Time};
use corten_reconcile::{
    Actor, Answer, Controller, DEFINED, EFFECTS_MAX, Effect, Plan, Propagation, Verb, View, Wait, Wake, Watch, Write,
    go_on_after_failed, served, status::status_patch,
};
use serde_json::json;

use crate::{
    Settings,
    elsewhere::{self, Beyond, Undiscovered},
    everything::{delete_of, kinds_of, with_namespaced},
    projections::{Definition, Namespace, any, defined, not_known_yet},
};

use listing::Listing;

const FINALIZER: &str = "kubernetes";
/// What was hidden and is seen wakes nobody where nothing of it is in the namespace.
const LOOKS_AGAIN: Duration = Duration::from_secs(10);

macro_rules! content {
    ([$($resource:ident)*]) => {
        /// What a namespace holds.
        const CONTENT: &[Resource] = &[resources::EVENTS, $(resources::$resource),*];
        const WRITES: &[Write] = &[
            delete_of(resources::EVENTS),
            $(delete_of(resources::$resource),)*
            delete_of(DEFINED),
            Write { verb: Verb::Patch, resource: resources::NAMESPACES, fields: &["spec.finalizers", "status"] },
        ];
    };
}
with_namespaced! { content }

pub struct Namespaces {
    /// What namespaces hold, without what definitions describe.
    kinds: Vec<Resource>,
    /// The server is of another version: what it shows of one kind may be older than what it shows of another.
    is_seen_apart: bool,
}

impl Default for Namespaces {
    fn default() -> Self {
        Self::new(&Settings::default())
    }
}

impl Namespaces {
    pub fn new(settings: &Settings) -> Self {
        let mut kinds = kinds_of(settings, CONTENT);
        kinds.retain(|it| it.namespaced);
        if !kinds.contains(&resources::EVENTS) {
            kinds.push(resources::EVENTS);
        }
        Self { kinds, is_seen_apart: settings.served.is_some() }
    }
}

impl Controller for Namespaces {
    fn name(&self) -> &'static str {
        "namespace"
    }

    fn watches(&self) -> Vec<Watch> {
        let content = self.kinds.iter().map(|it| any(it, Wake::With(namespace_of)).bearing_gaps());
        let definitions = Watch::new::<Definition>(Wake::With(those_that_go)).leading_to(defined_content);
        // Whether other servers answer, and what they serve, is of interest to who waits for that.
        let others = served::registrations(Wake::With(those_that_go));
        let groups = served::groups(Wake::With(those_that_go))
            .leading_to(|view| elsewhere::watches(view, Wake::With(namespace_that_goes)));
        [Watch::new::<Namespace>(Wake::Itself), definitions, others, groups].into_iter().chain(content).collect()
    }

    fn writes(&self) -> &'static [Write] {
        WRITES
    }

    fn reconcile(&self, view: &View, key: &Key, now: Time) -> Plan {
        match view.get::<Namespace>(key) {
            Some(namespace) if namespace.metadata.is_deleting() => {
                let own = if self.is_seen_apart { self.namespaced(view) } else { Vec::new() };
                empty(view, namespace, own, now)
            }
            Some(_) => Plan::default(),
            None => empty_missing(view, key),
        }
    }
}

impl Namespaces {
    /// What namespaces hold of the server's own kinds, and of what definitions describe.
    fn namespaced(&self, view: &View) -> Vec<Resource> {
        self.kinds.iter().cloned().chain(defined(view).filter(|it| it.namespaced)).collect()
    }
}

/// What namespaces hold of what definitions describe.
fn defined_content(view: &View) -> Vec<Watch> {
    defined(view).filter(|it| it.namespaced).map(|it| any(&it, Wake::With(namespace_of)).bearing_gaps()).collect()
}

/// Only what is in a namespace that is going, or gone, is of interest.
fn namespace_of(view: &View, object: &ObjectMeta) -> Vec<Key> {
    let key = Key::cluster(&*object.namespace);
    let stays = view.meta(&resources::NAMESPACES, &key).is_some_and(|it| !it.is_deleting());
    if stays { Vec::new() } else { vec![key] }
}

/// As [`namespace_of`], but in a namespace that is gone, or never was, what others hold is theirs.
fn namespace_that_goes(view: &View, object: &ObjectMeta) -> Vec<Key> {
    let key = Key::cluster(&*object.namespace);
    let goes = view.meta(&resources::NAMESPACES, &key).is_some_and(ObjectMeta::is_deleting);
    if goes { vec![key] } else { Vec::new() }
}

fn those_that_go(view: &View, _: &ObjectMeta) -> Vec<Key> {
    view.list::<Namespace>().filter(|it| it.metadata.is_deleting()).map(|it| it.metadata.key()).collect()
}

/// Why more may be in a namespace than is seen.
struct Unseen<'a> {
    undiscovered: Vec<Undiscovered<'a>>,
    /// Their definitions are not established yet.
    unestablished: Vec<Resource>,
    /// Their server has not listed them, or does not: with what is to be said of that.
    unlisted: Vec<(Resource, String)>,
    /// More than is looked at.
    beyond: Vec<Beyond>,
    /// Of this server, which cannot list them: what is stored of them cannot be read.
    /// Each with whether a definition describes it.
    unreadable: Vec<(&'a Resource, bool)>,
}

impl<'a> Unseen<'a> {
    fn of(view: &'a View) -> Self {
        let unreadable = view.cannot_be_listed().iter().filter(|it| it.namespaced);
        Self {
            undiscovered: elsewhere::undiscovered(view),
            unestablished: not_known_yet(view).filter(|it| it.namespaced).collect(),
            unlisted: elsewhere::unlisted(view).into_iter().map(not_listed_yet).collect(),
            beyond: elsewhere::beyond(view),
            unreadable: unreadable.map(|it| (it, defined(view).any(|of| of == *it))).collect(),
        }
    }

    fn is_empty(&self) -> bool {
        self.undiscovered.is_empty()
            && self.unestablished.is_empty()
            && self.unlisted.is_empty()
            && self.beyond.is_empty()
            && self.unreadable.is_empty()
    }

    fn waits(&self) -> impl Iterator<Item = Wait> {
        let undiscovered = self.undiscovered.iter().map(|it| {
            let message =
                format!("it is not known what the server of {} holds in it: {}", it.group_version, it.message);
            Wait::new("DiscoveryFailed", message, Actor::Operator).on("APIService", it.api_service)
        });
        let unestablished = self.unestablished.iter().map(|it| {
            let message = format!("whether it holds {it} is not known before their definition is established");
            Wait::new("KindNotEstablished", message, Actor::Cluster)
                .on("CustomResourceDefinition", &format!("{}.{}", it.plural, it.group))
        });
        let not_listed = |it: &Resource, message: String| {
            Wait::new("ContentNotListed", message, Actor::Operator)
                .on("APIService", &format!("{}.{}", it.version, it.group))
        };
        let unlisted = self.unlisted.iter().map(move |(it, message)| not_listed(it, message.clone()));
        let beyond = self.beyond.iter().map(move |it| not_listed(&it.first, it.message()));
        // Which of them, and why, is not for everybody who may see the namespace.
        let unreadable = self.unreadable.iter().map(|(it, is_defined)| {
            let message = format!("{it} cannot be listed: what is stored of them cannot be read");
            let wait = Wait::new("ContentUnreadable", message, Actor::Operator);
            // A definition says which version its objects are stored in.
            if *is_defined { wait.on("CustomResourceDefinition", &it.qualified()) } else { wait }
        });
        undiscovered.chain(unestablished).chain(unlisted).chain(beyond).chain(unreadable)
    }
}

fn not_listed_yet(resource: Resource) -> (Resource, String) {
    let message = format!("the server of {resource} has not listed them yet");
    (resource, message)
}

/// What is left in a namespace, by resource.
struct Content<'a> {
    objects: BTreeMap<(&'a str, &'a str), (&'a Resource, Vec<&'a ObjectMeta>)>,
}

impl<'a> Content<'a> {
    fn of(view: &'a View, namespace: &str) -> Self {
        let is_content = |it: &&Resource| it.namespaced;
        let objects = view.resources().filter(is_content).filter_map(|resource| {
            let found: Vec<&ObjectMeta> = view.meta_in_namespace(resource, namespace).collect();
            (!found.is_empty()).then_some(((&*resource.plural, &*resource.group), (resource, found)))
        });
        Self { objects: objects.collect() }
    }

    /// What is in no view, and was found where it was listed once more.
    fn add(&mut self, found: &'a [(Resource, Vec<ObjectMeta>)]) {
        for (resource, objects) in found {
            self.objects.insert((&*resource.plural, &*resource.group), (resource, objects.iter().collect()));
        }
    }

    fn is_empty(&self) -> bool {
        self.objects.is_empty()
    }

    /// Namespaces that are none of this cluster's are other servers' business.
    fn leave_to_others(&mut self, view: &View) {
        for resource in elsewhere::resources(view) {
            self.objects.retain(|_, it| *it.0 != resource);
        }
    }

    /// Deletes what is not being deleted yet: pods, and when there are none left the rest.
    fn deletes(&self) -> Vec<Effect> {
        let has_pods = self.objects.contains_key(&(&*resources::PODS.plural, ""));
        let turn = self.objects.values().filter(|it| !has_pods || *it.0 == resources::PODS);
        let objects = turn.flat_map(|(resource, it)| it.iter().map(move |it| (*resource, *it)));
        objects
            .filter(|it| !it.1.is_deleting())
            .take(EFFECTS_MAX)
            .map(|(resource, it)| Effect::Delete {
                resource: resource.clone(),
                key: it.key(),
                uid: it.uid.clone(),
                propagation: Propagation::Background,
                grace_seconds: None,
            })
            .collect()
    }
}

/// `own` are kinds of the server itself to be listed once more before the namespace goes.
fn empty(view: &View, namespace: &Namespace, own: Vec<Resource>, now: Time) -> Plan {
    let meta = &namespace.metadata;
    if !namespace.spec.finalizers.iter().any(|it| it == FINALIZER) {
        return Plan { waits: foreign_finalizers(namespace), ..Plan::default() };
    }
    let mut listing = Listing::of(view, namespace, own);
    let refused_lists = std::mem::take(&mut listing.refused);
    let mut content = Content::of(view, &meta.name);
    let mut unseen = Unseen::of(view);
    if content.is_empty() && unseen.is_empty() {
        if !listing.missing.is_empty() {
            return Plan { effects: listing.missing, ..Plan::default() };
        }
        content.add(&listing.found);
        unseen.unlisted.extend(refused_lists.into_iter().map(|(resource, why)| {
            let message = format!("the server of {resource} does not list them: {why}");
            (resource, message)
        }));
    }
    let mut status = namespace.status.clone();
    status.phase = "Terminating".into();
    conditions::set(&mut status.conditions, conditions::of(&content, &unseen, view.failure(&meta.key())), now);

    let mut plan = Plan { waits: waits(&content, refused(view, &meta.key())), ..Plan::default() };
    plan.waits.extend(unseen.waits());
    plan.wake_at = (!unseen.is_empty() || !listing.found.is_empty()).then(|| now.after(LOOKS_AGAIN));
    plan.effects.extend(status_patch(resources::NAMESPACES, meta, &namespace.status, &status));
    let mut deletes = content.deletes();
    go_on_after_failed(&mut deletes, view.failure(&meta.key()));
    plan.effects.extend(deletes);
    if content.is_empty() && unseen.is_empty() {
        plan.effects.push(finalize(namespace));
    }
    plan
}

fn finalize(namespace: &Namespace) -> Effect {
    let left: Vec<_> = namespace.spec.finalizers.iter().filter(|it| *it != FINALIZER).collect();
    let meta = &namespace.metadata;
    let patch = json!({ "metadata": { "uid": meta.uid }, "spec": { "finalizers": left } });
    Effect::Patch { resource: resources::NAMESPACES, key: meta.key(), subresource: Some("finalize"), patch }
}

/// The namespace is not in the view: either the view is behind, or content came after it went.
fn empty_missing(view: &View, key: &Key) -> Plan {
    let mut content = Content::of(view, &key.name);
    content.leave_to_others(view);
    if content.is_empty() {
        return Plan::default();
    }
    let effects = match view.answer(&resources::NAMESPACES, key) {
        None => vec![Effect::Ask { resource: resources::NAMESPACES, key: key.clone() }],
        Some(Answer::Missing) => content.deletes(),
        Some(_) => Vec::new(),
    };
    Plan { effects, ..Plan::default() }
}

/// The resource of another server whose objects could not be deleted, and what that said.
fn refused<'a>(view: &'a View, namespace: &Key) -> Option<(&'a Resource, &'a str)> {
    let failure = view.failure(namespace)?;
    let Effect::Delete { resource, .. } = &failure.effect else { return None };
    elsewhere::resources(view).any(|it| it == *resource).then_some((resource, &*failure.message))
}

fn waits(content: &Content<'_>, refused: Option<(&Resource, &str)>) -> Vec<Wait> {
    let wait = |(resource, objects): &(&Resource, Vec<&ObjectMeta>)| {
        if let Some((_, message)) = refused.filter(|it| it.0 == *resource) {
            let message = format!("{} {resource} remain: their server does not delete them: {message}", objects.len());
            let of = format!("{}.{}", resource.version, resource.group);
            return Some(Wait::new("NamespaceContentRemaining", message, Actor::Operator).on("APIService", &of));
        }
        let oldest = objects.iter().min_by_key(|it| (it.deletion_timestamp.is_none(), it.deletion_timestamp))?;
        let message = format!("{} {resource} remain", objects.len());
        let held = oldest.finalizers.first();
        let message = held.map_or(message.clone(), |it| format!("{message}, held by the finalizer {it:?}"));
        let actor = if held.is_some() { Actor::External } else { Actor::Cluster };
        Some(Wait::new("NamespaceContentRemaining", message, actor).on(&resource.kind, &oldest.name))
    };
    content.objects.values().filter_map(wait).collect()
}

/// What this controller has done its part for, and others have not.
fn foreign_finalizers(namespace: &Namespace) -> Vec<Wait> {
    let finalizers = namespace.spec.finalizers.iter().chain(&namespace.metadata.finalizers);
    finalizers
        .map(|it| Wait::new("FinalizerRemains", format!("the finalizer {it:?} has not been removed"), Actor::External))
        .collect()
}

#[cfg(test)]
mod tests;
