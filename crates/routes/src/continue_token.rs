//! What `continue` says, read as Go reads it (`DecodeContinue`).

use base64::{
    DecodeError, Engine, alphabet,
    engine::general_purpose::{GeneralPurpose, NO_PAD},
};
use corten_meta::Status;
use serde::de::DeserializeOwned;

/// Go does not look at the bits that the last digit has too many.
const BASE64: GeneralPurpose = GeneralPurpose::new(&alphabet::URL_SAFE, NO_PAD.with_decode_allow_trailing_bits(true));

pub fn encode(token: &impl serde::Serialize) -> String {
    BASE64.encode(serde_json::to_vec(token).expect("a token is plain text and a number"))
}

/// # Errors
/// 400.
pub fn decode<T: DeserializeOwned>(text: &str) -> Result<T, Status> {
    let bytes = BASE64.decode(text).map_err(|error| {
        let at = match error {
            DecodeError::InvalidByte(at, _) | DecodeError::InvalidLastSymbol(at, _) => at,
            DecodeError::InvalidLength(length) => length.saturating_sub(1),
            DecodeError::InvalidPadding => text.find('=').unwrap_or(text.len()),
        };
        wrong(&format!("illegal base64 data at input byte {at}"))
    })?;
    serde_json::from_slice(&bytes).map_err(|error| wrong(&in_gos_words(&bytes, &error)))
}

pub fn wrong(reason: &str) -> Status {
    Status::bad_request(format!("invalid continue token: continue key is not valid: {reason}"))
}

fn in_gos_words(text: &[u8], error: &serde_json::Error) -> String {
    if error.is_eof() {
        return "unexpected end of JSON input".to_owned();
    }
    let first = text.iter().find(|it| !it.is_ascii_whitespace());
    match first.filter(|it| !matches!(it, b'{' | b'[' | b'"' | b'-' | b'0'..=b'9' | b't' | b'f' | b'n')) {
        Some(first) => format!("invalid character {} looking for beginning of value", quoted(*first)),
        None => error.to_string(),
    }
}

/// As `quoteChar` of encoding/json.
fn quoted(byte: u8) -> String {
    match byte {
        b'\'' => r"'\''".to_owned(),
        b'\\' => r"'\\'".to_owned(),
        b' '..=b'~' | 0xA1..=0xAC | 0xAE..=0xFF => format!("'{}'", char::from(byte)),
        0x80..=0xFF => format!("'\\u{byte:04x}'"),
        _ => format!("'\\x{byte:02x}'"),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    #[test]
    fn what_is_wrong_is_said_as_go_says_it() {
        for (token, said) in [
            ("a!bc", "illegal base64 data at input byte 1"),
            ("abcd=", "illegal base64 data at input byte 4"),
            ("abcde", "illegal base64 data at input byte 4"),
            ("garbage", r"invalid character '\u0081' looking for beginning of value"),
            ("eyJhIjo", "unexpected end of JSON input"),
            ("fQ", "invalid character '}' looking for beginning of value"),
        ] {
            let status = decode::<Value>(token).expect_err(token);
            assert_eq!(status.message, format!("invalid continue token: continue key is not valid: {said}"));
        }
        let token: Value = decode(&encode(&Value::from("a"))).expect("we wrote it");
        assert_eq!(token, "a");
    }
}
