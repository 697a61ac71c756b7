//! The values that an `enum` allows, in sets: a list of many items is compared with many of them.

use std::collections::BTreeSet;

use corten_cel::spend;
use corten_meta::Violation;
use serde_json::{Number, Value};

#[derive(Debug)]
pub(super) struct AllowedValues {
    texts: BTreeSet<String>,
    numbers: BTreeSet<Exact>,
    /// All others, each with what it takes to compare it, in units of fuel.
    others: Vec<(Value, u64)>,
    /// As they are told: as many as a message has room for.
    told: Vec<String>,
}

/// More is cut from a message.
const TOLD_BYTES_MAX: usize = 16 * 1024;

/// A number as it is compared: the same whether or not it is written with a point, and exact where it is whole.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Exact {
    Whole(i128),
    /// By its bits.
    Fraction(u64),
}

impl AllowedValues {
    /// `None` where any value is allowed.
    pub(super) fn of(values: &[Value]) -> Option<Self> {
        if values.is_empty() {
            return None;
        }
        let mut allowed =
            Self { texts: BTreeSet::new(), numbers: BTreeSet::new(), others: Vec::new(), told: Vec::new() };
        let mut room = TOLD_BYTES_MAX;
        for value in values {
            let text = shown(value);
            match value {
                Value::String(it) => {
                    allowed.texts.insert(it.clone());
                }
                Value::Number(it) => {
                    allowed.numbers.insert(exact(it));
                }
                other => allowed.others.push((other.clone(), 1 + text.len() as u64 / 16)),
            }
            if room > 0 {
                room = room.saturating_sub(text.len());
                allowed.told.push(text);
            }
        }
        Some(allowed)
    }

    pub(super) fn contains(&self, value: &Value) -> bool {
        match value {
            Value::String(it) => self.texts.contains(it),
            Value::Number(it) => self.numbers.contains(&exact(it)),
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

fn exact(number: &Number) -> Exact {
    /// Below this every float that has no fraction is a whole number of 64 bits.
    const WHOLE_MAX: f64 = 9.0e18;
    let whole = number.as_i64().map(i128::from).or_else(|| number.as_u64().map(i128::from));
    let float = number.as_f64().unwrap_or_default();
    match whole {
        Some(it) => Exact::Whole(it),
        #[expect(clippy::cast_possible_truncation, reason = "it has no fraction, and is within the range")]
        None if float.fract() == 0.0 && float.abs() < WHOLE_MAX => Exact::Whole(float as i128),
        None => Exact::Fraction(float.to_bits()),
    }
}
