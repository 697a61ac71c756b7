//! The endpoints of the system itself: `/livez`, `/readyz`, `/healthz`, `/version`, `/metrics`.

use std::fmt::Write;

use corten_cacher::{answer, body::Response};
use corten_meta::Status;
use http::{Method, StatusCode};
use serde_json::json;

use crate::{context::Context, metrics};

/// `None` where the path is none of them.
pub(crate) fn answer(ctx: &Context) -> Option<Result<Response, Status>> {
    let path = ctx.info.path.strip_prefix('/')?;
    let (root, below) = path.split_once('/').unwrap_or((path, ""));
    let answer = match (root, below) {
        ("livez", only) => health(ctx, root, LIVE, only),
        ("readyz", only) => health(ctx, root, READY, only),
        ("healthz", only) => health(ctx, root, HEALTHY, only),
        ("version", "") => Ok(version()),
        ("metrics", "") => Ok(metrics(ctx)),
        ("metrics", "slis") => Ok(slis(ctx)),
        _ => return None,
    };
    Some(if matches!(ctx.method, Method::GET | Method::HEAD) {
        answer
    } else {
        Err(Status::failure(405, "MethodNotAllowed", "the server does not allow this method on the requested resource"))
    })
}

/// One thing that must hold. `Err` says why it does not.
type Check = (&'static str, fn(&Context) -> Result<(), String>);

const PING: Check = ("ping", |_| Ok(()));
/// Reads are answered from what the store sends.
const STORE: Check =
    ("etcd", |ctx| if ctx.state.is_fed() { Ok(()) } else { Err("the watch caches lost the store".to_owned()) });
/// The last write that was tried reached the store, and so would the next.
const STORE_WRITES: Check = ("etcd-readiness", |ctx| {
    ctx.state.config().store.writable().map_err(|it| it.to_string())?;
    ctx.state.metrics().store.refusal().map_or(Ok(()), Err)
});
/// The caches hold everything, from before the first request on.
const CACHES: Check = ("informer-sync", STORE.1);
/// Asked for by name only: it says what will be refused before it is.
const STORE_ROOM: Check = ("store-room", |ctx| {
    let concern = ctx.state.config().store.disk_use().and_then(|it| it.concern());
    concern.map_or(Ok(()), |it| Err(format!("the store: {it}")))
});
const SHUTDOWN: Check =
    ("shutdown", |ctx| if ctx.state.is_stopping() { Err("process is shutting down".to_owned()) } else { Ok(()) });

const LIVE: &[Check] = &[PING, STORE];
const HEALTHY: &[Check] = &[PING, STORE];
const READY: &[Check] = &[PING, STORE, STORE_WRITES, CACHES, SHUTDOWN];

fn health(ctx: &Context, root: &str, checks: &[Check], only: &str) -> Result<Response, Status> {
    if !only.is_empty() {
        let mut all = checks.iter().chain((root == "readyz").then_some(&STORE_ROOM));
        let (_, check) = all.find(|it| it.0 == only).ok_or_else(Status::no_such_path)?;
        return Ok(match check(ctx) {
            Ok(()) => answer::text(StatusCode::OK, "ok"),
            Err(reason) => {
                answer::text(StatusCode::INTERNAL_SERVER_ERROR, format!("internal server error: {reason}\n"))
            }
        });
    }
    let query = &ctx.info.query;
    let (mut text, mut failed) = (String::new(), false);
    for (name, check) in checks {
        let line = if query.all("exclude").any(|it| it == *name) {
            format!("[+]{name} excluded: ok")
        } else if let Err(reason) = check(ctx) {
            failed = true;
            format!("[-]{name} failed: {reason}")
        } else {
            format!("[+]{name} ok")
        };
        writeln!(text, "{line}").expect("writing to memory does not fail");
    }
    let unknown: Vec<String> = query
        .all("exclude")
        .filter(|it| checks.iter().all(|(name, _)| name != it))
        .map(|it| format!("{it:?}"))
        .collect();
    if !unknown.is_empty() {
        let unknown = unknown.join(",");
        writeln!(text, "warn: some health checks cannot be excluded: no matches for {unknown}")
            .expect("writing to memory does not fail");
    }
    if failed {
        return Ok(answer::text(StatusCode::INTERNAL_SERVER_ERROR, format!("{text}{root} check failed\n")));
    }
    let verbose = query.0.iter().any(|(name, _)| name == "verbose");
    Ok(answer::text(StatusCode::OK, if verbose { format!("{text}{root} check passed\n") } else { "ok".to_owned() }))
}

const VERSION: &str = concat!("v1.37.0+corten.", env!("CARGO_PKG_VERSION"));

fn version() -> Response {
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

const TEXT_FORMAT: &str = "text/plain; version=0.0.4; charset=utf-8";

fn metrics(ctx: &Context) -> Response {
    let mut text = ctx.state.metrics().text();
    ctx.state.fairness().write_metrics(&mut text).expect("writing to memory does not fail");
    ctx.state.cluster().webhooks.write_metrics(&mut text).expect("writing to memory does not fail");
    ctx.state.cluster().policies.write_metrics(&mut text).expect("writing to memory does not fail");
    metrics::objects(&mut text, ctx.state.caches()).expect("writing to memory does not fail");
    if let Some(disk) = ctx.state.config().store.disk_use() {
        metrics::disk(&mut text, &disk).expect("writing to memory does not fail");
    }
    metrics::queues(&mut text, &ctx.state.config().journals.queues()).expect("writing to memory does not fail");
    let issuers = ctx.state.access().authenticator().issuers();
    metrics::reloads(&mut text, issuers.reloads()).expect("writing to memory does not fail");
    metrics::process(&mut text, ctx.state.started().unix_millis() / 1000, VERSION)
        .expect("writing to memory does not fail");
    if let Some(sink) = &ctx.state.config().audit {
        text += &corten_audit::metrics(&**sink);
    }
    answer::with_type(StatusCode::OK, TEXT_FORMAT, text)
}

/// Every check, as a number.
fn slis(ctx: &Context) -> Response {
    let mut text = String::from(
        "# HELP kubernetes_healthcheck This metric records the result of a single healthcheck.\n# TYPE kubernetes_healthcheck gauge\n",
    );
    for (root, checks) in [("healthz", HEALTHY), ("livez", LIVE), ("readyz", READY)] {
        for (name, check) in checks {
            let holds = u8::from(check(ctx).is_ok());
            writeln!(text, "kubernetes_healthcheck{{name=\"{name}\",type=\"{root}\"}} {holds}")
                .expect("writing to memory does not fail");
        }
    }
    answer::with_type(StatusCode::OK, TEXT_FORMAT, text)
}
