//! Adds what Kubernetes's own structs always have: a struct inside a struct, a number or text that is no pointer.
//!
//! Clients of typed languages reckon with it: who reads `status.readyReplicas` of an object that is a moment old finds a
//! status. Of a spec only what is always written is added: text, numbers and truth values without `omitempty`.

use serde_json::{Map, Value};

use crate::{Default, Shape, Type, find};

/// Makes the object's own parts be there, with all that is always in them.
pub fn complete(type_name: &str, value: &mut Value) {
    let (Some(of), Value::Object(entries)) = (find(type_name), value) else { return };
    for field in of.fields.iter().filter(|it| it.default == Default::Zero && it.name != "metadata") {
        let Shape::Object(of) = field.shape else { continue };
        let part = part(entries, field.name);
        if field.name != "spec"
            && let Value::Object(entries) = part
        {
            fill(of, entries);
        }
    }
    write(of, entries);
}

/// Adds what is always written to this struct and to all that are in it.
fn write(of: &Type, entries: &mut Map<String, Value>) {
    for (name, value) in entries.iter_mut() {
        if matches!(value, Value::Object(_) | Value::Array(_))
            && let Some(field) = of.field(name)
        {
            write_in(&field.shape, value);
        }
    }
    for field in of.fields.iter().filter(|it| it.required && !it.omitted) {
        let zero = match (field.default, field.shape) {
            (_, Shape::Quantity) => Value::from("0"),
            (Default::Zero, shape) => match zero(&shape) {
                Some(zero) => zero,
                None => continue,
            },
            _ => continue,
        };
        if !entries.contains_key(field.name) {
            entries.insert(field.name.to_owned(), zero);
        }
    }
}

fn write_in(shape: &Shape, value: &mut Value) {
    match (shape, value) {
        (Shape::Object(of), Value::Object(entries)) => write(of, entries),
        (Shape::List(of), Value::Array(items)) => items.iter_mut().for_each(|it| write_in(of, it)),
        (Shape::Map(of), Value::Object(entries)) => entries.values_mut().for_each(|it| write_in(of, it)),
        _ => {}
    }
}

fn zero(shape: &Shape) -> Option<Value> {
    Some(match shape {
        Shape::Int32 | Shape::Int64 | Shape::Number => Value::from(0),
        Shape::Boolean => Value::Bool(false),
        Shape::String => Value::from(""),
        _ => return None,
    })
}

fn part<'a>(entries: &'a mut Map<String, Value>, name: &str) -> &'a mut Value {
    entries.entry(name).or_insert_with(|| Value::Object(Map::new()))
}

fn fill(of: &Type, entries: &mut Map<String, Value>) {
    for field in of.fields.iter().filter(|it| it.default == Default::Zero) {
        if let Shape::Object(of) = field.shape {
            if let Value::Object(entries) = part(entries, field.name) {
                fill(of, entries);
            }
        } else if let Some(zero) = zero(&field.shape).filter(|_| !field.omitted) {
            entries.entry(field.name).or_insert(zero);
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn adds_what_structs_always_have() {
        let node_info = ["architecture", "bootID", "containerRuntimeVersion", "kernelVersion", "kubeProxyVersion"];
        let node_info = node_info.into_iter().chain(["kubeletVersion", "machineID", "operatingSystem", "osImage"]);
        let node_info: Value = node_info.chain(["systemUUID"]).map(|it| (it.to_owned(), json!(""))).collect();
        for (type_name, given, expected) in [
            ("io.k8s.api.core.v1.ConfigMap", json!({ "data": {} }), json!({ "data": {} })),
            ("io.k8s.api.apps.v1.Deployment", json!({ "spec": {} }), json!({ "spec": {}, "status": {} })),
            (
                "io.k8s.api.apps.v1.StatefulSet",
                json!({ "spec": { "template": {} }, "status": { "replicas": 3 } }),
                json!({ "spec": { "template": {} }, "status": { "replicas": 3, "availableReplicas": 0 } }),
            ),
            ("io.k8s.api.coordination.v1.Lease", json!({}), json!({ "spec": {} })),
            (
                "io.k8s.api.storage.v1.VolumeAttachment",
                json!({}),
                json!({ "spec": { "attacher": "", "nodeName": "" }, "status": { "attached": false } }),
            ),
            ("io.k8s.api.networking.v1.Ingress", json!({}), json!({ "spec": {}, "status": { "loadBalancer": {} } })),
            (
                "io.k8s.api.core.v1.Node",
                json!({}),
                json!({ "spec": {}, "status": {
                    "daemonEndpoints": { "kubeletEndpoint": { "Port": 0 } }, "nodeInfo": node_info } }),
            ),
            ("none", json!({}), json!({})),
        ] {
            let mut object = given;
            complete(type_name, &mut object);
            assert_eq!(object, expected, "{type_name}");
        }
    }
}
