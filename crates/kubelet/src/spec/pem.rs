//! Certificates as text (PEM, RFC 7468).

use base64::{Engine, engine::general_purpose::STANDARD};

/// A certificate as bytes (DER).
pub(crate) type Certificate = Vec<u8>;

const BEGIN: &str = "-----BEGIN CERTIFICATE-----";
const END: &str = "-----END CERTIFICATE-----";

/// The API server has checked it; what cannot be read is left out, and so is what stands around the blocks and at their head.
pub(crate) fn certificates(pem: &str) -> impl Iterator<Item = Certificate> {
    let blocks = pem.split(BEGIN).skip(1).filter_map(|it| Some(it.split_once(END)?.0));
    blocks.filter_map(|it| {
        let lines = it.lines().filter(|it| !it.contains(':'));
        let text: String = lines.flat_map(str::chars).filter(|it| !it.is_ascii_whitespace()).collect();
        STANDARD.decode(text).ok()
    })
}

pub(crate) fn written<'a>(certificates: impl IntoIterator<Item = &'a Certificate>) -> String {
    let mut pem = String::new();
    for certificate in certificates {
        pem.push_str(BEGIN);
        pem.push('\n');
        let text = STANDARD.encode(certificate);
        for line in text.as_bytes().chunks(64) {
            pem.push_str(&String::from_utf8_lossy(line));
            pem.push('\n');
        }
        pem.push_str(END);
        pem.push('\n');
    }
    pem
}
