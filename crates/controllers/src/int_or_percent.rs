//! Rules such as `maxUnavailable`: a number of pods, or a percentage of them. Whatever the percentage, the number is one the
//! API can write, so sums of a few never overflow.

use serde_json::Value;

pub(crate) fn rounded_up(rule: &Value, total: i64) -> i64 {
    share(rule, total, 99)
}

pub(crate) fn rounded_down(rule: &Value, total: i64) -> i64 {
    share(rule, total, 0)
}

fn share(rule: &Value, total: i64, hundredths: i64) -> i64 {
    match rule {
        Value::Number(number) => writable(number.as_i64().unwrap_or(0)),
        Value::String(text) => {
            let percent = text.strip_suffix('%').and_then(|it| it.parse::<i64>().ok()).unwrap_or(0);
            writable(percent.saturating_mul(total).saturating_add(hundredths) / 100)
        }
        _ => 0,
    }
}

/// The API's numbers of pods have 32 bits.
fn writable(number: i64) -> i64 {
    number.clamp(i64::from(i32::MIN), i64::from(i32::MAX))
}
