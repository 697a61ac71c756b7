//! What of a configuration would replace a list or map as one value.

use serde_json::Value;

use super::{
    element::Element,
    form::{self, Form},
};
use crate::Struct;

/// The paths of lists and maps in the configuration that are wholes: whoever owns nothing (a policy) cannot say a part of one.
pub fn atomics<'t>(of: impl Into<Struct<'t>>, configuration: &'t Value) -> Vec<String> {
    let mut walk = Walk { path: String::new(), found: Vec::new() };
    walk.value(Form::Struct(of.into()), configuration);
    walk.found
}

struct Walk {
    path: String,
    found: Vec<String>,
}

impl Walk {
    fn value<'t>(&mut self, form: Form<'t>, value: &'t Value) {
        match (form, value) {
            (Form::Leaf, Value::Array(_) | Value::Object(_)) => self.found.push(self.path.clone()),
            (Form::Struct(of), Value::Object(entries)) => {
                entries.iter().for_each(|(name, it)| self.at(name, form::of_named(of, name), it));
            }
            (Form::Map(of), Value::Object(entries)) => {
                entries.iter().for_each(|(name, it)| self.at(name, form::below(of), it));
            }
            (Form::Keyed(of, _), Value::Array(items)) => {
                items.iter().for_each(|it| self.value(form::below(of), it));
            }
            _ => {}
        }
    }

    fn at<'t>(&mut self, name: &'t str, form: Form<'t>, value: &'t Value) {
        let length = self.path.len();
        self.path.push_str(&Element::field(name).to_string());
        self.value(form, value);
        self.path.truncate(length);
    }
}
