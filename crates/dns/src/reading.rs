//! The answers of other servers: what of them is believed, how long it holds, and how it is passed on.
//!
//! An answer is used for the very question it answers and for no other, so nothing that rides along in it can poison
//! anything. It is kept as it came, but for EDNS's record, which is between two neighbours.

use crate::{
    Name, Query, Question,
    numbers::{
        AA, AD, CD, CNAME, HEADER, INTERNET, MX, NO_ERROR, NS, NX_DOMAIN, OPCODE, OPT, OPT_BYTES, PTR, QR, RA, RD,
        SERVER_FAILURE, SOA, SRV, TC, long, put_word, word, write_opt,
    },
    wire::{Owner, Section, Writer},
};

/// The longest that an answer is kept, in seconds.
const TTL_MAX: u32 = 300;
/// The longest that it is kept that there is none.
const NEGATIVE_TTL_MAX: u32 = 30;

/// Another server's answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reading {
    /// Without EDNS's record and all after it.
    pub(crate) bytes: Vec<u8>,
    pub(crate) records: Vec<Record>,
    pub(crate) question_end: usize,
    pub code: u16,
    /// How long it may be kept, in seconds.
    pub ttl: u32,
    /// There is more, over TCP.
    pub is_truncated: bool,
    /// The question came back in the case it was asked in.
    pub is_echo: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Record {
    pub(crate) section: u8,
    pub(crate) rtype: u16,
    pub(crate) start: usize,
    /// Where the type stands.
    head: usize,
    end: usize,
}

/// Why a packet is not taken as the answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AnswerError {
    /// It answers something else, or somebody else: it is passed over.
    Foreign,
    /// It cannot be read.
    Malformed,
}

/// Writes a question to another server. `case` decides of each letter if it is a capital: one more thing that who does not
/// see the question cannot know.
pub fn ask(question: &Question, id: u16, case: &[u8], out: &mut Vec<u8>) {
    out.clear();
    out.extend_from_slice(&id.to_be_bytes());
    let flags = RD | if question.checking_disabled { CD } else { 0 };
    out.extend_from_slice(&flags.to_be_bytes());
    out.extend_from_slice(&[0, 1, 0, 0, 0, 0, 0, 1]);
    for label in question.name.labels() {
        out.push(u8::try_from(label.len()).expect("a label is short"));
        for byte in label {
            let at = out.len();
            let is_capital = case.get(at / 8 % case.len().max(1)).is_some_and(|it| it >> (at % 8) & 1 == 1);
            out.push(if is_capital { byte.to_ascii_uppercase() } else { *byte });
        }
    }
    out.push(0);
    out.extend_from_slice(&question.qtype.to_be_bytes());
    out.extend_from_slice(&INTERNET.to_be_bytes());
    write_opt(out, NO_ERROR, question.dnssec_ok);
}

impl Reading {
    /// Reads the answer to what [`ask`] wrote.
    ///
    /// # Errors
    /// If it is not that.
    pub fn of(packet: &[u8], asked: &[u8], question: &Question) -> Result<Self, AnswerError> {
        let (Some(id), Some(flags)) = (word(packet, 0), word(packet, 2)) else { return Err(AnswerError::Foreign) };
        let is_answer = Some(id) == word(asked, 0) && flags & QR != 0 && flags & OPCODE == 0;
        let question_end = HEADER + question.name.as_wire().len() + 4;
        let (Some(came), Some(went)) = (packet.get(HEADER..question_end), asked.get(HEADER..question_end)) else {
            return Err(AnswerError::Foreign);
        };
        if !is_answer || word(packet, 4) != Some(1) || !came.eq_ignore_ascii_case(went) {
            return Err(AnswerError::Foreign);
        }
        let (records, upper_code, end) = records(packet, question_end).ok_or(AnswerError::Malformed)?;
        if !names_keep_away(packet, question_end, &records) {
            return Err(AnswerError::Malformed);
        }
        let code = flags & 0xf | upper_code << 4;
        let mut reading = Self {
            bytes: packet[..end].to_vec(),
            records,
            question_end,
            code,
            ttl: 0,
            is_truncated: flags & TC != 0,
            is_echo: came == went,
        };
        reading.ttl = reading.ttl(question.qtype);
        Ok(reading)
    }

    /// A record's data as it came.
    pub(crate) fn data(&self, record: &Record) -> &[u8] {
        self.bytes.get(record.head + 10..record.end).unwrap_or_default()
    }

    pub(crate) fn ttl_of(&self, record: &Record) -> u32 {
        // As RFC 2181 has it: a number with the highest bit set is zero.
        long(&self.bytes, record.head + 4).filter(|it| *it <= i32::MAX.unsigned_abs()).unwrap_or(0)
    }

    fn ttl(&self, qtype: u16) -> u32 {
        if self.is_truncated || !matches!(self.code, NO_ERROR | NX_DOMAIN) {
            return 0;
        }
        let answers = || self.records.iter().filter(|it| it.section == 0);
        let shortest = answers().map(|it| self.ttl_of(it)).min().unwrap_or(TTL_MAX).min(TTL_MAX);
        if self.code == NO_ERROR && answers().any(|it| it.rtype == qtype || qtype == CNAME) {
            return shortest;
        }
        // RFC 2308: without a SOA nobody knows how long there is nothing.
        let soa = self.records.iter().find(|it| it.section == 1 && it.rtype == SOA);
        let negative = soa.and_then(|it| Some(self.ttl_of(it).min(long(&self.bytes, it.end.checked_sub(4)?)?)));
        shortest.min(negative.unwrap_or(0)).min(NEGATIVE_TTL_MAX)
    }

    /// What it takes in memory.
    pub(crate) fn bytes_held(&self) -> usize {
        size_of::<Self>() + self.bytes.capacity() + self.records.capacity() * size_of::<Record>()
    }

    /// How many bytes the answer has that is passed on.
    pub fn len(&self) -> usize {
        self.bytes.len()
    }

    pub fn is_empty(&self) -> bool {
        self.records.is_empty()
    }

    /// Copies the answers, and what says how long there are none, into another answer.
    pub(crate) fn copy(&self, writer: &mut Writer<'_>, age: u32) {
        for record in &self.records {
            let section = match record.section {
                0 => Section::Answer,
                1 if record.rtype == SOA => Section::Authority,
                _ => continue,
            };
            let Some((owner, _)) = Name::read(&self.bytes, record.start) else { continue };
            let ttl = self.ttl_of(record).saturating_sub(age);
            writer.record(section, Owner::Of(&owner), record.rtype, ttl, |it| self.copy_data(record, it));
        }
    }

    /// Copies a record's data; the names in it may point into the packet they came in.
    pub(crate) fn copy_data(&self, record: &Record, out: &mut Vec<u8>) {
        let at = record.head + 10;
        let (plain, n_names) = match record.rtype {
            NS | CNAME | PTR => (0, 1),
            MX => (2, 1),
            SRV => (6, 1),
            SOA => (0, 2),
            _ => (0, 0),
        };
        let mut from = (at + plain).min(record.end);
        out.extend_from_slice(&self.bytes[at..from]);
        for _ in 0..n_names {
            let Some((name, end)) = Name::read(&self.bytes, from).filter(|it| it.1 <= record.end) else { return };
            out.extend_from_slice(name.as_wire());
            from = end;
        }
        out.extend_from_slice(&self.bytes[from..record.end]);
    }
}

/// A name may point to anything before it, a TTL among others; that will change, and the name shall not.
fn names_keep_away(packet: &[u8], question_end: usize, all: &[Record]) -> bool {
    let mut changed = packet.to_vec();
    for record in all {
        // No length of a label, and a pointer to nowhere.
        changed[record.head + 4..record.head + 8].fill(0xff);
    }
    records(&changed, question_end).is_some()
}

/// The records up to EDNS's, the upper bits of its code, and where it begins.
pub(crate) fn records(packet: &[u8], mut at: usize) -> Option<(Vec<Record>, u16, usize)> {
    let counts = [word(packet, 6)?, word(packet, 8)?, word(packet, 10)?];
    let mut records = Vec::new();
    let mut opt = None;
    for (section, count) in (0_u8..).zip(counts) {
        for _ in 0..count {
            let start = at;
            // Read, not skipped: what is passed on has good names.
            let (_, head) = Name::read(packet, at)?;
            let rtype = word(packet, head)?;
            at = head + 10 + usize::from(word(packet, head + 8)?);
            if at > packet.len() {
                return None;
            }
            if rtype == OPT && opt.is_none() {
                opt = Some((start, u16::from(packet[head + 4])));
            }
            if opt.is_none() {
                records.push(Record { section, rtype, start, head, end: at });
            }
        }
    }
    let (end, upper) = opt.unwrap_or((at, 0));
    Some((records, upper, end))
}

/// Answers a query with what another server said, `age` seconds ago.
pub fn relay(query: &Query<'_>, reading: &Reading, age: u32, limit: usize, out: &mut Vec<u8>) {
    let reserved = if query.edns.is_some() { OPT_BYTES } else { 0 };
    let wants_ad = query.question.dnssec_ok || query.flags & AD != 0;
    let of_it = word(&reading.bytes, 2).unwrap_or(0) & if wants_ad { AD } else { 0 };
    let mut flags = QR | RA | query.flags & (RD | CD) | of_it;
    let mut counts = [0_u16; 3];
    let mut end = reading.question_end;
    for record in &reading.records {
        if record.end + reserved > limit {
            // What does not answer may be left out without a word.
            if record.section == 0 || counts[0] == 0 {
                flags |= TC;
            }
            break;
        }
        counts[usize::from(record.section)] += 1;
        end = record.end;
    }
    out.clear();
    out.extend_from_slice(&reading.bytes[..end]);
    out[HEADER..reading.question_end].copy_from_slice(query.question_bytes());
    put_word(out, 0, query.id);
    for record in reading.records.iter().take_while(|it| it.end <= end) {
        let ttl = reading.ttl_of(record).saturating_sub(age);
        out[record.head + 4..record.head + 8].copy_from_slice(&ttl.to_be_bytes());
    }
    if query.edns.is_some() {
        write_opt(out, reading.code, query.question.dnssec_ok);
        counts[2] += 1;
    }
    // The upper bits of a code cannot be told to a client without EDNS.
    let code = if reading.code > 0xf && query.edns.is_none() { SERVER_FAILURE } else { reading.code & 0xf };
    put_word(out, 2, flags & !AA | code);
    for (idx, count) in counts.into_iter().enumerate() {
        put_word(out, 6 + 2 * idx, count);
    }
}

#[cfg(test)]
pub(crate) mod tests;
