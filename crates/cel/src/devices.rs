//! Which devices a claim is about: selectors in CEL (KEP-4381), as upstream's `k8s.io/dynamic-resource-allocation/cel` has them.

use std::{collections::BTreeMap, sync::LazyLock};

use serde_json::Value as Json;

use crate::{
    declared::{DeclType, Shape, Type},
    env::{Env, NEW_EXPRESSIONS, STORED_EXPRESSIONS},
    opaque::semver,
    run::{Activation, Program},
    value::{Entries, Key, Opaque, Text, Value},
};

/// The longest expression, in bytes: `CELSelectorExpressionMaxLength`.
pub const EXPRESSION_BYTES_MAX: usize = 10 * 1024;
/// What an evaluation may cost, by the estimate and when it runs: `CELSelectorExpressionMaxCost`.
const COST_MAX: u64 = 1_000_000;
/// `ResourceSliceMaxAttributesAndCapacitiesPerDevice`.
const ENTRIES_MAX: u64 = 32;
/// `DeviceAttributeMaxValueLength`.
const VALUE_CHARS_MAX: u64 = 64;
/// `DriverNameMaxLength`.
const DRIVER_CHARS_MAX: u64 = 63;

/// A selector that compiles: it is asked of one device after the other.
#[derive(Debug)]
pub struct DeviceSelector(Program);

/// Why an expression is no selector.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SelectorError {
    /// In upstream's words.
    #[error("{0}")]
    Invalid(String),
    #[error("too complex, exceeds cost limit")]
    TooComplex,
}

impl DeviceSelector {
    /// Compiles an expression of at most [`EXPRESSION_BYTES_MAX`] with what this minor version knows
    /// ([`crate::NEW_EXPRESSIONS`], [`crate::STORED_EXPRESSIONS`]).
    ///
    /// # Errors
    /// It does not compile, is no condition, or would cost too much.
    pub fn compile(expression: &str, minor: u16) -> Result<Self, SelectorError> {
        let env = environment(minor);
        let checked = env.check(expression);
        let checked = checked.map_err(|it| SelectorError::Invalid(format!("compilation failed: {it}")))?;
        let found = checked.result_type();
        if !matches!(found, Type::Bool | Type::Dyn) {
            let message = format!("must evaluate to bool or the unknown type, not {found}");
            return Err(SelectorError::Invalid(message));
        }
        if checked.estimate().max > COST_MAX {
            return Err(SelectorError::TooComplex);
        }
        Ok(Self(checked.program()))
    }

    /// Is this device one of them?
    ///
    /// # Errors
    /// What the evaluation came to instead, such as an attribute that the device does not have: an allocation that meets
    /// it fails (upstream's `selectorsMatch`).
    pub fn matches(&self, device: &Device<'_>) -> Result<bool, String> {
        let activation = Activation::new().with("device", device.0.clone());
        match self.0.evaluate(&activation, COST_MAX).result {
            Ok(Value::Bool(it)) => Ok(it),
            Ok(other) => Err(format!("CEL result of type {} could not be converted to bool", other.type_name())),
            Err(error) => Err(error.to_string()),
        }
    }
}

/// A device as selectors see it. It is made once and asked of many.
#[derive(Clone, Debug)]
pub struct Device<'a>(Value<'a>);

impl<'a> Device<'a> {
    /// `device` is an entry of a ResourceSlice's `spec.devices` (`resource.k8s.io/v1`); names without a domain are of `driver`.
    ///
    /// # Errors
    /// An attribute holds nothing that is known.
    pub fn new(driver: &'a str, device: &'a Json) -> Result<Self, String> {
        let attributes = by_domain(driver, &device["attributes"], |name, it| {
            attribute(it).map_err(|error| format!("attribute {name}: {error}"))
        })?;
        let capacity = by_domain(driver, &device["capacity"], |name, it| {
            quantity(&it["value"]).map_err(|error| format!("capacity {name}: {error}"))
        })?;
        let shared = device["allowMultipleAllocations"].as_bool().unwrap_or(false);
        Ok(Self(Value::from_iter([
            (key("driver"), Value::from(driver)),
            (key("allowMultipleAllocations"), Value::from(shared)),
            (key("attributes"), attributes),
            (key("capacity"), capacity),
        ])))
    }
}

/// Making one takes longer than compiling most expressions.
static NEW: LazyLock<Env> = LazyLock::new(|| made(NEW_EXPRESSIONS));
static STORED: LazyLock<Env> = LazyLock::new(|| made(STORED_EXPRESSIONS));

fn environment(minor: u16) -> &'static Env {
    if minor == NEW_EXPRESSIONS { &NEW } else { &STORED }
}

fn made(minor: u16) -> Env {
    let texts = |chars| DeclType { max_elements: chars, ..DeclType::string(None) };
    let anything = DeclType { max_elements: VALUE_CHARS_MAX, ..DeclType::DYN };
    let quantity = DeclType::new(Shape::Other(Type::Opaque("kubernetes.Quantity")), 0, 8);
    let by_domain = |of| DeclType::map(DeclType::map(of, Some(ENTRIES_MAX)), Some(ENTRIES_MAX));
    let device = DeclType::object(
        "kubernetes.DRADevice",
        [
            ("driver", texts(DRIVER_CHARS_MAX), true),
            ("allowMultipleAllocations", DeclType::BOOL, true),
            ("attributes", by_domain(anything), true),
            ("capacity", by_domain(quantity), true),
        ],
    );
    let env = Env::new(minor).variable("device", device).with_bind().with_sized_entries();
    if minor == STORED_EXPRESSIONS { env.with_patterns_unread() } else { env }
}

const fn key(name: &str) -> Key<'_> {
    Key::String(Text::Borrowed(name))
}

/// Domain, name, value. A domain that nothing is of is empty: what asks for it is told which name it lacks.
fn by_domain<'a>(
    driver: &'a str,
    named: &'a Json,
    value_of: impl Fn(&str, &'a Json) -> Result<Value<'a>, String>,
) -> Result<Value<'a>, String> {
    let mut domains: BTreeMap<&'a str, Entries<'a>> = BTreeMap::new();
    for (name, it) in named.as_object().into_iter().flatten() {
        let (domain, id) = name.split_once('/').unwrap_or((driver, name));
        domains.entry(domain).or_default().by_key.insert(key(id), value_of(name, it)?);
    }
    let by_key = domains.into_iter().map(|(domain, entries)| (key(domain), entries.into())).collect();
    Ok(Entries { by_key, missing: Some(Entries::default().into()), ..Entries::default() }.into())
}

fn attribute(it: &Json) -> Result<Value<'_>, String> {
    let version = |it: &Json| semver::parse(it.as_str().unwrap_or_default()).map(|it| Opaque::Semver(it).into());
    let versions = |it: &Json| version(it).map_err(|error| format!("parse semantic version: {error}"));
    for plain in ["ints", "bools", "strings", "int", "bool", "string"] {
        if !it[plain].is_null() {
            return Ok(Value::from_json(&it[plain]));
        }
    }
    match (&it["versions"], &it["version"]) {
        (Json::Array(several), _) => several.iter().map(versions).collect::<Result<Vec<_>, _>>().map(Value::from),
        (_, one @ Json::String(_)) => versions(one),
        _ => Err("unsupported attribute value".to_owned()),
    }
}

fn quantity(it: &Json) -> Result<Value<'_>, String> {
    let text = it.as_str().map_or_else(|| it.to_string(), str::to_owned);
    let read = text.parse().map_err(|_| format!("{text:?} is no quantity"))?;
    Ok(Opaque::Quantity(read).into())
}
