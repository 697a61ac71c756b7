//! The words in which the rows of the table are written.

pub(super) use crate::shape::{
    Apply::{self, Atomic, ByKeys},
    Default, Field, Merge,
    Patch::{self, ByKey, Replace},
    Shape::{self, *},
    Type,
};

use crate::shape::begin;

const DEEP: Merge = Merge { apply: Apply::Deep, patch: Patch::Deep, retain_keys: false };
const WHOLE: Merge = Merge { apply: Atomic, patch: Replace, retain_keys: false };

/// An optional field that merges as its shape suggests: objects and maps field by field, all else as one value.
pub(super) const fn field(name: &'static str, shape: Shape) -> Field {
    let merge = if matches!(shape, Object(_) | Map(_)) { &DEEP } else { &WHOLE };
    Field {
        name,
        begin: begin(name),
        shape,
        required: false,
        omitted: false,
        merge,
        default: Default::None,
        number: &[],
        always: false,
    }
}

impl Field {
    pub(super) const fn required(self) -> Self {
        Self { required: true, ..self }
    }

    /// No pointer in Go: where the struct around it is, it is too, with the zero value of its type.
    pub(super) const fn zero(self) -> Self {
        Self { default: Default::Zero, ..self }
    }

    /// No pointer in Go, and not written where it has the zero value of its type.
    pub(super) const fn omitted(self) -> Self {
        Self { omitted: true, ..self }
    }

    /// Filled in with this text where it is left out.
    pub(super) const fn or(self, text: &'static str) -> Self {
        Self { default: Default::Text(text), ..self }
    }

    /// Its protobuf number.
    pub(super) const fn at(self, number: &'static [u8]) -> Self {
        Self { number, ..self }
    }

    /// On the wire of protobuf even where nobody set it.
    pub(super) const fn always(self) -> Self {
        Self { always: true, ..self }
    }

    pub(super) const fn merged(self, merge: &'static Merge) -> Self {
        Self { merge, ..self }
    }
}
