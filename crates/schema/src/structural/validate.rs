//! Checks a value against its schema (kube-openapi, `pkg/validation/validate`), and against what stood there before: what has
//! not changed may be as wrong as it was (KEP-4008, ratcheting).

use std::fmt::Write;

use corten_cel::{Fuel, FuelLimit, is_spent, spend};
use corten_meta::Violation;
use serde_json::{Map, Value};

use super::{AdditionalProperties, OUT_OF_BUDGET, Structural, Type, correlate::Before, report::Report};

impl Structural {
    /// Every rule that `value` breaks, the first ones. `old` is what is stored, of an update.
    pub fn validate(&self, value: &Value, old: Option<&Value>) -> Vec<Violation> {
        let _limit = FuelLimit::of(Fuel::OBJECT);
        let mut report = Report::told();
        Walk { path: String::new() }.part(self, value, old, &mut report);
        // Who has repeated items stored already may go on with them (customResourceStrategy.ValidateUpdate).
        let has_repeated = |it: &Value| {
            let mut report = Report::untold();
            self.repeated(it, &mut String::new(), &mut report);
            !report.is_valid()
        };
        if !report.is_full() && !old.is_some_and(has_repeated) {
            self.repeated(value, &mut String::new(), &mut report);
        }
        if is_spent() {
            let kind = self.types.first().map_or("", |it| it.as_str());
            report.found.push(Violation::invalid("<nil>", format_args!("{kind:?}"), OUT_OF_BUDGET));
        }
        report.found
    }
}

/// What it takes to look at a value, in units of fuel.
const FUEL_OF_VALUE: u64 = 10;
/// So many bytes of a text are looked at for one.
const BYTES_OF_FUEL: usize = 16;

/// Beyond it a float tells neighbouring integers apart no more (`swag.IsFloat64AJSONInteger`).
const WHOLE_MAX: f64 = 9_007_199_254_740_991.0;

pub(super) struct Walk {
    pub(super) path: String,
}

impl Walk {
    /// Adds what is wrong to the report. Nothing more is looked at where that is full, or the fuel is spent.
    pub(super) fn part(&mut self, schema: &Structural, value: &Value, old: Option<&Value>, report: &mut Report) {
        let bytes = value.as_str().map_or(0, str::len);
        if report.is_full() || !spend(FUEL_OF_VALUE + (bytes / BYTES_OF_FUEL) as u64) {
            return;
        }
        if old.is_some_and(|it| is_unchanged(it, value)) {
            return;
        }
        self.kind(schema, value, report);
        if !value.is_null() {
            if let Some(logic) = &schema.logic {
                self.logic(logic, value, report);
            }
            self.made_of(schema, value, old, report);
        }
        schema.validation().check_enum(&self.path, value, report);
        report.matched();
    }

    fn kind(&self, schema: &Structural, value: &Value, report: &mut Report) {
        let (Some(first), Some(named)) = (schema.types.first(), named(value)) else {
            if value.is_null() && !schema.types.is_empty() && !schema.nullable {
                self.wrong_type(&told(schema.types), "null", report);
            }
            return;
        };
        let is_whole = |it: &Value| it.as_f64().is_some_and(|it| it.fract() == 0.0 && it.abs() <= WHOLE_MAX);
        let fits = schema.types.contains(&named)
            || named == Type::Integer && schema.types.contains(&Type::Number)
            || named == Type::Number && schema.types.contains(&Type::Integer) && is_whole(value);
        // A text with a format is looked at by that alone (typeValidator).
        let is_numeric = matches!(first, Type::Integer | Type::Number);
        let has_format = !schema.validation().format.is_empty();
        let is_left_to_format = !is_numeric && has_format && matches!(named, Type::String | Type::Array);
        if !fits && !is_left_to_format {
            match schema.validation().numeric_format.map(|it| (it.as_str(), format_of(named))) {
                Some((format, Some(found))) => self.wrong_type(format, found, report),
                _ => self.wrong_type(&told(schema.types), named.as_str(), report),
            }
        } else {
            report.matched();
        }
    }

    fn wrong_type(&self, expected: &str, found: &str, report: &mut Report) {
        report.add(|| {
            let detail = format!("{} in body must be of type {expected}: {found:?}", self.path);
            Violation::wrong_type(&*self.path, format_args!("{found:?}"), &detail)
        });
    }

    fn made_of(&mut self, schema: &Structural, value: &Value, old: Option<&Value>, report: &mut Report) {
        match value {
            Value::String(text) => {
                schema.validation().text(&self.path, text, report);
                schema.validation().format(&self.path, text, report);
            }
            Value::Number(number) => schema.validation().number(&self.path, number, report),
            Value::Array(items) => self.items(schema, items, old, report),
            Value::Object(entries) => self.entries(schema, entries, old, report),
            Value::Null | Value::Bool(_) => {}
        }
        report.matched();
    }

    fn items(&mut self, schema: &Structural, items: &[Value], old: Option<&Value>, report: &mut Report) {
        if let Some(of) = &schema.items {
            let before = Before::of(schema, old);
            for (at, item) in items.iter().enumerate() {
                let length = self.path.len();
                let _ = write!(self.path, "[{at}]");
                self.part(of, item, before.find(schema, item), report);
                self.path.truncate(length);
                if report.is_full() || is_spent() {
                    break;
                }
            }
        }
        schema.validation().list(&self.path, items.len(), report);
    }

    fn entries(&mut self, schema: &Structural, entries: &Map<String, Value>, old: Option<&Value>, report: &mut Report) {
        if !schema.validation().check_property_count(&self.path, entries.len(), report) {
            return;
        }
        let old = schema.correlated(old);
        for (name, value) in entries {
            if let Some(of) = schema.property(name) {
                let length = self.path.len();
                self.lengthen(name);
                self.part(of, value, old.and_then(|it| it.get(name)), report);
                self.path.truncate(length);
            } else if let AdditionalProperties::Allowed(false) = schema.additional_properties {
                report.add(|| {
                    let detail = format!("{}.{name} in body is a forbidden property", self.path);
                    Violation::invalid(&*self.path, "\"\"", &detail)
                });
            }
        }
        spend(schema.validation().required.len() as u64);
        for name in schema.validation().required.iter().filter(|it| !entries.contains_key(*it)) {
            let length = self.path.len();
            self.lengthen(name);
            report.add(|| Violation::required(&*self.path, ""));
            self.path.truncate(length);
        }
    }

    fn lengthen(&mut self, name: &str) {
        if !self.path.is_empty() {
            self.path.push('.');
        }
        self.path.push_str(name);
    }
}

/// Is it the same as before?
fn is_unchanged(old: &Value, value: &Value) -> bool {
    if !spend(1) {
        return false;
    }
    match (old, value) {
        (Value::String(old), Value::String(value)) => {
            spend((value.len() / BYTES_OF_FUEL) as u64);
            old == value
        }
        (Value::Array(old), Value::Array(value)) => {
            old.len() == value.len() && old.iter().zip(value).all(|(old, value)| is_unchanged(old, value))
        }
        (Value::Object(old), Value::Object(value)) => {
            let is_in = |(name, value): (&String, &Value)| old.get(name).is_some_and(|it| is_unchanged(it, value));
            old.len() == value.len() && value.iter().all(is_in)
        }
        _ => old == value,
    }
}

fn told(types: &[Type]) -> String {
    types.iter().map(|it| it.as_str()).collect::<Vec<_>>().join(",")
}

/// Where a number with a format is wanted, its format is told, and that of what is there, unless that is a text or a list
/// (typeValidator).
fn format_of(found: Type) -> Option<&'static str> {
    Some(match found {
        Type::Integer => "int64",
        Type::Number => "float64",
        Type::Boolean | Type::Object => "",
        Type::Array | Type::String => return None,
    })
}

fn named(value: &Value) -> Option<Type> {
    Some(match value {
        Value::Null => return None,
        Value::Bool(_) => Type::Boolean,
        // Upstream's reader makes a float of what no int64 holds.
        Value::Number(it) if it.is_i64() => Type::Integer,
        Value::Number(_) => Type::Number,
        Value::String(_) => Type::String,
        Value::Array(_) => Type::Array,
        Value::Object(_) => Type::Object,
    })
}

impl Type {
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::Array => "array",
            Self::Boolean => "boolean",
            Self::Integer => "integer",
            Self::Number => "number",
            Self::Object => "object",
            Self::String => "string",
        }
    }
}
