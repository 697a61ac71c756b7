//! Values in each form, with bytes made by hand from what the wire format says.

use bytes::Bytes;
use corten_schema::proto;
use serde_json::{Value, json};

use crate::{from_stored, to_stored};

const CONFIG: &[u8] = b"/registry/configmaps/d/c";

fn read(key: &[u8], stored: &[u8]) -> Result<Value, String> {
    let read = from_stored(key, &Bytes::copy_from_slice(stored))?;
    Ok(serde_json::from_slice(&read).expect("JSON"))
}

fn config() -> Value {
    json!({"kind": "ConfigMap", "apiVersion": "v1", "metadata": {"name": "c", "namespace": "d"}, "data": {"a": "<b>"}})
}

/// Fields 1 and 2 of the envelope, and of the object its metadata, in which what is no pointer stands though it is empty.
#[test]
fn a_config_map_is_an_envelope_of_protobuf() {
    let json = Bytes::from(config().to_string());
    let expected: &[&[u8]] = &[
        b"k8s\0\x0a\x0f\x0a\x02v1\x12\x09ConfigMap\x12\x20",
        b"\x0a\x12\x0a\x01c\x12\0\x1a\x01d\x22\0\x2a\0\x32\0\x38\0\x42\0",
        b"\x12\x08\x0a\x01a\x12\x03<b>",
        b"\x1a\0\x22\0",
    ];
    let mut expected = expected.concat();
    let length = expected.len() - b"k8s\0\x0a\x0f\x0a\x02v1\x12\x09ConfigMap\x12\x20".len() - 4;
    let at = b"k8s\0\x0a\x0f\x0a\x02v1\x12\x09ConfigMap\x12".len();
    expected[at] = u8::try_from(length).expect("a short message");
    assert_eq!(to_stored(CONFIG, &json), expected);
    assert_eq!(read(CONFIG, &expected), Ok(config()));
}

#[test]
fn json_and_yaml_are_read_and_would_be_written_as_protobuf() {
    for text in [
        config().to_string(),
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c, namespace: d, resourceVersion: '7'}\ndata: {a: <b>}\n"
            .into(),
    ] {
        let read = from_stored(CONFIG, &text.clone().into()).expect("it can be read");
        assert_eq!(serde_json::from_slice::<Value>(&read).expect("JSON"), config(), "{text}");
        assert!(to_stored(CONFIG, &read).starts_with(b"k8s\0"));
    }
}

#[test]
fn defaults_are_applied_where_others_have_not_written_them() {
    let service = json!({"kind": "Service", "apiVersion": "v1", "metadata": {"name": "s", "namespace": "d"},
        "spec": {"ports": [{"port": 80}]}});
    let read = read(b"/registry/services/specs/d/s", service.to_string().as_bytes()).expect("it can be read");
    assert_eq!(read["spec"]["type"], "ClusterIP");
    assert_eq!(read["spec"]["ports"][0]["protocol"], "TCP");
}

#[test]
fn versions_that_are_not_served_are_read() {
    let deployment = json!({"kind": "Deployment", "apiVersion": "apps/v1beta1", "metadata": {"name": "w", "namespace": "d"},
        "spec": {"selector": {"matchLabels": {"a": "b"}}, "rollbackTo": {"revision": 3}, "template": {"spec": {}}}});
    let read_back = read(b"/registry/deployments/d/w", deployment.to_string().as_bytes()).expect("it can be read");
    assert_eq!(read_back["apiVersion"], "apps/v1");
    assert_eq!(read_back["spec"]["selector"]["matchLabels"]["a"], "b");
    assert_eq!(read_back["spec"]["rollbackTo"], Value::Null);

    // In protobuf, with a field that apps/v1 does not have: rollbackTo is number 8.
    let newer =
        json!({"kind": "Deployment", "apiVersion": "apps/v1", "metadata": {"name": "w"}, "spec": {"replicas": 3}});
    let written = proto::whole(&newer).expect("it has protobuf");
    let (before, after) = (b"apps/v1", b"apps/v1beta1");
    let at = written.windows(before.len()).position(|it| it == before).expect("it says its version");
    let mut older = [&written[..at], after, &written[at + before.len()..]].concat();
    for length in [5, 7] {
        older[length] += 5;
    }
    let read_back = read(b"/registry/deployments/d/w", &older).expect("it can be read");
    assert_eq!((&read_back["apiVersion"], &read_back["spec"]["replicas"]), (&json!("apps/v1"), &json!(3)));
}

#[test]
fn an_event_of_the_newer_group_is_the_same_object() {
    let event = json!({"kind": "Event", "apiVersion": "events.k8s.io/v1", "metadata": {"name": "e", "namespace": "d"},
        "note": "n", "regarding": {"kind": "Pod"}, "eventTime": null});
    let read = read(b"/registry/events/d/e", event.to_string().as_bytes()).expect("it can be read");
    assert_eq!((&read["apiVersion"], &read["message"]), (&json!("v1"), &json!("n")));
    assert_eq!(read["involvedObject"]["kind"], "Pod");
}

#[test]
fn custom_resources_are_json_with_sorted_keys_and_a_line_feed() {
    let key = b"/registry/example.org/things/d/t";
    let json = r#"{"kind":"Thing","apiVersion":"example.org/v1","metadata":{"name":"t","namespace":"d"},"spec":{"b":1e21,"a":"<&>","c":0.0000001,"d":2.0}}"#;
    let written = to_stored(key, &Bytes::from_static(json.as_bytes()));
    let expected = concat!(
        r#"{"apiVersion":"example.org/v1","kind":"Thing","metadata":{"name":"t","namespace":"d"},"#,
        r#""spec":{"a":"\u003c\u0026\u003e","b":1e+21,"c":1e-7,"d":2}}"#,
        "\n"
    );
    assert_eq!(std::str::from_utf8(&written), Ok(expected));
    let read = from_stored(key, &written).expect("it can be read");
    let begins = br#"{"kind":"Thing","apiVersion":"example.org/v1","metadata":{"#;
    assert!(read.starts_with(begins), "{read:?}");
    assert_eq!(to_stored(key, &read), written);
}

/// Sixteen bits of float, byte strings as keys and texts, a negative number.
#[test]
fn cbor_is_read() {
    let stored: &[&[u8]] = &[
        b"\xd9\xd9\xf7\xa4\x44kind\x45Thing\x4aapiVersion\x4eexample.org/v1\x48metadata\xa1\x44name\x41t",
        b"\x44spec\xa4\x41a\xf9\x3e\x00\x41b\x20\x41c\x83\xf5\xf6\x18\xff\x41d\x61x",
    ];
    let read = read(b"/registry/example.org/things/t", &stored.concat()).expect("it is CBOR");
    assert_eq!(read["spec"], json!({"a": 1.5, "b": -1, "c": [true, null, 255], "d": "x"}));
}

#[test]
fn a_definition_is_stored_in_a_version_that_is_not_served() {
    let key = b"/registry/apiextensions.k8s.io/customresourcedefinitions/things.example.org";
    let names = json!({"plural": "things", "singular": "thing", "kind": "Thing", "listKind": "ThingList"});
    let schema = json!({"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}});
    let columns = json!([{"name": "Size", "type": "integer", "jsonPath": ".spec.size"}]);
    let webhook = json!({"clientConfig": {"url": "https://example.org/c"}, "conversionReviewVersions": ["v1"]});
    let definition = json!({
        "kind": "CustomResourceDefinition", "apiVersion": "apiextensions.k8s.io/v1",
        "metadata": {"name": "things.example.org"},
        "spec": {
            "group": "example.org", "names": names, "scope": "Cluster",
            "conversion": {"strategy": "Webhook", "webhook": webhook},
            "versions": [
                {"name": "v1", "served": true, "storage": true, "schema": schema, "additionalPrinterColumns": columns},
                {"name": "v2", "served": true, "storage": false, "schema": schema},
            ],
        },
        "status": {"acceptedNames": {"plural": "", "kind": ""}},
    });
    let written = to_stored(key, &definition.to_string().into());
    let stored: Value = serde_json::from_slice(&written).expect("JSON");
    let spec = &stored["spec"];
    assert_eq!(stored["apiVersion"], "apiextensions.k8s.io/v1beta1");
    assert_eq!((&spec["version"], &spec["validation"]), (&json!("v1"), &schema));
    assert_eq!(spec["versions"][0]["additionalPrinterColumns"][0]["JSONPath"], ".spec.size");
    assert_eq!(spec["conversion"]["webhookClientConfig"]["url"], "https://example.org/c");
    assert_eq!(spec["preserveUnknownFields"], false);
    assert!(std::str::from_utf8(&written).is_ok_and(|it| it.contains(r#""conditions":null,"acceptedNames":"#)));

    let mut read_back = read(key, &written).expect("it can be read");
    assert_eq!(to_stored(key, &read_back.to_string().into()), written);
    // What is filled in while reading.
    let status = read_back["status"].as_object_mut().expect("a status");
    status.shift_remove("storedVersions");
    status.shift_remove("conditions");
    assert_eq!(read_back, definition);
}

#[test]
fn what_cannot_be_read_says_why() {
    let key = CONFIG;
    for (stored, reason) in [
        (&b""[..], "the value is empty"),
        (b"{", "unexpected"),
        (b"[]", "no object"),
        (b"k8s\0\x0a", "unexpected end"),
        (br#"{"kind":"Pod","apiVersion":"v1"}"#, r#"a Pod in version "v1" is not stored as a ConfigMap"#),
        (br#"{"kind":"ConfigMap","apiVersion":"v9"}"#, r#"no kind "ConfigMap" is registered for version "v9""#),
        (br#"{"kind":"ConfigMap","apiVersion":"v1","data":7}"#, "cannot unmarshal number"),
        (b"\xd9\xd9\xf7\xa1\x44kind", "the CBOR item ends early"),
        (b"\xd9\xd9\xf7\x9f", "indefinite length"),
    ] {
        let said = read(key, stored).expect_err("it cannot be read");
        let is_said = said.contains(reason) || reason == "unexpected" && said.contains("EOF");
        assert!(is_said, "{:?}: {said}", String::from_utf8_lossy(stored));
    }
}

/// A newer release may have stored a field that is not known here: as Kubernetes does, it is read without it.
#[test]
fn unknown_fields_of_protobuf_are_left_out() {
    let json = Bytes::from(config().to_string());
    let mut stored = to_stored(CONFIG, &json).to_vec();
    // The object is last but for four bytes. Its length is one byte.
    let end = stored.len() - 4;
    stored.splice(end..end, *b"\xa2\x06\x01x");
    let at = b"k8s\0\x0a\x0f\x0a\x02v1\x12\x09ConfigMap\x12".len();
    stored[at] += 4;
    assert_eq!(read(CONFIG, &stored), Ok(config()));
}

#[test]
fn what_is_no_object_stays_as_it_is() {
    for key in [&b"/registry/ranges/other"[..], b"compact_rev_key", b"/registry/masterleases/10.0.0.1", b"/a"] {
        let value = Bytes::from_static(b"k8s\0anything");
        assert_eq!(to_stored(key, &value), value);
        assert_eq!(from_stored(key, &value), Ok(value));
    }
}
