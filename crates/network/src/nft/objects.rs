//! Tables, chains, sets and elements as netlink attributes. The numbers are those of `linux/netfilter/nf_tables.h`.

use std::net::IpAddr;

use corten_proxy::rules::{Change, Clients, Element, ElementKey, Family, Hook, Map, Value};

use super::{
    expression,
    message::{Bytes, CREATE},
};

pub(super) const NEW_TABLE: u16 = 0;
pub(super) const GET_TABLE: u16 = 1;
pub(super) const DEL_TABLE: u16 = 2;
pub(super) const NEW_CHAIN: u16 = 3;
pub(super) const GET_CHAIN: u16 = 4;
pub(super) const DEL_CHAIN: u16 = 5;
pub(super) const NEW_RULE: u16 = 6;
pub(super) const DEL_RULE: u16 = 8;
pub(super) const NEW_SET: u16 = 9;
pub(super) const GET_SET: u16 = 10;
pub(super) const DEL_SET: u16 = 11;
pub(super) const NEW_ELEMENT: u16 = 12;
pub(super) const DEL_ELEMENT: u16 = 14;

/// Where a chain and a set say what they are called. The table's name is attribute 1 of everything.
pub(super) const NAME_OF_CHAIN: u16 = 3;
pub(super) const NAME_OF_SET: u16 = 2;

pub(super) const APPEND: u16 = 0x800;
pub(super) const LIST_ELEMENT: u16 = 1;
const DATA_VALUE: u16 = 1;
const DATA_VERDICT: u16 = 2;
pub(super) const VERDICT: u32 = 0xffff_ff00;
pub(super) const DROP: i32 = 0;
pub(super) const ACCEPT: i32 = 1;
pub(super) const JUMP: i32 = -3;
pub(super) const GOTO: i32 = -4;
pub(super) const SET_IS_MAP: u32 = 0x8;
const SET_HAS_TIMEOUT: u32 = 0x10;
const SET_IS_FILLED_BY_PACKETS: u32 = 0x20;
/// As `nft` has it: who comes when it is full is not remembered.
const CLIENTS_MAX: u32 = 65_535;

// The names of types, for whoever lists the table: the kernel only needs lengths.
pub(super) const ADDRESS4: u32 = 7;
pub(super) const ADDRESS6: u32 = 8;
pub(super) const PROTOCOL: u32 = 12;
pub(super) const PORT: u32 = 13;
const MARK: u32 = 19;

/// Takes one message: its kind, its flags, whether it is the last of these changes, and what fills it.
pub(super) type Emit<'a> = dyn FnMut(u16, u16, bool, &mut dyn FnMut(&mut Bytes)) + 'a;

/// Encodes one change, or several that put elements into one map.
pub(super) fn encode(table: &str, changes: &[Change], emit: &mut Emit<'_>) {
    match &changes[0] {
        Change::Table => emit(NEW_TABLE, CREATE, true, &mut |it| it.text(1, table)),
        Change::DropTable => emit(DEL_TABLE, 0, true, &mut |it| it.text(1, table)),
        Change::Map(map) => emit(NEW_SET, CREATE, true, &mut |it| map_set(it, table, *map)),
        Change::Clients(clients) => emit(NEW_SET, CREATE, true, &mut |it| clients_set(it, table, clients)),
        Change::Empty(name) => emit(DEL_ELEMENT, 0, true, &mut |it| named(it, table, 2, name)),
        Change::DropSet(name) => emit(DEL_SET, 0, true, &mut |it| named(it, table, NAME_OF_SET, name)),
        Change::Base(name, hook) => chain(table, name, Some(*hook), emit),
        Change::Chain(name) => chain(table, name, None, emit),
        Change::DropChain(name) => emit(DEL_CHAIN, 0, true, &mut |it| named(it, table, NAME_OF_CHAIN, name)),
        Change::Rule(chain, rule) => emit(NEW_RULE, CREATE | APPEND, true, &mut |it| {
            named(it, table, 2, chain);
            it.nest(4, |it| rule.iter().for_each(|term| expression::encode(term, it)));
        }),
        Change::Add(element, _) => emit(NEW_ELEMENT, CREATE, true, &mut |it| elements(it, table, element, changes)),
        Change::Remove(element) => emit(DEL_ELEMENT, 0, true, &mut |it| elements(it, table, element, changes)),
    }
}

fn named(bytes: &mut Bytes, table: &str, at: u16, name: &str) {
    bytes.text(1, table);
    bytes.text(at, name);
}

/// Makes the chain, if it is not there, and empties it.
fn chain(table: &str, name: &str, hook: Option<Hook>, emit: &mut Emit<'_>) {
    emit(NEW_CHAIN, CREATE, false, &mut |it| {
        named(it, table, NAME_OF_CHAIN, name);
        if let Some(hook) = hook {
            base(it, hook);
        }
    });
    emit(DEL_RULE, 0, true, &mut |it| named(it, table, 2, name));
}

fn base(bytes: &mut Bytes, hook: Hook) {
    // Names are those of the kernel's hooks; smaller priorities come first, translation at -100 and 100.
    let (number, priority, kind): (u32, i32, &str) = match hook {
        Hook::Raw => (0, -300, "filter"),
        Hook::Prerouting => (0, -100, "nat"),
        Hook::Input => (1, 0, "filter"),
        Hook::Forward => (2, 0, "filter"),
        Hook::Output => (3, -100, "nat"),
        Hook::OutputTranslated => (3, 0, "filter"),
        // Before the node's own masquerading, which knows no marks.
        Hook::Postrouting => (4, 99, "nat"),
    };
    bytes.nest(4, |it| {
        it.number(1, number);
        it.attribute(2, &priority.to_be_bytes());
    });
    bytes.number(5, u32::try_from(ACCEPT).expect("1"));
    bytes.text(7, kind);
}

fn map_set(bytes: &mut Bytes, table: &str, map: Map) {
    let address = |family: Family| match family {
        Family::V4 => (ADDRESS4, 4),
        Family::V6 => (ADDRESS6, 16),
    };
    let row = |parts: &[(u32, u32)]| parts.iter().fold((0, 0), |(kind, length), it| (kind << 6 | it.0, length + it.1));
    let (protocol, port) = ((PROTOCOL, 4), (PORT, 4));
    let (key, data) = match map {
        Map::ClusterIps(it) | Map::PoolIps(it) => (address(it), None),
        Map::Services(it) | Map::Refused(it) => (row(&[address(it), protocol, port]), Some((VERDICT, 0))),
        Map::NodePorts(_) | Map::RefusedPorts(_) => (row(&[protocol, port]), Some((VERDICT, 0))),
        Map::Hairpins(it) => (row(&[address(it), address(it)]), None),
        Map::Endpoints(it, _) => ((MARK, 4), Some(row(&[address(it), port]))),
        Map::Spread(..) => ((MARK, 4), Some((VERDICT, 0))),
    };
    named(bytes, table, NAME_OF_SET, &map.name());
    bytes.number(3, if data.is_some() { SET_IS_MAP } else { 0 });
    bytes.number(4, key.0);
    bytes.number(5, key.1);
    if let Some((kind, length)) = data {
        bytes.number(6, kind);
        bytes.number(7, length);
    }
    // Asked for, and of use only to whoever names sets by number within a batch.
    bytes.number(10, 1);
}

fn clients_set(bytes: &mut Bytes, table: &str, clients: &Clients) {
    named(bytes, table, NAME_OF_SET, &clients.name);
    bytes.number(3, SET_HAS_TIMEOUT | SET_IS_FILLED_BY_PACKETS);
    let (kind, length) = if clients.family == Family::V4 { (ADDRESS4, 4) } else { (ADDRESS6, 16) };
    bytes.number(4, kind);
    bytes.number(5, length);
    bytes.nest(9, |it| it.number(1, CLIENTS_MAX));
    bytes.number(10, 1);
    bytes.attribute(11, &(u64::from(clients.seconds) * 1000).to_be_bytes());
}

fn elements(bytes: &mut Bytes, table: &str, first: &Element, changes: &[Change]) {
    named(bytes, table, 2, &first.map.name());
    bytes.nest(3, |bytes| {
        for change in changes {
            let (element, value) = match change {
                Change::Add(element, value) => (element, Some(value)),
                Change::Remove(element) => (element, None),
                _ => continue,
            };
            bytes.nest(LIST_ELEMENT, |bytes| {
                bytes.nest(1, |it| data(it, &key(element)));
                match value {
                    None | Some(Value::Nothing) => {}
                    Some(Value::Goto(chain)) => bytes.nest(2, |it| verdict(it, GOTO, Some(chain))),
                    Some(Value::Drop) => bytes.nest(2, |it| verdict(it, DROP, None)),
                    Some(Value::To(backend)) => {
                        let value = [address(backend.address), port(backend.port)].concat();
                        bytes.nest(2, |it| data(it, &value));
                    }
                }
            });
        }
    });
}

/// Parts of a key fill whole words.
fn key(element: &Element) -> Vec<u8> {
    match element.key {
        ElementKey::Address(it) if matches!(element.map, Map::Hairpins(_)) => [address(it), address(it)].concat(),
        ElementKey::Address(it) => address(it),
        ElementKey::Frontend { address: it, protocol, port: number } => {
            [address(it), vec![protocol.number(), 0, 0, 0], port(number)].concat()
        }
        ElementKey::Port { protocol, port: number } => [vec![protocol.number(), 0, 0, 0], port(number)].concat(),
        // Drawn numbers stand in the machine's own order.
        ElementKey::Number(it) => it.to_ne_bytes().to_vec(),
    }
}

pub(super) fn address(address: IpAddr) -> Vec<u8> {
    match address {
        IpAddr::V4(it) => it.octets().to_vec(),
        IpAddr::V6(it) => it.octets().to_vec(),
    }
}

pub(super) fn port(port: u16) -> Vec<u8> {
    let [a, b] = port.to_be_bytes();
    vec![a, b, 0, 0]
}

/// Fills an attribute of data with a value.
pub(super) fn data(bytes: &mut Bytes, value: &[u8]) {
    bytes.attribute(DATA_VALUE, value);
}

/// Fills an attribute of data with a verdict.
pub(super) fn verdict(bytes: &mut Bytes, code: i32, chain: Option<&str>) {
    bytes.nest(DATA_VERDICT, |it| {
        it.attribute(1, &code.to_be_bytes());
        if let Some(chain) = chain {
            it.text(2, chain);
        }
    });
}
