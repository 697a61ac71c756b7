//! Which thresholds are crossed, since when, and what the node's conditions say of it.
//!
//! As `evictionPressureTransitionPeriod` asks: a condition stays some minutes after the shortage, so that nothing comes
//! back at once to what was barely relieved.

use std::collections::BTreeMap;

use corten_meta::{Quantity, Time};

use crate::{Amount, EvictionConfig, Signal, Signals, Threshold};

#[derive(Debug, Default)]
pub(crate) struct Pressure {
    pub(crate) seen: Option<Signals>,
    /// Since when each threshold is crossed, by its place among all.
    crossed: BTreeMap<usize, Time>,
    /// Those that are acted on until there is enough, which may be more than the limit.
    met: Vec<usize>,
    /// When each condition was last the case.
    conditions: BTreeMap<&'static str, Time>,
}

impl Pressure {
    /// Takes in what is left. The conditions may differ afterwards.
    pub(crate) fn observe(&mut self, signals: Signals, config: &EvictionConfig, now: Time) {
        let is_crossed = |at: usize, it: &Threshold| crosses(it, &signals, self.met.contains(&at));
        let crossed: Vec<usize> =
            config.thresholds.iter().enumerate().filter(|(at, it)| is_crossed(*at, it)).map(|(at, _)| at).collect();
        self.crossed.retain(|at, _| crossed.contains(at));
        for at in crossed {
            self.crossed.entry(at).or_insert(now);
            self.conditions.insert(config.thresholds[at].signal.condition(), now);
        }
        let lasts = |at: usize, since: Time| now.since(since) >= config.thresholds[at].grace;
        self.met = self.crossed.iter().filter(|(at, since)| lasts(**at, **since)).map(|(at, _)| *at).collect();
        self.seen = Some(signals);
    }

    /// What is to be done something about: memory first (`byEvictionPriority`).
    pub(crate) fn foremost<'c>(&self, config: &'c EvictionConfig) -> Option<&'c Threshold> {
        let met = || self.met.iter().filter_map(|at| config.thresholds.get(*at));
        met().find(|it| it.signal == Signal::MemoryAvailable).or_else(|| met().next())
    }

    /// The conditions that are the case, by name.
    pub(crate) fn conditions(&self, config: &EvictionConfig, now: Time) -> Vec<&'static str> {
        let period = config.pressure_transition_period;
        let is_now = |it: &'static str| {
            self.crossed.keys().any(|at| config.thresholds.get(*at).is_some_and(|t| t.signal.condition() == it))
        };
        let holds = |(name, at): (&&'static str, &Time)| (is_now(name) || now.since(*at) < period).then_some(*name);
        self.conditions.iter().filter_map(holds).collect()
    }

    pub(crate) fn amount(&self, signal: Signal) -> Option<Amount> {
        self.seen.as_ref()?.amounts.get(&signal).copied()
    }

    /// The limit of the first threshold that is about `resource`, and what was left; for messages.
    pub(crate) fn shortage(&self, resource: &str, config: &EvictionConfig) -> Option<(Quantity, Quantity)> {
        let about = |it: &&Threshold| it.signal.resource() == resource;
        let threshold = self.met.iter().filter_map(|at| config.thresholds.get(*at)).find(about)?;
        let amount = self.amount(threshold.signal)?;
        Some((threshold.limit.of(amount.capacity), left(threshold.signal, amount)))
    }

    pub(crate) fn has_image_fs(&self) -> bool {
        self.seen.as_ref().is_some_and(|it| it.has_image_fs)
    }
}

/// What is left, as `makeSignalObservations` writes it: bytes with binary suffixes, all else with decimal ones.
fn left(signal: Signal, amount: Amount) -> Quantity {
    match signal.resource() {
        "memory" | "ephemeral-storage" => Quantity::bytes(amount.available),
        _ => Quantity::units(amount.available),
    }
}

fn crosses(threshold: &Threshold, signals: &Signals, was_met: bool) -> bool {
    let Some(amount) = signals.amounts.get(&threshold.signal) else { return false };
    let mut limit = threshold.limit.of(amount.capacity);
    if let Some(more) = threshold.min_reclaim.filter(|_| was_met) {
        limit = limit.plus(more.of(amount.capacity));
    }
    limit > Quantity::units(amount.available)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::words::thresholds::{hard_thresholds, set_min_reclaims, soft_thresholds};

    fn memory(available: i64) -> Signals {
        let amounts = BTreeMap::from([(Signal::MemoryAvailable, Amount { available, capacity: 1000 })]);
        Signals { amounts, has_image_fs: false }
    }

    /// At which second so much memory is left; then whether something is done, and what the node says.
    fn play(config: &EvictionConfig, steps: &[(i64, i64, bool, &[&str])]) {
        let mut pressure = Pressure::default();
        for (second, available, acts, conditions) in steps {
            let now = Time::from_unix_seconds(*second);
            pressure.observe(memory(*available), config, now);
            assert_eq!(
                (pressure.foremost(config).is_some(), &*pressure.conditions(config, now)),
                (*acts, *conditions),
                "at {second}"
            );
        }
    }

    #[test]
    fn conditions_outlast_the_shortage() {
        let config = EvictionConfig {
            thresholds: hard_thresholds("memory.available<10%").expect("readable"),
            ..EvictionConfig::default()
        };
        const PRESSED: &[&str] = &["MemoryPressure"];
        play(
            &config,
            &[
                (0, 100, false, &[]),
                (10, 99, true, PRESSED),
                (20, 500, false, PRESSED),
                (309, 500, false, PRESSED),
                (310, 500, false, &[]),
            ],
        );
    }

    #[test]
    fn a_soft_threshold_must_last_and_regains_its_minimum() {
        let mut thresholds = soft_thresholds("memory.available<100", "memory.available=30s").expect("readable");
        set_min_reclaims(&mut thresholds, "memory.available=50").expect("readable");
        let config =
            EvictionConfig { thresholds, pressure_transition_period: Duration::ZERO, ..EvictionConfig::default() };
        const PRESSED: &[&str] = &["MemoryPressure"];
        play(
            &config,
            &[
                (0, 99, false, PRESSED),
                (10, 120, false, &[]),
                (20, 99, false, PRESSED),
                (50, 99, true, PRESSED),
                // Above the limit, and not yet by the minimum.
                (60, 120, true, PRESSED),
                (70, 150, false, &[]),
            ],
        );
    }
}
