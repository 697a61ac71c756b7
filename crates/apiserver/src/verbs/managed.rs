//! Who owns which fields: kept in `metadata.managedFields` by every write that a client makes.
//!
//! Between the store and the next write the list is one text in the DOM; only what a client sends is a list there.

use std::sync::LazyLock;

use corten_cacher::watch_cache::versions;
use corten_conversion::ROUNDS_MAX;
use corten_kinds::{KindRef, Kinds, Subresource, Version};
use corten_meta::{Status, Time, Violation, Violations};
use corten_routes::write_options;
use corten_schema::{
    Struct,
    apply::{Operation, Owned, Owner, Owners, Set, Views, Write, update},
};
use serde_json::{Value, json};

use super::{metadata, request_scope::RequestScope};
use crate::context::Context;

const MANAGER_BYTES_MAX: usize = 128;
const FIELD: &str = "managedFields";

static STATUS: LazyLock<Set<'static>> = LazyLock::new(|| Set::of_fields(&[&["status"]]));
static NOTHING: LazyLock<Set<'static>> = LazyLock::new(Set::default);

/// What a client says about owners in the object it sends.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Sent {
    /// Nothing, or nothing that could be read: what is stored stays.
    Nothing,
    /// `[{}]`: nobody is to own anything.
    Reset,
    List(String),
}

/// Who owns what after a write.
#[derive(Debug)]
pub(super) struct Tracked {
    pub(super) text: String,
    /// Only times differ from what is stored: no reason to write.
    pub(super) same: bool,
}

/// Takes the list out of an object that a client sent.
pub(super) fn sent(object: &mut Value) -> Sent {
    let taken = object["metadata"].as_object_mut().and_then(|it| it.shift_remove(FIELD));
    match taken {
        Some(Value::Array(list)) if list.is_empty() => Sent::Nothing,
        Some(Value::Array(list)) if list == [json!({})] => Sent::Reset,
        Some(list @ Value::Array(_)) => Sent::List(list.to_string()),
        _ => Sent::Nothing,
    }
}

/// The text of a draft's owners.
pub(super) fn text_of(draft: &Value) -> &str {
    draft["metadata"][FIELD].as_str().unwrap_or_default()
}

pub(super) fn put(draft: &mut Value, text: &str) {
    if text.is_empty() {
        metadata::of(draft).shift_remove(FIELD);
    } else {
        metadata::of(draft).insert(FIELD.into(), text.into());
    }
}

/// Makes the text a list again, for a patch that wants to change it.
pub(super) fn spell_out(draft: &mut Value) {
    if let Ok(list) = serde_json::from_str::<Value>(text_of(draft)) {
        draft["metadata"][FIELD] = list;
    }
}

/// Does something with the object while its owners' text, which is no list, is out of it.
pub(super) fn without_text<T>(draft: &mut Value, work: impl FnOnce(&mut Value) -> T) -> T {
    if !draft["metadata"][FIELD].is_string() {
        return work(draft);
    }
    let text = metadata::of(draft).shift_remove(FIELD).unwrap_or_default();
    let result = work(draft);
    metadata::of(draft).insert(FIELD.into(), text);
    result
}

/// After a create. `object` is defaulted, but nothing of it is the server's own yet.
pub(super) async fn after_create(ctx: &Context, target: &RequestScope, object: &Value, sent: &Sent) -> String {
    let list = if let Sent::List(list) = sent { list } else { "" };
    let read = || Owners::read_whole(list).unwrap_or_default();
    settled(ctx, target, || track(ctx, target, None, object, read(), reset(target))).await.owners
}

/// Computes again until all is known that was asked of objects in other versions. Who owns something in a version that the webhook
/// does not convert to owns it no longer. Upstream drops such owners, too (`versionConverter.IsMissingVersionError`).
async fn settled<T>(ctx: &Context, target: &RequestScope, compute: impl Fn() -> T) -> T {
    let Some(memo) = &target.memo else { return compute() };
    for _ in 0..ROUNDS_MAX {
        let computed = compute();
        if !memo.is_wanting() {
            return computed;
        }
        ctx.state.conversion().answer_what_can_be(memo, ctx.served.kinds()).await;
    }
    compute()
}

/// After an update or patch of `old`, a draft. For a subresource `new` is what its part makes of the object, so that nothing
/// else can be gained.
pub(super) async fn after_update(
    ctx: &Context,
    target: &RequestScope,
    old: &Value,
    new: &Value,
    sent: &Sent,
) -> Tracked {
    let stored = text_of(old);
    let list = match sent {
        _ if target.subresource.is_some() => stored,
        Sent::Nothing => stored,
        Sent::Reset => "",
        Sent::List(list) => list,
    };
    // As in `DecodeManagedFields`: a list that cannot be read counts as none.
    let read = || {
        let owners = if list == stored { Owners::read(list) } else { Owners::read_whole(list) };
        match owners {
            Ok(owners) if !owners.0.is_empty() || *sent == Sent::Reset => (owners, list),
            _ => (Owners::read(stored).unwrap_or_default(), stored),
        }
    };
    let reset = if target.subresource.is_some() { &NOTHING } else { reset(target) };
    let (tracked, list) = settled(ctx, target, || {
        let (owners, list) = read();
        (track(ctx, target, Some(old), new, owners, reset), list)
    })
    .await;
    Tracked { same: tracked.same && list == stored, text: tracked.owners }
}

struct Text {
    owners: String,
    same: bool,
}

/// In the words of the version that was asked for.
fn track(
    ctx: &Context,
    target: &RequestScope,
    old: Option<&Value>,
    new: &Value,
    owners: Owners<'_>,
    reset: &Set<'static>,
) -> Text {
    let Some(of) = target.asked.schema.fields() else {
        return Text { owners: owners.write(), same: true };
    };
    let author = author(ctx);
    let by = Author { name: &author, operation: Operation::Update };
    let (version, now) = (target.asked.resource.api_version(), ctx.state.now().to_string());
    let views = OfKind { kinds: ctx.served.kinds(), target };
    let (mut old_shown, mut new_shown);
    let (old, new) = if target.asked.view_of.is_some() && !target.asked.is_custom() {
        (old_shown, new_shown) = (old.cloned(), new.clone());
        old_shown.iter_mut().for_each(|it| versions::from_stored(&target.asked, it));
        versions::from_stored(&target.asked, &mut new_shown);
        (old_shown.as_ref(), &new_shown)
    } else {
        (old, new)
    };
    let write = Write { of, by: by.owner(target, &version), now: &now, reset, views: &views };
    let Owned { owners, same } = update(&write, old, new, owners);
    Text { owners: owners.write(), same }
}

/// Who writes, and how.
pub(super) struct Author<'a> {
    pub(super) name: &'a str,
    pub(super) operation: Operation,
}

impl<'a> Author<'a> {
    pub(super) fn owner(&self, target: &RequestScope, version: &'a str) -> Owner<'a> {
        let subresource = target.subresource.map_or("", Subresource::as_str);
        Owner::new(self.name, self.operation, version, subresource)
    }
}

/// What a write of the object itself cannot change.
fn reset(target: &RequestScope) -> &'static LazyLock<Set<'static>> {
    if target.kind.has(Subresource::Status) { &STATUS } else { &NOTHING }
}

/// What an applied configuration may name without owning it: all that the path's part of the object does not hold.
pub(super) fn reset_by_apply<'t>(target: &RequestScope, of: Struct<'t>) -> Set<'t> {
    if !matches!(target.subresource, Some(Subresource::Status | Subresource::Approval)) {
        return (**reset(target)).clone();
    }
    let mut paths: Vec<[&'t str; 2]> = Vec::new();
    for name in of.names().into_iter().filter(|it| !matches!(*it, "metadata" | "status")) {
        paths.push([name, ""]);
    }
    let metadata = corten_schema::find("io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta");
    let kept = target.policy().status_keeps();
    for field in metadata.map_or(&[][..], |it| it.fields) {
        let is_taken = matches!(field.name, "annotations" | "finalizers" | "labels" | "ownerReferences");
        if !is_taken || kept.contains(&field.name) {
            paths.push(["metadata", field.name]);
        }
    }
    let paths: Vec<&[&'t str]> = paths.iter().map(|it| if it[1].is_empty() { &it[..1] } else { &it[..] }).collect();
    Set::of_fields(&paths)
}

/// The versions of one kind.
pub(super) struct OfKind<'a> {
    pub(super) kinds: &'a Kinds,
    pub(super) target: &'a RequestScope,
}

impl OfKind<'_> {
    fn row(&self, version: &str) -> Option<KindRef> {
        let row = self.kinds.by_kind(version, &self.target.asked.resource.kind)?;
        (row.storage_resource() == self.target.asked.storage_resource()).then_some(row)
    }

    /// Of a definition's kind, served or not: whoever wrote in a version that is no longer served owns what they wrote.
    fn custom_version(&self, api_version: &str) -> Option<&Version> {
        let (group, version) = api_version.split_once('/')?;
        let versions = self.target.asked.versions.as_ref()?;
        versions.by_name(version).filter(|it| *it.resource.group == *group)
    }
}

impl Views for OfKind<'_> {
    fn view(&self, object: &Value, from: &str, to: &str) -> Option<Value> {
        if self.target.asked.is_custom() {
            let version = self.custom_version(from).and(self.custom_version(to))?;
            if let Some(memo) = &self.target.memo {
                return memo.look(object, to);
            }
            let mut object = object.clone();
            version.schema.structural.prune(&mut object);
            object["apiVersion"] = to.into();
            return Some(object);
        }
        let (from, to) = (self.row(from)?, self.row(to)?);
        let mut object = object.clone();
        versions::to_stored(&from, &mut object);
        versions::from_stored(&to, &mut object);
        Some(object)
    }

    fn type_of(&self, version: &str) -> Option<Struct<'_>> {
        if self.target.asked.is_custom() {
            return self.custom_version(version).map(|it| Struct::from(&it.schema.structural));
        }
        let place = self.kinds.row(version, &self.target.asked.resource.kind)?;
        place.schema.fields()
    }
}

/// The name under which a request's fields are owned.
pub(super) fn author(ctx: &Context) -> String {
    if let Some(name) = ctx.info.query.get("fieldManager") {
        return name.to_owned();
    }
    let agent = ctx.headers.get(http::header::USER_AGENT).map_or(&b""[..], |it| it.as_bytes());
    let agent = String::from_utf8_lossy(agent);
    if agent.is_empty() && ctx.peer.is_none() {
        return component(&ctx.who().user).to_owned();
    }
    let mut name = String::new();
    for letter in agent.split('/').next().unwrap_or_default().chars().filter(|it| is_printable(*it)) {
        if name.len() + letter.len_utf8() > MANAGER_BYTES_MAX {
            break;
        }
        name.push(letter);
    }
    name
}

/// Parts of the server itself go by the names that upstream's programs have.
fn component(user: &str) -> &str {
    if user.starts_with("system:node:") {
        return "kubelet";
    }
    if user.starts_with("system:serviceaccount:kube-system:") {
        return "kube-controller-manager";
    }
    match user.rsplit(':').next().unwrap_or_default() {
        "apiserver" => "kube-apiserver",
        name => name,
    }
}

/// As Go's `unicode.IsPrint`: the only space is the plain one.
fn is_printable(letter: char) -> bool {
    letter == ' '
        || !(letter.is_control()
            || letter.is_whitespace()
            || matches!(letter, '\u{ad}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}'))
}

/// Checks `fieldManager` and `force`.
///
/// # Errors
/// 422 that names the options' kind.
pub(super) fn check_options(ctx: &Context, is_apply: bool) -> Result<(), Status> {
    let query = &ctx.info.query;
    let manager = query.get("fieldManager").unwrap_or_default();
    let mut found = Vec::new();
    if is_apply && manager.is_empty() {
        found.push(Violation::required("fieldManager", "is required for apply patch"));
    }
    if !is_apply && ctx.info.verb == "patch" && query.flag("force").is_some() {
        found.push(Violation::forbidden("force", "may not be specified for non-apply patch"));
    }
    found.extend(manager_violations("fieldManager", manager).into_vec());
    if found.is_empty() {
        return Ok(());
    }
    Err(write_options::invalid(ctx.info.verb, &found))
}

fn manager_violations(path: &str, manager: &str) -> Violations {
    let mut found = Violations::default();
    if manager.len() > MANAGER_BYTES_MAX {
        found.push(Violation::too_long(path, MANAGER_BYTES_MAX));
    }
    let unprintable = manager.char_indices().filter(|it| !is_printable(it.1));
    found.extend(unprintable.map(|(at, letter)| {
        let detail = format!("invalid character U+{:04X} (at position {at})", u32::from(letter));
        Violation::invalid(path, format_args!("{manager:?}"), &detail)
    }));
    found
}

/// What is wrong with a list that a client sent. What cannot be read at all was never taken over.
pub(super) fn violations(sent: &Sent) -> Vec<Violation> {
    let Sent::List(list) = sent else { return Vec::new() };
    let Ok(owners) = Owners::read(list) else { return Vec::new() };
    let mut found = Violations::default();
    for (at, owner) in owners.0.iter().enumerate() {
        found.extend(manager_violations(&format!("metadata.managedFields[{at}].manager"), &owner.manager).into_vec());
        if owner.subresource.len() > 256 {
            found.push(Violation::too_long(format!("metadata.managedFields[{at}].subresource"), 256));
        }
        if let Some(time) = owner.time.as_deref().filter(|it| it.parse::<Time>().is_err()) {
            found.push(Violation::invalid(format!("metadata.managedFields[{at}].time"), format!("{time:?}"), ""));
        }
        if found.is_full() {
            break;
        }
    }
    found.into_vec()
}
