//! Translates packets between IPv6 and IPv4, so that what has only an address of one reaches what has only one of the other
//! (RFC 7915). It keeps no state: one IPv6 address stands for one IPv4 address, and behind both the kernel translates ports.
//!
//! ```text
//! Pod ─ IPv6 ─ kernel: its source becomes `inside` ─ [translator] ─ IPv4 from `outside` ─ kernel: masqueraded ─ the network
//!                                  prefix + a.b.c.d ◄────────────► a.b.c.d
//! ```
//! Packets come from others and may hold anything: what cannot be translated is dropped, and nothing is answered from here.

mod checksum;
mod icmp;
mod ip;
mod ipv4;
mod ipv6;

#[cfg(test)]
mod tests;

use std::net::Ipv6Addr;

pub use ip::Ends;
use ip::{FRAGMENT_HEADER, Fragment, HEADER6, Headers, ICMP4, ICMP6, MTU_MIN};

/// Fragments are parts of no more.
const PACKET_BYTES_MAX: usize = u16::MAX as usize;

pub struct Translator {
    ends: Ends,
    /// Of the IPv6 side, in bytes.
    mtu: usize,
    out: Vec<u8>,
}

impl Translator {
    /// `mtu` is that of the IPv6 side. The IPv4 side must bring no packet of more than 20 bytes less.
    pub fn new(ends: Ends, mtu: usize) -> Self {
        Self { ends, mtu: mtu.max(MTU_MIN), out: Vec::new() }
    }

    /// Translates one packet of either kind, and sends what it becomes: mostly one packet, none where that cannot be, and several
    /// fragments where a fragment has become too long.
    pub fn translate(&mut self, packet: &[u8], mut send: impl FnMut(&[u8])) {
        match packet.first().map(|it| it >> 4) {
            Some(6) if self.translate_to_ipv4(packet).is_some() => send(&self.out),
            Some(4) => drop(self.translate_to_ipv6(packet, &mut send)),
            _ => {}
        }
    }

    /// Leaves the packet in `out`.
    fn translate_to_ipv4(&mut self, packet: &[u8]) -> Option<()> {
        let (headers, payload) = ipv6::read(packet)?;
        if headers.protocol == ICMP4 {
            return None;
        }
        // What is wrong is said by routers on the way, which have other addresses.
        let is_error = headers.protocol == ICMP6 && icmp::is_error6(payload);
        if headers.source != self.ends.inside && !is_error {
            return None;
        }
        let source = self.ends.outside;
        let destination = self.ends.ipv4_behind(headers.destination)?;
        if !self.ends.is_host(destination) {
            return None;
        }
        let mut body = payload.to_vec();
        if headers.protocol == ICMP6 {
            body = icmp::to_ipv4(&self.ends, &headers, payload)?;
        } else {
            checksum::carry(&headers, &mut body, (source, destination))?;
        }
        let protocol = if headers.protocol == ICMP6 { ICMP4 } else { headers.protocol };
        ipv4::write(&headers.with(protocol, source, destination), body.len(), &mut self.out)?;
        self.out.extend_from_slice(&body);
        Some(())
    }

    fn translate_to_ipv6(&mut self, packet: &[u8], send: &mut impl FnMut(&[u8])) -> Option<()> {
        let (headers, payload) = ipv4::read(packet)?;
        if headers.destination != self.ends.outside || ipv6::is_header(headers.protocol) {
            return None;
        }
        let (source, destination) = (self.ends.ipv6_of(headers.source), self.ends.inside);
        let mut body = payload.to_vec();
        if headers.protocol == ICMP4 {
            body = icmp::to_ipv6(&self.ends, &headers, payload, (source, destination))?;
        } else {
            checksum::carry(&headers, &mut body, (source, destination))?;
        }
        let protocol = if headers.protocol == ICMP4 { ICMP6 } else { headers.protocol };
        let headers = headers.with(protocol, source, destination);
        self.send_parts(&headers, &body, send)
    }

    /// The packet whole, or as fragments that fit.
    fn send_parts(&mut self, headers: &Headers<Ipv6Addr>, body: &[u8], send: &mut impl FnMut(&[u8])) -> Option<()> {
        if headers.fragment.is_none() && HEADER6 + body.len() <= self.mtu {
            ipv6::write(headers, body.len(), &mut self.out)?;
            self.out.extend_from_slice(body);
            send(&self.out);
            return Some(());
        }
        let whole = headers.fragment.unwrap_or(Fragment { id: headers.id, offset: 0, has_more: false });
        let room = (self.mtu - HEADER6 - FRAGMENT_HEADER) & !7;
        if usize::from(whole.offset) * 8 + body.len() > PACKET_BYTES_MAX {
            return None;
        }
        let mut parts = body.chunks(room).enumerate().peekable();
        while let Some((n, part)) = parts.next() {
            let offset = whole.offset.checked_add(u16::try_from(n * room / 8).ok()?)?;
            let fragment = Fragment { offset, has_more: whole.has_more || parts.peek().is_some(), ..whole };
            ipv6::write(&Headers { fragment: Some(fragment), ..*headers }, part.len(), &mut self.out)?;
            self.out.extend_from_slice(part);
            send(&self.out);
        }
        Some(())
    }
}
