//! Protobuf field numbers: facts of Kubernetes's wire format that the schemas do not carry.

use std::{collections::BTreeMap, sync::LazyLock};

/// Columns: type, field, number, and `always` where the field is on the wire even if nobody set it: it is no pointer in Go.
/// `1.4` is field 4 of the struct embedded as field 1.
const TABLE: &str = include_str!("proto_numbers.tsv");

static NUMBERS: LazyLock<BTreeMap<(&str, &str), Number>> = LazyLock::new(|| {
    let columns = |line: &'static str| {
        let mut columns = line.split('\t');
        let key = (columns.next()?, columns.next()?);
        Some((key, Number { text: columns.next()?, always: columns.next() == Some("always") }))
    };
    TABLE.lines().skip(1).filter_map(columns).collect()
});

#[derive(Clone, Copy)]
pub(super) struct Number {
    text: &'static str,
    pub always: bool,
}

impl Number {
    /// From the outermost embedded struct to the field itself.
    pub(super) fn path(self) -> Vec<u8> {
        self.text.split('.').map(|it| it.parse().expect("the table has numbers below 256")).collect()
    }
}

pub(super) fn of(of: &str, field: &str) -> Option<Number> {
    NUMBERS.get(&(of, field)).copied()
}
