//! The endpoints of the system itself: `/livez`, `/readyz`, `/healthz`, `/version`, `/metrics`.

use std::fmt::Write;

use corten_access::Unanswering;
use corten_cacher::{answer, body::Response, watch_cache::ResourceCache};
use corten_meta::Status;
use corten_metrics::{TEXT_FORMAT, scraped::gauge};
use corten_state_metrics::{KINDS, POD_RESOURCES};
use http::{Method, StatusCode};

use crate::{context::Context, metrics, state_metrics, version};

/// `None` where the path is none of them.
pub(crate) fn answer(ctx: &Context) -> Option<Result<Response, Status>> {
    let path = ctx.info.path.strip_prefix('/')?;
    let (root, below) = path.split_once('/').unwrap_or((path, ""));
    let answer = match (root, below) {
        ("livez", only) => health(ctx, root, LIVE, only),
        ("readyz", only) => health(ctx, root, READY, only),
        ("healthz", only) => health(ctx, root, HEALTHY, only),
        ("version", "") => Ok(version::answer()),
        ("metrics", "") => Ok(metrics::answer(ctx)),
        ("metrics", "slis") => Ok(slis(ctx)),
        ("metrics", "state") => return Some(of_reads(ctx, || state_metrics::answer(ctx, KINDS))),
        ("metrics", "resources") => return Some(of_reads(ctx, || state_metrics::answer(ctx, POD_RESOURCES))),
        _ => return None,
    };
    Some(of_reads(ctx, || answer))
}

/// 405 for other methods.
fn of_reads(ctx: &Context, answer: impl FnOnce() -> Result<Response, Status>) -> Result<Response, Status> {
    if matches!(ctx.method, Method::GET | Method::HEAD) {
        answer()
    } else {
        Err(Status::failure(405, "MethodNotAllowed", "the server does not allow this method on the requested resource"))
    }
}

/// One thing that must hold. `Err` says why it does not.
type Check = (&'static str, fn(&Context) -> Result<(), String>);

const PING: Check = ("ping", |_| Ok(()));
/// Reads are answered from what the store sends.
const STORE: Check =
    ("etcd", |ctx| if ctx.state.is_fed() { Ok(()) } else { Err("the watch caches lost the store".to_owned()) });
/// The last write that was tried reached the store, and so would the next.
const STORE_WRITES: Check = ("etcd-readiness", |ctx| {
    let store = &ctx.state.config().store;
    store.writable().map_err(|it| it.to_string())?;
    if store.is_shared() {
        return Ok(());
    }
    ctx.state.metrics().store.refusal().map_or(Ok(()), Err)
});
/// The caches hold everything, from before the first request on. What cannot be read they do not hold. Objects of definitions
/// are their authors' concern: see [`CUSTOM_CACHES`]. Over a store that others write to, they hold what others have written: where they did
/// not when a request came last, each request about objects is refused.
const CACHES: Check = ("informer-sync", |ctx| {
    STORE.1(ctx)?;
    ctx.state.lag().map_or(Ok(()), Err)?;
    unreadable(ctx, false)
});
/// Asked for by name only: objects of definitions that cannot be read.
const CUSTOM_CACHES: Check = ("custom-resources", |ctx| unreadable(ctx, true));

fn unreadable(ctx: &Context, is_custom: bool) -> Result<(), String> {
    let caches = ctx.state.caches();
    let unreadable: Vec<String> = caches
        .iter()
        .filter(|it| it.kind().is_custom() == is_custom)
        .filter_map(|it| unreadable_of(ctx, &it))
        .collect();
    if unreadable.is_empty() { Ok(()) } else { Err(unreadable.join("; ")) }
}

fn unreadable_of(ctx: &Context, cache: &ResourceCache) -> Option<String> {
    let snapshot = cache.snapshot();
    let (n, reason) = snapshot.unreadables()?;
    // The watch cache of kube-apiserver never becomes ready with one of them: so what is to be done is said.
    let todo = "give the server the key it was written with, or the program that knows its form";
    let since = ctx.state.now().before(snapshot.unreadable_since().unwrap_or_default()).whole_seconds();
    let resource = cache.kind().resource.qualified();
    Some(format!("{n} of {resource} cannot be read since {since}: {reason}; {todo}"))
}

/// The KMS plugins answer; kube-apiserver's check of the same name. There only where `--encryption-provider-config` is given.
const KMS: Check = ("kms-providers", |ctx| {
    ctx.state.config().encryption.as_ref().map_or(Ok(()), |it| it.encryption().plugins_ready())
});
/// Asked for by name only: it says what will be refused before it is.
const STORE_ROOM: Check = ("store-room", |ctx| {
    let concern = ctx.state.config().store.disk_use().and_then(|it| it.concern());
    concern.map_or(Ok(()), |it| Err(format!("the store: {it}")))
});
/// Asked for by name only: webhooks of others that decide about tokens and rights and do not answer, and issuers
/// of tokens that do not say their keys.
const ACCESS_WEBHOOKS: Check = ("access-webhooks", |ctx| {
    let now = ctx.state.now();
    let line = |it: Unanswering| {
        let (since, asked) = (now.before(it.since).whole_seconds(), now.before(it.asked).whole_seconds());
        format!("{} has not answered since {since}, last asked at {asked}: {}", it.who, it.reason)
    };
    let lines: Vec<String> = ctx.state.access().unanswering().into_iter().map(line).collect();
    if lines.is_empty() { Ok(()) } else { Err(lines.join("\n")) }
});
/// Asked for by name only: configuration files that are read again and are not used as they are now.
const CONFIGURATION_FILES: Check = ("configuration-files", |ctx| {
    let now = ctx.state.now();
    let encryption = ctx.state.config().encryption.as_ref().and_then(|it| it.encryption().refused());
    let refused = encryption.into_iter().chain(ctx.state.access().refused_files());
    let lost = ctx.state.config().encryption.iter().flat_map(|it| it.encryption().lost_keys());
    let lines: Vec<String> = refused
        .map(|it| {
            let since = now.before(it.since).whole_seconds();
            // A reason may have several lines, and each file is told of in one.
            let reason = it.reason.split_whitespace().collect::<Vec<_>>().join(" ");
            format!("{} stays as it was: {} has been refused since {since}: {reason}", it.what, it.path.display())
        })
        .chain(lost)
        .collect();
    if lines.is_empty() { Ok(()) } else { Err(lines.join("\n")) }
});
/// They make nothing unready.
const BY_NAME: &[Check] = &[STORE_ROOM, ACCESS_WEBHOOKS, CONFIGURATION_FILES, CUSTOM_CACHES];
const SHUTDOWN: Check =
    ("shutdown", |ctx| if ctx.state.is_leaving() { Err("process is shutting down".to_owned()) } else { Ok(()) });

const LIVE: &[Check] = &[PING, STORE, KMS];
const HEALTHY: &[Check] = &[PING, STORE, KMS];
const READY: &[Check] = &[PING, STORE, STORE_WRITES, CACHES, KMS, SHUTDOWN];

/// Those that are about something here.
fn relevant<'a>(ctx: &Context, checks: &'a [Check]) -> impl Iterator<Item = &'a Check> {
    let has_plugins = ctx.state.config().encryption.as_ref().is_some_and(|it| it.encryption().has_plugins());
    checks.iter().filter(move |it| has_plugins || it.0 != KMS.0)
}

fn health(ctx: &Context, root: &str, checks: &[Check], only: &str) -> Result<Response, Status> {
    if !only.is_empty() {
        let mut all = relevant(ctx, checks).chain(BY_NAME.iter().filter(|_| root == "readyz"));
        let (_, check) = all.find(|it| it.0 == only).ok_or_else(Status::no_such_path)?;
        return Ok(match made(ctx, root, only, *check) {
            Ok(()) => answer::text(StatusCode::OK, "ok"),
            Err(reason) => {
                answer::text(StatusCode::INTERNAL_SERVER_ERROR, format!("internal server error: {reason}\n"))
            }
        });
    }
    let query = &ctx.info.query;
    let (mut text, mut failed) = (String::new(), false);
    for (name, check) in relevant(ctx, checks) {
        let line = if query.all("exclude").any(|it| it == *name) {
            format!("[+]{name} excluded: ok")
        } else if let Err(reason) = made(ctx, root, name, *check) {
            failed = true;
            format!("[-]{name} failed: {reason}")
        } else {
            format!("[+]{name} ok")
        };
        writeln!(text, "{line}").expect("writing to memory does not fail");
    }
    let unknown: Vec<String> = query
        .all("exclude")
        .filter(|it| relevant(ctx, checks).all(|(name, _)| name != it))
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

/// Makes a check, and counts it.
fn made(ctx: &Context, root: &str, name: &str, check: fn(&Context) -> Result<(), String>) -> Result<(), String> {
    let result = check(ctx);
    ctx.state.metrics().count_health_check(name, root, result.is_ok());
    result
}

/// Every check, as a number.
fn slis(ctx: &Context) -> Response {
    let roots = [("healthz", HEALTHY), ("livez", LIVE), ("readyz", READY)];
    let checks = roots.iter().flat_map(|(root, checks)| relevant(ctx, checks).map(|it| ([it.0, *root], it.1)));
    let found: Vec<_> = checks.map(|(labels, check)| (labels, f64::from(u8::from(check(ctx).is_ok())))).collect();
    let families = gauge(
        "kubernetes_healthcheck",
        "This metric records the result of a single healthcheck.",
        &["name", "type"],
        found.iter().map(|(labels, holds)| (&labels[..], *holds)),
    );
    answer::with_type(StatusCode::OK, TEXT_FORMAT, ctx.state.metrics().text_of_slis(families))
}
