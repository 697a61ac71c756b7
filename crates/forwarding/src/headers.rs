//! Which headers go through.

use std::net::IpAddr;

use http::{HeaderMap, HeaderName, HeaderValue, header, uri::Authority};

pub const FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");
pub const FORWARDED_URI: HeaderName = HeaderName::from_static("x-forwarded-uri");

/// Headers of one connection, not of what goes over it.
const HOPS: [&str; 9] = [
    "connection",
    "proxy-connection",
    "keep-alive",
    "proxy-authenticate",
    "proxy-authorization",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
];

/// As in `UpgradeAwareHandler`: pages of a cluster must not speak for each other.
const CROSS_ORIGIN: [&str; 4] = [
    "access-control-allow-credentials",
    "access-control-allow-headers",
    "access-control-allow-methods",
    "access-control-allow-origin",
];

pub fn wants_upgrade(headers: &HeaderMap) -> bool {
    let named = headers.get_all(header::CONNECTION).iter().filter_map(|it| it.to_str().ok());
    let named = named.flat_map(|it| it.split(',')).any(|it| it.trim().eq_ignore_ascii_case("upgrade"));
    named && headers.contains_key(header::UPGRADE)
}

/// The client's headers for the other side. Its credentials were taken out by authentication.
pub fn onward(headers: &HeaderMap, authority: Option<&Authority>, client: Option<IpAddr>, upgrade: bool) -> HeaderMap {
    let mut onward = headers.clone();
    let upgraded = onward.get(header::UPGRADE).cloned().filter(|_| upgrade);
    strip_hops(&mut onward);
    if let Some(to) = upgraded {
        onward.insert(header::CONNECTION, HeaderValue::from_static("Upgrade"));
        onward.insert(header::UPGRADE, to);
    }
    // We have let the client go on.
    onward.remove(header::EXPECT);
    // HTTP/2 says in the address whom it means, and counts before what else is said.
    if let Some(Ok(authority)) = authority.map(|it| HeaderValue::from_str(it.as_str())) {
        onward.insert(header::HOST, authority);
    }
    // Links in a page can only be read where it is not packed.
    let accepts = onward.get(header::ACCEPT).and_then(|it| it.to_str().ok()).unwrap_or_default();
    if accepts.contains("text/html") {
        onward.remove(header::ACCEPT_ENCODING);
    }
    if let Some(client) = client {
        let before =
            onward.get_all(FORWARDED_FOR).iter().filter_map(|it| it.to_str().ok()).collect::<Vec<_>>().join(", ");
        let all = if before.is_empty() { client.to_string() } else { format!("{before}, {client}") };
        if let Ok(all) = HeaderValue::from_str(&all) {
            onward.insert(FORWARDED_FOR, all);
        }
    }
    onward
}

/// Whose page it is for was judged here. A kubelet would judge it by our certificate.
pub fn forget_site(headers: &mut HeaderMap) {
    headers.remove(header::ORIGIN);
    headers.remove("sec-fetch-site");
}

/// An answer's headers for the client.
pub fn homeward(headers: &mut HeaderMap) {
    // The chunks were read: what else was said of the body's length is wrong.
    if headers.contains_key(header::TRANSFER_ENCODING) {
        headers.remove(header::CONTENT_LENGTH);
    }
    strip_hops(headers);
    for name in CROSS_ORIGIN {
        headers.remove(name);
    }
}

/// Those of the connection, and those that its `Connection` header names.
fn strip_hops(headers: &mut HeaderMap) {
    let named: Vec<HeaderName> = headers
        .get_all(header::CONNECTION)
        .iter()
        .filter_map(|it| it.to_str().ok())
        .flat_map(|it| it.split(','))
        .filter_map(|it| it.trim().parse().ok())
        .collect();
    for name in named {
        headers.remove(name);
    }
    for name in HOPS {
        headers.remove(name);
    }
}

pub fn is_plain_html(headers: &HeaderMap) -> bool {
    let kind = headers.get(header::CONTENT_TYPE).and_then(|it| it.to_str().ok()).unwrap_or_default();
    let kind = kind.split(';').next().unwrap_or_default().trim();
    kind == "text/html" && !headers.contains_key(header::CONTENT_ENCODING)
}
