//! Reads JSON as values of Rust: what is once known to be UTF-8 is not looked at for that string by string.

use serde::de::DeserializeOwned;

/// As `serde_json::from_slice`, in less time.
///
/// # Errors
/// The text is no JSON, or no `T`.
pub fn from_json<T: DeserializeOwned>(json: &[u8]) -> Result<T, serde_json::Error> {
    match std::str::from_utf8(json) {
        Ok(text) => serde_json::from_str(text),
        Err(_) => serde_json::from_slice(json),
    }
}
