//! How server-side apply sees a value: as one whole, or as something whose parts have owners of their own.

use crate::{
    Apply,
    described::{Described, FieldType, Keys, ListKeys, Made, Struct},
};

#[derive(Clone, Copy, Debug)]
pub(super) enum Form<'t> {
    /// A scalar, or a list or map that is replaced as one value.
    Leaf,
    Struct(Struct<'t>),
    Map(Described<'t>),
    /// A list whose elements are told apart by these fields.
    Keyed(Described<'t>, Keys<'t>),
    Set,
}

pub(super) fn of_field(field: FieldType<'_>) -> Form<'_> {
    of(field.described(), field.apply())
}

/// The form of a struct's field, known or not.
pub(super) fn of_named<'t>(of: Struct<'t>, name: &str) -> Form<'t> {
    match of.field(name) {
        Some(field) => of_field(field),
        None => of.unknown().map_or(Form::Leaf, below),
    }
}

/// The form of what a list or map holds: in the table, lists within them are wholes.
pub(super) fn below(inner: Described<'_>) -> Form<'_> {
    match (inner, inner.made()) {
        (Described::Table(_), Made::List(_)) => Form::Leaf,
        _ => of(inner, Apply::Deep),
    }
}

fn of(described: Described<'_>, apply: Apply) -> Form<'_> {
    if apply == Apply::Atomic || described.is_atomic() {
        return Form::Leaf;
    }
    match (described.made(), apply) {
        (Made::Struct(of), _) => Form::Struct(of),
        (Made::Map(of), _) => Form::Map(of),
        (Made::List(of), Apply::ByKeys(keys)) => Form::Keyed(of, Keys::Table(keys)),
        (Made::List(_), Apply::Set) => Form::Set,
        (Made::List(of), _) => match described.list_keys() {
            Some(ListKeys::Keys(keys)) => Form::Keyed(of, keys),
            Some(ListKeys::Set) => Form::Set,
            None => Form::Leaf,
        },
        (Made::Any, _) if matches!(described, Described::Deduced | Described::Custom(_)) => {
            Form::Map(Described::Deduced)
        }
        _ => Form::Leaf,
    }
}
