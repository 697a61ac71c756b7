//! What the kubelet's API serves: a row for each path.
//!
//! **To add an endpoint, add a row.** `access` are the subresources of `nodes`, narrowest first, one of which the caller
//! must be allowed (with the row's verb, or that of the method) before `answer` is called; `answer` gets the request, what
//! stood in the path for each `{}`, and the server with its hands. A last `{*}` takes the rest of the path, slashes included.
//! A path that has a row and comes with another method is answered 405, one without a row 404, and both only to who may use
//! `proxy`.

use corten_meta::field::path_segment;
use futures_util::future::BoxFuture;
use http::{Method, Request, Response, StatusCode};
use hyper::body::Incoming;

use super::{
    Body, KubeletServer, PlainTextError, access::verb_of, checkpoint, configz, containers, logs, metrics, plain, run,
    streams, text, volumes,
};

pub(super) struct Route {
    pub(super) path: &'static str,
    pub(super) methods: &'static [Method],
    pub(super) access: &'static [&'static str],
    /// Empty: that of the method.
    pub(super) verb: &'static str,
    pub(super) answer: fn(Call) -> Answer,
}

pub(super) type Answer = BoxFuture<'static, Result<Response<Body>, PlainTextError>>;

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
const CHECKPOINT: &[&str] = &["checkpoint"];

/// The row of what is only read.
const fn read(path: &'static str, access: &'static [&'static str], answer: fn(Call) -> Answer) -> Route {
    Route { path, methods: GET, access, verb: "", answer }
}

/// The row of what does something in a container, whatever the method: a WebSocket begins with a GET.
const fn act(path: &'static str, methods: &'static [Method], answer: fn(Call) -> Answer) -> Route {
    Route { path, methods, access: PROXY, verb: "create", answer }
}

pub(super) const ROUTES: &[Route] = &[
    read("/healthz", &["healthz", "proxy"], |_| Box::pin(ok())),
    read("/healthz/ping", &["healthz", "proxy"], |_| Box::pin(ok())),
    read("/healthz/log", &["healthz", "proxy"], |_| Box::pin(ok())),
    read("/healthz/syncloop", &["healthz", "proxy"], |_| Box::pin(ok())),
    read("/pods", &["pods", "proxy"], |it| Box::pin(containers::pods(it))),
    read("/runningpods", &["pods", "proxy"], |it| Box::pin(containers::running_pods(it))),
    read("/configz", &["configz", "proxy"], |it| Box::pin(configz::answer(it))),
    read("/containerLogs/{}/{}/{}", PROXY, |it| Box::pin(logs::answer(it))),
    read("/journals", PROXY, |it| Box::pin(containers::waiting(it))),
    read("/journals/{}/{}", PROXY, |it| Box::pin(containers::journal(it))),
    read("/stats/summary", &["stats"], |it| Box::pin(metrics::summary(it))),
    read("/metrics", METRICS, |it| Box::pin(metrics::own(it))),
    read("/metrics/cadvisor", METRICS, |it| Box::pin(metrics::cadvisor(it))),
    read("/metrics/probes", METRICS, |it| Box::pin(metrics::probes(it))),
    read("/metrics/resource", METRICS, |it| Box::pin(metrics::resource(it))),
    read("/logs", &["log"], |_| Box::pin(node_logs())),
    read("/logs/{*}", &["log"], |_| Box::pin(node_logs())),
    act("/exec/{}/{}/{}", GET_POST, |it| Box::pin(streams::exec(it))),
    act("/exec/{}/{}/{}/{}", GET_POST, |it| Box::pin(streams::exec(it))),
    act("/attach/{}/{}/{}", GET_POST, |it| Box::pin(streams::attach(it))),
    act("/attach/{}/{}/{}/{}", GET_POST, |it| Box::pin(streams::attach(it))),
    act("/portForward/{}/{}", GET_POST, |it| Box::pin(streams::port_forward(it))),
    act("/portForward/{}/{}/{}", GET_POST, |it| Box::pin(streams::port_forward(it))),
    Route {
        path: "/checkpoint/{}/{}/{}",
        methods: POST,
        access: CHECKPOINT,
        verb: "",
        answer: |it| Box::pin(checkpoint::answer(it)),
    },
    act("/run/{}/{}/{}", POST, |it| Box::pin(run::answer(it))),
    act("/run/{}/{}/{}/{}", POST, |it| Box::pin(run::answer(it))),
    act(corten_volumes::channel::PATH, POST, |it| Box::pin(volumes::answer(it))),
    act(corten_volumes::channel::DRIVERS_PATH, POST, |it| Box::pin(volumes::answer_for_drivers(it))),
];

/// What a path leads to, and what stood in it for each `{}`.
pub(super) struct RouteMatch {
    /// `None` where there is nothing, or not for this method.
    pub(super) route: Option<&'static Route>,
    pub(super) names: Vec<String>,
    pub(super) access: &'static [&'static str],
    pub(super) verb: &'static str,
    /// Another method would do.
    pub(super) is_known: bool,
}

pub(super) fn find(method: &Method, path: &str) -> RouteMatch {
    let verb = verb_of(method);
    let mut is_known = false;
    for route in ROUTES {
        let Some(names) = matched(route.path, path) else { continue };
        if route.methods.contains(method) {
            let verb = if route.verb.is_empty() { verb } else { route.verb };
            return RouteMatch { route: Some(route), names, access: route.access, verb, is_known: true };
        }
        is_known = true;
    }
    RouteMatch { route: None, names: Vec::new(), access: of_nothing(path), verb, is_known }
}

/// As in the kubelet's `GetRequestAttributes`: what lies beneath a path that has subresources of its own is guarded by
/// them, whether it is there or not.
fn of_nothing(path: &str) -> &'static [&'static str] {
    match path.split('/').nth(1).unwrap_or_default() {
        "stats" => &["stats"],
        "metrics" => &["metrics"],
        "logs" => &["log"],
        "checkpoint" => CHECKPOINT,
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
            "{}" => names.push(decoded(segment).filter(|it| is_name(it))?),
            _ if wanted != segment => return None,
            _ => {}
        }
        rest = after;
    }
    rest.is_none().then_some(names)
}

/// What can be the name of an object: nothing that leads elsewhere when it is put into a path or a file's name.
fn is_name(text: &str) -> bool {
    !text.is_empty() && path_segment(text).is_empty() && !text.chars().any(char::is_control)
}

fn decoded(segment: &str) -> Option<String> {
    percent_encoding::percent_decode_str(segment).decode_utf8().ok().map(Into::into)
}

async fn ok() -> Result<Response<Body>, PlainTextError> {
    let mut response = Response::new(text("ok"));
    plain(&mut response);
    Ok(response)
}

/// The node's own logs are not for the network: as if a kubelet had `enableSystemLogHandler: false`.
async fn node_logs() -> Result<Response<Body>, PlainTextError> {
    Err(PlainTextError::new(StatusCode::METHOD_NOT_ALLOWED, "logs endpoint is disabled."))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_lead_to_rows() {
        for (method, path, expected) in [
            ("GET", "/healthz", "/healthz [] get healthz proxy"),
            ("GET", "/pods/", "/pods [] get pods proxy"),
            ("POST", "/pods", "405 [] create pods proxy"),
            ("GET", "/containerLogs/ns/web/a", "/containerLogs/{}/{}/{} [ns web a] get proxy"),
            ("GET", "/containerLogs/ns/web", "404 [] get proxy"),
            ("GET", "/containerLogs/ns//a", "404 [] get proxy"),
            ("POST", "/exec/ns/web/uid/a%20b", "/exec/{}/{}/{}/{} [ns web uid a b] create proxy"),
            ("GET", "/exec/ns/web/a", "/exec/{}/{}/{} [ns web a] create proxy"),
            ("POST", "/exec/ns/web/uid/a/b", "404 [] create proxy"),
            ("DELETE", "/exec/ns/web/a", "405 [] delete proxy"),
            ("HEAD", "/pods", "405 []  pods proxy"),
            ("GET", "/logs/journal/x.log", "/logs/{*} [journal/x.log] get log"),
            ("GET", "/logs/", "/logs [] get log"),
            ("POST", "/checkpoint/ns/web/a", "/checkpoint/{}/{}/{} [ns web a] create checkpoint"),
            ("GET", "/checkpoint/ns/web/a", "405 [] get checkpoint"),
            ("POST", "/checkpoint/ns/web", "404 [] create checkpoint"),
            ("GET", "/stats/none", "404 [] get stats"),
            ("GET", "/metrics/none", "404 [] get metrics"),
            ("GET", "/metrics/../exec/ns/web/a", "404 [] get metrics"),
            ("GET", "/%ff", "404 [] get proxy"),
            ("GET", "/metricsfoo", "404 [] get proxy"),
            ("GET", "", "404 [] get proxy"),
            ("GET", "*", "404 [] get proxy"),
        ] {
            let found = find(&method.parse().expect("a method"), path);
            let route = found.route.map_or(if found.is_known { "405" } else { "404" }, |it| it.path);
            let told = format!("{route} [{}] {} {}", found.names.join(" "), found.verb, found.access.join(" "));
            assert_eq!(told, expected, "{method} {path}");
        }
    }

    fn encoded(text: &str) -> String {
        text.bytes().map(|it| format!("%{it:02x}")).collect()
    }

    /// Ways of writing a path of these segments, of which `is_name` says whether they are names; and whether it means the
    /// same.
    fn spellings(segments: &[String], is_name: &[bool]) -> Vec<(String, bool)> {
        let path = format!("/{}", segments.join("/"));
        let mut all = vec![
            (path.clone(), true),
            (format!("{path}/"), true),
            (format!("{path}//"), false),
            (format!("/{path}"), false),
            (format!("{path}/%2e%2e"), false),
            (format!("{path};x"), false),
            (path[1..].to_owned(), false),
        ];
        for (at, segment) in segments.iter().enumerate() {
            let with = |other: &str| {
                let mut segments = segments.to_vec();
                segments[at] = other.to_owned();
                format!("/{}", segments.join("/"))
            };
            all.push((with(&encoded(segment)), is_name[at]));
            for other in ["..", "%2e%2e", "%2E", ".", "a%2fb", "a%25b", "%00", "%0a", "%ff", ""] {
                all.push((with(other), false));
            }
            for step in ["x/../", "./", "%2e/", "/", "%2f"] {
                all.push((with(&format!("{step}{segment}")), false));
            }
            for change in [segment.to_uppercase(), format!("{segment}%20"), format!("{segment}%3fx=y")] {
                all.push((with(&change), false));
            }
        }
        all
    }

    /// A row's path with the names in it.
    fn filled(pattern: &str, names: &[String]) -> String {
        let mut names = names.iter();
        let segments =
            pattern.split('/').map(|it| if it.starts_with('{') { names.next().expect("a name") } else { it });
        segments.collect::<Vec<_>>().join("/")
    }

    #[test]
    fn every_spelling_of_a_path_leads_to_its_row_or_to_none() {
        for route in ROUTES {
            let pattern: Vec<&str> = route.path.split('/').skip(1).collect();
            let is_name: Vec<bool> = pattern.iter().map(|it| it.starts_with('{')).collect();
            let name = |(at, it): (usize, &&str)| if it.starts_with('{') { format!("n{at}") } else { (*it).to_owned() };
            let segments: Vec<String> = pattern.iter().enumerate().map(name).collect();
            let names: Vec<&String> = segments.iter().zip(&is_name).filter(|it| *it.1).map(|it| it.0).collect();
            for (path, is_same) in spellings(&segments, &is_name) {
                let found = find(&route.methods[0], &path);
                let is_this = found.route.is_some_and(|it| it.path == route.path);
                assert_eq!(is_this && found.names.iter().eq(names.iter().copied()), is_same, "{path}");
                let Some(row) = found.route else { continue };
                // What may be done is what is done, whatever the spelling.
                let verb = if row.verb.is_empty() { verb_of(&route.methods[0]) } else { row.verb };
                assert_eq!((found.access, found.verb), (row.access, verb), "{path}");
                // And it is what is written there: no step, no slash, no query is hidden in a name.
                let written = decoded(path.strip_suffix('/').unwrap_or(&path)).expect("text");
                assert_eq!(filled(row.path, &found.names), written, "{path}");
                assert!(row.path.ends_with("{*}") || found.names.iter().all(|it| is_name_of_one(it)), "{path}");
            }
        }
    }

    fn is_name_of_one(name: &str) -> bool {
        !name.is_empty() && !matches!(name, "." | "..") && !name.contains(['/', '%', '\0', '\n'])
    }
}
