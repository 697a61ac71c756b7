//! Kubernetes quantities: `100m`, `1.5Gi`, `2e3`. A value is kept exactly, in billionths, with its text's own suffix family.

use std::{cmp::Ordering, fmt, str::FromStr};

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// How a quantity is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Format {
    Decimal,
    Binary,
    Exponent,
}

/// A fixed-point number with nine digits after the point, as precise as apimachinery keeps one.
#[derive(Clone, Copy, Debug)]
pub struct Quantity {
    nano: i128,
    format: Format,
}

const NANO: i128 = 1_000_000_000;
/// Larger values saturate: 2^63 - 1 units, the bound Kubernetes has for its own arithmetic.
const NANO_MAX: i128 = i64::MAX as i128 * NANO;

const DECIMAL: [(&str, i128); 10] = [
    ("E", 1_000_000_000_000_000_000 * NANO),
    ("P", 1_000_000_000_000_000 * NANO),
    ("T", 1_000_000_000_000 * NANO),
    ("G", 1_000_000_000 * NANO),
    ("M", 1_000_000 * NANO),
    ("k", 1_000 * NANO),
    ("", NANO),
    ("m", NANO / 1_000),
    ("u", NANO / 1_000_000),
    ("n", 1),
];
const BINARY: [(&str, i128); 6] = [
    ("Ei", NANO << 60),
    ("Pi", NANO << 50),
    ("Ti", NANO << 40),
    ("Gi", NANO << 30),
    ("Mi", NANO << 20),
    ("Ki", NANO << 10),
];

/// What Kubernetes says of a text that is no quantity.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'")]
pub struct InvalidQuantity;

impl Quantity {
    pub const ZERO: Self = Self { nano: 0, format: Format::Decimal };

    pub fn units(units: i64) -> Self {
        Self { nano: i128::from(units) * NANO, format: Format::Decimal }
    }

    pub fn millis(millis: i64) -> Self {
        Self { nano: i128::from(millis) * (NANO / 1_000), format: Format::Decimal }
    }

    pub fn nanos(nanos: i64) -> Self {
        Self { nano: i128::from(nanos), format: Format::Decimal }
    }

    /// Bytes, written with binary suffixes.
    pub fn bytes(bytes: i64) -> Self {
        Self { nano: i128::from(bytes) * NANO, format: Format::Binary }
    }

    /// In whole units, rounded up as Kubernetes rounds.
    pub fn value(self) -> i64 {
        clamp(ceil_div(self.nano, NANO))
    }

    /// In thousandths, rounded up.
    pub fn milli_value(self) -> i64 {
        clamp(ceil_div(self.nano, NANO / 1_000))
    }

    /// In whole units, if it is whole and no larger than a number of 64 bits.
    pub fn exact(self) -> Option<i64> {
        // What is beyond the bound was cut to it, and is not exact.
        let is_exact = self.nano % NANO == 0 && self.nano.abs() < NANO_MAX;
        is_exact.then(|| i64::try_from(self.nano / NANO).ok())?
    }

    /// As near as a float comes.
    #[expect(clippy::cast_precision_loss, reason = "near is all that was asked for")]
    pub fn approximate(self) -> f64 {
        if self.nano % NANO == 0 { (self.nano / NANO) as f64 } else { self.nano as f64 / NANO as f64 }
    }

    pub fn is_negative(self) -> bool {
        self.nano < 0
    }

    pub fn is_zero(self) -> bool {
        self.nano == 0
    }

    /// As in `Quantity.Add`: nothing plus something is written as that something is.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        let format = if self.is_zero() { other.format } else { self.format };
        Self { nano: (self.nano + other.nano).clamp(-NANO_MAX, NANO_MAX), format }
    }

    #[must_use]
    pub fn minus(self, other: Self) -> Self {
        let format = if self.is_zero() { other.format } else { self.format };
        Self { nano: (self.nano - other.nano).clamp(-NANO_MAX, NANO_MAX), format }
    }

    /// To whole units.
    #[must_use]
    pub fn rounded_up(self) -> Self {
        Self { nano: ceil_div(self.nano, NANO) * NANO, format: self.format }
    }
}

fn ceil_div(number: i128, by: i128) -> i128 {
    number.div_euclid(by) + i128::from(number.rem_euclid(by) != 0)
}

fn clamp(number: i128) -> i64 {
    i64::try_from(number).unwrap_or(if number < 0 { i64::MIN } else { i64::MAX })
}

impl FromStr for Quantity {
    type Err = InvalidQuantity;

    fn from_str(text: &str) -> Result<Self, InvalidQuantity> {
        let at = text.find(|it: char| !matches!(it, '0'..='9' | '.' | '+' | '-')).unwrap_or(text.len());
        let (number, suffix) = text.split_at(at);
        let (unit, format) = unit(suffix).ok_or(InvalidQuantity)?;
        let (negative, digits) = match number.as_bytes().first() {
            Some(b'-') => (true, &number[1..]),
            Some(b'+') => (false, &number[1..]),
            _ => (false, number),
        };
        let magnitude = scaled(digits, unit).ok_or(InvalidQuantity)?.min(NANO_MAX);
        Ok(Self { nano: if negative { -magnitude } else { magnitude }, format })
    }
}

/// The size of one unit of `suffix`, in billionths, as a fraction `(numerator, denominator)`.
fn unit(suffix: &str) -> Option<((i128, i128), Format)> {
    if let Some((_, size)) = BINARY.iter().find(|it| it.0 == suffix) {
        return Some(((*size, 1), Format::Binary));
    }
    if let Some((_, size)) = DECIMAL.iter().find(|it| it.0 == suffix) {
        return Some(((*size, 1), Format::Decimal));
    }
    let exponent: i32 = suffix.strip_prefix(['e', 'E'])?.parse().ok()?;
    let power = 10_i128.checked_pow(exponent.unsigned_abs().min(27))?;
    Some((if exponent < 0 { (NANO, power) } else { (NANO.saturating_mul(power), 1) }, Format::Exponent))
}

/// `digits` (with at most one point) times `unit`, rounded up to a whole billionth; `None` where it is no number.
fn scaled(digits: &str, (numerator, denominator): (i128, i128)) -> Option<i128> {
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    let is_number = |it: &str| it.bytes().all(|it| it.is_ascii_digit());
    if (whole.is_empty() && fraction.is_empty()) || !is_number(whole) || !is_number(fraction) {
        return None;
    }
    let whole = if whole.is_empty() { 0 } else { whole.parse::<i128>().unwrap_or(i128::MAX) };
    let fraction = &fraction[..fraction.len().min(18)];
    let parts = if fraction.is_empty() { 0 } else { fraction.parse::<i128>().ok()? };
    let scale = 10_i128.pow(u32::try_from(fraction.len()).ok()?);
    let fraction = ceil_div(parts.saturating_mul(numerator / gcd(numerator, scale)), scale / gcd(numerator, scale));
    Some(ceil_div(whole.saturating_mul(numerator).saturating_add(fraction), denominator))
}

fn gcd(a: i128, b: i128) -> i128 {
    if b == 0 { a } else { gcd(b, a % b) }
}

impl fmt::Display for Quantity {
    /// The canonical form: the largest suffix of its family that keeps the number whole.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.nano == 0 {
            return f.write_str("0");
        }
        if self.format == Format::Binary && self.nano % NANO == 0 {
            let fit = BINARY.iter().find(|(_, size)| self.nano % size == 0);
            let (suffix, size) = fit.copied().unwrap_or(("", NANO));
            return write!(f, "{}{suffix}", self.nano / size);
        }
        let fit = DECIMAL.iter().find(|(_, size)| self.nano % size == 0);
        let (suffix, size) = fit.copied().unwrap_or(("n", 1));
        if self.format == Format::Exponent && size >= NANO {
            let exponent = (size / NANO).ilog10();
            return if exponent == 0 {
                write!(f, "{}", self.nano / size)
            } else {
                write!(f, "{}e{exponent}", self.nano / size)
            };
        }
        write!(f, "{}{suffix}", self.nano / size)
    }
}

impl PartialEq for Quantity {
    fn eq(&self, other: &Self) -> bool {
        self.nano == other.nano
    }
}
impl Eq for Quantity {}
impl PartialOrd for Quantity {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}
impl Ord for Quantity {
    fn cmp(&self, other: &Self) -> Ordering {
        self.nano.cmp(&other.nano)
    }
}
impl Default for Quantity {
    fn default() -> Self {
        Self::ZERO
    }
}

impl Serialize for Quantity {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}
impl<'de> Deserialize<'de> for Quantity {
    /// From text, or from a plain JSON number as Kubernetes accepts it.
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = match serde_json::Value::deserialize(deserializer)? {
            serde_json::Value::String(text) => text,
            serde_json::Value::Number(number) => number.to_string(),
            _ => return Err(serde::de::Error::custom(InvalidQuantity)),
        };
        text.parse().map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_and_writes_canonically() {
        for (text, canonical, value, millis) in [
            ("0", "0", 0, 0),
            ("1", "1", 1, 1000),
            ("1000m", "1", 1, 1000),
            ("100m", "100m", 1, 100),
            ("0.1", "100m", 1, 100),
            ("1.5Gi", "1536Mi", 1_610_612_736, 1_610_612_736_000),
            ("1024Ki", "1Mi", 1_048_576, 1_048_576_000),
            ("1e3", "1e3", 1000, 1_000_000),
            ("12e-1", "1200m", 2, 1200),
            ("2k", "2k", 2000, 2_000_000),
            ("-5", "-5", -5, -5000),
            (".5", "500m", 1, 500),
            ("100u", "100u", 1, 1),
        ] {
            let quantity: Quantity = text.parse().expect(text);
            assert_eq!(
                (quantity.to_string().as_str(), quantity.value(), quantity.milli_value()),
                (canonical, value, millis),
                "{text}"
            );
        }
        for text in
            ["", ".", "1.2.3", "abc", "1Kb", "1 Gi", "--1", "1e", "Gi", "99999999999999999999999999999999999999999x"]
        {
            assert!(text.parse::<Quantity>().is_err(), "{text}");
        }
        assert_eq!(
            "99999999999999999999999999999999999999999".parse::<Quantity>().expect("saturates").value(),
            i64::MAX
        );
    }
}
