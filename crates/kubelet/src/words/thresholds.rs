//! When a node is short of something: upstream's eviction signals and thresholds, and how options write them.

use std::{collections::BTreeMap, time::Duration};

use corten_meta::{Quantity, duration::duration};

/// What is watched.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Signal {
    MemoryAvailable,
    NodeFsAvailable,
    NodeFsInodesFree,
    ImageFsAvailable,
    ImageFsInodesFree,
    PidAvailable,
}

impl Signal {
    pub const ALL: [Self; 6] = [
        Self::MemoryAvailable,
        Self::NodeFsAvailable,
        Self::NodeFsInodesFree,
        Self::ImageFsAvailable,
        Self::ImageFsInodesFree,
        Self::PidAvailable,
    ];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::MemoryAvailable => "memory.available",
            Self::NodeFsAvailable => "nodefs.available",
            Self::NodeFsInodesFree => "nodefs.inodesFree",
            Self::ImageFsAvailable => "imagefs.available",
            Self::ImageFsInodesFree => "imagefs.inodesFree",
            Self::PidAvailable => "pid.available",
        }
    }

    /// What it is a shortage of, as messages name it.
    pub(crate) fn resource(self) -> &'static str {
        match self {
            Self::MemoryAvailable => "memory",
            Self::NodeFsAvailable | Self::ImageFsAvailable => "ephemeral-storage",
            Self::NodeFsInodesFree | Self::ImageFsInodesFree => "inodes",
            Self::PidAvailable => "pids",
        }
    }

    pub(crate) fn condition(self) -> &'static str {
        match self {
            Self::MemoryAvailable => "MemoryPressure",
            Self::PidAvailable => "PIDPressure",
            _ => "DiskPressure",
        }
    }

    pub(crate) fn is_disk(self) -> bool {
        self.condition() == "DiskPressure"
    }

    fn parse(text: &str) -> Result<Self, String> {
        let found = Self::ALL.into_iter().find(|it| it.as_str() == text);
        found.ok_or_else(|| format!("unsupported eviction signal {text}"))
    }
}

/// So much, or a share of all there is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Limit {
    Quantity(Quantity),
    /// In thousandths of a percent.
    Share(i64),
}

impl Limit {
    pub(crate) fn of(self, capacity: i64) -> Quantity {
        match self {
            Self::Quantity(quantity) => quantity,
            Self::Share(share) => {
                let part = i128::from(capacity) * i128::from(share) / 100_000;
                Quantity::bytes(i64::try_from(part).unwrap_or(i64::MAX))
            }
        }
    }

    /// `None`: 0% and 100% mean that nothing is watched.
    fn parse(text: &str) -> Result<Option<Self>, String> {
        let Some(percent) = text.strip_suffix('%') else {
            let quantity: Quantity = text.parse().map_err(|it| format!("is no quantity: {it}"))?;
            if quantity.is_negative() || quantity.is_zero() {
                return Err(format!("must be positive: {text}"));
            }
            return Ok(Some(Self::Quantity(quantity)));
        };
        let number: Quantity = percent.parse().map_err(|_| format!("invalid percentage {text:?}"))?;
        let share = number.milli_value();
        match share {
            0 | 100_000 => Ok(None),
            1..100_000 => Ok(Some(Self::Share(share))),
            _ => Err(format!("percentage must be between 0% and 100%: {text}")),
        }
    }
}

/// Less than this of the signal is a shortage.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Threshold {
    pub signal: Signal,
    pub limit: Limit,
    /// A soft threshold must be crossed for so long; zero is a hard one.
    pub grace: Duration,
    /// The shortage is over once so much more than the limit is there.
    pub min_reclaim: Option<Limit>,
}

impl Threshold {
    pub(crate) fn is_hard(&self) -> bool {
        self.grace.is_zero()
    }
}

/// How the node deals with shortages: upstream's settings of the same names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EvictionConfig {
    pub thresholds: Vec<Threshold>,
    /// How long a condition stays after the shortage is over.
    pub pressure_transition_period: Duration,
    /// The longest grace of a pod that ends for a soft threshold.
    pub max_pod_grace_seconds: i64,
}

impl EvictionConfig {
    /// With less than this left of the node's disk, Pods are evicted: bytes, and thousandths of a percent of all there is.
    pub fn node_fs_limit(&self) -> (u64, u64) {
        let hard = self.thresholds.iter().filter(|it| it.signal == Signal::NodeFsAvailable && it.is_hard());
        hard.fold((0, 0), |(bytes, share), it| match it.limit {
            Limit::Quantity(quantity) => (bytes.max(quantity.value().unsigned_abs()), share),
            Limit::Share(of) => (bytes, share.max(of.unsigned_abs())),
        })
    }
}

impl Default for EvictionConfig {
    fn default() -> Self {
        Self {
            thresholds: hard_thresholds(DEFAULT_HARD).expect("the default can be read"),
            pressure_transition_period: Duration::from_secs(300),
            max_pod_grace_seconds: 0,
        }
    }
}

/// `DefaultEvictionHard` on Linux.
pub const DEFAULT_HARD: &str =
    "imagefs.available<15%,imagefs.inodesFree<5%,memory.available<100Mi,nodefs.available<10%,nodefs.inodesFree<5%";

/// Reads `memory.available<100Mi,nodefs.available<10%`.
///
/// # Errors
/// What is wrong with it, in the words of `ParseThresholdConfig`.
pub fn hard_thresholds(text: &str) -> Result<Vec<Threshold>, String> {
    let mut thresholds = Vec::new();
    for (signal, value) in pairs(text, '<')? {
        let signal = Signal::parse(&signal)?;
        let limit = Limit::parse(&value).map_err(|it| format!("eviction threshold {} {it}", signal.as_str()))?;
        let hard = |limit| Threshold { signal, limit, grace: Duration::ZERO, min_reclaim: None };
        thresholds.extend(limit.map(hard));
    }
    Ok(thresholds)
}

/// Reads soft thresholds, and for each how long it must be crossed: `memory.available=1m30s`.
///
/// # Errors
/// What is wrong with either, in the words of `ParseThresholdConfig`.
pub fn soft_thresholds(text: &str, grace_periods: &str) -> Result<Vec<Threshold>, String> {
    let periods = pairs(grace_periods, '=')?;
    let mut graces = BTreeMap::new();
    for (signal, value) in periods {
        graces.insert(Signal::parse(&signal)?, duration(&value)?);
    }
    let mut thresholds = hard_thresholds(text)?;
    for threshold in &mut thresholds {
        let name = threshold.signal.as_str();
        let grace = graces.get(&threshold.signal);
        threshold.grace =
            *grace.ok_or_else(|| format!("grace period must be specified for the soft eviction threshold {name}"))?;
    }
    Ok(thresholds)
}

/// Reads `nodefs.available=1Gi` into the thresholds of those signals.
///
/// # Errors
/// What is wrong with it.
pub fn set_min_reclaims(thresholds: &mut [Threshold], text: &str) -> Result<(), String> {
    for (signal, value) in pairs(text, '=')? {
        let signal = Signal::parse(&signal)?;
        let limit = Limit::parse(&value).map_err(|it| format!("minimum reclaim of {} {it}", signal.as_str()))?;
        thresholds.iter_mut().filter(|it| it.signal == signal).for_each(|it| it.min_reclaim = limit);
    }
    Ok(())
}

fn pairs(text: &str, sign: char) -> Result<Vec<(String, String)>, String> {
    let parts = text.split(',').map(str::trim).filter(|it| !it.is_empty());
    let pair = |it: &str| {
        let (key, value) = it.split_once(sign)?;
        Some((key.trim().to_owned(), value.trim().to_owned()))
    };
    parts.map(|it| pair(it).ok_or_else(|| format!("{it:?} is not of the form signal{sign}value"))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_are_read_as_upstream_reads_them() {
        for (text, expected) in [
            ("memory.available<100Mi", Ok(vec![(Signal::MemoryAvailable, "100Mi")])),
            (
                " nodefs.available<10% , imagefs.inodesFree<5.5%,",
                Ok(vec![(Signal::NodeFsAvailable, "100"), (Signal::ImageFsInodesFree, "55")]),
            ),
            ("nodefs.available<0%,pid.available<100%", Ok(vec![])),
            ("", Ok(vec![])),
            ("disk.available<1", Err("unsupported eviction signal disk.available")),
            ("memory.available<-1Mi", Err("eviction threshold memory.available must be positive: -1Mi")),
            (
                "memory.available<101%",
                Err("eviction threshold memory.available percentage must be between 0% and 100%: 101%"),
            ),
            ("memory.available=1", Err("\"memory.available=1\" is not of the form signal<value")),
        ] {
            let found = hard_thresholds(text);
            let found = found.map(|it| it.iter().map(|it| (it.signal, it.limit.of(1000).to_string())).collect());
            let expected: Result<Vec<_>, String> = expected
                .map(|it| it.into_iter().map(|(signal, text)| (signal, text.to_owned())).collect())
                .map_err(str::to_owned);
            assert_eq!(found, expected, "{text}");
        }
        assert_eq!(EvictionConfig::default().thresholds.len(), 5);
    }

    #[test]
    fn soft_thresholds_need_a_time() {
        let missing = soft_thresholds("memory.available<1Gi", "");
        assert_eq!(
            missing.expect_err("no time"),
            "grace period must be specified for the soft eviction threshold memory.available"
        );
        let mut found = soft_thresholds("memory.available<1Gi", "memory.available=1m30s").expect("it can be read");
        set_min_reclaims(&mut found, "memory.available=500Mi").expect("it can be read");
        assert_eq!((found[0].grace.as_secs(), found[0].min_reclaim.is_some()), (90, true));
    }
}
