//! Bodies of custom resources that say too little, too much, or what no integer holds.

use corten_access::Identity;
use corten_cacher::body::whole;
use http::{HeaderMap, Request};
use serde_json::{Value, json};

use super::{define, read, server, shaped};
use crate::Server;

const CARS: &str = "/apis/example.com/v1/namespaces/default/cars";
const MAPS: &str = "/api/v1/namespaces/default/configmaps";
const YAML: &str = "application/yaml";
const JSON: &str = "application/json";

async fn send(server: &Server, method: &str, path: &str, media_type: &str, body: &str) -> (u16, HeaderMap, Value) {
    let who = Identity::new("kubernetes-admin", &["system:masters", "system:authenticated"]);
    let request = Request::builder().method(method).uri(path).header("content-type", media_type);
    let response = server.answer(request.body(whole(body.to_owned())).expect("a request"), None, Some(who)).await;
    let (head, body) = response.into_parts();
    (head.status.as_u16(), head.headers, read(body).await)
}

async fn with_cars() -> Server {
    let server = server::started().await;
    let properties = json!({ "size": { "type": "integer" }, "weight": { "type": "number" } });
    define(&server, &shaped(&properties)).await;
    server
}

/// Of a built-in kind the path says it; a custom resource must say it itself.
#[tokio::test]
async fn a_custom_resource_says_what_it_is() {
    let server = with_cars().await;
    let nameless = r#"{"metadata":{"name":"a"}}"#;
    let quoted = r#"Object 'Kind' is missing in '{"metadata":{"name":"a"}}'"#;
    let unrecognized = format!(
        r#"the object provided is unrecognized (must be of type Car): {quoted} ({{"metadata":{{"name":"a"}}}})"#
    );
    let unhandled = format!(r#"Car in version "v1" cannot be handled as a Car: {quoted}"#);
    let other_version =
        "the API version in the data () does not match the expected API version (example.com/v1)".to_owned();
    let other_kind = r#"Bus.example.com "a" is invalid: kind: Invalid value: "Bus": must be Car"#.to_owned();
    let bus = r#"{"apiVersion":"example.com/v1","kind":"Bus","metadata":{"name":"a"}}"#;
    let ignoring = format!("{CARS}?fieldValidation=Ignore");
    let one = format!("{CARS}/a");
    for (method, path, body, code, message) in [
        ("POST", CARS, nameless, 400, &unrecognized),
        ("POST", &ignoring, nameless, 400, &unhandled),
        ("PUT", &one, nameless, 400, &unrecognized),
        ("POST", CARS, r#"{"kind":"Car","metadata":{"name":"a"}}"#, 400, &other_version),
        ("POST", CARS, bus, 422, &other_kind),
    ] {
        let (found, _, status) = send(&server, method, path, JSON, body).await;
        assert_eq!((found, &status["message"]), (code, &json!(message)), "{method} {path} {body}");
    }
    let of_yaml = send(&server, "POST", CARS, YAML, "metadata: {name: a}").await;
    let message = of_yaml.2["message"].as_str().unwrap_or_default().to_owned();
    assert!(of_yaml.0 == 400 && message.contains("Object 'Kind' is missing in 'metadata: {name: a}'"), "{message}");
    // Nothing that is sent makes the refusal as long as itself.
    let long = format!(r#"{{"metadata":{{"name":"{}"}}}}"#, "x".repeat(1_000_000));
    let (code, _, status) = send(&server, "POST", CARS, JSON, &long).await;
    assert!(code == 400 && status.to_string().len() < 10_000, "{code} {}", status.to_string().len());

    let car = r#"{"apiVersion":"example.com/v1","kind":"Car","metadata":{"name":"a"}}"#;
    assert_eq!(send(&server, "POST", CARS, JSON, car).await.0, 201);
    let (code, _, status) = send(&server, "PATCH", &one, "application/merge-patch+json", r#"{"kind":null}"#).await;
    let message = status["message"].as_str().unwrap_or_default();
    assert!(
        code == 422 && message.contains("patch: Invalid value") && message.contains("Object 'Kind' is missing"),
        "{message}"
    );
    assert_eq!(send(&server, "POST", MAPS, JSON, nameless).await.0, 201, "a built-in kind is known by its path");
    server.stop().await;
}

/// What no int64 holds is a float to upstream's reader, and no integer.
#[tokio::test]
async fn integers_are_those_of_64_bits() {
    let server = with_cars().await;
    let not_an_integer = r#"size in body must be of type integer: "number""#;
    for (field, number, code) in [
        ("size", "9223372036854775807", 201),
        ("size", "9223372036854775808", 422),
        ("size", "-9223372036854775809", 422),
        ("size", "123456789012345678901234567890", 422),
        ("weight", "9223372036854775808", 201),
        ("weight", "123456789012345678901234567890", 201),
    ] {
        for media_type in [JSON, YAML] {
            let body = format!(
                r#"{{"apiVersion":"example.com/v1","kind":"Car","metadata":{{"generateName":"a"}},"{field}":{number}}}"#
            );
            let (found, _, answer) = send(&server, "POST", CARS, media_type, &body).await;
            assert_eq!(found, code, "{field} {number} {media_type}: {answer}");
            let message = answer["message"].as_str().unwrap_or(not_an_integer);
            assert!(message.contains(not_an_integer), "{message}");
        }
    }
    server.stop().await;
}

/// The last one counts; who asks for strictness is refused, and who asks for warnings is warned of each.
#[tokio::test]
async fn keys_that_yaml_gives_twice() {
    let server = with_cars().await;
    let map = "apiVersion: v1\nkind: ConfigMap\nmetadata: {generateName: m}\ndata:\n  a: x\n  a: z\n  b: x\n  b: z\n";
    let car = "apiVersion: example.com/v1\nkind: Car\nmetadata: {generateName: c}\nsize: 1\nsize: 2\n";
    for (path, body, lines, field, last) in [
        (
            MAPS,
            map,
            vec![r#"line 6: key "a" already set in map"#, r#"line 8: key "b" already set in map"#],
            "/data/a",
            json!("z"),
        ),
        (CARS, car, vec![r#"line 5: key "size" already set in map"#], "/size", json!(2)),
    ] {
        let (code, headers, made) = send(&server, "POST", &format!("{path}?fieldValidation=Ignore"), YAML, body).await;
        assert_eq!((code, made.pointer(field)), (201, Some(&last)), "{made}");
        assert!(headers.get("warning").is_none());
        let (code, headers, made) = send(&server, "POST", path, YAML, body).await;
        assert_eq!((code, made.pointer(field)), (201, Some(&last)), "{made}");
        let warned: Vec<_> =
            headers.get_all("warning").iter().map(|it| it.to_str().expect("text").replace('\\', "")).collect();
        assert!(
            warned.len() == lines.len() && warned.iter().zip(&lines).all(|(it, line)| it.contains(line)),
            "{warned:?}"
        );
        let (code, _, status) = send(&server, "POST", &format!("{path}?fieldValidation=Strict"), YAML, body).await;
        let message = status["message"].as_str().unwrap_or_default();
        let expected = format!("strict decoding error: yaml: unmarshal errors:\n  {}", lines.join("\n  "));
        assert!(code == 400 && message.ends_with(&expected), "{code} {message}");
    }
    server.stop().await;
}
