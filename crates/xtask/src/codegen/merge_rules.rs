//! Which lists are maps or sets, and what strategic merge does: facts that the schemas do not carry.

use std::collections::BTreeMap;

use anyhow::{Context, Result, bail};

/// Columns: type, field or `(self)`, list or map type, keys, patch strategy, patch key. Types without `io.k8s.`.
const TABLE: &str = include_str!("merge_rules.tsv");

#[derive(Clone, Debug, Default)]
pub(super) struct Rule {
    /// `map`, `set`, `atomic`, `granular` or empty.
    pub kind: &'static str,
    pub keys: Vec<&'static str>,
    /// `merge`, `replace`, `retainKeys`, or several.
    pub strategy: Vec<&'static str>,
    pub patch_key: &'static str,
}

/// By type and field; the field of a rule about the type itself is `(self)`.
pub(super) type Rules = BTreeMap<(&'static str, &'static str), Rule>;

pub(super) fn read() -> Result<Rules> {
    let mut rules = Rules::new();
    for line in TABLE.lines().skip(1) {
        let columns: Vec<&'static str> = line.split('\t').collect();
        let [of, field, kind, keys, strategy, patch_key] = columns[..] else { bail!("reading merge rule {line:?}") };
        let split = |it: &'static str| it.split(',').filter(|it| !it.is_empty()).collect();
        let rule = Rule { kind, keys: split(keys), strategy: split(strategy), patch_key };
        rules.insert((of, field), rule);
    }
    rules.first_key_value().context("reading merge rules")?;
    Ok(rules)
}
