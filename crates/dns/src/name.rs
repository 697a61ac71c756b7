//! A domain name as it goes over the wire, in lower case: what names are compared by.
//!
//! The case a client wrote is kept in its packet and sent back with the question.

use std::{cmp::Ordering, fmt};

use crate::numbers::HEADER;

const BYTES_MAX: usize = 255;
const LABEL_BYTES_MAX: usize = 63;

/// Labels, each after its length, and a zero at the end.
#[derive(Clone, Copy)]
pub struct Name {
    len: u8,
    bytes: [u8; BYTES_MAX],
}

impl Name {
    pub const ROOT: Self = Self { len: 1, bytes: [0; BYTES_MAX] };

    /// Reads `a.b.c` or `a.b.c.`; nothing where that is no name.
    pub fn parse(text: &str) -> Option<Self> {
        let text = text.strip_suffix('.').unwrap_or(text);
        if text.is_empty() {
            return Some(Self::ROOT);
        }
        Self::ROOT.below(text.split('.').map(str::as_bytes))
    }

    /// The name with these labels in front, first the leftmost.
    pub fn below<'a>(&self, labels: impl IntoIterator<Item = &'a [u8]>) -> Option<Self> {
        let mut name = Self::ROOT;
        let mut at = 0;
        for label in labels {
            let end = at + 1 + label.len();
            if label.is_empty() || label.len() > LABEL_BYTES_MAX || end + usize::from(self.len) > BYTES_MAX {
                return None;
            }
            name.bytes[at] = u8::try_from(label.len()).ok()?;
            name.bytes[at + 1..end].copy_from_slice(label);
            name.bytes[at + 1..end].make_ascii_lowercase();
            at = end;
        }
        let end = at + usize::from(self.len);
        name.bytes[at..end].copy_from_slice(self.as_wire());
        name.len = u8::try_from(end).ok()?;
        Some(name)
    }

    /// Reads the name at `at` of a packet, following pointers; gives where it ends there.
    pub(crate) fn read(mut packet: &[u8], at: usize) -> Option<(Self, usize)> {
        let mut name = Self::ROOT;
        let (mut from, mut len, mut end, mut barrier) = (at, 0, None, at);
        loop {
            let length = usize::from(*packet.get(from)?);
            match length {
                0 => {
                    name.bytes[len] = 0;
                    name.len = u8::try_from(len + 1).ok()?;
                    return Some((name, end.unwrap_or(from + 1)));
                }
                1..=LABEL_BYTES_MAX => {
                    let label = packet.get(from..=from + length)?;
                    // One byte is kept for the end.
                    if len + label.len() >= BYTES_MAX {
                        return None;
                    }
                    let into = &mut name.bytes[len..len + label.len()];
                    into.copy_from_slice(label);
                    into.make_ascii_lowercase();
                    len += label.len();
                    from += label.len();
                }
                0xc0.. => {
                    let to = (length & 0x3f) << 8 | usize::from(*packet.get(from + 1)?);
                    end = end.or(Some(from + 2));
                    // Each jump goes further back than the one before, so there are no circles. The header is no name.
                    if to >= barrier || to < HEADER {
                        return None;
                    }
                    // What is pointed to is whole before what points to it: else it would change with what comes later.
                    packet = &packet[..barrier];
                    (from, barrier) = (to, to);
                }
                _ => return None,
            }
        }
    }

    /// Where the name at `at` of a packet ends, without looking at what it says.
    pub(crate) fn skip(packet: &[u8], mut at: usize) -> Option<usize> {
        loop {
            match usize::from(*packet.get(at)?) {
                0 => return Some(at + 1),
                length @ 1..=LABEL_BYTES_MAX => at += 1 + length,
                0xc0.. => return packet.get(at + 1).map(|_| at + 2),
                _ => return None,
            }
        }
    }

    /// Is it the domain, or a name below it?
    pub fn is_within(&self, domain: &Self) -> bool {
        self.before(domain).is_some()
    }

    pub fn as_wire(&self) -> &[u8] {
        &self.bytes[..usize::from(self.len)]
    }

    /// The labels, first the leftmost.
    pub(crate) fn labels(&self) -> impl Iterator<Item = &[u8]> {
        let mut rest = self.as_wire();
        std::iter::from_fn(move || {
            let (length, after) = rest.split_first()?;
            let (label, after) = after.split_at_checked(usize::from(*length)).filter(|_| *length > 0)?;
            rest = after;
            Some(label)
        })
    }

    /// How many bytes stand in front of `ending`; nothing where this name does not end in it.
    pub(crate) fn before(&self, ending: &Self) -> Option<usize> {
        let (wire, ending) = (self.as_wire(), ending.as_wire());
        let skip = wire.len().checked_sub(ending.len())?;
        if &wire[skip..] != ending {
            return None;
        }
        // The bytes may be equal in the middle of a label.
        let mut at = 0;
        while at < skip {
            at += 1 + usize::from(wire[at]);
        }
        (at == skip).then_some(skip)
    }
}

impl PartialEq for Name {
    fn eq(&self, other: &Self) -> bool {
        self.as_wire() == other.as_wire()
    }
}

impl Eq for Name {}

impl PartialOrd for Name {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Name {
    fn cmp(&self, other: &Self) -> Ordering {
        self.as_wire().cmp(other.as_wire())
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for label in self.labels() {
            write!(f, "{}.", label.escape_ascii())?;
        }
        if self.len == 1 { f.write_str(".") } else { Ok(()) }
    }
}

impl fmt::Debug for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_compared_in_lower_case_and_by_label() {
        let name = |text: &str| Name::parse(text).expect("a name");
        assert_eq!(name("Web.Default.SVC.cluster.local"), name("web.default.svc.cluster.local."));
        let zone = name("cluster.local");
        for (text, expected) in [
            ("cluster.local", Some(0)),
            ("a.cluster.local", Some(2)),
            ("acluster.local", None),
            ("local", None),
            ("cluster.local.example", None),
        ] {
            assert_eq!(name(text).before(&zone), expected, "{text}");
        }
        // Its bytes end in those of the zone, its labels do not.
        let odd = Name::ROOT.below([&b"x\x07cluster"[..], b"local"]).expect("a name");
        assert_eq!(odd.before(&zone), None);
        assert_eq!(Name::parse(&format!("{}.a", "x".repeat(64))), None);
        assert_eq!(Name::parse("a..b"), None);
        assert_eq!(Name::parse(&"a.".repeat(128)), None);
        let longest = "a.".repeat(127);
        assert_eq!(name(&longest).as_wire().len(), 255);
        assert_eq!(name(".").to_string(), ".");
    }

    #[test]
    fn pointers_go_back_only() {
        for (rest, at, expected) in [
            (&b"\x01a\x00"[..], 0, Some(("a.", 3))),
            (b"\x01a\x00\x01B\xc0\x0c", 3, Some(("b.a.", 7))),
            // To itself, forward, in a circle, into the header, over the end, an unknown kind of label.
            (b"\xc0\x0c", 0, None),
            (b"\xc0\x0e\x01a\x00", 0, None),
            (b"\x01a\xc0\x0c", 2, None),
            (b"\x01a\xc0\x0c", 0, None),
            (b"\x01a\x00\x01B\xc0\x00", 3, None),
            // Through itself to what comes after.
            (b"\x03a\xc0\x0c\x00", 2, None),
            (b"\x03ab\xc0\x0c\x01c\x00", 3, None),
            (b"\x05a", 0, None),
            (b"\xc0", 0, None),
            (b"\x80\x00", 0, None),
        ] {
            let packet = [&[0; HEADER][..], rest].concat();
            let found = Name::read(&packet, HEADER + at).map(|(name, end)| (name.to_string(), end - HEADER));
            assert_eq!(found, expected.map(|it| (it.0.to_owned(), it.1)), "{rest:?}");
        }
    }
}
