//! What a server among several may answer: a read that names no version holds all that anybody had written when it came, and what one
//! server has shown it does not take back.

use bytes::Bytes;
use corten_store::Revision;
use http::{Method, Request};
use serde::Deserialize;

#[derive(Deserialize)]
struct OnlyVersion {
    #[serde(default)]
    kind: String,
    metadata: Meta,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Meta {
    #[serde(default)]
    resource_version: String,
}

/// Is it asked for a list as of now? It may be asked for an object, too: only its answer says.
pub(crate) fn is_consistent_list(request: &Request<Bytes>) -> bool {
    let query = request.uri().query().unwrap_or_default();
    let is_given = |name: &str| query.split('&').any(|it| it.strip_prefix(name).is_some_and(|it| it.starts_with('=')));
    *request.method() == Method::GET
        && request.uri().path() != "/progress"
        && !["watch", "resourceVersion", "continue"].into_iter().any(is_given)
}

/// `newest` had been committed when the list was asked for.
pub(crate) fn check_list(what: &str, newest: Revision, body: &[u8]) -> Result<(), String> {
    let Ok(list) = serde_json::from_slice::<OnlyVersion>(body) else { return Ok(()) };
    let Ok(version) = list.metadata.resource_version.parse::<Revision>() else { return Ok(()) };
    if list.kind.ends_with("List") && version < newest {
        return Err(format!(
            "{what} was answered as at {version}, and {newest} had been committed before it was asked"
        ));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_as_of_now_unless_they_name_a_version() {
        for (method, uri, is_one) in [
            ("GET", "/api/v1/pods", true),
            ("GET", "/api/v1/pods?limit=1&fieldSelector=spec.nodeName%3Dn1", true),
            ("GET", "/api/v1/pods?resourceVersion=0", false),
            ("GET", "/api/v1/pods?limit=1&continue=abc", false),
            ("GET", "/api/v1/pods?watch=true&resourceVersion=7", false),
            ("POST", "/api/v1/namespaces/a/pods", false),
        ] {
            let request = Request::builder().method(method).uri(uri).body(Bytes::new()).expect("a request");
            assert_eq!(is_consistent_list(&request), is_one, "{method} {uri}");
        }
    }

    #[test]
    fn a_list_that_is_behind_is_found() {
        let list =
            |version: u64| format!(r#"{{"kind":"PodList","metadata":{{"resourceVersion":"{version}"}},"items":[]}}"#);
        assert!(check_list("/api/v1/pods", 7, list(7).as_bytes()).is_ok());
        let behind = check_list("/api/v1/pods", 7, list(6).as_bytes()).expect_err("it is behind");
        assert!(behind.contains("was answered as at 6, and 7 had been committed"), "{behind}");
        let pod = br#"{"kind":"Pod","metadata":{"resourceVersion":"6"}}"#;
        assert!(check_list("/api/v1/namespaces/a/pods/b", 7, pod).is_ok(), "it has not changed since");
    }
}
