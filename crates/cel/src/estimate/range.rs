//! At least so much, at most so much. Sums and products stay at the largest number.

use std::ops::{Add, Mul};

use crate::budget::times;

/// A cost, or a size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Range {
    pub min: u64,
    pub max: u64,
}

impl Range {
    pub(crate) const UNKNOWN: Self = Self::new(0, u64::MAX);

    pub(crate) const fn new(min: u64, max: u64) -> Self {
        Self { min, max }
    }

    pub(crate) const fn fixed(it: u64) -> Self {
        Self::new(it, it)
    }

    pub(crate) fn times(self, factor: f64) -> Self {
        Self::new(times(self.min, factor), times(self.max, factor))
    }

    /// What holds either.
    pub(crate) fn or(self, other: Self) -> Self {
        Self::new(self.min.min(other.min), self.max.max(other.max))
    }
}

impl Add for Range {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self::new(self.min.saturating_add(other.min), self.max.saturating_add(other.max))
    }
}

impl Mul for Range {
    type Output = Self;

    fn mul(self, other: Self) -> Self {
        Self::new(self.min.saturating_mul(other.min), self.max.saturating_mul(other.max))
    }
}
