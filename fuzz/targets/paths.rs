//! Paths: however a path is written, what is authorized is what is done. A resource is in a namespace exactly where its kind
//! is, and the same request written plainly means the same.

#![no_main]

use corten_kinds::Kinds;
use corten_routes::{RequestInfo, Route};
use libfuzzer_sys::fuzz_target;

const METHODS: [&str; 8] = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "BREW"];

fuzz_target!(|data: &[u8]| {
    let [method, text @ ..] = data else { return };
    let method = METHODS[usize::from(*method) % METHODS.len()];
    let Ok(text) = std::str::from_utf8(text) else { return };
    let (path, query) = text.split_once('?').map_or((text, None), |(path, query)| (path, Some(query)));
    let kinds = Kinds::default();
    let Ok(info) = RequestInfo::read(&kinds, method, path, query) else { return };
    for name in [&info.namespace, &info.name, &info.plural, &info.subresource] {
        assert!(!name.contains('/') || info.name == *name && info.query.get("fieldSelector").is_some(), "{name}");
    }
    let verb = match info.route {
        Route::Collection(_, verb) | Route::Object(_, verb) => Some(verb),
        Route::Subresource(_, subresource, verb) => {
            assert_eq!(info.subresource, subresource.as_str());
            verb
        }
        Route::NonResource
        | Route::UnknownResource
        | Route::Aggregated { .. }
        | Route::NoSuchPath(_)
        | Route::NoSuchMethod(_) => return,
    };
    let kind = info.kind().expect("a route that does something is a kind's");
    let is_of_method = match method {
        "GET" | "HEAD" => matches!(info.verb, "get" | "list" | "watch"),
        "POST" => info.verb == "create",
        "PUT" => info.verb == "update",
        "PATCH" => info.verb == "patch",
        "DELETE" => matches!(info.verb, "delete" | "deletecollection"),
        _ => verb.is_none(),
    };
    assert!(is_of_method, "{method} is done as {}", info.verb);
    assert_eq!(info.plural, kind.resource.plural);
    let is_of_all = matches!(info.route, Route::Collection(..)) && matches!(info.verb, "list" | "watch");
    match (kind.resource.namespaced, &*info.namespace) {
        (true, "") => assert!(is_of_all, "only whole kinds are without a namespace"),
        (false, namespace) if !namespace.is_empty() => {
            assert_eq!((&*info.plural, &*info.name), ("namespaces", namespace), "a Namespace is in itself, nothing else is");
        }
        _ => {}
    }
    let again = RequestInfo::read(&kinds, method, &info.canonical_path(), query).expect("what was written can be read");
    let words = |it: &RequestInfo| {
        let RequestInfo { verb, group, version, plural, namespace, name, subresource, proxied, .. } = it.clone();
        (verb, group, version, plural, namespace, name, subresource, proxied)
    };
    assert_eq!(words(&again), words(&info), "{path} is {}", info.canonical_path());
    assert_eq!(std::mem::discriminant(&again.route), std::mem::discriminant(&info.route));
});
