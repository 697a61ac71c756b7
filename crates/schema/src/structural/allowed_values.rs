//! The values that an `enum` allows, in sets: a list of many items is compared with many of them.

use std::collections::BTreeSet;

use corten_cel::spend;
use corten_meta::Violation;
use serde_json::{Number, Value};

#[derive(Debug)]
pub(super) struct AllowedValues {
    texts: BTreeSet<String>,
    /// By their bits as floats: numbers are the same whether or not they are written with a point.
    numbers: BTreeSet<u64>,
    /// All others, each with what it takes to compare it, in units of fuel.
    others: Vec<(Value, u64)>,
    /// All, as they are told.
    told: Vec<String>,
}

impl AllowedValues {
    /// `None` where any value is allowed.
    pub(super) fn of(values: &[Value]) -> Option<Self> {
        if values.is_empty() {
            return None;
        }
        let told = values.iter().map(shown).collect();
        let mut allowed = Self { texts: BTreeSet::new(), numbers: BTreeSet::new(), others: Vec::new(), told };
        for (value, text) in values.iter().zip(&allowed.told) {
            match value {
                Value::String(it) => {
                    allowed.texts.insert(it.clone());
                }
                Value::Number(it) => {
                    allowed.numbers.insert(bits(it));
                }
                other => allowed.others.push((other.clone(), 1 + text.len() as u64 / 16)),
            }
        }
        Some(allowed)
    }

    pub(super) fn contains(&self, value: &Value) -> bool {
        match value {
            Value::String(it) => self.texts.contains(it),
            Value::Number(it) => self.numbers.contains(&bits(it)),
            other => self.others.iter().any(|(it, cost)| spend(*cost) && it == other),
        }
    }

    pub(super) fn violation(&self, path: &str, value: &Value) -> Violation {
        let told: Vec<&str> = self.told.iter().map(|it| &**it).collect();
        Violation::not_supported(path, &shown(value), &told)
    }
}

fn shown(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

/// Zero is the same with either sign.
fn bits(number: &Number) -> u64 {
    (number.as_f64().unwrap_or_default() + 0.0).to_bits()
}
