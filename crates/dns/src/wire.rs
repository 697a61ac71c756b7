//! The writer of answers.
//!
//! A writer never passes its limit: a record that does not fit is taken back, and in the answer section that sets `TC`.

use crate::{
    Edns, Name, Query,
    numbers::{CD, HEADER, INTERNET, NO_ERROR, OPT_BYTES, QR, RA, RD, TC, put_word, write_opt},
};

/// Where a record's owner stands.
#[derive(Clone, Copy)]
pub(crate) enum Owner<'a> {
    /// The name that was asked for.
    Question,
    /// The end of that name: so many bytes after its beginning.
    Ending(usize),
    Of(&'a Name),
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Section {
    Answer,
    Authority,
    Additional,
}

/// Writes one answer: header and question first, then records, then [`Writer::finish`].
pub(crate) struct Writer<'a> {
    out: &'a mut Vec<u8>,
    limit: usize,
    flags: u16,
    code: u16,
    counts: [u16; 3],
    edns: Option<Edns>,
    is_full: bool,
}

impl<'a> Writer<'a> {
    pub(crate) fn new(query: &Query<'_>, limit: usize, out: &'a mut Vec<u8>) -> Self {
        out.clear();
        out.extend_from_slice(&query.id.to_be_bytes());
        out.extend_from_slice(&[0, 0, 0, 1, 0, 0, 0, 0, 0, 0]);
        out.extend_from_slice(query.question_bytes());
        let reserved = if query.edns.is_some() { OPT_BYTES } else { 0 };
        let flags = QR | RA | query.flags & (RD | CD);
        Self { out, limit: limit - reserved, flags, code: NO_ERROR, counts: [0; 3], edns: query.edns, is_full: false }
    }

    pub(crate) fn set(&mut self, flags: u16) {
        self.flags |= flags;
    }

    pub(crate) fn code(&mut self, code: u16) {
        self.code = code;
    }

    pub(crate) fn is_full(&self) -> bool {
        self.is_full
    }

    /// Holds no more answers than this, for want of any: not of room.
    pub(crate) fn is_bare(&self, n_answers: usize) -> bool {
        usize::from(self.counts[0]) <= n_answers && !self.is_full
    }

    /// Adds a record; where it does not fit nothing is added any more.
    pub(crate) fn record(
        &mut self,
        section: Section,
        owner: Owner<'_>,
        rtype: u16,
        ttl: u32,
        data: impl FnOnce(&mut Vec<u8>),
    ) {
        if self.is_full {
            return;
        }
        let start = self.out.len();
        match owner {
            Owner::Question => self.out.extend_from_slice(&pointer(HEADER)),
            Owner::Ending(skip) => self.out.extend_from_slice(&pointer(HEADER + skip)),
            Owner::Of(name) => self.out.extend_from_slice(name.as_wire()),
        }
        self.out.extend_from_slice(&rtype.to_be_bytes());
        self.out.extend_from_slice(&INTERNET.to_be_bytes());
        self.out.extend_from_slice(&ttl.to_be_bytes());
        let at = self.out.len();
        self.out.extend_from_slice(&[0, 0]);
        data(self.out);
        let length = u16::try_from(self.out.len() - at - 2);
        let count = &mut self.counts[section as usize];
        match length {
            Ok(length) if self.out.len() <= self.limit && *count < u16::MAX => {
                put_word(self.out, at, length);
                *count += 1;
            }
            _ => {
                self.out.truncate(start);
                self.is_full = true;
                // What is missing from the additional section nobody waits for.
                if section != Section::Additional {
                    self.flags |= TC;
                }
            }
        }
    }

    /// Writes the counts, the flags and the client's due of EDNS.
    pub(crate) fn finish(self) {
        let mut counts = self.counts;
        if let Some(edns) = self.edns {
            write_opt(self.out, self.code, edns.dnssec_ok);
            counts[2] += 1;
        }
        put_word(self.out, 2, self.flags | self.code & 0xf);
        for (idx, count) in counts.into_iter().enumerate() {
            put_word(self.out, 6 + 2 * idx, count);
        }
    }
}

fn pointer(at: usize) -> [u8; 2] {
    (0xc000 | u16::try_from(at & 0x3fff).expect("fourteen bits fit")).to_be_bytes()
}
