//! GET of a Journal: what every loop last decided about one object, named `pods.web-1` or `deployments.apps.web`. LIST: the
//! journals of what waits for anything, a page at a time.
//!
//! A journal is as secret as the object it is about: who may not `get` that is refused, and not told whether it is there.
//! What a loop says of further objects is shown to who may read those, and a container's last words to who may read logs.

use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use corten_access::{Answers, Attributes, Decision as Access, Identity, ResourceOrPath};
use corten_api::resources::{NAMESPACES, PODS};
use corten_cacher::{answer, body::Response};
use corten_kinds::{KINDS, Kind, KindRef};
use corten_kubelets::{Asking, FromNodes, Waiting, beside};
use corten_meta::{FieldSelector, Key, ObjectMeta, Resource, Selector, Status};
use corten_reconcile::{
    Decision, Journal, Wait,
    node_journal::{journal_name, place},
};
use corten_routes::list_options;
use http::StatusCode;
use serde_json::{Value, json};

use super::{own_decisions, unstored};
use crate::context::Context;

pub(crate) async fn get(ctx: &Context, journals: &Kind) -> Result<Response, Status> {
    let (kind, key) = named(ctx, journals)?;
    let kind = &*kind;
    // No node is asked for who may not see the object.
    answered(ctx, |answers| Reader { ctx, answers, who: &ctx.who(), kind, key: key.clone() }.confirm()).await?;
    let said = ctx.state.remote_journals().of(&asking(ctx), &kind.resource, &key).await;
    answered(ctx, |answers| read(ctx, journals, (kind, &key), &said, answers)).await
}

/// Nodes whose loops are not those of this process.
fn asking(ctx: &Context) -> Asking<'_> {
    let config = ctx.state.config();
    let own = config.machine.node.as_deref();
    Asking { kubelets: config.kubelet_dial.as_ref(), caches: ctx.state.caches(), clock: &config.clock, own }
}

/// The object that the journal is about. Loops know one of a definition in one of its versions.
fn named(ctx: &Context, journals: &Kind) -> Result<(KindRef, Key), Status> {
    let (name, namespace) = (&ctx.info.name, &*ctx.info.namespace);
    let rows = ctx.served.kinds().by_journal(name);
    let keyed = rows.map(|(kind, it)| (Key::new(if kind.resource.namespaced { namespace } else { "" }, it), kind));
    let mut found: Vec<(Key, KindRef)> = keyed.collect();
    let is_known =
        |(key, kind): &(Key, KindRef)| is_stored(ctx, kind, key) || !decisions(ctx, &kind.resource, key).is_empty();
    let at = found.iter().position(is_known).unwrap_or_default();
    let (key, kind) = found.drain(..).nth(at).ok_or_else(|| Status::not_found(&journals.resource, name))?;
    Ok((kind, key))
}

/// Those of definitions are not looked up.
fn is_stored(ctx: &Context, kind: &Kind, key: &Key) -> bool {
    !kind.is_custom() && ctx.state.cache(kind).get(&key.namespace, &key.name).is_some()
}

/// Whose journals may be shown is asked of each: where others have to be asked about them, of all at once.
async fn answered<T>(ctx: &Context, think: impl Fn(&Answers<'_>) -> T) -> T {
    let answers = ctx.state.access().answers();
    loop {
        let thought = think(&answers);
        if !answers.all_were_missing().await {
            return thought;
        }
    }
}

fn read(
    ctx: &Context,
    journals: &Kind,
    (kind, key): (&Kind, &Key),
    said: &FromNodes,
    answers: &Answers<'_>,
) -> Result<Response, Status> {
    let journals = &journals.resource;
    let who = ctx.who();
    let reader = Reader { ctx, answers, who: &who, kind, key: key.clone() };
    let mut decisions = decisions(ctx, &kind.resource, key);
    beside(&mut decisions, said.decisions.clone());
    if decisions.is_empty() && !is_stored(ctx, kind, key) {
        return Err(Status::not_found(journals, &ctx.info.name));
    }
    let mut journal = reader.journal(journals, &ctx.info.namespace, decisions);
    journal.unanswered.clone_from(&said.unanswered);
    Ok(answer::json(StatusCode::OK, &journal))
}

/// What the loops decided, and what the server itself knows of an object.
fn decisions(ctx: &Context, resource: &Resource, key: &Key) -> Vec<Decision> {
    let mut decisions = ctx.state.config().journals.decisions(resource, key);
    decisions.extend(own_decisions::of(&ctx.state, resource, key));
    decisions
}

/// What a request for no limit, or for a higher one, gets.
const PAGE: usize = 500;
const NAME: &str = "metadata.name";
const NAMESPACE: &str = "metadata.namespace";
const REASON: &str = "decisions.waits.reason";
const ACTOR: &str = "decisions.waits.actor";

pub(crate) async fn list(ctx: &Context, journals: &'static Kind) -> Result<Response, Status> {
    let on_nodes = ctx.state.remote_journals().all(&asking(ctx)).await;
    answered(ctx, |answers| page(ctx, journals, &on_nodes, answers)).await
}

fn page(ctx: &Context, journals: &'static Kind, on_nodes: &Waiting, answers: &Answers<'_>) -> Result<Response, Status> {
    let options = list_options::list(&ctx.info.query)?;
    let selector = |name: &str| ctx.info.query.get(name).unwrap_or_default();
    let labels = Selector::parse(selector("labelSelector"))
        .map_err(|it| Status::bad_request(format!("unable to parse requirement: {it}")))?;
    let fields = FieldSelector::parse(selector("fieldSelector")).map_err(Status::bad_request)?;
    if let Some(other) = fields.0.iter().find(|it| ![NAME, NAMESPACE, REASON, ACTOR].contains(&&*it.path)) {
        return Err(Status::bad_request(format!("field label not supported: {}", other.path)));
    }
    let asked = &ctx.info.namespace;
    let is_wanted = |resource: &Resource, key: &Key, decisions: &[Decision]| {
        let (namespace, name) = journal_name(resource, key);
        let waits = || decisions.iter().flat_map(Decision::every_wait);
        let has = |reason: &str, actor: &str| {
            fields.matches(|path| match path {
                NAME => &name,
                NAMESPACE => &namespace,
                ACTOR => actor,
                _ => reason,
            })
        };
        // Of no namespace are objects of the whole cluster, which nobody may see by a right in one.
        (asked.is_empty() || *asked == *key.namespace)
            && (waits().any(|it| has(&it.reason, it.actor.as_str())) || (waits().next().is_none() && has("", "")))
    };
    let mut waiting = ctx.state.config().journals.waiting(&is_wanted);
    let own = own_decisions::all(&ctx.state)
        .filter(|((resource, key), it)| is_wanted(resource, key, std::slice::from_ref(it)));
    waiting.extend(own.map(|it| it.0));
    waiting.extend(on_nodes.iter().filter(|((resource, key), it)| is_wanted(resource, key, it)).map(|it| it.0.clone()));
    waiting.sort();
    waiting.dedup();
    waiting.retain(|_| labels.matches(&Default::default()));
    if let Some(token) = &options.token {
        let after = continued(token)?;
        waiting.retain(|(resource, key)| place(resource, key) > after);
    }
    waiting.sort_by_cached_key(|(resource, key)| place(resource, key));
    let who = ctx.who();
    let readers = waiting.into_iter().filter_map(|(resource, key)| {
        let kind = KINDS.iter().find(|it| it.resource == resource)?;
        Some(Reader { ctx, answers, who: &who, kind, key }).filter(|it| it.confirm().is_ok())
    });
    let limit = options.limit.unwrap_or(PAGE).min(PAGE);
    let mut page: Vec<Reader<'_>> = readers.take(limit + 1).collect();
    let mut metadata = json!({});
    if page.len() > limit {
        page.pop();
        let last = page.last().map(|it| place(&it.kind.resource, &it.key)).unwrap_or_default();
        metadata["continue"] = URL_SAFE_NO_PAD.encode(last).into();
    }
    let shown = |it: Reader<'_>| {
        let mut decisions = decisions(ctx, &it.kind.resource, &it.key);
        let said = on_nodes.get(&(it.kind.resource.clone(), it.key.clone())).cloned();
        beside(&mut decisions, said.unwrap_or_default());
        let (namespace, _) = journal_name(&it.kind.resource, &it.key);
        let journal = it.journal(&journals.resource, &namespace, decisions);
        serde_json::to_value(journal).expect("a journal is text and numbers")
    };
    let items: Vec<Value> = page.into_iter().map(shown).collect();
    unstored::list(ctx, journals, &metadata, &items)
}

fn continued(token: &str) -> Result<String, Status> {
    let wrong = |reason: &dyn std::fmt::Display| Status::bad_request(format!("continue key is not valid: {reason}"));
    let bytes = URL_SAFE_NO_PAD.decode(token).map_err(|it| wrong(&it))?;
    String::from_utf8(bytes).map_err(|it| wrong(&it))
}

/// Who asks, and for the journal of which object.
struct Reader<'a> {
    ctx: &'a Context,
    answers: &'a Answers<'a>,
    who: &'a Identity,
    kind: &'a Kind,
    key: Key,
}

impl Reader<'_> {
    fn access<T>(
        &self,
        kind: &Kind,
        key: &Key,
        subresource: &str,
        answer: impl FnOnce(&Attributes<'_>, Access) -> T,
    ) -> T {
        let resource = &kind.resource;
        // As in paths: a Namespace is in itself.
        let namespace = if *resource == NAMESPACES { &key.name } else { &key.namespace };
        let (group, plural) = (&*resource.group, &*resource.plural);
        let target = ResourceOrPath::Resource { group, resource: plural, subresource, namespace, name: &key.name };
        let question = Attributes { verb: "get", target, ..Attributes::of(self.who) };
        answer(&question, self.answers.decide(&question))
    }

    fn confirm(&self) -> Result<(), Status> {
        self.access(self.kind, &self.key, "", |question, access| match access {
            Access::Allowed(_) => Ok(()),
            Access::Denied(denial) => Err(question.refusal(&denial)),
        })
    }

    fn may_get(&self, kind: &Kind, key: &Key, subresource: &str) -> bool {
        self.access(kind, key, subresource, |_, access| access.is_allowed())
    }

    fn journal(&self, journals: &Resource, namespace: &str, decisions: Vec<Decision>) -> Journal {
        let (_, name) = journal_name(&self.kind.resource, &self.key);
        Journal {
            api_version: journals.api_version(),
            kind: journals.kind.to_string(),
            metadata: ObjectMeta { name, namespace: namespace.to_owned(), ..ObjectMeta::default() },
            decisions: decisions.into_iter().map(|it| self.shown(it)).collect(),
            unanswered: Vec::new(),
            off: self.ctx.state.config().journals.off(&self.kind.resource),
        }
    }

    fn shown(&self, mut decision: Decision) -> Decision {
        decision.effects.iter_mut().for_each(|it| self.hide_effect(it));
        if let Some(error) = &mut decision.error {
            self.hide_effect(error);
        }
        let steps = decision.steps.iter_mut();
        let of_steps = steps.filter_map(|it| it.wait.as_mut());
        decision.waits.iter_mut().chain(of_steps).for_each(|it| self.hide_object(it));
        if self.kind.resource == PODS && !self.may_get(self.kind, &self.key, "log") {
            decision.steps.iter_mut().for_each(|it| it.log.clear());
        }
        decision
    }

    /// Leaves of `patch Secret db/a {…}` and `cannot patch Secret db/a {…}: …` what was done, and not to what.
    fn hide_effect(&self, line: &mut String) {
        let begin = if line.starts_with("cannot ") { "cannot ".len() } else { 0 };
        let mut words = line[begin..].splitn(4, ' ');
        let (Some(verb), Some(kind), Some(object)) = (words.next(), words.next(), words.next()) else { return };
        // Events are told to whom they are about.
        let Some(kind) = kind_of(|it| it == kind).filter(|_| verb != "event") else { return };
        let (mut key, mut parts) = (Key::cluster(""), object.split('/'));
        if kind.resource.namespaced {
            key.namespace = parts.next().unwrap_or_default().to_owned();
        }
        key.name = parts.next().unwrap_or_default().trim_end_matches([':', ',']).to_owned();
        if (kind.resource == self.kind.resource && key == self.key) || self.may_get(kind, &key, "") {
            return;
        }
        *line = format!("{}{verb} {}, which you may not read", &line[..begin], kind.resource.kind);
    }

    /// A wait on what may not be read names nothing.
    fn hide_object(&self, wait: &mut Wait) {
        let named = wait.on.as_deref().and_then(|it| it.split_once('/'));
        let Some((kind, name)) = named.and_then(|(kind, name)| Some((kind_of(|it| it.to_lowercase() == kind)?, name)))
        else {
            return;
        };
        let key = match name.split_once('/') {
            Some((namespace, name)) => Key::new(namespace, name),
            None if !kind.resource.namespaced => Key::cluster(name),
            // What a Namespace waits for is in it.
            None if self.kind.resource == NAMESPACES => Key::new(&*self.key.name, name),
            None => Key::new(&*self.key.namespace, name),
        };
        if self.may_get(kind, &key, "") {
            return;
        }
        if wait.message.contains(name) {
            wait.message = format!("it waits for a {}, which you may not read", kind.resource.kind);
        }
        wait.on = None;
    }
}

fn kind_of(is_it: impl Fn(&str) -> bool) -> Option<&'static Kind> {
    KINDS.iter().find(|it| it.is_stored() && is_it(&it.resource.kind))
}
