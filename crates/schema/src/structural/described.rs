//! What a schema says of the form of values, without what it demands of them: for server-side apply.

use std::collections::BTreeMap;

use corten_cel::ListKind;
use serde_json::Value;

use super::{AdditionalProperties, Structural, Type};
use crate::Shape;

/// What the values of a schema are made of.
pub(crate) enum Values<'t> {
    Any,
    AnyScalar,
    Scalar(Shape),
    Struct,
    /// Without a description of what is in it: anything.
    Map(Option<&'t Structural>),
    List(Option<&'t Structural>),
}

impl Structural {
    pub(crate) fn values(&self) -> Values<'_> {
        match *self.types {
            [Type::Object] if !self.properties.is_empty() || self.embedded_resource => Values::Struct,
            [Type::Object] => match &self.additional_properties {
                AdditionalProperties::Values(of) => Values::Map(Some(of)),
                AdditionalProperties::Unsaid | AdditionalProperties::Allowed(_) => Values::Map(None),
            },
            [Type::Array] => Values::List(self.items.as_deref()),
            [Type::Boolean] => Values::Scalar(Shape::Boolean),
            [Type::Integer | Type::Number] => Values::Scalar(Shape::Number),
            [Type::String] => Values::Scalar(Shape::String),
            [] => Values::Any,
            // `x-kubernetes-int-or-string`.
            _ => Values::AnyScalar,
        }
    }

    pub(crate) fn properties(&self) -> &BTreeMap<String, Box<Self>> {
        &self.properties
    }

    pub(crate) fn preserves_unknown(&self) -> bool {
        self.preserves_unknown
    }

    /// Does it describe a whole object, with metadata of its own?
    pub(crate) fn is_embedded(&self) -> bool {
        self.embedded_resource
    }

    pub(crate) fn list_type(&self) -> &ListKind {
        &self.list
    }

    pub(crate) fn is_atomic_map(&self) -> bool {
        self.is_atomic_map
    }

    pub(crate) fn default_value(&self) -> Option<&Value> {
        self.default.as_ref().map(|it| &it.value)
    }
}
