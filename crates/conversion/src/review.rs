//! What a conversion webhook is asked, and how far its answer is one (`webhook_converter.go` of apiextensions-apiserver).

use bytes::Bytes;
use corten_meta::{Status, depth};
use serde::Deserialize;
use serde_json::{Value, json};

const V1: &str = "apiextensions.k8s.io/v1";

pub(crate) fn request(version: &str, uid: &str, desired: &str, objects: &[Value]) -> Bytes {
    let request = json!({ "uid": uid, "desiredAPIVersion": desired, "objects": objects });
    json!({ "kind": "ConversionReview", "apiVersion": version, "request": request }).to_string().into()
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Review {
    #[serde(default)]
    api_version: String,
    #[serde(default)]
    kind: String,
    response: Option<Response>,
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
    let broken = |reason: &str| format!("couldn't get version/kind; json parse error: {reason}");
    let read = depth::read_answer(body).map_err(|it| broken(&depth::reason(&it)))?;
    if !read.is_whole {
        return Err(broken("it is nested too deeply"));
    }
    let review = Review::deserialize(read.value).map_err(|it| broken(&it.to_string()))?;
    // As upstream: v1beta1 never looked at what the answer says it is, and to what.
    let is_strict = version == V1;
    if is_strict && (review.api_version != version || review.kind != "ConversionReview") {
        let Review { api_version, kind, .. } = &review;
        return Err(format!(
            "expected webhook response of {version}, Kind=ConversionReview, got {api_version}, Kind={kind}"
        ));
    }
    let response = review.response.ok_or("no response provided")?;
    if is_strict && response.uid != uid {
        return Err(format!("expected response.uid={uid:?}, got {:?}", response.uid));
    }
    let Status { status, message, .. } = response.result;
    if status != "Success" {
        let unexplained = format!("response.result.status was '{status}', not 'Success'");
        return Err(if message.is_empty() { unexplained } else { message });
    }
    Ok(response.converted_objects.unwrap_or_default())
}
