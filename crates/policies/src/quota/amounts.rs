//! Amounts of resources by name, and the arithmetic on them that upstream's `quota` package has.

use std::collections::BTreeMap;

use corten_meta::Quantity;
use serde::Deserialize;
use serde_json::Value;

/// `v1.ResourceList`: how much of what.
pub type Amounts = BTreeMap<String, Quantity>;

/// Reads a `ResourceList`; what is no quantity is left out (validation refuses it).
pub fn amounts(list: &Value) -> Amounts {
    let entries = list.as_object().into_iter().flatten();
    entries.filter_map(|(name, value)| Some((name.clone(), Quantity::deserialize(value).ok()?))).collect()
}

/// As it is written into an object.
pub fn written(amounts: &Amounts) -> Value {
    amounts.iter().map(|(name, it)| (name.clone(), Value::String(it.to_string()))).collect()
}

pub(super) fn add(to: &mut Amounts, other: &Amounts) {
    other.iter().for_each(|(name, amount)| add_one(to, name, *amount));
}

fn add_one(to: &mut Amounts, name: &str, amount: Quantity) {
    let sum = to.get(name).map_or(amount, |it| it.plus(amount));
    to.insert(name.to_owned(), sum);
}

/// What is only in `other` becomes negative.
pub(super) fn subtract(from: &mut Amounts, other: &Amounts) {
    for (name, amount) in other {
        let rest = from.get(name).copied().unwrap_or_default().minus(*amount);
        from.insert(name.clone(), rest);
    }
}

pub(super) fn raise(to: &mut Amounts, other: &Amounts) {
    other.iter().for_each(|(name, amount)| raise_one(to, name, *amount));
}

fn raise_one(to: &mut Amounts, name: &str, amount: Quantity) {
    let most = to.get(name).map_or(amount, |it| (*it).max(amount));
    to.insert(name.to_owned(), most);
}

/// `cpu=1,pods=2`, as messages have it.
pub(super) fn listed(amounts: &Amounts) -> String {
    amounts.iter().map(|(name, it)| format!("{name}={it}")).collect::<Vec<_>>().join(",")
}
