//! What the kubelet's API serves: a row for each path.
//!
//! **To add an endpoint, add a row.** `access` are the subresources of `nodes`, narrowest first, one of which the caller
//! must be allowed (with the verb of the method) before `answer` is called; `answer` gets the request, what stood in the
//! path for each `{}`, and the server with its hands. A last `{*}` takes the rest of the path, slashes included. A path that
//! has a row and comes with another method is answered 405, one without a row 404, and both only to who may use `proxy`.

use futures_util::future::BoxFuture;
use http::{Method, Request, Response, StatusCode};
use hyper::body::Incoming;

use super::{Body, KubeletServer, Refused, configz, containers, logs, metrics, plain, run, streams, text};

pub(super) struct Route {
    pub(super) path: &'static str,
    pub(super) methods: &'static [Method],
    pub(super) access: &'static [&'static str],
    pub(super) answer: fn(Call) -> Answer,
}

pub(super) type Answer = BoxFuture<'static, Result<Response<Body>, Refused>>;

/// A request whose caller may make it.
pub(super) struct Call {
    pub(super) server: KubeletServer,
    pub(super) request: Request<Incoming>,
    /// What stood in the path for each `{}`, decoded.
    pub(super) names: Vec<String>,
    /// Where a connection that leaves HTTP is put.
    pub(super) tunnel: streams::Slot,
}

impl Call {
    pub(super) fn query(&self) -> &str {
        self.request.uri().query().unwrap_or_default()
    }

    /// What stood for the `{}`s: as many as the row's path has.
    pub(super) fn name(&self, nth: usize) -> &str {
        self.names.get(nth).map(String::as_str).unwrap_or_default()
    }

    /// The uid, where the path has one more name than it must have.
    pub(super) fn uid(&self, least: usize) -> &str {
        if self.names.len() > least { self.name(2) } else { "" }
    }

    /// The last of the names: the pod's uid may stand before the container.
    pub(super) fn container(&self) -> &str {
        self.names.last().map(String::as_str).unwrap_or_default()
    }
}

const GET: &[Method] = &[Method::GET];
const POST: &[Method] = &[Method::POST];
const GET_POST: &[Method] = &[Method::GET, Method::POST];
const PROXY: &[&str] = &["proxy"];
const METRICS: &[&str] = &["metrics"];

pub(super) const ROUTES: &[Route] = &[
    Route { path: "/healthz", methods: GET, access: &["healthz", "proxy"], answer: |_| Box::pin(ok()) },
    Route { path: "/healthz/ping", methods: GET, access: &["healthz", "proxy"], answer: |_| Box::pin(ok()) },
    Route { path: "/healthz/log", methods: GET, access: &["healthz", "proxy"], answer: |_| Box::pin(ok()) },
    Route { path: "/healthz/syncloop", methods: GET, access: &["healthz", "proxy"], answer: |_| Box::pin(ok()) },
    Route { path: "/pods", methods: GET, access: &["pods", "proxy"], answer: |it| Box::pin(containers::pods(it)) },
    Route {
        path: "/runningpods",
        methods: GET,
        access: &["pods", "proxy"],
        answer: |it| Box::pin(containers::running_pods(it)),
    },
    Route { path: "/configz", methods: GET, access: &["configz", "proxy"], answer: |it| Box::pin(configz::answer(it)) },
    Route { path: "/containerLogs/{}/{}/{}", methods: GET, access: PROXY, answer: |it| Box::pin(logs::answer(it)) },
    Route { path: "/stats/summary", methods: GET, access: &["stats"], answer: |it| Box::pin(metrics::summary(it)) },
    Route { path: "/metrics", methods: GET, access: METRICS, answer: |it| Box::pin(metrics::own(it)) },
    Route { path: "/metrics/cadvisor", methods: GET, access: METRICS, answer: |it| Box::pin(metrics::cadvisor(it)) },
    Route { path: "/metrics/probes", methods: GET, access: METRICS, answer: |it| Box::pin(metrics::probes(it)) },
    Route { path: "/metrics/resource", methods: GET, access: METRICS, answer: |it| Box::pin(metrics::resource(it)) },
    Route { path: "/logs", methods: GET, access: &["log"], answer: |_| Box::pin(node_logs()) },
    Route { path: "/logs/{*}", methods: GET, access: &["log"], answer: |_| Box::pin(node_logs()) },
    Route { path: "/exec/{}/{}/{}", methods: GET_POST, access: PROXY, answer: |it| Box::pin(streams::exec(it)) },
    Route { path: "/exec/{}/{}/{}/{}", methods: GET_POST, access: PROXY, answer: |it| Box::pin(streams::exec(it)) },
    Route { path: "/attach/{}/{}/{}", methods: GET_POST, access: PROXY, answer: |it| Box::pin(streams::attach(it)) },
    Route { path: "/attach/{}/{}/{}/{}", methods: GET_POST, access: PROXY, answer: |it| Box::pin(streams::attach(it)) },
    Route {
        path: "/portForward/{}/{}",
        methods: GET_POST,
        access: PROXY,
        answer: |it| Box::pin(streams::port_forward(it)),
    },
    Route {
        path: "/portForward/{}/{}/{}",
        methods: GET_POST,
        access: PROXY,
        answer: |it| Box::pin(streams::port_forward(it)),
    },
    Route { path: "/run/{}/{}/{}", methods: POST, access: PROXY, answer: |it| Box::pin(run::answer(it)) },
    Route { path: "/run/{}/{}/{}/{}", methods: POST, access: PROXY, answer: |it| Box::pin(run::answer(it)) },
];

/// What a path leads to, and what stood in it for each `{}`.
pub(super) struct Found {
    /// `None` where there is nothing, or not for this method.
    pub(super) route: Option<&'static Route>,
    pub(super) names: Vec<String>,
    pub(super) access: &'static [&'static str],
    /// Another method would do.
    pub(super) is_known: bool,
}

pub(super) fn find(method: &Method, path: &str) -> Found {
    let mut is_known = false;
    for route in ROUTES {
        let Some(names) = matched(route.path, path) else { continue };
        if route.methods.contains(method) {
            return Found { route: Some(route), names, access: route.access, is_known: true };
        }
        is_known = true;
    }
    Found { route: None, names: Vec::new(), access: of_nothing(path), is_known }
}

/// As upstream: what lies beneath a path that has subresources of its own is guarded by them, whether it is there or not.
fn of_nothing(path: &str) -> &'static [&'static str] {
    match path.split('/').nth(1).unwrap_or_default() {
        "stats" => &["stats"],
        "metrics" => &["metrics"],
        "logs" => &["log"],
        "healthz" => &["healthz", "proxy"],
        "pods" | "runningpods" => &["pods", "proxy"],
        "configz" => &["configz", "proxy"],
        _ => PROXY,
    }
}

/// A slash at the end changes nothing.
fn matched(pattern: &str, path: &str) -> Option<Vec<String>> {
    let mut names = Vec::new();
    let path = path.strip_prefix('/')?;
    let mut rest = Some(path.strip_suffix('/').unwrap_or(path));
    for wanted in pattern.split('/').skip(1) {
        let here = rest?;
        if wanted == "{*}" {
            names.push(decoded(here)?);
            return Some(names);
        }
        let (segment, after) = match here.split_once('/') {
            Some((segment, after)) => (segment, Some(after)),
            None => (here, None),
        };
        match wanted {
            "{}" if segment.is_empty() => return None,
            "{}" => names.push(decoded(segment)?),
            _ if wanted != segment => return None,
            _ => {}
        }
        rest = after;
    }
    rest.is_none().then_some(names)
}

fn decoded(segment: &str) -> Option<String> {
    percent_encoding::percent_decode_str(segment).decode_utf8().ok().map(Into::into)
}

async fn ok() -> Result<Response<Body>, Refused> {
    let mut response = Response::new(text("ok"));
    plain(&mut response);
    Ok(response)
}

/// The node's own logs are not for the network: as upstream's kubelet with `enableSystemLogHandler: false`.
async fn node_logs() -> Result<Response<Body>, Refused> {
    Err(Refused::new(StatusCode::METHOD_NOT_ALLOWED, "logs endpoint is disabled."))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_lead_to_rows() {
        for (method, path, expected) in [
            ("GET", "/healthz", "/healthz [] healthz proxy"),
            ("GET", "/pods/", "/pods [] pods proxy"),
            ("POST", "/pods", "405 [] pods proxy"),
            ("GET", "/containerLogs/ns/web/a", "/containerLogs/{}/{}/{} [ns web a] proxy"),
            ("GET", "/containerLogs/ns/web", "404 [] proxy"),
            ("GET", "/containerLogs/ns//a", "404 [] proxy"),
            ("POST", "/exec/ns/web/uid/a%20b", "/exec/{}/{}/{}/{} [ns web uid a b] proxy"),
            ("POST", "/exec/ns/web/uid/a/b", "404 [] proxy"),
            ("DELETE", "/exec/ns/web/a", "405 [] proxy"),
            ("GET", "/logs/journal/x.log", "/logs/{*} [journal/x.log] log"),
            ("GET", "/logs/", "/logs [] log"),
            ("GET", "/stats/none", "404 [] stats"),
            ("GET", "/metrics/none", "404 [] metrics"),
            ("GET", "/%ff", "404 [] proxy"),
            ("GET", "/metricsfoo", "404 [] proxy"),
            ("GET", "", "404 [] proxy"),
        ] {
            let found = find(&method.parse().expect("a method"), path);
            let route = found.route.map_or(if found.is_known { "405" } else { "404" }, |it| it.path);
            let told = format!("{route} [{}] {}", found.names.join(" "), found.access.join(" "));
            assert_eq!(told, expected, "{method} {path}");
        }
    }
}
