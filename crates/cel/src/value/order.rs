//! Which of two values comes first.

use std::cmp::Ordering;

use super::Value;
use crate::fuel;

/// `None` where one does not come before, after or with the other.
pub(crate) fn compare(a: &Value<'_>, b: &Value<'_>) -> Option<Ordering> {
    match (a, b) {
        (Value::Int(a), Value::Int(b)) | (Value::Duration(a), Value::Duration(b)) => Some(a.cmp(b)),
        (Value::Uint(a), Value::Uint(b)) => Some(a.cmp(b)),
        (Value::Double(a), Value::Double(b)) => a.partial_cmp(b),
        (Value::Int(a), Value::Uint(b)) => Some(i128::from(*a).cmp(&i128::from(*b))),
        (Value::Uint(a), Value::Int(b)) => Some(i128::from(*a).cmp(&i128::from(*b))),
        (Value::Int(a), Value::Double(b)) => whole_with_double(i128::from(*a), *b),
        (Value::Uint(a), Value::Double(b)) => whole_with_double(i128::from(*a), *b),
        (Value::Double(a), Value::Int(b)) => whole_with_double(i128::from(*b), *a).map(Ordering::reverse),
        (Value::Double(a), Value::Uint(b)) => whole_with_double(i128::from(*b), *a).map(Ordering::reverse),
        (Value::String(a), Value::String(b)) => {
            fuel::spend_read(a.len().min(b.len()));
            Some(str::cmp(a, b))
        }
        (Value::Bytes(a), Value::Bytes(b)) => Some(a.cmp(b)),
        (Value::Bool(a), Value::Bool(b)) => Some(a.cmp(b)),
        (Value::Timestamp(a), Value::Timestamp(b)) => Some(a.cmp(b)),
        _ => None,
    }
}

/// As cel-go compares them: as doubles, once the double is in the range of whole numbers of 64 bits.
#[expect(clippy::cast_precision_loss, reason = "the comparison is of doubles")]
fn whole_with_double(whole: i128, double: f64) -> Option<Ordering> {
    (whole as f64).partial_cmp(&double)
}
