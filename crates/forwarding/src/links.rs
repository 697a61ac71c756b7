//! Links that lead to the root of what is behind a proxy lead through the proxy instead, in redirects and in pages.
//!
//! A page is not parsed, only its tags are: what is no tag with a link stays as it is, byte for byte.

/// A tag that is longer than this is left as it is.
const TAG_BYTES_MAX: usize = 64 * 1024;

/// `atomsToAttrs`: elements, and which of their attributes hold an address.
const ADDRESSES: &[(&str, &[&str])] = &[
    ("a", &["href"]),
    ("applet", &["codebase"]),
    ("area", &["href"]),
    ("audio", &["src"]),
    ("base", &["href"]),
    ("blockquote", &["cite"]),
    ("body", &["background"]),
    ("button", &["formaction"]),
    ("command", &["icon"]),
    ("del", &["cite"]),
    ("embed", &["src"]),
    ("form", &["action"]),
    ("frame", &["longdesc", "src"]),
    ("head", &["profile"]),
    ("html", &["manifest"]),
    ("iframe", &["longdesc", "src"]),
    ("img", &["longdesc", "src", "usemap"]),
    ("input", &["src", "usemap", "formaction"]),
    ("ins", &["cite"]),
    ("link", &["href"]),
    ("object", &["classid", "codebase", "data", "usemap"]),
    ("q", &["cite"]),
    ("script", &["src"]),
    ("source", &["src"]),
    ("video", &["poster", "src"]),
];

/// Elements whose content is no markup.
const RAW: [&str; 4] = ["script", "style", "textarea", "title"];

/// Where links lead through.
#[derive(Clone)]
pub struct Links {
    /// The path up to and with `/proxy`.
    pub prefix: String,
    /// Names of what is behind the proxy: its own address, and the client's name for it.
    pub hosts: [String; 2],
}

impl Links {
    /// The address as it is where it leads elsewhere, or is relative.
    pub fn rewritten(&self, address: &str) -> String {
        let after_scheme = ["http://", "https://", "//"].iter().find_map(|it| address.strip_prefix(it));
        let path = match after_scheme {
            Some(rest) => {
                let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
                if !self.hosts.iter().any(|it| it == &rest[..end]) {
                    return address.to_owned();
                }
                &rest[end..]
            }
            None => address,
        };
        let is_within =
            path.strip_prefix(&*self.prefix).is_some_and(|it| it.is_empty() || it.starts_with(['/', '?', '#']));
        if !path.starts_with('/') || is_within {
            return if path.starts_with('/') { path.to_owned() } else { address.to_owned() };
        }
        format!("{}{path}", self.prefix)
    }
}

/// A page on its way through, in pieces.
pub struct Page {
    links: Links,
    /// What cannot be judged before more is there.
    held: Vec<u8>,
    /// Until this is read nothing is a tag: the end of a comment, or of an element without markup.
    until: Option<Vec<u8>>,
}

impl Page {
    pub fn new(links: Links) -> Self {
        Self { links, held: Vec::new(), until: None }
    }

    pub fn feed(&mut self, bytes: &[u8], out: &mut Vec<u8>) {
        self.held.extend_from_slice(bytes);
        let held = std::mem::take(&mut self.held);
        let mut rest = &held[..];
        while let Some(read) = self.step(rest, out) {
            rest = &rest[read..];
        }
        if rest.len() > TAG_BYTES_MAX {
            out.extend_from_slice(rest);
        } else {
            self.held = rest.to_vec();
        }
    }

    pub fn finish(&mut self, out: &mut Vec<u8>) {
        out.append(&mut self.held);
    }

    /// Takes something off the front; `None` where more must be there first.
    fn step(&mut self, rest: &[u8], out: &mut Vec<u8>) -> Option<usize> {
        if rest.is_empty() {
            return None;
        }
        if let Some(until) = &self.until {
            let (read, ended) = match find(rest, until) {
                Some(at) => (at, true),
                // Its beginning may be there.
                None => (rest.len().saturating_sub(until.len() - 1), false),
            };
            out.extend_from_slice(&rest[..read]);
            if ended {
                self.until = None;
            }
            return (read > 0 || ended).then_some(read);
        }
        let text = rest.iter().position(|it| *it == b'<').unwrap_or(rest.len());
        if text > 0 {
            out.extend_from_slice(&rest[..text]);
            return Some(text);
        }
        match rest {
            [b'<', b'!', b'-', b'-', ..] => {
                self.until = Some(b"-->".to_vec());
                out.extend_from_slice(&rest[..4]);
                Some(4)
            }
            [b'<'] | [b'<', b'!'] | [b'<', b'!', b'-'] => None,
            [b'<', letter, ..] if letter.is_ascii_alphabetic() => {
                let length = tag_length(rest)?;
                self.tag(&rest[..length], out);
                Some(length)
            }
            _ => {
                out.push(b'<');
                Some(1)
            }
        }
    }

    fn tag(&mut self, tag: &[u8], out: &mut Vec<u8>) {
        let name_end = tag[1..].iter().position(|it| !it.is_ascii_alphanumeric()).map_or(tag.len(), |it| it + 1);
        let name = String::from_utf8_lossy(&tag[1..name_end]).to_ascii_lowercase();
        let wanted = ADDRESSES.iter().find(|it| it.0 == name).map(|it| it.1);
        match wanted {
            Some(wanted) => self.relinked(tag, name_end, wanted, out),
            None => out.extend_from_slice(tag),
        }
        if RAW.contains(&&*name) && !tag.ends_with(b"/>") {
            self.until = Some(format!("</{name}").into_bytes());
        }
    }

    fn relinked(&self, tag: &[u8], from: usize, wanted: &[&str], out: &mut Vec<u8>) {
        let mut copied = 0;
        for (name, value) in attributes(tag, from) {
            let name = String::from_utf8_lossy(&tag[name]).to_ascii_lowercase();
            let Ok(address) = std::str::from_utf8(&tag[value.clone()]) else { continue };
            if wanted.contains(&&*name) {
                out.extend_from_slice(&tag[copied..value.start]);
                out.extend_from_slice(self.links.rewritten(address).as_bytes());
                copied = value.end;
            }
        }
        out.extend_from_slice(&tag[copied..]);
    }
}

type Span = std::ops::Range<usize>;

/// Where each attribute's name and value stand in a tag.
fn attributes(tag: &[u8], from: usize) -> Vec<(Span, Span)> {
    let is_space = |at: usize| tag.get(at).is_some_and(u8::is_ascii_whitespace);
    let (mut found, mut at) = (Vec::new(), from);
    while at < tag.len() {
        if is_space(at) || matches!(tag[at], b'/' | b'>' | b'=') {
            at += 1;
            continue;
        }
        let name = at;
        while at < tag.len() && !is_space(at) && !matches!(tag[at], b'/' | b'>' | b'=') {
            at += 1;
        }
        let name = name..at;
        while is_space(at) {
            at += 1;
        }
        if tag.get(at) != Some(&b'=') {
            continue;
        }
        at += 1;
        while is_space(at) {
            at += 1;
        }
        let value = match tag.get(at) {
            Some(quote @ (b'"' | b'\'')) => {
                let begin = at + 1;
                let end = tag[begin..].iter().position(|it| it == quote).map_or(tag.len(), |it| begin + it);
                at = end + 1;
                begin..end
            }
            _ => {
                let begin = at;
                while at < tag.len() && !is_space(at) && tag[at] != b'>' {
                    at += 1;
                }
                begin..at
            }
        };
        found.push((name, value));
    }
    found
}

/// Up to and with the tag's `>`, which does not count within quotes.
fn tag_length(rest: &[u8]) -> Option<usize> {
    let mut quote = None;
    for (at, byte) in rest.iter().enumerate() {
        match (quote, *byte) {
            (None, b'>') => return Some(at + 1),
            (None, b'"' | b'\'') => quote = Some(*byte),
            (Some(open), byte) if byte == open => quote = None,
            _ => {}
        }
    }
    None
}

/// Without regard to case.
fn find(text: &[u8], wanted: &[u8]) -> Option<usize> {
    text.windows(wanted.len()).position(|it| it.eq_ignore_ascii_case(wanted))
}
