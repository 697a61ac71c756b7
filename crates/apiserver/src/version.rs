//! `/version`: the Kubernetes version whose API this is, and what the program is.

use corten_api::version::{VERSION, minor};
use corten_cacher::{answer, body::Response};
use http::StatusCode;
use serde_json::json;

pub(crate) fn answer() -> Response {
    let (major, minor) = minor(VERSION).expect("it is a version");
    let platform = format!("linux/{}", if cfg!(target_arch = "aarch64") { "arm64" } else { "amd64" });
    answer::json(
        StatusCode::OK,
        &json!({
            "major": major.to_string(),
            "minor": minor.to_string(),
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
