//! The body of a server-side apply: YAML or JSON, whatever the header says.

use corten_meta::{
    Status,
    depth::{self, EXCEEDED},
};
use serde_json::Value;

use super::read_yaml;

/// What was applied, and the keys that it gives twice, a sentence each.
pub struct Configuration {
    pub value: Value,
    pub duplicates: Vec<String>,
}

/// # Errors
/// 400 where it is no YAML that makes an object.
pub fn configuration(body: &[u8]) -> Result<Configuration, Status> {
    let broken = |reason: &str| Status::bad_request(format!("error decoding YAML: {reason}"));
    let is_json = body.iter().find(|it| !it.is_ascii_whitespace()) == Some(&b'{');
    if is_json {
        match corten_schema::read(body) {
            Ok((value, duplicates)) => {
                let duplicates = duplicates.iter().map(|it| already_set(it)).collect();
                return Ok(Configuration { value, duplicates });
            }
            Err(error) if depth::reason(&error) == EXCEEDED => return Err(broken(EXCEEDED)),
            // It may still be YAML.
            Err(_) => {}
        }
    }
    let (value, duplicates) =
        read_yaml::read(body).map_err(|it| broken(&format!("error converting YAML to JSON: yaml: {it}")))?;
    if !value.is_object() {
        return Err(broken(
            "error unmarshaling JSON: while decoding JSON: json: cannot unmarshal into Go value of type map[string]interface {}",
        ));
    }
    Ok(Configuration { value, duplicates })
}

/// `duplicate field "spec.replicas"` in the words of a YAML reader.
fn already_set(duplicate: &str) -> String {
    let path = duplicate.split('"').nth(1).unwrap_or_default();
    format!("line 1: key {:?} already set in map", path.rsplit('.').next().unwrap_or_default())
}
