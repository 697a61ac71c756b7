//! A Pod's limits, in the words of whoever enforces them: files of either layout, or settings of a unit.

use super::{
    PodLimits,
    slices::{INFINITY, Property},
};

/// Controller, file, and what is written to it.
pub(super) type Setting = (&'static str, &'static str, String);

const CPU_PERIOD_MICROS: i64 = 100_000;
/// systemd keeps whole percents of a CPU, in microseconds of each second.
const PERCENT_MICROS: u64 = 10_000;

/// Which file of which controller says what.
pub(super) fn files(unified: bool, limits: &PodLimits) -> Vec<Setting> {
    let mut settings = Vec::new();
    if let Some(shares) = limits.cpu_shares {
        settings.push(match unified {
            true => ("cpu", "cpu.weight", weight(shares).to_string()),
            false => ("cpu", "cpu.shares", shares.to_string()),
        });
    }
    if let Some(quota) = limits.cpu_quota_micros {
        if unified {
            settings.push(("cpu", "cpu.max", format!("{quota} {CPU_PERIOD_MICROS}")));
        } else {
            settings.push(("cpu", "cpu.cfs_period_us", CPU_PERIOD_MICROS.to_string()));
            settings.push(("cpu", "cpu.cfs_quota_us", quota.to_string()));
        }
    }
    if let Some(bytes) = limits.memory_bytes {
        let file = if unified { "memory.max" } else { "memory.limit_in_bytes" };
        settings.push(("memory", file, bytes.to_string()));
    }
    if let Some(pids) = limits.pids {
        settings.push(("pids", "pids.max", pids.to_string()));
    }
    settings
}

/// `cpu.shares` (2 to 262144) as `cpu.weight` (1 to 10000), on the line runc draws between them.
fn weight(shares: u64) -> u64 {
    1 + (shares.clamp(2, 262_144) - 2) * 9_999 / 262_142
}

/// Of a Pod that runs: what has no limit now is told so.
pub(super) fn changed_files(unified: bool, limits: &PodLimits) -> Vec<Setting> {
    let mut all = files(unified, limits);
    if limits.memory_bytes.is_none() {
        all.push(if unified {
            ("memory", "memory.max", "max".to_owned())
        } else {
            ("memory", "memory.limit_in_bytes", "-1".to_owned())
        });
    }
    if limits.cpu_quota_micros.is_none() {
        all.push(if unified {
            ("cpu", "cpu.max", format!("max {CPU_PERIOD_MICROS}"))
        } else {
            ("cpu", "cpu.cfs_quota_us", "-1".to_owned())
        });
    }
    all
}

/// What systemd is told.
pub(super) fn properties(limits: &PodLimits) -> Vec<Property> {
    let all = [
        ("CPUWeight", limits.cpu_shares.map(weight)),
        ("CPUQuotaPerSecUSec", limits.cpu_quota_micros.map(quota_per_second)),
        ("MemoryMax", limits.memory_bytes),
        ("TasksMax", limits.pids),
    ];
    all.into_iter().filter_map(|(name, value)| Some((name, value?.into()))).collect()
}

/// Of a Pod that runs: what has no limit now is told so.
pub(super) fn changed_properties(limits: &PodLimits) -> Vec<Property> {
    let mut all = properties(limits);
    for name in ["CPUQuotaPerSecUSec", "MemoryMax"] {
        if !all.iter().any(|it| it.0 == name) {
            all.push((name, INFINITY.into()));
        }
    }
    all
}

/// As runc's systemd driver, never less than was asked for: after a reload systemd has what it wrote down.
fn quota_per_second(quota_micros: i64) -> u64 {
    let Some(quota) = u64::try_from(quota_micros).ok().filter(|it| *it > 0) else { return INFINITY };
    let micros = quota.saturating_mul(1_000_000) / CPU_PERIOD_MICROS.unsigned_abs();
    micros.div_ceil(PERCENT_MICROS).saturating_mul(PERCENT_MICROS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_unit_has_the_same_limits() {
        let limits = PodLimits {
            cpu_shares: Some(1024),
            cpu_quota_micros: Some(12_500),
            memory_bytes: Some(1 << 20),
            pids: Some(100),
        };
        let of = |all: Vec<Property>| all.into_iter().map(|(name, it)| (name, u64::try_from(it).expect("a number")));
        assert_eq!(
            of(properties(&limits)).collect::<Vec<_>>(),
            [("CPUWeight", 39), ("CPUQuotaPerSecUSec", 130_000), ("MemoryMax", 1 << 20), ("TasksMax", 100)]
        );
        assert_eq!(properties(&PodLimits::default()), []);
        assert_eq!(
            of(changed_properties(&PodLimits::default())).collect::<Vec<_>>(),
            [("CPUQuotaPerSecUSec", INFINITY), ("MemoryMax", INFINITY)]
        );
    }
}
