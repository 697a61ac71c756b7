//! Lets go of images that nothing is made of, when their disk fills up or they are old.
//!
//! As in the image manager's `freeSpace`: the least recently used go first, never one that was first seen a moment ago,
//! never one a container is made of, never one the node itself needs.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use corten_meta::Time;
use corten_reconcile::EventType::Warning;

use crate::{
    Config, Effect, ImageGcConfig, LocalImage, NodeEffect, Signal,
    node::{pressure::Pressure, status::event_of},
};

/// The kubelet's `ImageGCPeriod`.
const PERIOD: Duration = Duration::from_secs(300);
/// What was asked for and never answered is asked for again.
const ANSWER: Duration = Duration::from_secs(900);

/// What is known of the images, and what is being done about them.
#[derive(Debug, Default)]
pub(crate) struct ImageGc {
    records: BTreeMap<String, Record>,
    /// When images were first listed: those that were there then are of unknown age.
    began: Option<Time>,
    next_at: Option<Time>,
    asked_at: Option<Time>,
    /// All that is unused is wanted, not just enough.
    wants_all: bool,
    /// Being removed, and how much that was to give.
    removing: Option<(BTreeSet<String>, i64)>,
    failures: u32,
}

#[derive(Debug)]
struct Record {
    size_bytes: i64,
    first_seen: Option<Time>,
    last_used: Option<Time>,
    /// Something needs it now.
    is_kept: bool,
}

impl ImageGc {
    /// Asks for the images when it is time; and says when that will be.
    pub(crate) fn tend(&mut self, now: Time, effects: &mut Vec<Effect>) -> Time {
        let is_stuck = self.asked_at.is_some_and(|it| now.since(it) >= ANSWER);
        if self.next_at.is_none_or(|it| it <= now) && (self.asked_at.is_none() || is_stuck) {
            self.next_at = Some(now.after(PERIOD));
            self.asked_at = Some(now);
            self.removing = None;
            effects.push(Effect::Node(NodeEffect::ListImages));
        }
        // While an answer is awaited only its absence is worth a look.
        match self.asked_at {
            Some(at) => at.after(ANSWER),
            None => self.next_at.unwrap_or(now),
        }
    }

    /// Everything unused shall go: room is needed now.
    pub(crate) fn collect_all(&mut self, now: Time, effects: &mut Vec<Effect>) {
        self.wants_all = true;
        if self.asked_at.is_none() {
            (self.asked_at, self.next_at) = (Some(now), Some(now.after(PERIOD)));
            effects.push(Effect::Node(NodeEffect::ListImages));
        }
    }

    /// `named`: what pods of this node are about to be made of. True where nothing more will be done.
    pub(crate) fn listed(
        &mut self,
        images: Vec<LocalImage>,
        named: &BTreeSet<String>,
        pressure: &Pressure,
        config: &Config,
        now: Time,
        effects: &mut Vec<Effect>,
    ) -> bool {
        self.detect(images, named, now);
        let policy = &config.image_gc;
        let wanted = if self.wants_all { i64::MAX } else { self.wanted(pressure, config, effects) };
        self.wants_all = false;
        let chosen = self.chosen(wanted, policy, now);
        self.asked_at = Some(now).filter(|_| !chosen.is_empty());
        if chosen.is_empty() {
            self.tell_shortage(wanted, 0, &[], config, effects);
            return true;
        }
        self.removing = Some((chosen.clone(), wanted));
        effects.push(Effect::Node(NodeEffect::RemoveImages { ids: chosen.into_iter().collect() }));
        false
    }

    /// The list could not be had: at the next time.
    pub(crate) fn not_listed(&mut self) {
        (self.asked_at, self.wants_all) = (None, false);
    }

    pub(crate) fn removed(
        &mut self,
        removed: &[String],
        failures: &[String],
        config: &Config,
        effects: &mut Vec<Effect>,
    ) {
        self.asked_at = None;
        let gone = removed.iter().filter_map(|it| self.records.remove(it));
        let freed = gone.map(|it| it.size_bytes).sum();
        let wanted = self.removing.take().map_or(0, |it| it.1);
        self.tell_shortage(wanted, freed, failures, config, effects);
    }

    fn detect(&mut self, images: Vec<LocalImage>, named: &BTreeSet<String>, now: Time) {
        let first_seen = self.began.is_some().then_some(now);
        self.began.get_or_insert(now);
        let there: BTreeSet<String> = images.iter().map(|it| it.id.clone()).collect();
        self.records.retain(|id, _| there.contains(id));
        for image in images {
            let is_kept = image.is_pinned || image.is_used || named.contains(&image.id);
            let record = self.records.entry(image.id).or_insert(Record {
                size_bytes: image.size_bytes,
                first_seen,
                last_used: None,
                is_kept,
            });
            record.is_kept = is_kept;
            if is_kept {
                record.last_used = Some(now);
            }
        }
    }

    /// How many bytes are too many.
    fn wanted(&self, pressure: &Pressure, config: &Config, effects: &mut Vec<Effect>) -> i64 {
        let Some(amount) = pressure.amount(Signal::ImageFsAvailable) else { return 0 };
        let (capacity, available) = (amount.capacity, amount.available.min(amount.capacity));
        if capacity <= 0 {
            let message = "invalid capacity 0 on image filesystem".into();
            effects.push(event_of(config, Warning, "InvalidDiskCapacity", message));
            return 0;
        }
        let share = |percent: i64| i64::try_from(i128::from(capacity) * i128::from(percent) / 100).unwrap_or(i64::MAX);
        let used = 100 - i64::try_from(i128::from(available) * 100 / i128::from(capacity)).unwrap_or(0);
        if config.image_gc.high_threshold_percent >= 100 || used < config.image_gc.high_threshold_percent {
            return 0;
        }
        (share(100 - config.image_gc.low_threshold_percent) - available).max(0)
    }

    fn chosen(&self, wanted: i64, policy: &ImageGcConfig, now: Time) -> BTreeSet<String> {
        let mut unused: Vec<(&String, &Record)> = self.records.iter().filter(|it| !it.1.is_kept).collect();
        unused.sort_by_key(|(id, it)| (it.last_used, it.first_seen, (*id).clone()));
        let mut chosen = BTreeSet::new();
        let mut freed = 0_i64;
        for (id, record) in unused {
            let age = record.first_seen.map(|it| now.since(it));
            let last_needed = record.last_used.or(record.first_seen).or(self.began);
            let is_old =
                !policy.maximum_age.is_zero() && last_needed.is_some_and(|it| now.since(it) > policy.maximum_age);
            let is_young = age.is_some_and(|it| it < policy.minimum_age);
            if is_young || !(is_old || freed < wanted) {
                continue;
            }
            freed = freed.saturating_add(record.size_bytes);
            chosen.insert(id.clone());
        }
        chosen
    }

    fn tell_shortage(
        &mut self,
        wanted: i64,
        freed: i64,
        failures: &[String],
        config: &Config,
        effects: &mut Vec<Effect>,
    ) {
        // Whoever wanted everything looks for themselves whether it was enough.
        let is_short = wanted != i64::MAX && freed < wanted;
        if !is_short && failures.is_empty() {
            self.failures = 0;
            return;
        }
        let message = if failures.is_empty() {
            let message = format!(
                "Failed to garbage collect required amount of images. Attempted to free {wanted} bytes, but only found \
                 {freed} bytes eligible to free."
            );
            effects.push(event_of(config, Warning, "FreeDiskSpaceFailed", message.clone()));
            message
        } else {
            let errors = failures.join(", ");
            format!(
                "wanted to free {wanted} bytes, but freed {freed} bytes space with errors in image deletion: [{errors}]"
            )
        };
        self.failures += 1;
        // As in `StartGarbageCollection`: the first failure may be a start that is not quite over.
        if self.failures > 1 {
            effects.push(event_of(config, Warning, "ImageGCFailed", message));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Amount, Signals};

    /// Each image: id, size, flags (`u`sed, `p`inned, `n`amed by a pod); which of them go, and what is told.
    fn play(percent_used: i64, images: &str, seconds: i64, policy: ImageGcConfig, garbage: &mut ImageGc) -> String {
        let mut config = Config::new("n1", "192.168.0.1");
        config.image_gc = policy;
        let mut pressure = Pressure::default();
        let amount = Amount { available: 100 - percent_used, capacity: 100 };
        let now = Time::from_unix_seconds(seconds);
        let signals = Signals { amounts: BTreeMap::from([(Signal::ImageFsAvailable, amount)]), has_image_fs: false };
        pressure.observe(signals, &config.eviction, now);
        let mut named = BTreeSet::new();
        let read = |it: &str| {
            let mut parts = it.split(':');
            let id = parts.next().unwrap_or_default().to_owned();
            let size_bytes = parts.next().and_then(|it| it.parse().ok()).unwrap_or(0);
            let flags = parts.next().unwrap_or_default();
            if flags.contains('n') {
                named.insert(id.clone());
            }
            LocalImage { id, size_bytes, is_pinned: flags.contains('p'), is_used: flags.contains('u') }
        };
        let images = images.split_whitespace().map(read).collect();
        let mut effects = Vec::new();
        garbage.listed(images, &named, &pressure, &config, now, &mut effects);
        let show = |it: &Effect| match it {
            Effect::Node(NodeEffect::RemoveImages { ids }) => ids.join(","),
            Effect::Api(crate::ApiEffect::Event { reason, .. }) => (*reason).to_owned(),
            other => format!("{other:?}"),
        };
        effects.iter().map(show).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn the_least_recently_used_go_until_it_is_enough() {
        let policy = ImageGcConfig::default();
        for (percent_used, images, expected) in [
            (84, "a:50 b:50", ""),
            (85, "a:3 b:50", "a,b"),
            (85, "a:5 b:50", "a"),
            (90, "a:50:u b:50:p c:50:n", "FreeDiskSpaceFailed"),
            (90, "a:50:u b:10", "b"),
        ] {
            assert_eq!(play(percent_used, images, 1000, policy, &mut ImageGc::default()), expected, "{images}");
        }
    }

    #[test]
    fn young_ones_stay_and_old_ones_go() {
        let policy = ImageGcConfig { maximum_age: Duration::from_secs(3600), ..ImageGcConfig::default() };
        let mut garbage = ImageGc::default();
        assert_eq!(play(10, "a:5:u c:5", 1000, policy, &mut garbage), "");
        // b is new: a moment later it may not go, soon after it may. c was used last.
        assert_eq!(play(10, "a:5:u b:50 c:5:u", 2000, policy, &mut garbage), "");
        assert_eq!(play(99, "a:5 b:50 c:5", 2119, policy, &mut garbage), "a,c");
        assert_eq!(play(99, "b:50 c:5:u", 2121, policy, &mut garbage), "b");
        assert_eq!(play(10, "c:5", 2121 + 3601, policy, &mut garbage), "c");
    }
}
