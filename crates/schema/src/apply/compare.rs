//! What differs between two objects: the paths that were added, changed and removed.
//!
//! A field that is no pointer in Go is there wherever its struct is: left out, it counts as the zero value of its type.

use serde_json::{Map, Value};

use super::{
    element::Element,
    form::{self, Form},
    set::Set,
};
use crate::{
    Default, Shape,
    described::{Described, FieldType, Made, Struct},
};

#[derive(Clone, Debug, std::default::Default, PartialEq, Eq)]
pub struct Comparison<'a> {
    pub added: Set<'a>,
    pub modified: Set<'a>,
    pub removed: Set<'a>,
}

/// Compares two objects of a type; without an old one, with an empty one.
pub fn compare<'a>(of: impl Into<Struct<'a>>, old: Option<&'a Value>, new: &'a Value) -> Comparison<'a> {
    let of = of.into();
    let nothing = if let Struct::Table(of) = of { Side::Zero(Shape::Object(of)) } else { Side::Absent };
    let mut out = Comparison::default();
    let old = old.map_or(nothing, Side::Is);
    if old.map().is_none() {
        out.added.0.reserve(new.as_object().map_or(0, Map::len));
    }
    fields(of, old, Side::Is(new), Parts::OfObject, &mut out);
    out.sort();
    out
}

/// Whose fields are compared.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Parts {
    /// Most writes change one of `metadata`, `spec` and `status`, and the others are the same as wholes: that is found out
    /// faster than by going through them.
    OfObject,
    OfValue,
}

impl<'a> Comparison<'a> {
    pub fn is_same(&self) -> bool {
        self.added.is_empty() && self.modified.is_empty() && self.removed.is_empty()
    }

    /// Without the paths of `fields` and all below them.
    #[must_use]
    pub fn without(self, fields: &Set<'_>) -> Self {
        Self {
            added: self.added.without(fields),
            modified: self.modified.without(fields),
            removed: self.removed.without(fields),
        }
    }

    /// Without these paths, though not without what lies below them.
    #[must_use]
    pub fn difference(self, fields: &Set<'_>) -> Self {
        Self {
            added: self.added.difference(fields),
            modified: self.modified.difference(fields),
            removed: self.removed.difference(fields),
        }
    }

    fn push(&mut self, element: Element<'a>, own: Option<Change>, below: Self) {
        let is = |change| own == Some(change);
        for (set, member, below) in [
            (&mut self.modified, is(Change::Modified), below.modified),
            (&mut self.removed, is(Change::Removed), below.removed),
        ] {
            if member || !below.is_empty() {
                set.push(element.clone(), member, below);
            }
        }
        self.added.push(element, is(Change::Added), below.added);
    }

    fn sort(&mut self) {
        self.added.sort();
        self.modified.sort();
        self.removed.sort();
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Change {
    Added,
    Modified,
    Removed,
}

/// One of the two values.
#[derive(Clone, Copy)]
enum Side<'a> {
    Absent,
    /// Not written, yet there: the zero value.
    Zero(Shape),
    Is(&'a Value),
}

static NULL: Value = Value::Null;

impl<'a> Side<'a> {
    fn of(field: FieldType<'_>, value: Option<&'a Value>, struct_is_there: bool) -> Self {
        match (value, field.default(), field.described()) {
            (Some(value), ..) => Self::Is(value),
            (None, ..) if !struct_is_there => Self::Absent,
            (None, Default::Zero, Described::Table(shape)) => Self::Zero(shape),
            // A list or map that is never omitted is written as null.
            (None, _, described) if field.is_required() && matches!(described.made(), Made::List(_) | Made::Map(_)) => {
                Self::Is(&NULL)
            }
            _ => Self::Absent,
        }
    }

    fn is_absent(self) -> bool {
        matches!(self, Self::Absent)
    }

    fn map(self) -> Option<&'a Map<String, Value>> {
        match self {
            Self::Is(Value::Object(entries)) => Some(entries),
            _ => None,
        }
    }

    fn list(self) -> &'a [Value] {
        match self {
            Self::Is(Value::Array(items)) => items,
            _ => &[],
        }
    }

    fn same(self, other: Self) -> bool {
        match (self, other) {
            (Self::Is(a), Self::Is(b)) => a == b,
            (Self::Is(value), Self::Zero(shape)) | (Self::Zero(shape), Self::Is(value)) => is_zero(shape, value),
            _ => true,
        }
    }
}

fn is_zero(shape: Shape, value: &Value) -> bool {
    match (shape, value) {
        (_, Value::Null) => true,
        (Shape::Object(of), Value::Object(entries)) => {
            entries.iter().all(|(name, value)| of.field(name).is_some_and(|it| is_zero(it.shape, value)))
        }
        (_, Value::String(text)) => text.is_empty(),
        (_, Value::Number(number)) => number.as_f64() == Some(0.0),
        (_, Value::Bool(it)) => !it,
        (_, Value::Array(items)) => items.is_empty(),
        (_, Value::Object(entries)) => entries.is_empty(),
    }
}

/// Compares what stands at `element`, and puts what differs into `out`.
fn at<'a>(form: Form<'a>, element: Element<'a>, old: Side<'a>, new: Side<'a>, out: &mut Comparison<'a>) {
    let is_leaf = match form {
        Form::Leaf => true,
        // Two that are empty, each in its own way, are told apart as wholes.
        Form::Struct(_) | Form::Map(_) => is_empty_map(old) && is_empty_map(new),
        Form::Keyed(..) | Form::Set => old.list().is_empty() && new.list().is_empty(),
    };
    let own = match (old.is_absent(), new.is_absent()) {
        (true, true) => None,
        (true, false) => Some(Change::Added),
        (false, true) => Some(Change::Removed),
        (false, false) => (is_leaf && !old.same(new)).then_some(Change::Modified),
    };
    if !is_leaf {
        let mut below = Comparison::default();
        entries(form, old, new, &mut below);
        return out.push(element, own, below);
    }
    match own {
        None => {}
        Some(Change::Added) => out.added.push(element, true, Set::default()),
        Some(Change::Modified) => out.modified.push(element, true, Set::default()),
        Some(Change::Removed) => out.removed.push(element, true, Set::default()),
    }
}

fn is_empty_map(side: Side<'_>) -> bool {
    side.map().is_none_or(Map::is_empty)
}

/// Compares the parts of two values of one form.
fn entries<'a>(form: Form<'a>, old: Side<'a>, new: Side<'a>, out: &mut Comparison<'a>) {
    if old.map().is_none() {
        out.added.0.reserve(new.map().map_or(0, Map::len));
    }
    match form {
        Form::Leaf => return,
        Form::Struct(of) => fields(of, old, new, Parts::OfValue, out),
        Form::Map(of) => {
            let inside = form::below(of);
            pairs(old.map(), new.map(), |name, before, after| {
                let side = |it: Option<&'a Value>| it.map_or(Side::Absent, Side::Is);
                at(inside, Element::field(name), side(before), side(after), out);
            });
        }
        Form::Keyed(..) | Form::Set => items(form, old.list(), new.list(), out),
    }
    out.sort();
}

fn fields<'a>(of: Struct<'a>, old: Side<'a>, new: Side<'a>, parts: Parts, out: &mut Comparison<'a>) {
    let there = |side: Side<'_>| matches!(side, Side::Zero(_) | Side::Is(Value::Object(_)));
    let (old_there, new_there) = (there(old), there(new));
    pairs(old.map(), new.map(), |name, before, after| match of.field(name) {
        _ if parts == Parts::OfObject && before.is_some() && before == after => {}
        Some(field) => {
            let (before, after) = (Side::of(field, before, old_there), Side::of(field, after, new_there));
            at(form::of_field(field), Element::field(name), before, after, out);
        }
        // What the type lacks was pruned, unless it may be there or the object came another way.
        None => {
            let side = |it: Option<&'a Value>| it.map_or(Side::Absent, Side::Is);
            at(form::of_named(of, name), Element::field(name), side(before), side(after), out);
        }
    });
}

type Entries<'a> = Option<&'a Map<String, Value>>;

/// Every key of both with its values. Most of the time both have the same keys in the same order, and none is looked up.
fn pairs<'a>(old: Entries<'a>, new: Entries<'a>, mut each: impl FnMut(&'a str, Option<&'a Value>, Option<&'a Value>)) {
    let mut beside = old.into_iter().flatten();
    let mut n_shared = 0;
    for (name, value) in new.into_iter().flatten() {
        let before = match beside.next() {
            Some((key, before)) if key == name => Some(before),
            _ => old.and_then(|it| it.get(name)),
        };
        n_shared += usize::from(before.is_some());
        each(name, before, Some(value));
    }
    if old.is_some_and(|it| it.len() > n_shared) {
        for (name, value) in old.into_iter().flatten() {
            if !new.is_some_and(|it| it.contains_key(name)) {
                each(name, Some(value), None);
            }
        }
    }
}

/// Compares lists element by element, wherever they stand. Elements that stand there twice are one value together.
fn items<'a>(form: Form<'a>, old: &'a [Value], new: &'a [Value], out: &mut Comparison<'a>) {
    let inside = match form {
        Form::Keyed(of, _) => form::below(of),
        _ => Form::Leaf,
    };
    let named = |is_new: bool| move |item| Element::of_item(form, item).ok().map(|it| (it, is_new, item));
    let mut all: Vec<(Element<'a>, bool, &'a Value)> =
        old.iter().filter_map(named(false)).chain(new.iter().filter_map(named(true))).collect();
    all.sort_by(|a, b| (&a.0, a.1).cmp(&(&b.0, b.1)));
    for group in all.chunk_by_mut(|a, b| a.0 == b.0) {
        let element = std::mem::replace(&mut group[0].0, Element::Index(0));
        let (before, after) = group.split_at(group.partition_point(|it| !it.1));
        let first = |it: &[(Element<'a>, bool, &'a Value)]| it.first().map_or(Side::Absent, |it| Side::Is(it.2));
        let values = |it: &[(Element<'a>, bool, &'a Value)]| it.iter().map(|it| it.2.clone()).collect::<Vec<_>>();
        match (before.len(), after.len()) {
            (..=1, ..=1) => at(inside, element, first(before), first(after), out),
            (2.., 2..) => {
                if values(before) != values(after) {
                    out.modified.push(element, true, Set::default());
                }
            }
            (2.., _) => {
                if !after.is_empty() {
                    at(inside, element.clone(), Side::Absent, first(after), out);
                }
                out.removed.push(element, true, Set::default());
            }
            (_, _) => {
                if !before.is_empty() {
                    at(inside, element.clone(), first(before), Side::Absent, out);
                }
                out.added.push(element, true, Set::default());
            }
        }
    }
}
