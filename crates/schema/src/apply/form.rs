//! How server-side apply sees a value: as one whole, or as something whose parts have owners of their own.

use crate::{Apply, Field, Shape, Type};

#[derive(Clone, Copy, Debug)]
pub(super) enum Form {
    /// A scalar, or a list or map that is replaced as one value.
    Leaf,
    Struct(&'static Type),
    Map(Shape),
    /// A list whose elements are told apart by these fields.
    Keyed(Shape, &'static [&'static str]),
    Set,
}

/// The form of a whole object.
pub(super) fn of_type(of: &'static Type) -> Form {
    Form::Struct(of)
}

pub(super) fn of_field(field: &'static Field) -> Form {
    of(field.shape, field.merge.apply)
}

/// The form of what a list or map holds: lists within them are wholes.
pub(super) fn below(shape: Shape) -> Form {
    match shape {
        Shape::Object(_) | Shape::Map(_) => of(shape, Apply::Deep),
        _ => Form::Leaf,
    }
}

fn of(shape: Shape, apply: Apply) -> Form {
    match (shape, apply) {
        (_, Apply::Atomic) => Form::Leaf,
        (Shape::Object(of), _) if !of.atomic => Form::Struct(of),
        (Shape::Map(of), _) => Form::Map(*of),
        (Shape::List(of), Apply::ByKeys(keys)) => Form::Keyed(*of, keys),
        (Shape::List(_), Apply::Set) => Form::Set,
        _ => Form::Leaf,
    }
}
