//! Merges a configuration into the object that is there: fields it does not name stay.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use serde_json::{Map, Value};

use super::{
    element::Element,
    form::{self, Form},
};
use crate::Struct;

pub fn merged<'t>(of: impl Into<Struct<'t>>, live: &'t Value, configuration: &'t Value) -> Value {
    merge(Form::Struct(of.into()), Some(live), Some(configuration)).unwrap_or_else(|| Value::Object(Map::new()))
}

/// `None` where nothing is left to write.
fn merge<'t>(form: Form<'t>, live: Option<&'t Value>, wanted: Option<&'t Value>) -> Option<Value> {
    let whole = || wanted.or(live).cloned();
    match form {
        Form::Leaf => whole(),
        Form::Struct(_) | Form::Map(_) => {
            let entries = |it: Option<&Value>| it.and_then(Value::as_object).is_some_and(|it| !it.is_empty());
            if entries(live) || entries(wanted) { merge_entries(form, live, wanted) } else { whole() }
        }
        Form::Keyed(..) | Form::Set => {
            let (live, wanted) = (items(live), items(wanted));
            if live.is_empty() && wanted.is_empty() { whole() } else { merge_items(form, live, wanted) }
        }
    }
}

fn items(value: Option<&Value>) -> &[Value] {
    value.and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

fn merge_entries<'t>(form: Form<'t>, live: Option<&'t Value>, wanted: Option<&'t Value>) -> Option<Value> {
    let inside = |name: &str| match form {
        Form::Struct(of) => form::of_named(of, name),
        Form::Map(of) => form::below(of),
        _ => Form::Leaf,
    };
    let (live, wanted) = (live.and_then(Value::as_object), wanted.and_then(Value::as_object));
    let mut out = Map::new();
    for (name, value) in live.into_iter().flatten() {
        if let Some(value) = merge(inside(name), Some(value), wanted.and_then(|it| it.get(name))) {
            out.insert(name.clone(), value);
        }
    }
    for (name, value) in wanted.into_iter().flatten() {
        if !live.is_some_and(|it| it.contains_key(name))
            && let Some(value) = merge(inside(name), None, Some(value))
        {
            out.insert(name.clone(), value);
        }
    }
    (!out.is_empty()).then_some(Value::Object(out))
}

/// Elements the configuration names stand in its order; the others stay between those they stood between.
fn merge_items<'t>(form: Form<'t>, live: &'t [Value], wanted: &'t [Value]) -> Option<Value> {
    let inside = match form {
        Form::Keyed(of, _) => form::below(of),
        _ => Form::Leaf,
    };
    let (left, right) = (elements(form, live), elements(form, wanted));
    let mut by_left: BTreeMap<&Element<'_>, Option<&Value>> = BTreeMap::new();
    for (at, element) in &left {
        // What stands there twice is not merged with anything.
        by_left.entry(element).and_modify(|it| *it = None).or_insert(Some(&live[*at]));
    }
    let by_right: BTreeMap<&Element<'_>, &Value> = right.iter().map(|(at, it)| (it, &wanted[*at])).collect();
    let mut shared: VecDeque<&Element<'_>> =
        right.iter().map(|it| &it.1).filter(|it| by_left.contains_key(it)).collect();
    let mut done: BTreeSet<&Element<'_>> = BTreeSet::new();
    let mut out = Vec::with_capacity(left.len().max(right.len()));
    let (mut l, mut r) = (0, 0);
    while l < left.len() || r < right.len() {
        if let (Some((_, from_live)), Some((_, from_wanted))) = (left.get(l), right.get(r)) {
            if from_live == from_wanted {
                done.insert(from_live);
                out.extend(merge(inside, by_left[from_live], Some(by_right[from_live])));
                shared.pop_front();
                (l, r) = (l + 1, r + 1);
                continue;
            }
            let is_next = shared.front().is_none_or(|it| *it == from_live);
            if by_right.contains_key(from_live) && !is_next {
                l += 1;
                continue;
            }
        }
        if let Some((at, element)) = left.get(l) {
            if !by_right.contains_key(element) {
                out.extend(merge(inside, Some(&live[*at]), None));
                l += 1;
                continue;
            }
            if done.contains(element) {
                l += 1;
            }
        }
        if let Some((at, element)) = right.get(r) {
            done.insert(element);
            out.extend(merge(inside, by_left.get(element).copied().flatten(), Some(&wanted[*at])));
            r += 1;
            if shared.front() == Some(&element) {
                shared.pop_front();
            }
        }
    }
    (!out.is_empty()).then_some(Value::Array(out))
}

fn elements<'t>(form: Form<'t>, items: &'t [Value]) -> Vec<(usize, Element<'t>)> {
    items.iter().enumerate().filter_map(|(at, it)| Some((at, Element::of_item(form, it).ok()?))).collect()
}
