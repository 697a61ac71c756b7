//! Takes a set of paths out of an object.

use serde_json::{Map, Value};

use super::{
    element::{Element, form_below},
    form::Form,
    set::{Node, Set},
};
use crate::Struct;

pub(super) fn removed(of: Struct<'_>, mut object: Value, gone: &Set<'_>) -> Value {
    remove(Form::Struct(of), &mut object, gone);
    if object.is_null() {
        object = Value::Object(Map::new());
    }
    object
}

/// What has lost all its parts is null.
fn remove(form: Form<'_>, value: &mut Value, gone: &Set<'_>) {
    match (form, &mut *value) {
        (Form::Struct(_) | Form::Map(_), Value::Object(entries)) if !entries.is_empty() => {
            entries.retain(|name, value| keep(form, gone.get(&Element::field(name)), value));
            if entries.is_empty() {
                *value = Value::Null;
            }
        }
        (Form::Keyed(..) | Form::Set, Value::Array(items)) if !items.is_empty() => {
            items.retain_mut(|item| {
                let node = Element::of_item(form, item).ok().and_then(|it| gone.get(&it));
                keep(form, node, item)
            });
            if items.is_empty() {
                *value = Value::Null;
            }
        }
        _ => {}
    }
}

fn keep(form: Form<'_>, gone: Option<&Node<'_>>, value: &mut Value) -> bool {
    let Some(gone) = gone else { return true };
    if !gone.member {
        remove(form_below(form, &gone.element), value, &gone.below);
    }
    !gone.member
}
