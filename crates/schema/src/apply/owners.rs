//! `metadata.managedFields`: who owns which fields, since when, and in which version's words.
//!
//! A set is read only when somebody asks for it; one that nobody changed is written back as the text it was.

use std::{borrow::Cow, collections::BTreeMap};

use serde::Deserialize;
use serde_json::value::RawValue;

use super::{element::Element, set::Set};

/// So many managers that update are kept apart; what the oldest beyond them own goes into one entry.
const UPDATERS_MAX: usize = 10;
const ANCIENT: &str = "ancient-changes";
/// Owns what an object without owners held before the first apply.
pub const BEFORE_FIRST_APPLY: &str = "before-first-apply";

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Operation {
    Apply,
    Update,
}

impl Operation {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Apply => "Apply",
            Self::Update => "Update",
        }
    }
}

/// One entry of the list.
#[derive(Clone, Debug)]
pub struct Owner<'a> {
    pub manager: Cow<'a, str>,
    pub operation: Operation,
    pub api_version: Cow<'a, str>,
    pub subresource: Cow<'a, str>,
    /// In UTC, as `2026-01-02T15:04:05Z`: the order of the text is that of the times.
    pub time: Option<Cow<'a, str>>,
    fields: Fields<'a>,
}

#[derive(Clone, Debug)]
enum Fields<'a> {
    Text(&'a str),
    Set(Set<'a>),
}

impl<'a> Owner<'a> {
    pub fn new(manager: &'a str, operation: Operation, api_version: &'a str, subresource: &'a str) -> Self {
        Self {
            manager: manager.into(),
            operation,
            api_version: api_version.into(),
            subresource: subresource.into(),
            time: None,
            fields: Fields::Set(Set::default()),
        }
    }

    /// Whoever applies is known in every version by the same entry.
    pub fn is(&self, other: &Self) -> bool {
        self.manager == other.manager
            && self.operation == other.operation
            && self.subresource == other.subresource
            && (self.operation == Operation::Apply || self.api_version == other.api_version)
    }

    pub fn set(&self) -> Cow<'_, Set<'a>> {
        match &self.fields {
            Fields::Set(set) => Cow::Borrowed(set),
            Fields::Text(text) => Cow::Owned(parsed(text)),
        }
    }

    /// False where nothing of `changes` can be in the set, as far as can be told without reading it.
    pub(super) fn may_own(&self, changes: &Set<'_>) -> bool {
        let Fields::Text(text) = self.fields else { return true };
        changes.0.iter().any(|it| match &it.element {
            // What needs no escape stands in the text as it is.
            Element::Field(name) if !name.contains(['"', '\\']) => text.contains(&format!("\"f:{name}\"")),
            _ => true,
        })
    }

    pub(super) fn set_mut(&mut self) -> &mut Set<'a> {
        if let Fields::Text(text) = self.fields {
            self.fields = Fields::Set(parsed(text));
        }
        match &mut self.fields {
            Fields::Set(set) => set,
            Fields::Text(_) => unreachable!("made a set above"),
        }
    }

    pub fn with(mut self, set: Set<'a>) -> Self {
        self.fields = Fields::Set(set);
        self
    }

    /// As messages name it: `"kubectl" with subresource "scale" using apps/v1`.
    pub fn described(&self) -> String {
        let mut text = format!("{:?}", self.manager);
        if !self.subresource.is_empty() {
            text += &format!(" with subresource {:?}", self.subresource);
        }
        if self.operation == Operation::Update {
            text += &format!(" using {}", self.api_version);
        }
        text
    }

    fn write(&self, out: &mut String) {
        let text = |out: &mut String, name: &str, value: &str| {
            if !value.is_empty() {
                out.push_str(&format!("\"{name}\":"));
                out.push_str(&serde_json::to_string(value).expect("text is JSON"));
                out.push(',');
            }
        };
        out.push('{');
        text(out, "manager", &self.manager);
        text(out, "operation", self.operation.as_str());
        text(out, "apiVersion", &self.api_version);
        text(out, "time", self.time.as_deref().unwrap_or_default());
        out.push_str("\"fieldsType\":\"FieldsV1\",\"fieldsV1\":");
        match &self.fields {
            Fields::Text(text) => out.push_str(text),
            Fields::Set(set) => set.write(out),
        }
        if !self.subresource.is_empty() {
            out.push(',');
            text(out, "subresource", &self.subresource);
            out.pop();
        }
        out.push('}');
    }
}

/// What was read as JSON once is a set, or nothing that could be one.
fn parsed(text: &str) -> Set<'_> {
    Set::read(text).unwrap_or_default()
}

#[derive(Clone, Debug, Default)]
pub struct Owners<'a>(pub Vec<Owner<'a>>);

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Wire<'a> {
    #[serde(borrow, default)]
    manager: Cow<'a, str>,
    #[serde(borrow, default)]
    operation: Cow<'a, str>,
    #[serde(borrow, default)]
    api_version: Cow<'a, str>,
    #[serde(borrow, default)]
    time: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    fields_type: Cow<'a, str>,
    #[serde(borrow, default, rename = "fieldsV1")]
    fields: Option<&'a RawValue>,
    #[serde(borrow, default)]
    subresource: Cow<'a, str>,
}

impl<'a> Owners<'a> {
    /// Reads what the server wrote, or what a client sent.
    ///
    /// # Errors
    /// Where it is no list of owners.
    pub fn read(json: &'a str) -> Result<Self, String> {
        if json.is_empty() {
            return Ok(Self::default());
        }
        let entries: Vec<Wire<'a>> = serde_json::from_str(json).map_err(|it| it.to_string())?;
        let read = |(at, it): (usize, Wire<'a>)| {
            let operation = match &*it.operation {
                "Apply" => Operation::Apply,
                "Update" => Operation::Update,
                _ => return Err("operation must be `Apply` or `Update`".to_owned()),
            };
            match &*it.fields_type {
                "FieldsV1" => {}
                "" => return Err(format!("missing fieldsType in managed fields entry {at}")),
                other => return Err(format!("invalid fieldsType {other:?} in managed fields entry {at}")),
            }
            if it.api_version.is_empty() {
                return Err("apiVersion must not be empty".to_owned());
            }
            let fields = Fields::Text(it.fields.map_or("{}", RawValue::get));
            let Wire { manager, api_version, time, subresource, .. } = it;
            Ok(Owner { manager, operation, api_version, subresource, time, fields })
        };
        entries.into_iter().enumerate().map(read).collect::<Result<_, _>>().map(Self)
    }

    /// As [`Self::read`], with every set read too: text from outside is not kept as it is.
    ///
    /// # Errors
    /// Where it is no list of owners.
    pub fn read_whole(json: &'a str) -> Result<Self, String> {
        let mut owners = Self::read(json)?;
        for owner in &mut owners.0 {
            if let Fields::Text(text) = owner.fields {
                owner.fields = Fields::Set(Set::read(text).map_err(|it| it.to_string())?);
            }
        }
        Ok(owners)
    }

    /// The list, sorted as by `sortEncodedManagedFields`; empty text where nobody owns anything.
    pub fn write(mut self) -> String {
        if self.0.is_empty() {
            return String::new();
        }
        self.0.sort_by(|a, b| {
            let key = |it: &Owner<'a>| (it.operation, it.time.clone().unwrap_or_default());
            key(a)
                .cmp(&key(b))
                .then_with(|| a.manager.cmp(&b.manager))
                .then_with(|| a.api_version.cmp(&b.api_version))
                .then_with(|| a.subresource.cmp(&b.subresource))
        });
        let mut out = String::from("[");
        for (at, owner) in self.0.iter().enumerate() {
            if at > 0 {
                out.push(',');
            }
            owner.write(&mut out);
        }
        out.push(']');
        out
    }

    pub(super) fn position(&self, of: &Owner<'_>) -> Option<usize> {
        self.0.iter().position(|it| it.is(of))
    }

    /// Merges what the oldest updaters own, an entry per version, until there are few enough.
    pub(super) fn cap(&mut self) {
        let is_update = |it: &Owner<'_>| it.operation == Operation::Update;
        let mut length = self.0.iter().filter(|it| is_update(it)).count();
        if length <= UPDATERS_MAX {
            return;
        }
        let (mut updaters, mut kept): (Vec<_>, Vec<_>) = std::mem::take(&mut self.0).into_iter().partition(is_update);
        updaters.sort_by(|a, b| {
            (&a.time, &a.manager, &a.api_version, &a.subresource).cmp(&(
                &b.time,
                &b.manager,
                &b.api_version,
                &b.subresource,
            ))
        });
        let mut left: Vec<(Owner<'a>, Vec<Set<'a>>)> = Vec::with_capacity(updaters.len());
        let mut first_of: BTreeMap<String, usize> = BTreeMap::new();
        for mut owner in updaters {
            // The first of a version waits for a second one: a bucket of one would be gained for nothing.
            match first_of.get(&*owner.api_version).and_then(|at| left.get_mut(*at)) {
                Some((bucket, sets)) if length > UPDATERS_MAX => {
                    sets.push(std::mem::take(owner.set_mut()));
                    (bucket.manager, bucket.time) = (ANCIENT.into(), owner.time);
                    bucket.subresource = "".into();
                    length -= 1;
                }
                _ => {
                    first_of.entry(owner.api_version.to_string()).or_insert(left.len());
                    left.push((owner, Vec::new()));
                }
            }
        }
        kept.extend(left.into_iter().map(|(mut bucket, mut sets)| {
            if !sets.is_empty() {
                sets.push(std::mem::take(bucket.set_mut()));
                bucket.fields = Fields::Set(Set::union_all(sets));
            }
            bucket
        }));
        self.0 = kept;
    }
}
