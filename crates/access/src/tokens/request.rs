//! What a TokenRequest asks for, and may ask for (`TokenREST.Create`).

use corten_meta::Violation;
use serde_json::{Value, json};

use super::ISSUER;

/// What is given where nothing else is asked for.
pub const SECONDS: i64 = 3600;
const SECONDS_MIN: i64 = 600;
const SECONDS_MAX: i64 = 1 << 32;

/// Whatever was sent, or made of it, has a `spec`, and in it what is not said.
pub fn default(request: &mut Value) {
    if !request["spec"].is_object() {
        request["spec"] = json!({});
    }
    let spec = &mut request["spec"];
    if spec["expirationSeconds"].is_null() {
        spec["expirationSeconds"] = json!(SECONDS);
    }
    if spec["audiences"].as_array().is_none_or(Vec::is_empty) {
        spec["audiences"] = json!([ISSUER]);
    }
    // An unset field of the answer is there, and null.
    if spec.get("boundObjectRef").is_none() {
        spec["boundObjectRef"] = Value::Null;
    }
}

/// What is wrong with a request for a token of this account.
pub fn violations(request: &Value, namespace: &str, account: &str) -> Vec<Violation> {
    let mut found = Vec::new();
    for (field, expected) in [("name", account), ("namespace", namespace)] {
        let given = request["metadata"][field].as_str().unwrap_or_default();
        if !given.is_empty() && given != expected {
            let detail = format!("must match the service account {field} if specified");
            found.push(Violation::invalid(format!("metadata.{field}"), format!("{given:?}"), &detail));
        }
    }
    let seconds = request["spec"]["expirationSeconds"].as_i64().unwrap_or(SECONDS);
    let mut refuse = |detail| found.push(Violation::invalid("spec.expirationSeconds", seconds, detail));
    if seconds < SECONDS_MIN {
        refuse("may not specify a duration less than 10 minutes");
    }
    if seconds > SECONDS_MAX {
        refuse("may not specify a duration larger than 2^32 seconds");
    }
    found
}
