//! The words in which the rows of the table are written.

pub(super) use crate::shape::{
    Apply::{self, Atomic, ByKeys},
    Field, Merge,
    Patch::{self, ByKey, Replace},
    Shape::{self, *},
    Type,
};

const DEEP: Merge = Merge { apply: Apply::Deep, patch: Patch::Deep, retain_keys: false };
const WHOLE: Merge = Merge { apply: Atomic, patch: Replace, retain_keys: false };

/// An optional field that merges as its shape suggests: objects and maps field by field, all else as one value.
pub(super) const fn field(name: &'static str, shape: Shape) -> Field {
    let merge = if matches!(shape, Object(_) | Map(_)) { &DEEP } else { &WHOLE };
    Field { name, shape, required: false, merge, number: &[] }
}

impl Field {
    pub(super) const fn required(self) -> Self {
        Self { required: true, ..self }
    }

    /// Its protobuf number.
    pub(super) const fn at(self, number: &'static [u8]) -> Self {
        Self { number, ..self }
    }

    pub(super) const fn merged(self, merge: &'static Merge) -> Self {
        Self { merge, ..self }
    }
}
