//! Who asks through a front proxy, which proves itself by a certificate and says in headers for whom it asks
//! (`requestHeaderAuthRequestHandler`).
//!
//! The headers are believed from holders of certificates of the front proxy's authority alone, and only under an allowed name;
//! [`crate::credential::forget_secrets`] removes them from every request. Such a certificate is nobody's identity by itself.

use std::collections::BTreeMap;

use corten_pki::{Authority, FRONT_PROXY_CLIENT};
use http::{HeaderMap, HeaderName, HeaderValue};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};

use crate::identity::{ANONYMOUS, AUTHENTICATED, Identity, Peer, UNAUTHENTICATED};

/// The common names that a front proxy's certificate may have.
pub const ALLOWED_NAMES: [&str; 1] = [FRONT_PROXY_CLIENT];
pub const USER: &str = "X-Remote-User";
pub const UID: &str = "X-Remote-Uid";
pub const GROUP: &str = "X-Remote-Group";
pub const EXTRA_PREFIX: &str = "X-Remote-Extra-";

/// What a header's name can hold (RFC 9110, `tchar`), less the percent sign, which begins what it cannot.
const ESCAPED: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'!')
    .remove(b'#')
    .remove(b'$')
    .remove(b'&')
    .remove(b'\'')
    .remove(b'*')
    .remove(b'+')
    .remove(b'-')
    .remove(b'.')
    .remove(b'^')
    .remove(b'_')
    .remove(b'`')
    .remove(b'|')
    .remove(b'~');

/// Does the peer show a certificate of a front proxy?
pub(crate) fn is_front_proxy(peer: Option<&Peer>, pki: &Authority) -> bool {
    let chain = peer.map_or(&[][..], |it| &it.certificates);
    if chain.is_empty() {
        return false;
    }
    match pki.front_proxy().verify_client(chain) {
        Ok(proven) => ALLOWED_NAMES.contains(&&*proven.user),
        Err(error) => {
            tracing::debug!(%error, "a client certificate is no front proxy's either");
            false
        }
    }
}

/// Whom a front proxy asks for. `None` where the peer is none, or names nobody.
pub(crate) fn spoken_for(peer: Option<&Peer>, pki: &Authority, headers: &HeaderMap) -> Option<Identity> {
    if !headers.contains_key(USER) || !is_front_proxy(peer, pki) {
        return None;
    }
    let identity = named(headers)?;
    let is_settled = |it: &String| it == AUTHENTICATED || it == UNAUTHENTICATED;
    let is_known = identity.user == ANONYMOUS || identity.groups.iter().any(is_settled);
    Some(if is_known { identity } else { identity.authenticated() })
}

fn named(headers: &HeaderMap) -> Option<Identity> {
    let all = |name: &str| -> Vec<String> {
        let texts = headers.get_all(name).iter().filter_map(|it| std::str::from_utf8(it.as_bytes()).ok());
        texts.map(str::to_owned).collect()
    };
    let first = |name: &str| all(name).into_iter().map(|it| it.trim().to_owned()).find(|it| !it.is_empty());
    let prefix = EXTRA_PREFIX.to_ascii_lowercase();
    let mut extra = BTreeMap::<String, Vec<String>>::new();
    for name in headers.keys() {
        let Some(escaped) = name.as_str().strip_prefix(&prefix) else { continue };
        let key = percent_decode_str(escaped).decode_utf8().map_or_else(|_| escaped.to_owned(), Into::into);
        extra.entry(key.to_lowercase()).or_default().extend(all(name.as_str()));
    }
    Some(Identity {
        user: first(USER)?,
        uid: first(UID).unwrap_or_default(),
        groups: all(GROUP).into_iter().filter(|it| !it.is_empty()).collect(),
        extra,
    })
}

/// Says in the headers of a request for whom it is made, and nothing else of the kind.
///
/// # Errors
/// The identity holds what no header can hold.
pub fn say(headers: &mut HeaderMap, who: &Identity) -> Result<(), String> {
    forget(headers);
    let value = |text: &str| {
        // A reader of headers takes blanks at the ends away, and `" system:masters"` would be another group.
        if text.trim() != text {
            return Err(format!("{text:?} begins or ends with a blank, which no header can say"));
        }
        HeaderValue::from_bytes(text.as_bytes()).map_err(|it| format!("{text:?}: {it}"))
    };
    headers.insert(HeaderName::from_static("x-remote-user"), value(&who.user)?);
    if !who.uid.is_empty() {
        headers.insert(HeaderName::from_static("x-remote-uid"), value(&who.uid)?);
    }
    for group in &who.groups {
        headers.append(HeaderName::from_static("x-remote-group"), value(group)?);
    }
    for (key, values) in &who.extra {
        let name = format!("{EXTRA_PREFIX}{}", utf8_percent_encode(key, ESCAPED));
        let name: HeaderName = name.parse().map_err(|it| format!("{name:?}: {it}"))?;
        for text in values {
            headers.append(name.clone(), value(text)?);
        }
    }
    Ok(())
}

/// Removes what only a front proxy could say.
pub(crate) fn forget(headers: &mut HeaderMap) {
    // Servers behind CGI and its like read an underscore as a hyphen.
    let remote = |it: &&HeaderName| it.as_str().replace('_', "-").starts_with("x-remote-");
    let remote: Vec<HeaderName> = headers.keys().filter(remote).cloned().collect();
    for name in remote {
        headers.remove(name);
    }
}

#[cfg(test)]
mod tests;
