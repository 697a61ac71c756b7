//! The parts of rules as the kernel's little machine runs them: load into a register, compare, look up, act.

use corten_meta::address::Cidr;
use corten_proxy::rules::{Backend, Family, Lookup, MARK, Side, Term};

use super::{
    message::Bytes,
    objects::{DROP, GOTO, JUMP, address, verdict},
};

/// Sixteen registers of four bytes; sources begin at the first, what a map gives at the fifth.
pub(super) const FIRST: u32 = 8;
const FIFTH: u32 = 12;
pub(super) const VERDICT_REGISTER: u32 = 0;

pub(super) const EQUAL: u32 = 0;
pub(super) const NOT_EQUAL: u32 = 1;
const META_MARK: u32 = 3;
const META_INTERFACE: u32 = 6;
const META_FAMILY: u32 = 15;
pub(super) const META_PROTOCOL: u32 = 16;

pub(super) fn encode(term: &Term, list: &mut Bytes) {
    let list = &mut List(list);
    match term {
        Term::Family(family) => {
            list.load_meta(META_FAMILY, FIRST);
            list.compare(EQUAL, &[family_number(*family)]);
        }
        Term::Protocol(protocol) => {
            list.load_meta(META_PROTOCOL, FIRST);
            list.compare(EQUAL, &[protocol.number()]);
        }
        Term::Within(side, cidr) => list.within(*side, cidr, EQUAL),
        Term::NotWithin(side, cidr) => list.within(*side, cidr, NOT_EQUAL),
        Term::Local(side, _) => list.local(*side),
        Term::NotThrough(name) => {
            let mut padded = name.as_bytes().to_vec();
            padded.resize(16, 0);
            list.load_meta(META_INTERFACE, FIRST);
            list.compare(NOT_EQUAL, &padded);
        }
        Term::NewConnection => list.new_connection(),
        Term::Marked => {
            list.load_meta(META_MARK, FIRST);
            list.mask(&MARK.to_ne_bytes(), &[0; 4]);
            list.compare(NOT_EQUAL, &[0; 4]);
        }
        Term::Mark => list.set_mark(MARK),
        Term::Unmark => list.set_mark(0),
        Term::In(what, family, set) => {
            list.load(*what, *family);
            list.look_up(set, None);
        }
        Term::Vmap(what, family, map) => {
            list.load(*what, *family);
            list.look_up(map, Some(VERDICT_REGISTER));
        }
        Term::Remember(family, set) => {
            list.load(Lookup::Source, *family);
            list.remember(set);
        }
        Term::DrawVmap { count, first, map } => {
            list.draw(*count, *first);
            list.look_up(map, Some(VERDICT_REGISTER));
        }
        Term::DrawDnat { family, count, first, map } => {
            list.draw(*count, *first);
            list.look_up(map, Some(FIFTH));
            // The address is followed by the port.
            list.dnat(*family, FIFTH, FIFTH + if *family == Family::V4 { 1 } else { 4 });
        }
        Term::Dnat(Backend { address: to, port }) => {
            list.immediate(FIRST, &address(*to));
            list.immediate(FIFTH, &port.to_be_bytes());
            list.dnat(Family::of(*to), FIRST, FIFTH);
        }
        Term::Masquerade => list.push("masq", |it| {
            const RANDOM_FULLY: u32 = 0x10;
            it.number(1, RANDOM_FULLY);
        }),
        Term::Refuse => list.push("reject", |it| {
            const OF_EITHER_FAMILY: u32 = 2;
            const PORT_UNREACHABLE: u8 = 1;
            it.number(1, OF_EITHER_FAMILY);
            it.attribute(2, &[PORT_UNREACHABLE]);
        }),
        Term::Drop => list.end(DROP, None),
        Term::Goto(chain) => list.end(GOTO, Some(chain)),
        Term::Jump(chain) => list.end(JUMP, Some(chain)),
    }
}

pub(super) fn family_number(family: Family) -> u8 {
    match family {
        Family::V4 => 2,
        Family::V6 => 10,
    }
}

/// The expressions of one rule.
pub(super) struct List<'a>(pub(super) &'a mut Bytes);

impl List<'_> {
    fn push(&mut self, name: &str, fill: impl FnOnce(&mut Bytes)) {
        self.0.nest(1, |it| {
            it.text(1, name);
            it.nest(2, fill);
        });
    }

    pub(super) fn load_meta(&mut self, key: u32, register: u32) {
        self.push("meta", |it| {
            it.number(1, register);
            it.number(2, key);
        });
    }

    pub(super) fn load_packet(&mut self, base: u32, offset: u32, length: u32, register: u32) {
        self.push("payload", |it| {
            it.number(1, register);
            it.number(2, base);
            it.number(3, offset);
            it.number(4, length);
        });
    }

    pub(super) fn load_address(&mut self, side: Side, family: Family, register: u32) {
        const NETWORK_HEADER: u32 = 1;
        let (offset, length) = match (family, side) {
            (Family::V4, Side::Source) => (12, 4),
            (Family::V4, Side::Destination) => (16, 4),
            (Family::V6, Side::Source) => (8, 16),
            (Family::V6, Side::Destination) => (24, 16),
        };
        self.load_packet(NETWORK_HEADER, offset, length, register);
    }

    /// Loads what is looked up, part behind part.
    pub(super) fn load(&mut self, what: Lookup, family: Family) {
        let behind_address = FIRST + if family == Family::V4 { 1 } else { 4 };
        match what {
            Lookup::Source => self.load_address(Side::Source, family, FIRST),
            Lookup::Destination => self.load_address(Side::Destination, family, FIRST),
            Lookup::Frontend => {
                self.load_address(Side::Destination, family, FIRST);
                self.load_port(behind_address);
            }
            Lookup::Port => self.load_port(FIRST),
            Lookup::Pair => {
                self.load_address(Side::Source, family, FIRST);
                self.load_address(Side::Destination, family, behind_address);
            }
        }
    }

    fn load_port(&mut self, register: u32) {
        const TRANSPORT_HEADER: u32 = 2;
        self.load_meta(META_PROTOCOL, register);
        self.load_packet(TRANSPORT_HEADER, 2, 2, register + 1);
    }

    pub(super) fn compare(&mut self, how: u32, value: &[u8]) {
        self.push("cmp", |it| {
            it.number(1, FIRST);
            it.number(2, how);
            it.nest(3, |it| it.attribute(1, value));
        });
    }

    /// `register = register & mask ^ flipped`
    fn mask(&mut self, mask: &[u8], flipped: &[u8]) {
        let length = u32::try_from(mask.len()).expect("at most an address");
        self.push("bitwise", |it| {
            it.number(1, FIRST);
            it.number(2, FIRST);
            it.number(3, length);
            it.nest(4, |it| it.attribute(1, mask));
            it.nest(5, |it| it.attribute(1, flipped));
        });
    }

    fn within(&mut self, side: Side, cidr: &Cidr, how: u32) {
        let value = address(cidr.address);
        self.load_address(side, Family::of(cidr.address), FIRST);
        if usize::from(cidr.bits) < value.len() * 8 {
            let bits = |at: usize| usize::from(cidr.bits).saturating_sub(at * 8).min(8);
            let mask: Vec<u8> = (0..value.len()).map(|it| !(0xff_u16 >> bits(it)).to_be_bytes()[1]).collect();
            self.mask(&mask, &vec![0; value.len()]);
        }
        self.compare(how, &value);
    }

    fn local(&mut self, side: Side) {
        const ADDRESS_TYPE: u32 = 3;
        const LOCAL: u32 = 2;
        self.push("fib", |it| {
            it.number(1, FIRST);
            it.number(2, ADDRESS_TYPE);
            it.number(3, if side == Side::Source { 1 } else { 2 });
        });
        self.compare(EQUAL, &LOCAL.to_ne_bytes());
    }

    fn new_connection(&mut self) {
        const NEW: u32 = 8;
        self.connection_is(NEW);
    }

    /// Has the state of the connection any of these bits?
    pub(super) fn connection_is(&mut self, bits: u32) {
        const STATE: u32 = 0;
        self.push("ct", |it| {
            it.number(1, FIRST);
            it.number(2, STATE);
        });
        self.mask(&bits.to_ne_bytes(), &[0; 4]);
        self.compare(NOT_EQUAL, &[0; 4]);
    }

    /// Sets the mark's bit or clears it; its other bits are others'.
    fn set_mark(&mut self, bit: u32) {
        self.load_meta(META_MARK, FIRST);
        self.mask(&(!MARK).to_ne_bytes(), &bit.to_ne_bytes());
        self.push("meta", |it| {
            it.number(2, META_MARK);
            it.number(3, FIRST);
        });
    }

    pub(super) fn look_up(&mut self, set: &str, into: Option<u32>) {
        self.push("lookup", |it| {
            it.text(1, set);
            it.number(2, FIRST);
            if let Some(register) = into {
                it.number(3, register);
            }
        });
    }

    fn remember(&mut self, set: &str) {
        const UPDATE: u32 = 1;
        self.push("dynset", |it| {
            it.text(1, set);
            it.number(3, UPDATE);
            it.number(4, FIRST);
        });
    }

    fn draw(&mut self, count: u32, first: u32) {
        const RANDOM: u32 = 1;
        self.push("numgen", |it| {
            it.number(1, FIRST);
            it.number(2, count);
            it.number(3, RANDOM);
            it.number(4, first);
        });
    }

    fn immediate(&mut self, register: u32, value: &[u8]) {
        self.push("immediate", |it| {
            it.number(1, register);
            it.nest(2, |it| it.attribute(1, value));
        });
    }

    fn dnat(&mut self, family: Family, address: u32, port: u32) {
        const TO_DESTINATION: u32 = 1;
        self.push("nat", |it| {
            it.number(1, TO_DESTINATION);
            it.number(2, u32::from(family_number(family)));
            it.number(3, address);
            it.number(5, port);
        });
    }

    /// Counts what comes this far.
    pub(super) fn count(&mut self) {
        self.push("counter", |_| {});
    }

    pub(super) fn end(&mut self, code: i32, chain: Option<&str>) {
        self.push("immediate", |it| {
            it.number(1, VERDICT_REGISTER);
            it.nest(2, |it| verdict(it, code, chain));
        });
    }
}
