//! Addresses of IPv6 for names that have addresses of IPv4 alone, where what is sent there is translated (DNS64, RFC 6147).

use std::net::{Ipv4Addr, Ipv6Addr};

use crate::{
    Name, Question, Reading,
    numbers::{A, AA, AAAA, AD, CNAME, HEADER, INTERNET, NO_ERROR, NX_DOMAIN, TC, TCP_BYTES_MAX, put_word},
    reading::{Record, records},
};

/// The question for the addresses of IPv4, where those may stand for what is asked. Who checks signatures is told no addresses that
/// nobody has signed (section 5.5).
pub fn instead(question: &Question) -> Option<Question> {
    let checks = question.dnssec_ok && question.checking_disabled;
    (question.qtype == AAAA && !checks).then_some(Question { qtype: A, ..*question })
}

impl Reading {
    /// Has the name no address of IPv6? One of IPv4 in that form is none (section 5.1.4), and an error says nothing of its other addresses
    /// (5.1.2). Where there is no such name there are none to be asked for.
    pub fn lacks_ipv6(&self) -> bool {
        let is_one = |it: &&Record| it.section == 0 && it.rtype == AAAA && !self.data(it).starts_with(&MAPPED);
        self.code != NX_DOMAIN && !self.is_truncated && !self.records.iter().any(|it| is_one(&it))
    }

    /// This answer to [`instead`] as one to `question`: each address as the one that stands for it. None where no address does.
    pub fn as_ipv6(&self, question: &Question, way_to: impl Fn(Ipv4Addr) -> Option<Ipv6Addr>) -> Option<Self> {
        if self.code != NO_ERROR {
            return None;
        }
        let mut bytes = self.bytes.get(..HEADER)?.to_vec();
        bytes.extend_from_slice(question.name.as_wire());
        bytes.extend_from_slice(&AAAA.to_be_bytes());
        bytes.extend_from_slice(&INTERNET.to_be_bytes());
        let question_end = bytes.len();
        let (mut n_answers, mut has_address) = (0_u16, false);
        for record in self.records.iter().filter(|it| it.section == 0) {
            let mut data = Vec::new();
            let rtype = match record.rtype {
                A => {
                    let address = self.data(record).first_chunk().copied().map(<Ipv4Addr as From<[u8; 4]>>::from);
                    let Some(address) = address.and_then(&way_to) else { continue };
                    data.extend_from_slice(&address.octets());
                    has_address = true;
                    AAAA
                }
                CNAME => {
                    self.copy_data(record, &mut data);
                    CNAME
                }
                _ => continue,
            };
            let (owner, _) = Name::read(&self.bytes, record.start)?;
            let owner = if owner == question.name { &OF_QUESTION[..] } else { owner.as_wire() };
            // No answer is longer: what does not fit nobody could be told.
            if bytes.len() + owner.len() + RECORD_HEAD + data.len() > TCP_BYTES_MAX {
                break;
            }
            bytes.extend_from_slice(owner);
            bytes.extend_from_slice(&rtype.to_be_bytes());
            bytes.extend_from_slice(&INTERNET.to_be_bytes());
            bytes.extend_from_slice(&self.ttl_of(record).to_be_bytes());
            bytes.extend_from_slice(&u16::try_from(data.len()).ok()?.to_be_bytes());
            bytes.extend_from_slice(&data);
            n_answers = n_answers.checked_add(1)?;
        }
        let flags = u16::from_be_bytes([bytes[2], bytes[3]]) & !(AA | AD | TC);
        put_word(&mut bytes, 2, flags);
        for (at, count) in [(4, 1), (6, n_answers), (8, 0), (10, 0)] {
            put_word(&mut bytes, at, count);
        }
        let (records, ..) = records(&bytes, question_end).filter(|_| has_address)?;
        let (code, ttl) = (NO_ERROR, self.ttl);
        Some(Self { bytes, records, question_end, code, ttl, is_truncated: false, is_echo: self.is_echo })
    }
}

/// A pointer to the name that was asked for, right behind the header.
const OF_QUESTION: [u8; 2] = [0xc0, 12];
/// A record's type, class, TTL, and the length of its data.
const RECORD_HEAD: usize = 10;
/// `::ffff:0:0/96`
const MAPPED: [u8; 12] = [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff];

#[cfg(test)]
mod tests;
