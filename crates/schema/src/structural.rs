//! The schemas of custom resources: what a CustomResourceDefinition's `openAPIV3Schema` says of its objects, read once
//! (KEP-2335; k8s.io/apiextensions-apiserver, `pkg/apiserver/schema`).
//!
//! A schema is *structural*: what a value is made of stands apart from the rules that it must keep. Whether a definition is
//! structural is asked where it is written; here it is taken as it is, and what has no meaning is left out.

mod allowed_values;
mod correlate;
mod default;
mod described;
mod embedded;
mod expressions;
mod formats;
mod lists;
mod nested_value_validation;
mod prune;
mod read;
mod report;
#[cfg(test)]
mod tests;
mod validate;
mod value_validation;
mod violations_of_defaults;

use std::{collections::BTreeMap, sync::LazyLock};

use corten_cel::{ListKind, Pattern};
use serde_json::Value;

use self::{allowed_values::AllowedValues, expressions::Expressions, formats::NumericFormat};
pub use default::{BYTES_MAX, TooLarge};
pub(crate) use described::Values;
pub use expressions::check::{Excess, Occurrences, RuleCheck, RuleProblem, TotalCost, check_rule};
pub use expressions::timing::timed;

/// One schema, or a part of one.
#[derive(Debug, Default)]
pub struct Structural {
    /// Empty: any type.
    types: &'static [Type],
    nullable: bool,
    /// Boxed: a node of the map has room for eleven, of which most are not there.
    properties: BTreeMap<String, Box<Self>>,
    /// Those of them that have a default.
    defaulted: Vec<String>,
    additional_properties: AdditionalProperties,
    items: Option<Box<Self>>,
    preserves_unknown: bool,
    embedded_resource: bool,
    list: ListKind,
    is_atomic_map: bool,
    default: Option<DefaultValue>,
    /// Of most parts nothing is asked but a type.
    validation: Option<Box<ValueValidation>>,
    logic: Option<Box<NestedValueValidation>>,
    expressions: Option<Box<Expressions>>,
    /// Has the part rules in CEL, or a part within it?
    has_expressions: bool,
    /// Is the part a whole resource within another, or is one within it?
    has_embedded: bool,
}

#[derive(Debug)]
struct DefaultValue {
    value: Value,
    /// As JSON.
    bytes: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Type {
    Array,
    Boolean,
    Integer,
    Number,
    Object,
    String,
}

/// What an object may hold beside its properties.
#[derive(Debug, Default)]
enum AdditionalProperties {
    /// Nothing is said of them.
    #[default]
    Unsaid,
    /// `additionalProperties: true`, or `false`.
    Allowed(bool),
    Values(Box<Structural>),
}

/// What the value itself must be. A bound that is absent bounds nothing.
#[derive(Debug, Default)]
struct ValueValidation {
    /// Of texts.
    format: String,
    numeric_format: Option<NumericFormat>,
    maximum: Option<NumberLimit>,
    minimum: Option<NumberLimit>,
    multiple_of: Option<f64>,
    max_length: Option<u64>,
    min_length: Option<u64>,
    pattern: Option<Pattern>,
    max_items: Option<u64>,
    min_items: Option<u64>,
    max_properties: Option<u64>,
    min_properties: Option<u64>,
    required: Vec<String>,
    allowed: Option<AllowedValues>,
}

#[derive(Clone, Copy, Debug)]
struct NumberLimit {
    value: f64,
    is_exclusive: bool,
}

/// Rules that combine others. They say nothing of what a value is made of.
#[derive(Debug, Default)]
struct NestedValueValidation {
    all_of: Vec<Structural>,
    any_of: Vec<Structural>,
    one_of: Vec<Structural>,
    not: Option<Structural>,
}

/// What is said where patterns and rules take more work than those of one object may.
const OUT_OF_BUDGET: &str =
    "validation failed due to running out of cost budget, no further validation rules will be run";

/// What every object of the API has, whether or not its schema says so.
const TYPE_AND_OBJECT_META: [&str; 3] = ["apiVersion", "kind", "metadata"];

impl Structural {
    fn validation(&self) -> &ValueValidation {
        static NOTHING: LazyLock<ValueValidation> = LazyLock::new(ValueValidation::default);
        self.validation.as_deref().unwrap_or(&NOTHING)
    }

    /// Has it rules in CEL?
    pub fn has_expressions(&self) -> bool {
        self.has_expressions
    }

    /// The part that says what a property is; `None` where nothing does.
    fn property(&self, name: &str) -> Option<&Self> {
        self.properties.get(name).map(|it| &**it).or(match &self.additional_properties {
            AdditionalProperties::Values(of) => Some(&**of),
            AdditionalProperties::Unsaid | AdditionalProperties::Allowed(_) => None,
        })
    }
}
