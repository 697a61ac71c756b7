//! One walk over an object that finds wrong types and unknown fields, in the words of Kubernetes's own decoder.

use corten_meta::shortened;
use serde_json::{Number, Value};

use crate::{Shape, Type, duplicates::unknown_field, find};

/// As many of either kind as Kubernetes reports before it stops counting.
const REPORTED_MAX: usize = 100;

/// What is wrong with an object before any rule of its kind is asked.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Findings {
    /// In document order, the first ones. Kubernetes reports the first of all.
    pub wrong_types: Vec<WrongType>,
    /// In document order, the first ones: `unknown field "spec.containers[0].foo"`.
    pub unknown_fields: Vec<String>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WrongType {
    /// `spec.containers[0].image`.
    pub path: String,
    /// `json: cannot unmarshal number into Go struct field Container.spec.containers.image of type string`.
    pub message: String,
}

impl Findings {
    pub fn is_empty(&self) -> bool {
        self.wrong_types.is_empty() && self.unknown_fields.is_empty()
    }
}

/// Checks `value` against the type. Nulls are fine everywhere: they mean absent. A type the table lacks allows anything.
pub fn check(type_name: &str, value: &Value) -> Findings {
    let mut walk = Walk { findings: Findings::default(), steps: Vec::new(), within: None };
    if let Some(of) = find(type_name) {
        walk.object(of, value);
    }
    walk.findings
}

struct Walk<'v> {
    findings: Findings,
    /// The way to the current value. It is made a path only where there is something to report.
    steps: Vec<Step<'v>>,
    /// The struct that holds the current field.
    within: Option<&'static Type>,
}

#[derive(Clone, Copy)]
enum Step<'v> {
    Field(&'v str),
    /// Of a map.
    Key(&'v str),
    Index(usize),
}

impl<'v> Walk<'v> {
    fn value(&mut self, shape: &Shape, value: &'v Value) {
        match (shape, value) {
            (_, Value::Null) | (Shape::Any, _) => {}
            (Shape::Object(of), _) => self.object(of, value),
            (Shape::List(of), Value::Array(items)) => self.list(of, items),
            (Shape::Map(of), Value::Object(entries)) => {
                for (key, value) in entries {
                    self.steps.push(Step::Key(key));
                    self.value(of, value);
                    self.steps.pop();
                }
            }
            (Shape::String | Shape::Bytes | Shape::Quantity | Shape::IntOrString, Value::String(text)) => {
                self.text(shape, text);
            }
            (Shape::Time | Shape::MicroTime, Value::String(text)) => self.text(shape, text),
            (Shape::Boolean, Value::Bool(_)) | (Shape::Number, Value::Number(_)) => {}
            (Shape::Int32 | Shape::Int64 | Shape::IntOrString | Shape::Quantity, Value::Number(number)) => {
                self.number(shape, number);
            }
            _ => self.wrong(shape, value),
        }
    }

    fn object(&mut self, of: &'static Type, value: &'v Value) {
        let entries = match value {
            Value::Object(entries) => entries,
            Value::Null => return,
            _ => return self.wrong(&Shape::Object(of), value),
        };
        let outer = self.within.replace(of);
        for (name, value) in entries {
            self.steps.push(Step::Field(name));
            match of.field(name) {
                Some(field) => self.value(&field.shape, value),
                None => self.unknown(),
            }
            self.steps.pop();
        }
        self.within = outer;
    }

    fn list(&mut self, of: &Shape, items: &'v [Value]) {
        for (at, item) in items.iter().enumerate() {
            self.steps.push(Step::Index(at));
            self.value(of, item);
            self.steps.pop();
        }
    }

    /// With indexes, for people and for unknown fields.
    fn path(&self) -> String {
        let mut path = String::new();
        for step in &self.steps {
            match step {
                Step::Field(name) | Step::Key(name) if path.is_empty() => path.push_str(name),
                Step::Field(name) | Step::Key(name) => path.extend([".", name]),
                Step::Index(at) => path.push_str(&format!("[{at}]")),
            }
        }
        path
    }

    /// Names of struct fields only, without indexes and keys of maps, as Go's decoder keeps them.
    fn names(&self) -> Vec<&'v str> {
        let name = |step: &Step<'v>| if let Step::Field(name) = step { Some(*name) } else { None };
        self.steps.iter().filter_map(name).collect()
    }

    fn text(&mut self, shape: &Shape, text: &str) {
        let complaint = match shape {
            Shape::Bytes => invalid_base64(text).map(|at| format!("illegal base64 data at input byte {at}")),
            Shape::Quantity => text.parse::<corten_meta::Quantity>().err().map(|it| it.to_string()),
            Shape::Time => text.parse::<corten_meta::Time>().err().map(|it| it.to_string()),
            Shape::MicroTime => text.parse::<corten_meta::MicroTime>().err().map(|it| it.to_string()),
            _ => None,
        };
        if let Some(message) = complaint {
            self.wrong_type(message);
        }
    }

    fn unknown(&mut self) {
        if self.findings.unknown_fields.len() < REPORTED_MAX {
            self.findings.unknown_fields.push(unknown_field(&self.path()));
        }
    }

    fn wrong_type(&mut self, message: String) {
        if self.findings.wrong_types.len() < REPORTED_MAX {
            self.findings.wrong_types.push(WrongType { path: shortened(&self.path()).into_owned(), message });
        }
    }

    fn number(&mut self, shape: &Shape, number: &Number) {
        let fits = match shape {
            Shape::Int32 | Shape::IntOrString => number.as_i64().is_some_and(|it| i32::try_from(it).is_ok()),
            Shape::Int64 => number.as_i64().is_some(),
            _ => true,
        };
        if !fits {
            self.cannot(&format!("number {number}"), shape);
        }
    }

    fn wrong(&mut self, shape: &Shape, value: &Value) {
        match shape {
            Shape::Quantity => {
                self.wrong_type(corten_meta::quantity::InvalidQuantity.to_string());
            }
            _ => self.cannot(go_kind(value), shape),
        }
    }

    fn cannot(&mut self, what: &str, shape: &Shape) {
        let names = self.names();
        let message = match shape {
            // These types decode themselves, apart from the struct around them.
            Shape::Time | Shape::MicroTime => format!("json: cannot unmarshal {what} into Go value of type string"),
            Shape::IntOrString => format!("json: cannot unmarshal {what} into Go value of type int32"),
            _ if names.is_empty() => {
                format!("json: cannot unmarshal {what} into Go value of type {}", shape.go_name())
            }
            _ => format!(
                "json: cannot unmarshal {what} into Go struct field {}.{} of type {}",
                self.within.map_or("", Type::short_name),
                names.join("."),
                shape.go_name()
            ),
        };
        self.wrong_type(message);
    }
}

/// The kind of Go value that JSON is decoded into, as messages of `encoding/json` name it.
pub fn go_kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "bool",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

/// Where standard padded base64 breaks. Line breaks are skipped, as Go's decoder skips them.
fn invalid_base64(text: &str) -> Option<usize> {
    let (mut digits, mut padding) = (0_usize, 0_usize);
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            b'\r' | b'\n' => {}
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'+' | b'/' if padding == 0 => digits += 1,
            b'=' if digits % 4 >= 2 && padding < 4 - digits % 4 => padding += 1,
            _ => return Some(at),
        }
    }
    // An unfinished group of four is reported where it begins, missing padding where the text ends.
    match (digits + padding) % 4 {
        0 => None,
        open if padding == 0 => Some(text.len() - open),
        _ => Some(text.len()),
    }
}
