//! Whether a configuration fits its type: upstream's words for what a typed patch refuses.

use corten_meta::shortened;
use serde_json::Value;

use super::{
    element::Element,
    form::{self, Form},
};
use crate::{
    Shape,
    described::{Described, Made, Struct},
};

/// More of them help nobody.
const REPORTED_MAX: usize = 100;

/// What does not fit, the first ones, a sentence each: `.spec.foo: field not declared in schema`.
pub fn misfits<'t>(of: impl Into<Struct<'t>>, configuration: &'t Value) -> Vec<String> {
    let mut walk = Walk { path: String::new(), found: Vec::new() };
    walk.object(of.into(), configuration);
    walk.found
}

/// All in one message, as `ValidationErrors` joins them.
pub(super) fn joined(misfits: &[String]) -> String {
    match misfits {
        [one] => one.clone(),
        many => many.iter().fold("errors:".to_owned(), |text, it| text + "\n  " + it),
    }
}

struct Walk {
    path: String,
    found: Vec<String>,
}

impl Walk {
    fn complain(&mut self, message: &str) {
        if self.found.len() < REPORTED_MAX {
            let message = shortened(message);
            let path = shortened(&self.path);
            self.found.push(if path.is_empty() { message.into_owned() } else { format!("{path}: {message}") });
        }
    }

    fn at(&mut self, element: &Element<'_>, check: impl FnOnce(&mut Self)) {
        let length = self.path.len();
        self.path.push_str(&element.to_string());
        check(self);
        self.path.truncate(length);
    }

    fn value<'t>(&mut self, of: Described<'t>, form: Form<'t>, value: &'t Value) {
        match (of.made(), value) {
            (_, Value::Null) | (Made::Any, _) => {}
            (Made::Struct(of), _) => self.object(of, value),
            (Made::Map(of), Value::Object(entries)) => {
                for (key, value) in entries {
                    self.at(&Element::field(key), |walk| walk.value(of, form::below(of), value));
                }
            }
            (Made::List(of), Value::Array(items)) => self.list(of, form, items),
            (Made::Map(_), other) => self.complain(&format!("expected map, got &{{{}}}", as_go(other))),
            (Made::List(_), other) => self.complain(&format!("expected list, got &{{{}}}", as_go(other))),
            (Made::AnyScalar, other) => self.scalar(Shape::IntOrString, other),
            (Made::Scalar(scalar), other) => self.scalar(scalar, other),
        }
    }

    fn object<'t>(&mut self, of: Struct<'t>, value: &'t Value) {
        let Value::Object(entries) = value else {
            if !value.is_null() {
                self.complain(&format!("expected map, got &{{{}}}", as_go(value)));
            }
            return;
        };
        for (name, value) in entries {
            self.at(&Element::field(name), |walk| match of.field(name) {
                Some(field) => walk.value(field.described(), form::of_field(field), value),
                None if of.unknown().is_some() => {}
                None => walk.complain("field not declared in schema"),
            });
        }
    }

    fn list<'t>(&mut self, of: Described<'t>, form: Form<'t>, items: &'t [Value]) {
        let mut seen = std::collections::BTreeSet::new();
        for (at, item) in items.iter().enumerate() {
            let element = match form {
                Form::Keyed(..) | Form::Set => match Element::of_item(form, item) {
                    Ok(element) => element,
                    Err(message) => return self.complain(&format!("element {at}: {message}")),
                },
                _ => Element::Index(i64::try_from(at).unwrap_or(i64::MAX)),
            };
            if seen.contains(&element) {
                self.complain(&format!("duplicate entries for key {element}"));
            }
            self.at(&element, |walk| walk.value(of, form::below(of), item));
            seen.insert(element);
        }
    }

    fn scalar(&mut self, shape: Shape, value: &Value) {
        let complaint = match (shape, value) {
            (Shape::Int32 | Shape::Int64 | Shape::Number, Value::Number(_)) | (Shape::Boolean, Value::Bool(_)) => None,
            (Shape::Quantity | Shape::IntOrString, Value::Number(_) | Value::String(_) | Value::Bool(_)) => None,
            (Shape::String | Shape::Bytes | Shape::Time | Shape::MicroTime, Value::String(_)) => None,
            (Shape::Int32 | Shape::Int64 | Shape::Number, other) => {
                Some(format!("expected numeric (int or float), got {}", go_type(other)))
            }
            (Shape::Boolean, other) => Some(format!("expected boolean, got &{{{}}}", as_go(other))),
            (Shape::Quantity | Shape::IntOrString, other) => {
                Some(format!("expected any scalar, got &{{{}}}", as_go(other)))
            }
            (_, other) => Some(format!("expected string, got &value.valueUnstructured{{Value:{}}}", quoted(other))),
        };
        if let Some(complaint) = complaint {
            self.complain(&complaint);
        }
    }
}

/// As Go prints a decoded value with `%v`.
fn as_go(value: &Value) -> String {
    match value {
        Value::Null => "<nil>".into(),
        Value::String(text) => text.clone(),
        Value::Array(items) => format!("[{}]", items.iter().map(as_go).collect::<Vec<_>>().join(" ")),
        Value::Object(entries) => {
            let mut entries: Vec<String> = entries.iter().map(|(key, it)| format!("{key}:{}", as_go(it))).collect();
            entries.sort();
            format!("map[{}]", entries.join(" "))
        }
        other => other.to_string(),
    }
}

/// With `%#v`: text in quotes, and the types of what holds others.
fn quoted(value: &Value) -> String {
    match value {
        Value::Array(items) => {
            format!("[]interface {{}}{{{}}}", items.iter().map(quoted).collect::<Vec<_>>().join(", "))
        }
        Value::Object(entries) => {
            let mut entries: Vec<String> = entries.iter().map(|(key, it)| format!("{key:?}:{}", quoted(it))).collect();
            entries.sort();
            format!("map[string]interface {{}}{{{}}}", entries.join(", "))
        }
        Value::Null => "interface {}(nil)".into(),
        other => other.to_string(),
    }
}

fn go_type(value: &Value) -> &'static str {
    match value {
        Value::Null => "<nil>",
        Value::Bool(_) => "bool",
        Value::Number(number) if number.is_f64() => "float64",
        Value::Number(_) => "int64",
        Value::String(_) => "string",
        Value::Array(_) => "[]interface {}",
        Value::Object(_) => "map[string]interface {}",
    }
}
