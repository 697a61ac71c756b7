//! Definitions of custom resources that are deep in every field: compiled, told in documents, and what objects are held to.

use std::time::Duration;

use corten_kinds::custom::has_condition;

use super::*;

const PATIENCE: Duration = Duration::from_secs(60);

/// Each way in which a schema goes down, with the value that goes down with it.
const DESCENTS: [[(&str, &str); 2]; 3] = [
    [(r#"{"type":"array","items":"#, "}"), ("[", "]")],
    [(r#"{"type":"object","properties":{"a":"#, "}}"), (r#"{"a":"#, "}")],
    [(r#"{"type":"object","additionalProperties":"#, "}"), (r#"{"a":"#, "}")],
];

/// As deep as a definition may be, it makes a kind as any other; 300 levels are refused as what is nested in any object is.
#[test]
fn what_a_deep_definition_describes_is_served() {
    const WIDGETS: &str = "/apis/example.com/v1/namespaces/default/widgets";
    let nested =
        |(open, close): (&str, &str), n: usize, inner: &str| format!("{}{inner}{}", open.repeat(n), close.repeat(n));
    on_a_small_stack(STACK_BYTES, async move {
        let server = server::started().await;
        let place = PLACES[2];
        for [schema, value] in DESCENTS {
            let of = |n: usize| place.with(&nested(schema, n, place.innermost));
            for n in [300, DEEPEST / 2] {
                let deep = of(n);
                let refused = send(&server, "POST", DEFINITIONS, JSON, deep.clone()).await;
                is_bounded(&refused, "create", of_text(deep.as_bytes()), of_text(deep.as_bytes()));
            }
            let n = (1..LEVELS_MAX).rev().find(|it| of_text(of(*it).as_bytes()) <= LEVELS_MAX).expect("some fit");
            let made = send(&server, "POST", DEFINITIONS, JSON, of(n)).await;
            assert_eq!(made.code, 201, "{:.300}", made.text);
            let cache = server.caches().iter().find(|it| it.prefix() == place.prefix).expect("definitions are stored");
            let is_established = || has_condition(&cache.get("", place.name)?.parse(), "Established").then_some(());
            tokio::time::timeout(PATIENCE, server.caches().until(is_established)).await.expect("it is established");

            let object = |leaf: &str| {
                let deep = nested(value, n, leaf);
                format!(r#"{{"apiVersion":"example.com/v1","kind":"Widget","metadata":{{"name":"a"}},"deep":{deep}}}"#)
            };
            let wrong = send(&server, "POST", WIDGETS, JSON, object("1")).await;
            assert_eq!(wrong.code, 422, "the schema is held to down to its end: {:.300}", wrong.text);
            let applied = format!("{WIDGETS}/a?fieldManager=me");
            for (method, path, media_type) in [("POST", WIDGETS, JSON), ("PATCH", &*applied, APPLY)] {
                let written = send(&server, method, path, media_type, object(r#""x""#)).await;
                assert!(written.code < 300, "{method}: {} {:.300}", written.code, written.text);
            }
            for path in ["/openapi/v2", "/openapi/v3/apis/example.com/v1", WIDGETS] {
                let read = send(&server, "GET", path, JSON, "").await;
                assert!(read.code == 200 && read.text.contains("Widget"), "{path}: {} {:.300}", read.code, read.text);
            }
            assert_eq!(send(&server, "DELETE", &place.path(), JSON, "").await.code, 200);
            goes(&server, &place).await;
        }
        server.stop().await;
    });
}
