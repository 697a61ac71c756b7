//! The endpoints of the system itself: `/livez`, `/readyz`, `/healthz`, `/version`, `/metrics`.

use std::fmt::Write;

use corten_meta::Status;
use http::{Method, StatusCode};
use serde_json::json;

use crate::{
    answer,
    request::{Context, Response},
};

/// `None` where the path is none of them.
pub(crate) fn answer(ctx: &Context) -> Option<Result<Response, Status>> {
    let path = &*ctx.info.path;
    let (root, check) = path.trim_start_matches('/').split_once('/').unwrap_or((path.trim_start_matches('/'), ""));
    let answer = match root {
        "livez" | "readyz" | "healthz" => health(ctx, root, check.trim_end_matches('/')),
        "version" if matches!(check, "") => Ok(version()),
        "metrics" if check.is_empty() => Ok(metrics(ctx)),
        _ => return None,
    };
    Some(if matches!(ctx.method, Method::GET | Method::HEAD) {
        answer
    } else {
        Err(Status::failure(405, "MethodNotAllowed", "the server does not allow this method on the requested resource"))
    })
}

/// One thing that must hold. `Err` says why it does not.
type Check = (&'static str, fn(&Context) -> Result<(), &'static str>);

const LIVE: &[Check] = &[("ping", |_| Ok(()))];
const READY: &[Check] = &[
    ("ping", |_| Ok(())),
    ("watch-cache", |ctx| if ctx.server.is_fed() { Ok(()) } else { Err("the watch caches lost the store") }),
    ("shutdown", |ctx| if ctx.server.is_stopping() { Err("process is shutting down") } else { Ok(()) }),
];

fn health(ctx: &Context, root: &str, only: &str) -> Result<Response, Status> {
    let checks = if root == "readyz" { READY } else { LIVE };
    if !only.is_empty() && !checks.iter().any(|(name, _)| *name == only) {
        return Err(Status::no_such_path());
    }
    let query = &ctx.info.query;
    let verbose = query.0.iter().any(|(name, _)| name == "verbose");
    let mut text = String::new();
    let mut failed = false;
    for (name, check) in checks {
        if query.all("exclude").any(|it| it == *name) || (!only.is_empty() && *name != only) {
            continue;
        }
        match check(ctx) {
            Ok(()) => writeln!(text, "[+]{name} ok"),
            Err(reason) => {
                failed = true;
                writeln!(text, "[-]{name} failed: {reason}")
            }
        }
        .expect("writing to memory does not fail");
    }
    if failed {
        return Ok(answer::text(StatusCode::INTERNAL_SERVER_ERROR, format!("{text}{root} check failed\n")));
    }
    Ok(answer::text(StatusCode::OK, if verbose { format!("{text}{root} check passed\n") } else { "ok".to_owned() }))
}

fn version() -> Response {
    let platform = format!("linux/{}", if cfg!(target_arch = "aarch64") { "arm64" } else { "amd64" });
    answer::json(
        StatusCode::OK,
        &json!({
            "major": "1",
            "minor": "37",
            "gitVersion": concat!("v1.37.0+corten.", env!("CARGO_PKG_VERSION")),
            "gitCommit": "",
            "gitTreeState": "",
            "buildDate": "",
            "goVersion": "",
            "compiler": "rustc",
            "platform": platform,
        }),
    )
}

fn metrics(ctx: &Context) -> Response {
    let mut text = ctx.server.metrics().text(ctx.server.started().unix_millis() / 1000);
    if let Some(sink) = &ctx.server.config().audit {
        text += &crate::filters::audit::metrics(&**sink);
    }
    answer::with_type(StatusCode::OK, "text/plain; version=0.0.4; charset=utf-8", text)
}
