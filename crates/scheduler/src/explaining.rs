//! What parked pods are said to wait for stays so, though of all that happens they are tried again only for what helps them.
//!
//! A pod that waits for five reasons and then for four fits nowhere before and after. It is not tried, but looked for: one for all that
//! are alike, a few at a time. That costs the same however much happens.

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
    time::Duration,
};

use corten_meta::{Key, Time};

use crate::{Effect, Scheduler, entry::PodState, observer::Unobserved, report};

/// What happens within this time is looked at together.
const ROUND: Duration = Duration::from_secs(5);
/// Where a round leaves some, the next one follows after this.
const PAUSE: Duration = Duration::from_secs(1);
/// So many groups of pods one round looks at.
const GROUPS_MAX: usize = 16;
/// So many pods of a group a round writes to, a write each; and it begins no other group where it has written to as many.
const PODS_MAX: usize = 32;

impl Scheduler {
    /// Something has gone or changed that parked pods may be said to wait for.
    pub(crate) fn outdate_reasons(&mut self, now: Time) {
        if self.queue.parked.is_empty() {
            return;
        }
        self.queue.parked.changed();
        let soonest = self.explained_at.after(ROUND).max(now.after(PAUSE));
        self.explain_at.get_or_insert(soonest);
    }

    pub(crate) fn explain_outdated(&mut self, now: Time) -> Vec<Effect> {
        if self.explain_at.is_none_or(|it| it > now) {
            return Vec::new();
        }
        self.explained_at = now;
        let mut effects = Vec::new();
        for group in self.queue.parked.outdated(GROUPS_MAX) {
            effects.extend(self.explain_group(group, now));
            let n_writes = effects.iter().filter(|it| matches!(it, Effect::PatchCondition { .. })).count();
            if n_writes >= PODS_MAX {
                break;
            }
        }
        self.explain_at = (!self.queue.parked.outdated(1).is_empty()).then(|| now.after(PAUSE));
        effects
    }

    /// Finds out why the first of them fits nowhere, and tells it of those of which something else was told.
    fn explain_group(&mut self, group: u64, now: Time) -> Vec<Effect> {
        let keys = self.queue.parked.to_be_told(group);
        let waiting = |it: &&Key| self.pods.get(*it).is_some_and(|it| it.place == PodState::Waiting);
        let Some(first) = keys.iter().find(waiting) else {
            self.queue.parked.is_up_to_date(group);
            return Vec::new();
        };
        let info = Arc::clone(&self.pods[first].info);
        let profile = Arc::clone(&self.profiles[&info.scheduler_name]);
        // Whom an extender turned down it would have to be asked about; of whom a plugin breaks at, its next try tells.
        let is_asked_about = self.is_extended(&info);
        let found = catch_unwind(AssertUnwindSafe(|| {
            self.cycle.explain(&info, &self.snapshot, &profile).filter(|_| !is_asked_about)
        }));
        let Ok(Some(mut failure)) = found else {
            self.queue.parked.is_up_to_date(group);
            return Vec::new();
        };
        let waits = report::waits(&info, &failure, &self.snapshot, &profile);
        let Some(of_victims) = self.why_no_victims(first, &info, &profile, &failure) else {
            // Others may leave for it, and whatever made that so has woken it; or its next try finds out.
            self.queue.parked.is_up_to_date(group);
            return Vec::new();
        };
        failure.post_filter = of_victims;
        let message = failure.message();
        keys.iter().for_each(|it| self.queue.refused_by(it, failure.plugins()));
        // What came of the attempt to help a gang is told behind, and is not looked for here.
        let is_so = |told: &str| told == message || failure.post_filter.is_empty() && told.starts_with(&message);
        let is_news = |it: &&Key| self.pods[*it].told.as_deref().is_some_and(|it| !is_so(it));
        let mut news: Vec<&Key> = keys.iter().filter(waiting).filter(is_news).take(PODS_MAX + 1).collect();
        let are_more = news.len() > PODS_MAX;
        news.truncate(PODS_MAX);
        let last = news.last().map(|it| (*it).clone());
        let effects = news.into_iter().flat_map(|it| {
            let (entry, victims) = (&self.pods[it], self.victims_of(it));
            report::explained_anew(entry, &failure, waits.clone(), &victims, now)
        });
        let effects: Vec<Effect> = effects.collect();
        self.queue.parked.looked(group, last);
        if !are_more {
            self.queue.parked.is_up_to_date(group);
        }
        effects
    }

    /// Tells of those that something may have helped and that are not tried at once.
    pub(crate) fn tell_backing_off(&mut self, now: Time) -> Vec<Effect> {
        let woken = self.queue.take_backing_off();
        let told = |(key, event, until)| Some(report::backs_off(self.pods.get(&key)?, event, until, now));
        woken.into_iter().filter_map(told).collect()
    }
}

impl crate::cycle::Cycle {
    /// Why the pod fits nowhere; nothing where it fits somewhere. The next search begins where it would have.
    fn explain(
        &mut self,
        pod: &crate::PodInfo,
        snapshot: &crate::Snapshot,
        profile: &crate::Profile,
    ) -> Option<crate::cycle::Failure> {
        self.survey(pod, snapshot, profile, &Unobserved).map(drop).err()
    }
}
