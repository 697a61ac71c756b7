//! What metrics show in the place of a text that not all are to read: which server it is, which issuer, which configuration.

use aws_lc_rs::digest::{SHA256, digest};

/// As upstream writes it: `sha256:` and the digits.
pub(crate) fn hash(text: &str) -> String {
    let digits: String = digest(&SHA256, text.as_bytes()).as_ref().iter().map(|it| format!("{it:02x}")).collect();
    format!("sha256:{digits}")
}
