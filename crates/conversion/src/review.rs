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
pub(crate) fn read(body: &[u8], version: &str, uid: &str) -> Result<Vec<Value>, String> {
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
