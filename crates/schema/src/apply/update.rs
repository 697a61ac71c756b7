//! Who owns what after a write: whoever changes a field owns it, and an applier owns what its configuration names.

use std::{borrow::Cow, collections::BTreeMap, sync::LazyLock};

use corten_meta::shortened;
use serde_json::Value;

use super::{
    compare::{Comparison, compare},
    fields::fields,
    form::Form,
    merge::merged,
    owners::{BEFORE_FIRST_APPLY, Operation, Owner, Owners},
    remove::removed,
    set::Set,
    typed::{joined, misfits},
};
use crate::Struct;

/// Nobody owns what makes an object the one it is, and what the server alone sets.
static STRIPPED: LazyLock<Set<'static>> = LazyLock::new(|| {
    Set::of_fields(&[
        &["apiVersion"],
        &["kind"],
        &["metadata"],
        &["metadata", "name"],
        &["metadata", "namespace"],
        &["metadata", "creationTimestamp"],
        &["metadata", "selfLink"],
        &["metadata", "uid"],
        &["metadata", "clusterName"],
        &["metadata", "generation"],
        &["metadata", "managedFields"],
        &["metadata", "resourceVersion"],
    ])
});

/// Shows objects of a kind in the words of its other versions.
pub trait Views: Sync {
    /// `None` where there is no such version, or no way there.
    fn view(&self, object: &Value, from: &str, to: &str) -> Option<Value>;

    fn type_of(&self, version: &str) -> Option<Struct<'_>>;
}

/// A kind of one version.
pub struct OneView;

impl Views for OneView {
    fn view(&self, _: &Value, _: &str, _: &str) -> Option<Value> {
        None
    }

    fn type_of(&self, _: &str) -> Option<Struct<'_>> {
        None
    }
}

/// A write as ownership sees it.
pub struct Write<'a> {
    pub of: Struct<'a>,
    /// The entry that the write is about; its set counts for nothing.
    pub by: Owner<'a>,
    pub now: &'a str,
    /// What the write cannot change, and so does not own: `status` for the object itself.
    pub reset: &'a Set<'a>,
    pub views: &'a dyn Views,
}

/// Who owns what now.
#[derive(Debug)]
pub struct Owned<'a> {
    pub owners: Owners<'a>,
    /// Nobody's set has changed, though times may have.
    pub same: bool,
}

/// After a write that replaces `old` by `new`: a create, an update, a patch.
pub fn update<'a>(write: &Write<'a>, old: Option<&'a Value>, new: &'a Value, mut owners: Owners<'a>) -> Owned<'a> {
    // As in `skipNonAppliedManager`: an object that nobody owned stays so until somebody applies.
    if owners.0.is_empty() && old.is_some() {
        return Owned { owners, same: true };
    }
    let reshaped = write.of.may_have_changed() && own_wholes(write, &mut owners);
    let changes = Changes::of(write, old, new, &owners);
    let mut same = !changes.take_away(&mut owners, &write.by) && !reshaped;
    let Changes { here, .. } = changes;
    let gained = here.modified.union(here.added);
    if !gained.is_empty() {
        let at = owners.position(&write.by).unwrap_or_else(|| {
            owners.0.push(write.by.clone());
            owners.0.len() - 1
        });
        let owner = &mut owners.0[at];
        owner.time = Some(Cow::Borrowed(write.now));
        let owned = owner.set_mut();
        if !owned.contains(&gained) {
            *owned = std::mem::take(owned).union(gained);
            same = false;
        }
        owners.cap();
    }
    Owned { owners, same }
}

/// What differs, in the words of every version in which somebody owns something.
struct Changes<'a> {
    version: Cow<'a, str>,
    here: Comparison<'a>,
    elsewhere: BTreeMap<String, Option<Comparison<'static>>>,
}

impl<'a> Changes<'a> {
    fn of(write: &Write<'a>, old: Option<&'a Value>, new: &'a Value, owners: &Owners<'a>) -> Self {
        let version = write.by.api_version.clone();
        let here = compare(write.of, old, new).without(write.reset).difference(&STRIPPED);
        let mut elsewhere = BTreeMap::new();
        for owner in &owners.0 {
            if owner.api_version != version && !elsewhere.contains_key(&*owner.api_version) {
                let there = seen_there(write, old, new, &owner.api_version);
                elsewhere.insert(owner.api_version.to_string(), there);
            }
        }
        Self { version, here, elsewhere }
    }

    /// `None`: nobody can own anything in such a version.
    fn for_owner(&self, owner: &Owner<'_>) -> Option<&Comparison<'_>> {
        if owner.api_version == self.version {
            Some(&self.here)
        } else {
            self.elsewhere.get(&*owner.api_version)?.as_ref()
        }
    }

    /// Takes from the others what was changed, and from all what is gone. True where that changed a set.
    fn take_away(&self, owners: &mut Owners<'_>, by: &Owner<'_>) -> bool {
        let mut changed = false;
        owners.0.retain_mut(|owner| {
            let Some(changes) = self.for_owner(owner) else {
                changed = true;
                return false;
            };
            if changes.is_same() {
                return true;
            }
            let is_writer = owner.is(by);
            let may_own = |it: &Set<'_>| owner.may_own(it);
            if ![&changes.removed, &changes.modified, &changes.added].into_iter().any(may_own) {
                return true;
            }
            let set = owner.set();
            let touched = |it: &Set<'_>| !it.is_empty() && !set.intersection(it).is_empty();
            let taken = !is_writer && (touched(&changes.modified) || touched(&changes.added));
            if !taken && !touched(&changes.removed) {
                return true;
            }
            changed = true;
            let mut left = std::mem::take(owner.set_mut()).difference(&changes.removed);
            if !is_writer {
                left = left.difference(&changes.modified).difference(&changes.added);
            }
            *owner.set_mut() = left;
            !owner.set().is_empty()
        });
        changed
    }
}

fn seen_there(write: &Write<'_>, old: Option<&Value>, new: &Value, version: &str) -> Option<Comparison<'static>> {
    let of = write.views.type_of(version)?;
    let here = &*write.by.api_version;
    let new = write.views.view(new, here, version)?;
    let old = match old {
        Some(old) => Some(write.views.view(old, here, version)?),
        None => None,
    };
    let changes = compare(of, old.as_ref(), &new).without(write.reset).difference(&STRIPPED);
    Some(Comparison {
        added: changes.added.into_owned(),
        modified: changes.modified.into_owned(),
        removed: changes.removed.into_owned(),
    })
}

/// Fields that somebody else owns and the configuration would change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Conflict {
    /// `"kubectl" using apps/v1`.
    pub manager: String,
    /// `.spec.replicas`.
    pub path: String,
}

#[derive(Debug)]
pub enum ApplyError<'a> {
    /// The configuration does not fit its type.
    Misfit(String),
    /// With the fields as a set, so that some of them can be allowed.
    Conflicts(Vec<(Owner<'a>, Set<'a>)>),
}

/// Beyond so much text conflicts are only counted.
const CONFLICTS_BYTES_MAX: usize = 256 << 10;

impl ApplyError<'_> {
    /// The first conflicts, and how many there are in all.
    pub fn conflicts(of: &[(Owner<'_>, Set<'_>)]) -> (Vec<Conflict>, usize) {
        let (mut told, mut count) = (Vec::new(), 0_usize);
        let mut room = CONFLICTS_BYTES_MAX;
        for (owner, set) in of {
            let manager = shortened(&owner.described()).into_owned();
            set.each_path(&mut |path| {
                count += 1;
                let path = shortened(path);
                let bytes = manager.len() + path.len();
                room = room.saturating_sub(bytes);
                if room > 0 {
                    told.push(Conflict { manager: manager.clone(), path: path.into_owned() });
                }
            });
        }
        (told, count)
    }
}

/// What applying a configuration gives.
#[derive(Debug)]
pub struct Applied<'a> {
    /// Neither pruned nor defaulted. `None`: nothing changes but, perhaps, owners.
    pub object: Option<Value>,
    pub owned: Owned<'a>,
}

/// Applies `configuration` to `live`, or to nothing.
///
/// # Errors
/// Where the configuration does not fit its type, or would change what others own and is not forced.
pub fn apply<'a>(
    write: &Write<'a>,
    live: Option<&'a Value>,
    configuration: &'a Value,
    mut owners: Owners<'a>,
    force: bool,
) -> Result<Applied<'a>, ApplyError<'a>> {
    let misfits = misfits(write.of, configuration);
    if !misfits.is_empty() {
        return Err(ApplyError::Misfit(joined(&misfits)));
    }
    let version = &write.by.api_version;
    if let (true, Some(live)) = (owners.0.is_empty(), live) {
        let all = compare(write.of, None, live);
        let all = all.added.union(all.modified).without(write.reset).difference(&STRIPPED);
        if !all.is_empty() {
            let mut first = Owner::new(BEFORE_FIRST_APPLY, Operation::Update, "", "").with(all);
            (first.api_version, first.time) = (version.clone(), Some(write.now.into()));
            first.subresource = write.by.subresource.clone();
            owners.0.push(first);
        }
    }
    let moved = own_wholes(write, &mut owners);
    let empty = Value::Object(serde_json::Map::new());
    let before = live.unwrap_or(&empty);
    let mut new = merged(write.of, before, configuration);

    let mine = fields(write.of, configuration).without(write.reset);
    let last = owners.position(&write.by).map(|at| owners.0.remove(at));
    if let Some(last) = &last {
        // With what nobody owns, or an object would lose its name with the last other field of its metadata.
        new = prune(write, new, last, &owners, &write.by.clone().with(mine.clone()));
    }
    let me = write.by.clone().with(mine.difference(&STRIPPED));

    let (is_same, lost) = {
        let changes = Changes::of(write, Some(before), &new, &owners);
        if !force {
            let conflicts = conflicts(&changes, &owners);
            if !conflicts.is_empty() {
                return Err(ApplyError::Conflicts(conflicts));
            }
        }
        let lost = changes.take_away(&mut owners, &me);
        (compare(write.of, Some(before), &new).is_same(), lost)
    };
    let same_set = match &last {
        Some(last) => *last.set() == *me.set() && last.api_version == me.api_version,
        None => me.set().is_empty(),
    };
    let mut me = me;
    me.time = if is_same { last.and_then(|it| it.time) } else { Some(write.now.into()) };
    if !me.set().is_empty() {
        owners.0.push(me);
    }
    let owned = Owned { owners, same: same_set && !lost && !moved };
    Ok(Applied { object: (!is_same || live.is_none()).then_some(new), owned })
}

/// Whoever owned parts of what is one value now owns it. True where that changed a set.
fn own_wholes(write: &Write<'_>, owners: &mut Owners<'_>) -> bool {
    let mut changed = false;
    for owner in &mut owners.0 {
        let is_here = owner.api_version == write.by.api_version;
        let of = if is_here { Some(write.of) } else { write.views.type_of(&owner.api_version) };
        let Some(form) = of.map(Form::Struct) else { continue };
        if owner.set().has_parts(form) {
            let set = owner.set_mut();
            *set = std::mem::take(set).with_wholes(form);
            changed = true;
        }
    }
    changed
}

fn conflicts<'a>(changes: &Changes<'_>, owners: &Owners<'a>) -> Vec<(Owner<'a>, Set<'a>)> {
    let mut found = Vec::new();
    for owner in &owners.0 {
        let Some(changes) = changes.for_owner(owner) else { continue };
        let set = owner.set();
        let hit = set.intersection(&changes.modified).union(set.intersection(&changes.added));
        if !hit.is_empty() {
            found.push((owner.clone(), hit));
        }
    }
    found.sort_by_key(|it| it.0.described());
    found
}

/// Takes out what the applier named before, names no more, and nobody else owns.
fn prune(write: &Write<'_>, new: Value, last: &Owner<'_>, others: &Owners<'_>, me: &Owner<'_>) -> Value {
    let here = &*write.by.api_version;
    if last.api_version == here {
        return pruned(write, write.of, new, last, others, me);
    }
    let there = &*last.api_version;
    let seen = write.views.type_of(there).zip(write.views.view(&new, here, there));
    let Some((of, seen)) = seen else { return new };
    let left = pruned(write, of, seen, last, others, me);
    write.views.view(&left, there, here).unwrap_or(new)
}

fn pruned(
    write: &Write<'_>,
    of: Struct<'_>,
    new: Value,
    last: &Owner<'_>,
    others: &Owners<'_>,
    me: &Owner<'_>,
) -> Value {
    let form = Form::Struct(of);
    let last_set = last.set().into_owned().with_named_fields(form);
    let mut left = removed(of, new.clone(), &last_set);
    // What others own comes back: first what they own in this version's words, then what in those of others.
    let mut by_version: BTreeMap<&str, Vec<Set<'_>>> = BTreeMap::new();
    for owner in others.0.iter().chain([me]) {
        by_version.entry(&owner.api_version).or_default().push(owner.set().into_owned());
    }
    let here = &*last.api_version;
    if let Some(owned) = by_version.remove(here) {
        left = with_owned(of, &new, &left, Set::union_all(owned));
    }
    for (version, owned) in by_version {
        let views = write.views;
        let back = (|| {
            let of = views.type_of(version)?;
            let (new, left) = (views.view(&new, here, version)?, views.view(&left, here, version)?);
            let owned = Set::union_all(owned);
            views.view(&with_owned(of, &new, &left, owned), version, here)
        })();
        left = back.unwrap_or(left);
    }
    // Only what was last applied may go, not what happened to stand below it.
    let gone = fields(of, &new).with_named_fields(form).difference(&fields(of, &left).with_named_fields(form));
    let gone = gone.intersection(&last_set).into_owned();
    removed(of, new, &gone)
}

fn with_owned(of: Struct<'_>, new: &Value, left: &Value, owned: Set<'_>) -> Value {
    let form = Form::Struct(of);
    let kept = fields(of, left).with_named_fields(form).into_owned().union(owned.with_named_fields(form).into_owned());
    let gone = fields(of, new).with_named_fields(form).difference(&kept);
    removed(of, new.clone(), &gone)
}
