//! What a map finds its values by. Numbers of two types that are equal are one key.

use std::{cmp::Ordering, fmt};

use super::{Text, Value};

#[derive(Clone, Debug)]
pub enum Key<'a> {
    Bool(bool),
    Int(i64),
    Uint(u64),
    String(Text<'a>),
}

impl<'a> Key<'a> {
    /// `None` for what cannot be one.
    pub(crate) fn of(value: Value<'a>) -> Option<Self> {
        match value {
            Value::Bool(it) => Some(Self::Bool(it)),
            Value::Int(it) => Some(Self::Int(it)),
            Value::Uint(it) => Some(Self::Uint(it)),
            Value::String(it) => Some(Self::String(it)),
            _ => None,
        }
    }

    /// To look something up: a double that is a whole number is that number.
    #[expect(clippy::cast_possible_truncation, reason = "only what is whole and in range is converted")]
    pub(crate) fn to_find(value: &Value<'a>) -> Option<Self> {
        match value {
            Value::Double(it) if it.fract() == 0.0 && it.abs() < 9.2e18 => Some(Self::Int(*it as i64)),
            other => Self::of(other.clone()),
        }
    }

    pub(crate) fn into_value(self) -> Value<'a> {
        match self {
            Self::Bool(it) => Value::Bool(it),
            Self::Int(it) => Value::Int(it),
            Self::Uint(it) => Value::Uint(it),
            Self::String(it) => Value::String(it),
        }
    }

    fn rank(&self) -> (u8, i128) {
        match self {
            Self::Bool(it) => (0, i128::from(*it)),
            Self::Int(it) => (1, i128::from(*it)),
            Self::Uint(it) => (1, i128::from(*it)),
            Self::String(_) => (2, 0),
        }
    }
}

impl Ord for Key<'_> {
    fn cmp(&self, other: &Self) -> Ordering {
        match (self, other) {
            (Self::String(a), Self::String(b)) => str::cmp(a, b),
            _ => self.rank().cmp(&other.rank()),
        }
    }
}

impl PartialOrd for Key<'_> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Key<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Key<'_> {}

impl fmt::Display for Key<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Bool(it) => write!(f, "{it}"),
            Self::Int(it) => write!(f, "{it}"),
            Self::Uint(it) => write!(f, "{it}"),
            Self::String(it) => f.write_str(it),
        }
    }
}
