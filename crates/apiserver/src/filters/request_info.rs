//! Reads what a path and method mean, as upstream's request-info resolver does.

use corten_kinds::by_path;
use corten_meta::{FieldSelector, Status};
use http::Method;
use percent_encoding::percent_decode_str;

use crate::{
    answer,
    chain::Rest,
    request::{Context, Query, RequestInfo, Response},
};

pub(crate) async fn filter(ctx: &mut Context, rest: Rest) -> Response {
    match resolve(&ctx.method, ctx.uri.path(), ctx.uri.query()) {
        Some(info) => {
            ctx.info = info;
            rest.run(ctx).await
        }
        None => answer::status(&Status::bad_request("the path is not valid UTF-8 or holds an encoded slash")),
    }
}

pub(crate) fn resolve(method: &Method, path: &str, query: Option<&str>) -> Option<RequestInfo> {
    let mut info = RequestInfo {
        path: path.to_owned(),
        verb: method_verb(method),
        query: Query::parse(query),
        ..RequestInfo::default()
    };
    let (own, proxied) = proxied(path);
    info.proxied = proxied.map(str::to_owned);
    let segments: Vec<String> = own
        .split('/')
        .filter(|it| !it.is_empty())
        .map(|it| percent_decode_str(it).decode_utf8().map(Into::into))
        .collect::<Result<_, _>>()
        .ok()?;
    // A slash within a name would reach into another namespace's keys.
    if segments.iter().any(|it| it.contains('/')) {
        return None;
    }
    let segments: Vec<&str> = segments.iter().map(String::as_str).collect();
    let rest = match &*segments {
        ["api", version, rest @ ..] if !rest.is_empty() => {
            info.version = (*version).to_owned();
            rest
        }
        ["apis", group, version, rest @ ..] if !rest.is_empty() => {
            info.group = (*group).to_owned();
            info.version = (*version).to_owned();
            rest
        }
        _ => return Some(info),
    };
    info.is_resource = true;
    let legacy_watch = rest[0] == "watch" && rest.len() > 1;
    locate(&mut info, if legacy_watch { &rest[1..] } else { rest });
    info.verb = resource_verb(method, &info, legacy_watch);
    info.kind = by_path(&info.group, &info.version, &info.plural);
    if info.name.is_empty() && matches!(info.verb, "list" | "watch") {
        // As upstream: a list of one name is authorized as that name.
        let selector = FieldSelector::parse(info.query.get("fieldSelector").unwrap_or_default()).unwrap_or_default();
        info.name = selector.exact("metadata.name").unwrap_or_default().to_owned();
    }
    Some(info)
}

/// Parts a path at `/proxy`: what comes behind it is not ours to read.
fn proxied(path: &str) -> (&str, Option<&str>) {
    let names: Vec<(usize, &str)> = path
        .split('/')
        .scan(0, |at, it| {
            let begin = *at;
            *at += it.len() + 1;
            Some((begin, it))
        })
        .filter(|it| !it.1.is_empty())
        .collect();
    let last = match names.iter().map(|it| it.1).collect::<Vec<_>>()[..] {
        ["api", "v1", "nodes", _, "proxy", ..] => names[4],
        ["api", "v1", "namespaces", _, "pods" | "services", _, "proxy", ..] => names[6],
        _ => return (path, None),
    };
    let (own, rest) = path.split_at(last.0 + last.1.len());
    (own, Some(rest))
}

/// `namespaces/NS/pods/NAME/SUB...`, `nodes/NAME/SUB`, `namespaces/NAME/status`.
fn locate(info: &mut RequestInfo, parts: &[&str]) {
    if let ["namespaces", namespace, ..] = parts {
        info.namespace = (*namespace).to_owned();
    }
    let parts = match parts {
        // The Namespace itself and its subresources, not resources in it.
        ["namespaces"] | ["namespaces", _] | ["namespaces", _, "status" | "finalize"] => parts,
        ["namespaces", _, rest @ ..] => rest,
        _ => parts,
    };
    let mut parts = parts.iter().map(|it| (*it).to_owned());
    info.plural = parts.next().unwrap_or_default();
    info.name = parts.next().unwrap_or_default();
    info.subresource = parts.collect::<Vec<_>>().join("/");
}

fn method_verb(method: &Method) -> &'static str {
    match *method {
        Method::GET => "get",
        Method::HEAD => "head",
        Method::POST => "post",
        Method::PUT => "put",
        Method::PATCH => "patch",
        Method::DELETE => "delete",
        Method::OPTIONS => "options",
        _ => "",
    }
}

fn resource_verb(method: &Method, info: &RequestInfo, legacy_watch: bool) -> &'static str {
    match *method {
        Method::POST => "create",
        Method::PUT => "update",
        Method::PATCH => "patch",
        Method::DELETE if info.name.is_empty() => "deletecollection",
        Method::DELETE => "delete",
        Method::GET | Method::HEAD if legacy_watch => "watch",
        Method::GET | Method::HEAD if info.name.is_empty() && info.query.flag("watch") => "watch",
        Method::GET | Method::HEAD if info.name.is_empty() => "list",
        Method::GET | Method::HEAD => "get",
        _ => "",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_proxied_is_left_as_it_is() {
        for (path, expected) in [
            ("/api/v1/nodes/n1/proxy", Some("")),
            ("/api/v1/nodes/n1/proxy/", Some("/")),
            ("/api/v1/namespaces/a/pods/http:web:80/proxy/x//y%2Fz/proxy/", Some("/x//y%2Fz/proxy/")),
            ("/api/v1/namespaces/a/services/s/proxy/%ff", Some("/%ff")),
            ("/api/v1/namespaces/a/configmaps/c/proxy/x", None),
            ("/api/v1/namespaces/proxy/pods/proxy", None),
            ("/apis/v1/nodes/n1/proxy/x", None),
        ] {
            let info = resolve(&Method::GET, path, None).expect("a valid path");
            assert_eq!(info.proxied.as_deref(), expected, "{path}");
            assert_eq!(info.subresource == "proxy", expected.is_some(), "{path} {}", info.subresource);
        }
    }

    #[test]
    fn reads_paths() {
        for (method, uri, expected) in [
            ("GET", "/healthz", "get - - - -"),
            ("GET", "/apis/apps/v1", "get - - - -"),
            ("GET", "/api/v1/pods", "list pods - - -"),
            ("GET", "/api/v1/pods?watch=true", "watch pods - - -"),
            ("GET", "/api/v1/watch/namespaces/a/pods/b", "watch pods a b -"),
            ("GET", "/api/v1/namespaces/a/pods/b", "get pods a b -"),
            ("GET", "/api/v1/namespaces/a/pods?fieldSelector=metadata.name%3Db", "list pods a b -"),
            ("POST", "/api/v1/namespaces/a/pods", "create pods a - -"),
            ("POST", "/api/v1/namespaces/a/pods/b/binding", "create pods a b binding"),
            ("GET", "/api/v1/namespaces/a", "get namespaces a a -"),
            ("PUT", "/api/v1/namespaces/a/finalize", "update namespaces a a finalize"),
            ("DELETE", "/apis/apps/v1/namespaces/a/deployments", "deletecollection deployments a - -"),
            ("PATCH", "/apis/apps/v1/namespaces/a/deployments/b/scale", "patch deployments a b scale"),
            (
                "GET",
                "/apis/rbac.authorization.k8s.io/v1/clusterroles/system%3Anode",
                "get clusterroles - system:node -",
            ),
        ] {
            let uri: http::Uri = uri.parse().expect("a valid address");
            let info = resolve(&method.parse().expect("a method"), uri.path(), uri.query()).expect("a valid path");
            let or_dash = |it: &str| if it.is_empty() { "-".to_owned() } else { it.to_owned() };
            let found =
                [info.verb, &info.plural, &info.namespace, &info.name, &info.subresource].map(or_dash).join(" ");
            assert_eq!(found, expected, "{method} {uri}");
        }
    }
}
