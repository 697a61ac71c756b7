//! Protobuf field numbers: facts of Kubernetes's wire format that the schemas do not carry.

use std::{collections::BTreeMap, sync::LazyLock};

/// Columns: type, field, number. `1.4` is field 4 of the struct embedded as field 1.
const TABLE: &str = include_str!("proto_numbers.tsv");

static NUMBERS: LazyLock<BTreeMap<(&str, &str), &str>> = LazyLock::new(|| {
    let columns = |line: &'static str| line.split_once('\t').and_then(|(of, rest)| Some((of, rest.split_once('\t')?)));
    TABLE.lines().skip(1).filter_map(columns).map(|(of, (field, number))| ((of, field), number)).collect()
});

pub(super) fn of(of: &str, field: &str) -> Option<&'static str> {
    NUMBERS.get(&(of, field)).copied()
}
