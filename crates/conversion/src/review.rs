//! What a conversion webhook is asked, and how far its answer is one (`webhook_converter.go` of apiextensions-apiserver).

use bytes::Bytes;
use corten_meta::Status;
use corten_webhook::{Review, check_uid};
use serde::Deserialize;
use serde_json::{Value, json};

const V1: &str = "apiextensions.k8s.io/v1";

pub(crate) fn request(version: &str, uid: &str, desired: &str, objects: &[Value]) -> Bytes {
    let request = json!({ "uid": uid, "desiredAPIVersion": desired, "objects": objects });
    json!({ "kind": "ConversionReview", "apiVersion": version, "request": request }).to_string().into()
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Response {
    #[serde(default)]
    uid: String,
    converted_objects: Option<Vec<Value>>,
    #[serde(default)]
    result: Status,
}

/// The converted objects, of which nothing is known yet.
///
/// # Errors
/// What is wrong with the answer, or what the webhook says is wrong.
pub fn read(body: &[u8], version: &str, uid: &str) -> Result<Vec<Value>, String> {
    let review = Review::<Response>::decode(body)?;
    // A converter of v1beta1 may leave out its own kind and the uid (`getConvertedObjectsFromResponse`).
    let is_strict = version == V1;
    if is_strict {
        review.check_kind(version, "ConversionReview")?;
    }
    let response = review.response.ok_or("no response provided")?;
    if is_strict {
        check_uid(&response.uid, uid)?;
    }
    let Status { status, message, .. } = response.result;
    if status != "Success" {
        let unexplained = format!("response.result.status was '{status}', not 'Success'");
        return Err(if message.is_empty() { unexplained } else { message });
    }
    Ok(response.converted_objects.unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_believed_as_far_as_its_version_says() {
        let good = json!({ "kind": "ConversionReview", "apiVersion": V1, "response": {
            "uid": "u", "convertedObjects": [{ "a": 1 }], "result": { "status": "Success" } } });
        let but = |pointer: &str, value: Value| {
            let mut changed = good.clone();
            *changed.pointer_mut(pointer).expect("it is there") = value;
            changed
        };
        const OLDER: &str = "apiextensions.k8s.io/v1beta1";
        for (version, answer, expected) in [
            (V1, good.clone(), Ok(1)),
            (V1, but("/kind", "AdmissionReview".into()), Err("expected webhook response of")),
            (OLDER, but("/kind", Value::Null), Err("invalid type: null")),
            (OLDER, but("/kind", "".into()), Ok(1)),
            (V1, but("/response/uid", "other".into()), Err("expected response.uid=\"u\", got \"other\"")),
            (OLDER, but("/response/uid", "other".into()), Ok(1)),
            (V1, but("/response", Value::Null), Err("no response provided")),
            (V1, but("/response/convertedObjects", Value::Null), Ok(0)),
            (V1, but("/response/convertedObjects", json!({})), Err("json parse error")),
            (V1, but("/response/result/status", "".into()), Err("response.result.status was '', not 'Success'")),
            (V1, but("/response/result", json!({ "status": "Failure", "message": "too old" })), Err("too old")),
        ] {
            let found = read(answer.to_string().as_bytes(), version, "u").map(|it| it.len());
            match (&found, expected) {
                (Ok(n), Ok(wanted)) => assert_eq!(*n, wanted, "{answer}"),
                (Err(reason), Err(wanted)) => assert!(reason.contains(wanted), "{answer}: {reason}"),
                _ => panic!("{answer}: {found:?}"),
            }
        }
    }
}
