//! Reads objects as projections: what none of them reads is passed over at once.

use std::borrow::Cow;

use serde::de::DeserializeOwned;

use crate::{depth, from_json};

/// Reads an object of the API as a projection. None reads `managedFields`, a third of most objects: where they stand first in the
/// metadata, as the server writes them, they are cut out before.
///
/// # Errors
/// See [`from_json`].
pub fn projected<T: DeserializeOwned>(json: &[u8]) -> Result<T, serde_json::Error> {
    from_json(&without_managed_fields(json).unwrap_or(Cow::Borrowed(json)))
}

/// `None`: they are not where the server writes them, or there are none.
fn without_managed_fields(json: &[u8]) -> Option<Cow<'_, [u8]>> {
    const FIELD: &[u8] = br#","managedFields":"#;
    let metadata = match json.strip_prefix(br#"{"kind":""#) {
        Some(rest) => after_text(after_text(rest)?.strip_prefix(br#","apiVersion":""#)?)?.strip_prefix(b",")?,
        // An item of a list.
        None => json.strip_prefix(b"{")?,
    };
    let list = after_text(metadata.strip_prefix(br#""metadata":{"resourceVersion":""#)?)?.strip_prefix(FIELD)?;
    let head = &json[..json.len() - list.len() - FIELD.len()];
    let (end, _) = depth::of_first(list)?;
    Some([head, &list[end..]].concat().into())
}

/// Behind a text without escapes whose beginning was passed.
fn after_text(json: &[u8]) -> Option<&[u8]> {
    let end = json.iter().position(|it| matches!(it, b'"' | b'\\'))?;
    (json[end] == b'"').then(|| &json[end + 1..])
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn left(json: &str) -> Option<String> {
        without_managed_fields(json.as_bytes()).map(|it| String::from_utf8_lossy(&it).into_owned())
    }

    #[test]
    fn managed_fields_are_cut_out_where_the_server_writes_them() {
        let head = r#"{"kind":"Pod","apiVersion":"v1","metadata":{"resourceVersion":"7""#;
        let owners = r#","managedFields":[{"manager":"a]\"}","fieldsV1":{"f:a":{}}}]"#;
        for rest in [r#","name":"web"},"spec":{}}"#, r#"},"spec":{}}"#] {
            assert_eq!(left(&format!("{head}{owners}{rest}")), Some(format!("{head}{rest}")));
            let item = r#"{"metadata":{"resourceVersion":"7""#;
            assert_eq!(left(&format!("{item}{owners}{rest}")), Some(format!("{item}{rest}")));
        }
        let name = r#","name":"web"}}"#;
        assert_eq!(left(&format!("{head}{name}")), None, "there are none");
        assert_eq!(left(&format!("{head},\"managedFields\":[{{")), None, "they do not end");
        assert_eq!(left(r#"{"spec":{"metadata":{"resourceVersion":"7","managedFields":[]}}}"#), None);
    }

    #[test]
    fn what_is_read_is_the_same() {
        let object = json!({ "kind": "Pod", "apiVersion": "v1", "metadata": { "resourceVersion": "7",
            "managedFields": [{ "manager": "a" }], "name": "w\u{e9}b" }, "spec": { "n": 1 } });
        let mut expected = object.clone();
        expected["metadata"].as_object_mut().expect("an object").shift_remove("managedFields");
        assert_eq!(projected::<Value>(object.to_string().as_bytes()).expect("JSON"), expected);
        assert_eq!(from_json::<Value>(object.to_string().as_bytes()).expect("JSON"), object);
        assert!(from_json::<Value>(b"\"\xff\"").is_err());
        assert!(from_json::<Value>(b"{} x").is_err());
    }
}
