//! What can be said without a server. Conversations with servers are among the tests of the API server, whose caches they need.

use std::sync::Arc;

use corten_cacher::watch_cache::feed;
use corten_store::memory::Memory;
use serde_json::json;

use crate::{ClientConfig, Clients, Location, error::refused, reach};

#[test]
fn a_configuration_names_one_server() {
    let service = |path: &str, port| {
        let (namespace, name) = ("ns".to_owned(), "hook".to_owned());
        Ok(Location::Service { namespace, name, path: path.to_owned(), port })
    };
    for (config, expected) in [
        (json!({ "url": "https://a.b/c" }), Ok(Location::Url("https://a.b/c".into()))),
        (json!({ "service": { "namespace": "ns", "name": "hook" } }), service("", 443)),
        (json!({ "service": { "namespace": "ns", "name": "hook", "path": "/x", "port": 8443 } }), service("/x", 8443)),
        (json!({}), Err("webhook configuration must have either service or URL")),
        (json!({ "url": "https://a.b", "caBundle": "%" }), Err("cannot read caBundle: Invalid symbol 37, offset 0.")),
    ] {
        let found = ClientConfig::of_json(&config);
        let found = found.as_ref().map(|it| it.location.clone()).map_err(|it| &*it.0);
        assert_eq!(found, expected, "{config}");
    }
}

#[test]
fn only_who_is_meant_is_asked() {
    for (host, address, allowed) in [
        ("hook.ns.svc", "10.244.0.5:443", true),
        ("hook.ns.svc", "127.0.0.1:443", false),
        ("hook.ns.svc", "169.254.169.254:443", false),
        ("rebound.example.org", "127.0.0.1:443", false),
        ("rebound.example.org", "[::1]:443", false),
        ("metadata.example.org", "169.254.169.254:80", false),
        ("169.254.169.254", "169.254.169.254:80", false),
        ("localhost", "127.0.0.1:443", true),
        ("LocalHost", "[::1]:443", true),
        ("127.0.0.1", "127.0.0.1:443", true),
        ("[::1]", "[::1]:443", true),
        ("0.0.0.0", "0.0.0.0:443", false),
    ] {
        let found = reach::check(host, address.parse().expect("an address"));
        assert_eq!(found.is_ok(), allowed, "{host} {address}: {found:?}");
    }
}

#[test]
fn a_refusal_reads_as_clients_of_kubernetes_put_it() {
    let long = "x".repeat(10_000);
    let cut = format!("an error on the server ({:?}) has prevented the request from succeeding", "x".repeat(512));
    for (code, body, expected) in [
        (404, "no", "the server could not find the requested resource"),
        (302, "", "the server responded with the status code 302 but did not return more details"),
        (500, "boom\n", r#"an error on the server ("boom") has prevented the request from succeeding"#),
        (500, long.as_str(), cut.as_str()),
        (403, r#"{"kind":"Status","apiVersion":"v1","status":"Failure","message":"not you"}"#, "not you"),
    ] {
        let status = refused(code, body.as_bytes());
        assert_eq!((status.code, &*status.message), (code, expected));
    }
}

#[tokio::test]
async fn a_configuration_that_nobody_holds_is_forgotten() {
    let (caches, _) = feed::fill(&Memory::new()).await.expect("an empty store");
    let clients = Clients::new(Arc::new(caches));
    let config =
        |it: &str| ClientConfig::of_json(&json!({ "url": format!("https://{it}/") })).expect("a configuration");
    let (one, other) =
        (clients.client(&config("a")).expect("a client"), clients.client(&config("b")).expect("a client"));
    let again = clients.client(&config("a")).expect("a client");
    assert!(Arc::ptr_eq(&one, &again) && clients.n_known() == 2);
    drop(one);
    assert_eq!(clients.n_known(), 2, "somebody has it still");
    drop((again, other));
    assert_eq!(clients.n_known(), 0);
}
