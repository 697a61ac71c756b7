//! `/version`: the Kubernetes version whose API this is, and what the program is.

use corten_cacher::{answer, body::Response};
use http::StatusCode;
use serde_json::json;

pub(crate) const VERSION: &str = concat!("v1.37.0+corten.", env!("CARGO_PKG_VERSION"));

pub(crate) fn answer() -> Response {
    let platform = format!("linux/{}", if cfg!(target_arch = "aarch64") { "arm64" } else { "amd64" });
    answer::json(
        StatusCode::OK,
        &json!({
            "major": "1",
            "minor": "37",
            "gitVersion": VERSION,
            "gitCommit": "",
            "gitTreeState": "",
            "buildDate": "",
            "goVersion": "",
            "compiler": "rustc",
            "platform": platform,
        }),
    )
}
