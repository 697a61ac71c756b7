//! Which fields are not written where they have the zero value of their type: Go's `omitempty` on a field that is no pointer.

use std::{collections::BTreeMap, sync::LazyLock};

use super::shapes::{Field, Shape};

/// Columns: field, shape, the types it is so in: `*` for all, names, names with their group after a slash, or with `-` all
/// but these. A field that the schemas require is written always, unless its type is named.
const TABLE: &str = include_str!("omitted.tsv");

static FACTS: LazyLock<BTreeMap<(&str, &str), Vec<&str>>> = LazyLock::new(|| {
    let columns = |line: &'static str| {
        let mut columns = line.split('\t');
        Some(((columns.next()?, columns.next()?), columns.next()?.split(' ').collect()))
    };
    TABLE.lines().skip(1).filter_map(columns).collect()
});

/// Kinds whose types nobody has looked through.
const UNKNOWN: [&str; 3] = ["io.k8s.apiextensions", "io.k8s.kube-aggregator", "dev.corten"];

pub(super) fn is(of: &str, name: &str, field: &Field) -> bool {
    if UNKNOWN.iter().any(|it| of.starts_with(it)) {
        return false;
    }
    let Shape::Plain(shape) = &field.shape else { return false };
    let mut segments = of.rsplit('.');
    let (short, group) = (segments.next().unwrap_or_default(), segments.nth(1).unwrap_or_default());
    match FACTS.get(&(name, *shape)).map(Vec::as_slice) {
        None => *shape == "Bytes" && !field.required,
        Some(["*"]) => !field.required,
        Some(but @ [first, ..]) if first.starts_with('-') => !field.required && !but.iter().any(|it| it[1..] == *short),
        Some(only) => only.iter().any(|it| *it == short || *it == format!("{short}/{group}")),
    }
}
