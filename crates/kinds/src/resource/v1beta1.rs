//! What `resource.k8s.io/v1beta1` has in other places than `v1`: the fields of an exact request stand in the request itself,
//! those of a device in `basic`.

use serde_json::{Map, Value};

type Object = Map<String, Value>;

pub(super) fn claim_to_v1(claim: &mut Value) {
    each(claim, "/spec/devices/requests", request_to_v1);
}

pub(super) fn claim_from_v1(claim: &mut Value) {
    each(claim, "/spec/devices/requests", request_from_v1);
}

pub(super) fn template_to_v1(template: &mut Value) {
    each(template, "/spec/spec/devices/requests", request_to_v1);
}

pub(super) fn template_from_v1(template: &mut Value) {
    each(template, "/spec/spec/devices/requests", request_from_v1);
}

pub(super) fn slice_to_v1(slice: &mut Value) {
    each(slice, "/spec/devices", |device| {
        if let Some(Value::Object(basic)) = device.shift_remove("basic") {
            device.extend(basic);
        }
    });
}

pub(super) fn slice_from_v1(slice: &mut Value) {
    each(slice, "/spec/devices", |device| {
        let basic = taken(device, &["name"]);
        device.insert("basic".into(), basic.into());
    });
}

fn each(object: &mut Value, list: &str, change: fn(&mut Object)) {
    let items = object.pointer_mut(list).and_then(Value::as_array_mut);
    items.into_iter().flatten().filter_map(Value::as_object_mut).for_each(change);
}

/// A request with alternatives is one already; any other is exact.
fn request_to_v1(request: &mut Object) {
    let exactly = taken(request, &["name", "firstAvailable"]);
    let has_alternatives = request.get("firstAvailable").and_then(Value::as_array).is_some_and(|it| !it.is_empty());
    if !exactly.is_empty() || !has_alternatives {
        request.insert("exactly".into(), exactly.into());
    }
}

fn request_from_v1(request: &mut Object) {
    if let Some(Value::Object(exactly)) = request.shift_remove("exactly") {
        request.extend(exactly);
    }
}

/// Takes out all fields but `kept`.
fn taken(object: &mut Object, kept: &[&str]) -> Object {
    let names: Vec<String> = object.keys().filter(|it| !kept.contains(&&***it)).cloned().collect();
    names.into_iter().filter_map(|it| object.shift_remove(&it).map(|value| (it, value))).collect()
}
