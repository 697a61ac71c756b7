//! Does a browser make this request for a page of another site?
//!
//! A browser shows its user's client certificate to whatever page makes it connect, so a certificate does not say that its
//! holder wants what is asked. Most requests a page may only make where the server has agreed before, which ours never
//! does; what is left are the opening of a WebSocket, and a POST of what a form could send.

use http::{HeaderMap, Method, Uri, header};

use crate::upgrade::{Protocol, protocol};

/// The content types of forms. A body without a type counts as well.
const OF_FORMS: [&str; 3] = ["application/x-www-form-urlencoded", "multipart/form-data", "text/plain"];

/// Is the request one that a page of another site can have made without asking?
pub fn is_cross_site(method: &Method, uri: &Uri, headers: &HeaderMap) -> bool {
    let needs_no_leave = match *method {
        Method::GET => protocol(headers).is_ok_and(|it| it == Protocol::WebSocket),
        Method::POST => is_of_a_form(headers),
        _ => false,
    };
    needs_no_leave && is_from_elsewhere(uri, headers)
}

fn is_of_a_form(headers: &HeaderMap) -> bool {
    let types = headers.get_all(header::CONTENT_TYPE).iter().map(|it| it.to_str().unwrap_or_default());
    let mut types = types.map(|it| it.split([';', ',']).next().unwrap_or_default().trim().to_ascii_lowercase());
    types.all(|it| it.is_empty() || OF_FORMS.contains(&&*it))
}

/// What the browser says of itself counts; an old one says only where its page is from. Who says neither is no browser.
fn is_from_elsewhere(uri: &Uri, headers: &HeaderMap) -> bool {
    let sites: Vec<&[u8]> = headers.get_all("sec-fetch-site").iter().map(http::HeaderValue::as_bytes).collect();
    if !sites.is_empty() {
        return !sites.iter().all(|it| matches!(*it, b"same-origin" | b"none"));
    }
    // The address that is asked for counts before the header, where it names a host.
    let host = uri.authority().map(http::uri::Authority::as_str);
    let host = host.or_else(|| headers.get(header::HOST)?.to_str().ok()).map(bare);
    let mut origins = headers.get_all(header::ORIGIN).iter();
    origins.any(|it| {
        let origin = it.to_str().ok().and_then(|it| it.split_once("://")).map(|(_, host)| bare(host));
        // `null`, for one, is nobody's.
        origin.is_none() || origin != host
    })
}

/// Without what is the same however it is written. Libraries that send an origin of their own often name another scheme.
fn bare(host: &str) -> String {
    let host = host.to_ascii_lowercase();
    let plain = host.strip_suffix(":443").or_else(|| host.strip_suffix(":80"));
    plain.unwrap_or(&host).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    const UPGRADE: [(&str, &str); 3] = [("connection", "Upgrade"), ("upgrade", "websocket"), ("host", "a:6443")];

    fn asked(method: &str, uri: &str, headers: &[(&str, &str)]) -> bool {
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            let name: http::HeaderName = name.parse().expect("a name");
            map.append(name, value.parse().expect("a value"));
        }
        is_cross_site(&method.parse().expect("a method"), &uri.parse().expect("an address"), &map)
    }

    #[test]
    fn a_websocket_is_judged_by_where_it_is_from() {
        for (headers, expected) in [
            (&[][..], false),
            (&[("origin", "https://a:6443")], false),
            (&[("origin", "http://A:6443")], false),
            (&[("origin", "https://a")], true),
            (&[("origin", "https://evil.example")], true),
            (&[("origin", "https://a:6443.evil.example")], true),
            (&[("origin", "null")], true),
            (&[("origin", "file://")], true),
            (&[("origin", "")], true),
            (&[("origin", "https://a:6443"), ("origin", "https://evil.example")], true),
            (&[("sec-fetch-site", "cross-site")], true),
            (&[("sec-fetch-site", "same-site")], true),
            (&[("sec-fetch-site", "none")], false),
            // As through `kubectl proxy`.
            (&[("sec-fetch-site", "same-origin"), ("origin", "http://localhost:8001")], false),
            (&[("sec-fetch-site", "cross-site"), ("origin", "https://a:6443")], true),
            (&[("sec-fetch-site", "same-origin"), ("sec-fetch-site", "cross-site")], true),
        ] {
            assert_eq!(asked("GET", "/x", &[&UPGRADE, headers].concat()), expected, "{headers:?}");
        }
    }

    #[test]
    fn a_host_is_the_same_with_its_usual_port_and_counts_less_than_the_address() {
        let upgrade = [("connection", "keep-alive, upgrade"), ("upgrade", "WebSocket"), ("origin", "https://a")];
        for (uri, host, expected) in [
            ("/x", "a", false),
            ("/x", "a:443", false),
            ("/x", "b", true),
            ("https://a/x", "b", false),
            ("https://b/x", "a", true),
        ] {
            assert_eq!(asked("GET", uri, &[&upgrade[..], &[("host", host)]].concat()), expected, "{uri} {host}");
        }
        assert!(asked("GET", "/x", &upgrade), "who names no host is of no site");
    }

    #[test]
    fn only_what_a_page_may_send_without_asking_is_judged() {
        const EVIL: (&str, &str) = ("origin", "https://evil.example");
        for (method, header, expected) in [
            ("GET", ("accept", "*/*"), false),
            ("POST", ("accept", "*/*"), true),
            ("POST", ("content-type", ""), true),
            ("POST", ("content-type", "text/plain"), true),
            ("POST", ("content-type", "Text/Plain; charset=utf-8"), true),
            ("POST", ("content-type", "multipart/form-data; boundary=x"), true),
            ("POST", ("content-type", "application/x-www-form-urlencoded"), true),
            ("POST", ("content-type", "text/plain, application/json"), true),
            ("POST", ("content-type", "application/json"), false),
            ("PUT", ("content-type", "text/plain"), false),
            ("DELETE", ("accept", "*/*"), false),
        ] {
            assert_eq!(asked(method, "/x", &[EVIL, header]), expected, "{method} {header:?}");
        }
    }
}
