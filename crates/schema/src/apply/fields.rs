//! Which fields a configuration names: what its applier will own.

use serde_json::Value;

use super::{
    element::Element,
    form::{self, Form},
    set::Set,
};
use crate::described::{Described, Struct};

pub fn fields<'a>(of: impl Into<Struct<'a>>, configuration: &'a Value) -> Set<'a> {
    within(Form::Struct(of.into()), configuration)
}

pub(super) fn within<'a>(form: Form<'a>, value: &'a Value) -> Set<'a> {
    let mut set = Set::default();
    match (form, value) {
        (Form::Struct(of), Value::Object(entries)) => {
            for (name, value) in entries {
                let (is_known, inside) = (of.field(name).is_some(), form::of_named(of, name));
                set.push(Element::field(name), !is_known || is_value(inside, value), within(inside, value));
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
fn is_value(form: Form<'_>, value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Object(entries) if entries.is_empty() => true,
        // What nobody describes is what it happens to be.
        Value::Object(_) => matches!(form, Form::Leaf),
        _ => matches!(form, Form::Leaf | Form::Map(Described::Deduced)),
    }
}

/// Of an element that stands there twice only the element itself is owned.
fn list<'a>(form: Form<'a>, items: &'a [Value]) -> Set<'a> {
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
