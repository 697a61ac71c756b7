use corten_meta::Status;
use corten_routes::RequestInfo;
use http::Uri;
use serde_json::json;

use super::{options, refused, target_pod};
use corten_kinds::Subresource;
use corten_stream::Refusal;

fn info(query: &str) -> RequestInfo {
    let uri: Uri = format!("/api/v1/namespaces/default/pods/web/log?{query}").parse().expect("an address");
    RequestInfo::read(&corten_kinds::Kinds::default(), "GET", uri.path(), uri.query()).expect("a valid path")
}

fn log(query: &str) -> Result<String, Status> {
    let info = info(query);
    corten_routes::log_query(&info.query, &info.name)
}

#[test]
fn a_container_is_found_or_asked_for() {
    let one = json!({ "containers": [{ "name": "a" }] });
    let two = json!({ "containers": [{ "name": "a" }, { "name": "b" }] });
    let many = json!({ "containers": [{ "name": "a" }, { "name": "b" }], "initContainers": [{ "name": "i" }], "ephemeralContainers": [{ "name": "e" }] });
    for (spec, asked, expected) in [
        (&one, None, Ok("a")),
        (&two, Some("b"), Ok("b")),
        (&many, Some("i"), Ok("i")),
        (&many, Some("e"), Ok("e")),
        (&two, None, Err("a container name must be specified for pod web, choose one of: [a b]")),
        (
            &many,
            None,
            Err(
                "a container name must be specified for pod web, choose one of: [a b] or one of the init containers: [i] or one of the ephemeral containers: [e]",
            ),
        ),
        (&one, Some("x"), Err("container x is not valid for pod web")),
    ] {
        let target = target_pod::of_spec("web", spec.clone());
        let found = target.container(asked).map_err(|it| (it.code, it.message));
        assert_eq!(found, expected.map_err(|it| (400, it.to_owned())));
    }
}

#[test]
fn log_options_are_checked_and_passed_on() {
    for (query, expected) in [
        ("", Ok("")),
        ("follow=true&tailLines=5&timestamps=1", Ok("?follow=true&timestamps=true&tailLines=5")),
        ("container=a&previous=true&limitBytes=10", Ok("?previous=true&limitBytes=10")),
        ("sinceTime=2026-11-20T10:00:00Z", Ok("?sinceTime=2026-11-20T10%3A00%3A00Z")),
        (
            "tailLines=-1",
            Err((
                422,
                r#"PodLogOptions "web" is invalid: tailLines: Invalid value: -1: must be greater than or equal to 0"#,
            )),
        ),
        (
            "sinceSeconds=0",
            Err((422, r#"PodLogOptions "web" is invalid: sinceSeconds: Invalid value: 0: must be greater than 0"#)),
        ),
        ("insecureSkipTLSVerifyBackend=true", Ok("")),
        ("stream=All&tailLines=1", Ok("?tailLines=1")),
        ("stream=Stderr&timestamps=true", Ok("?timestamps=true&stream=Stderr")),
        (
            "stream=stderr",
            Err((
                422,
                r#"PodLogOptions "web" is invalid: stream: Unsupported value: "stderr": supported values: "All", "Stderr", "Stdout""#,
            )),
        ),
        (
            "stream=Stdout&tailLines=1",
            Err((
                422,
                r#"PodLogOptions "web" is invalid: []: Forbidden: `tailLines` and specific `stream` are mutually exclusive for now"#,
            )),
        ),
    ] {
        let found = log(query).map_err(|it| (it.code, it.message));
        assert_eq!(found, expected.map(str::to_owned).map_err(|(code, it)| (code, it.to_owned())), "{query}");
    }
    assert_eq!(log("sinceSeconds=5&sinceTime=2026-11-20T10:00:00Z").expect_err("both").code, 422);
    for name in ["tailLines", "limitBytes", "sinceSeconds"] {
        let most = format!("{name}={}", i64::MAX);
        assert_eq!(log(&most).expect("a number"), format!("?{most}"));
        for (text, what) in [("x", "invalid syntax"), ("9223372036854775808", "value out of range")] {
            let error = log(&format!("{name}={text}")).expect_err("no number");
            assert_eq!((error.code, error.message), (400, format!("strconv.ParseInt: parsing {text:?}: {what}")));
        }
    }
}

#[test]
fn tunnels_are_asked_for_in_the_kubelets_words() {
    let pod = target_pod::of_spec("web", json!({ "containers": [{ "name": "a" }] }));
    for (subresource, query, expected) in [
        (
            Subresource::Exec,
            "command=sh&command=-c&command=echo%20%26&stdin=true&stdout=true&tty=true&stderr=false",
            "/exec/default/web/a?input=1&output=1&tty=1&command=sh&command=-c&command=echo+%26",
        ),
        (Subresource::Attach, "container=a&stdout=true&stderr=true", "/attach/default/web/a?output=1&error=1"),
        (Subresource::PortForward, "ports=80", "/portForward/default/web?port=80"),
        (Subresource::PortForward, "", "/portForward/default/web"),
    ] {
        assert_eq!(options::tunnel(&info(query), subresource, &pod).expect("a valid request"), expected);
    }
}

#[test]
fn refusals_let_clients_fall_back() {
    for (refusal, code) in [
        (Refusal::UnknownSubprotocols("v5.channel.k8s.io".into()), 403),
        (Refusal::NotAnUpgrade, 400),
        (Refusal::NoConnection, 400),
    ] {
        assert_eq!(refused(refusal).code, code);
    }
}
