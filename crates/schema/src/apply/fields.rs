//! Which fields a configuration names: what its applier will own.

use serde_json::Value;

use super::{
    element::Element,
    form::{self, Form},
    set::Set,
};
use crate::Type;

pub fn fields<'a>(of: &'static Type, configuration: &'a Value) -> Set<'a> {
    within(form::of_type(of), configuration)
}

pub(super) fn within<'a>(form: Form, value: &'a Value) -> Set<'a> {
    let mut set = Set::default();
    match (form, value) {
        (Form::Struct(of), Value::Object(entries)) => {
            for (name, value) in entries {
                let field = of.field(name);
                let inside = field.map_or(Form::Leaf, form::of_field);
                set.push(Element::field(name), field.is_none() || is_value(inside, value), within(inside, value));
            }
        }
        (Form::Map(of), Value::Object(entries)) => {
            let inside = form::below(of);
            for (name, value) in entries {
                set.push(Element::field(name), true, within(inside, value));
            }
        }
        (Form::Keyed(..) | Form::Set, Value::Array(items)) => return list(form, items),
        _ => {}
    }
    set.sort();
    set
}

/// A struct or list is not owned as such, only what is in it; unless it is there to say that nothing is in it.
fn is_value(form: Form, value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Object(entries) if entries.is_empty() => true,
        _ => matches!(form, Form::Leaf),
    }
}

/// Of an element that stands there twice only the element itself is owned.
fn list(form: Form, items: &[Value]) -> Set<'_> {
    let inside = match form {
        Form::Keyed(of, _) => form::below(of),
        _ => Form::Leaf,
    };
    let mut set = Set::default();
    for item in items {
        if let Ok(element) = Element::of_item(form, item) {
            set.push(element, true, within(inside, item));
        }
    }
    set.sort();
    set.0.dedup_by(|again, first| {
        let twice = again.element == first.element;
        if twice {
            first.below = Set::default();
        }
        twice
    });
    set
}
