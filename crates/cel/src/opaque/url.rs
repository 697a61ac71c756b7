//! A URL, absolute or an absolute path, as Go's `net/url` takes it apart.

use std::{collections::BTreeMap, fmt};

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Url {
    text: String,
    pub(crate) scheme: String,
    pub(crate) host: String,
    /// As it is written, escaped where it was not.
    pub(crate) path: String,
    query: String,
}

impl fmt::Display for Url {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl Url {
    fn split_host(&self) -> (&str, &str) {
        match self.host.rfind(':') {
            Some(at) if !self.host[at..].contains(']') => (&self.host[..at], &self.host[at + 1..]),
            _ => (&self.host, ""),
        }
    }

    pub(crate) fn hostname(&self) -> &str {
        let host = self.split_host().0;
        host.strip_prefix('[').and_then(|it| it.strip_suffix(']')).unwrap_or(host)
    }

    pub(crate) fn port(&self) -> &str {
        self.split_host().1
    }

    /// The values of each key. Go leaves out what it cannot read.
    pub(crate) fn query(&self) -> BTreeMap<String, Vec<String>> {
        let mut by_key: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for pair in self.query.split('&').filter(|it| !it.is_empty() && !it.contains(';')) {
            let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
            let unescaped = |it: &str| unescaped(&it.replace('+', " "));
            if let (Some(key), Some(value)) = (unescaped(key), unescaped(value)) {
                by_key.entry(key).or_default().push(value);
            }
        }
        by_key
    }
}

/// # Errors
/// As Go says it.
pub(crate) fn checked(text: &str) -> Result<Url, String> {
    let wrong = |why: String| format!("parse {text:?}: {why}");
    if text.bytes().any(|it| it < b' ' || it == 0x7f) {
        return Err(wrong("net/url: invalid control character in URL".to_owned()));
    }
    if text.is_empty() {
        return Err(wrong("empty url".to_owned()));
    }
    let (scheme, rest) = scheme(text).map_err(wrong)?;
    let (rest, _) = rest.split_once('#').unwrap_or((rest, ""));
    let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
    let mut url = Url {
        text: text.to_owned(),
        scheme: scheme.to_ascii_lowercase(),
        host: String::new(),
        path: String::new(),
        query: query.to_owned(),
    };
    if !rest.starts_with('/') {
        // `mailto:someone` names no path.
        return if scheme.is_empty() { Err(wrong("invalid URI for request".to_owned())) } else { Ok(url) };
    }
    let path = match rest.strip_prefix("//") {
        Some(after) if !scheme.is_empty() || !rest.starts_with("///") => {
            let (authority, path) = after.find('/').map_or((after, ""), |it| after.split_at(it));
            url.host = host(authority).map_err(wrong)?;
            path
        }
        _ => rest,
    };
    url.path = escaped_path(path).map_err(wrong)?;
    Ok(url)
}

fn scheme(text: &str) -> Result<(&str, &str), String> {
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' => {}
            b'0'..=b'9' | b'+' | b'-' | b'.' if at > 0 => {}
            b':' if at == 0 => return Err("missing protocol scheme".to_owned()),
            b':' => return Ok((&text[..at], &text[at + 1..])),
            _ => return Ok(("", text)),
        }
    }
    Ok(("", text))
}

fn host(authority: &str) -> Result<String, String> {
    let host = match authority.rsplit_once('@') {
        Some((user, host)) => {
            let is_user = |it: u8| it.is_ascii_alphanumeric() || b"-._:~!$&'()*+,;=%@".contains(&it);
            if !user.bytes().all(is_user) {
                return Err("net/url: invalid userinfo".to_owned());
            }
            host
        }
        None => authority,
    };
    let port = match host.strip_prefix('[') {
        Some(rest) => rest.split_once(']').ok_or_else(|| "missing ']' in host".to_owned())?.1,
        None => host.find(':').map_or("", |it| &host[it..]),
    };
    let digits = port.strip_prefix(':').unwrap_or(if port.is_empty() { "" } else { "x" });
    if !digits.bytes().all(|it| it.is_ascii_digit()) {
        return Err(format!("invalid port {port:?} after host"));
    }
    match host.bytes().find(|it| matches!(it, b' ' | b'"' | b'<' | b'>' | b'\\' | b'^' | b'`' | b'{' | b'|' | b'}')) {
        Some(byte) => Err(format!("invalid character {:?} in host name", char::from(byte).to_string())),
        None => Ok(unescaped(host).unwrap_or_else(|| host.to_owned())),
    }
}

/// The path as it is written where that is a right way to write it, escaped otherwise.
fn escaped_path(path: &str) -> Result<String, String> {
    let Some(plain) = unescaped(path) else {
        let at = path.match_indices('%').map(|it| it.0).find(|it| hex(&path.as_bytes()[*it..]).is_none()).unwrap_or(0);
        let end = (at + 3).min(path.len());
        return Err(format!("invalid URL escape {:?}", path.get(at..end).unwrap_or("%")));
    };
    let is_plain = |it: u8| it.is_ascii_alphanumeric() || b"!$&'()*+,;=:@[]-_.~/%".contains(&it);
    if path.bytes().all(is_plain) {
        return Ok(path.to_owned());
    }
    let mut escaped = String::with_capacity(plain.len());
    for byte in plain.bytes() {
        if byte.is_ascii_alphanumeric() || b"$&+,/:=@-_.~".contains(&byte) {
            escaped.push(char::from(byte));
        } else {
            escaped.push_str(&format!("%{byte:02X}"));
        }
    }
    Ok(escaped)
}

fn hex(bytes: &[u8]) -> Option<u8> {
    let digit = |at: usize| char::from(*bytes.get(at)?).to_digit(16);
    u8::try_from(digit(1)? * 16 + digit(2)?).ok()
}

/// `None` where an escape is broken, or what it gives is no text.
fn unescaped(text: &str) -> Option<String> {
    let bytes = text.as_bytes();
    let mut plain = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while let Some(byte) = bytes.get(at) {
        if *byte == b'%' {
            plain.push(hex(&bytes[at..])?);
            at += 3;
        } else {
            plain.push(*byte);
            at += 1;
        }
    }
    String::from_utf8(plain).ok()
}
