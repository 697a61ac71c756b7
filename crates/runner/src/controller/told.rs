//! What a controller decided, and what it failed with, as it stands in the journals.

use corten_meta::{Key, Resource, Retry, Time};
use corten_reconcile::{Decision, Effect, Plan};

use super::LoopState;
use crate::effects::Failure;

/// Of one plan's effects the journal shows this many, each cut at this length.
const JOURNAL_LINES: usize = 20;
const JOURNAL_LINE_CHARS: usize = 300;

impl LoopState {
    pub(super) fn record(
        &mut self,
        key: &Key,
        subject: Option<&(Resource, Key)>,
        now: Time,
        plan: &Plan,
        error: Option<&str>,
    ) {
        self.clear_undeleted(key, now);
        let Some((about, of)) = subject else { return };
        let told = || plan.effects.iter().flat_map(Effect::parts).filter(|it| !matches!(it, Effect::Count(_)));
        let mut effects: Vec<String> = told().take(JOURNAL_LINES).map(|it| cut(&it.to_string())).collect();
        if told().count() > JOURNAL_LINES {
            effects.push(format!("and {} more", told().count() - JOURNAL_LINES));
        }
        let decision = Decision {
            by: self.controller.name().into(),
            at: Some(now),
            effects,
            waits: plan.waits.clone(),
            error: error.map(str::to_owned),
            retries: self.queue.failures(key),
            ..Decision::default()
        };
        self.journal.record(about, of, decision);
    }

    pub(super) fn record_failure(&mut self, key: &Key, subject: Option<&(Resource, Key)>, failure: &Failure) {
        let (name, error) = (self.controller.name(), &failure.error);
        // Conflicts are how optimistic writers meet, as are writes to what has gone and creates in a namespace that goes;
        // anything else is worth a line.
        let is_patch = matches!(failure.effect, Effect::Patch { .. } | Effect::StrategicPatch { .. });
        let is_gone = is_patch && error.is_not_found() || error.is_namespace_terminating();
        let effect = cut(&failure.effect.to_string());
        if error.retry() == Retry::Now || is_gone {
            tracing::debug!(controller = name, %key, %error, "cannot {effect}");
        } else {
            tracing::warn!(controller = name, %key, %error, "cannot {effect}");
        }
        self.tell_undeleted(key, subject, failure);
        let Some((about, of)) = subject else { return };
        let decisions = self.journal.decisions(about, of);
        let Some(mut decision) = decisions.into_iter().find(|it| it.by == name) else { return };
        decision.at = Some((self.clock)());
        decision.error = Some(format!("cannot {effect}: {error}"));
        decision.retries = self.queue.failures(key);
        self.journal.record(about, of, decision);
    }

    /// What a loop cannot delete says so itself: whatever else stands for the loop's key may be gone, as an owner is.
    fn tell_undeleted(&mut self, key: &Key, subject: Option<&(Resource, Key)>, failure: &Failure) {
        let (Effect::Delete { resource, key: of, .. }, error) = (&failure.effect, &failure.error) else { return };
        let place = (resource.clone(), of.clone());
        if error.retry() == Retry::Now || subject == Some(&place) {
            return;
        }
        let decision = Decision {
            by: self.controller.name().into(),
            at: Some((self.clock)()),
            error: Some(format!("cannot {}: {error}", cut(&failure.effect.to_string()))),
            retries: self.queue.failures(key),
            ..Decision::default()
        };
        self.journal.record(&place.0, &place.1, decision);
        self.undeleted.insert(key.clone(), place);
    }

    /// The next plan of the key says anew what is not deleted.
    fn clear_undeleted(&mut self, key: &Key, now: Time) {
        if let Some((resource, of)) = self.undeleted.remove(key) {
            let decision = Decision { by: self.controller.name().into(), at: Some(now), ..Decision::default() };
            self.journal.record(&resource, &of, decision);
        }
    }
}

fn cut(text: &str) -> String {
    match text.char_indices().nth(JOURNAL_LINE_CHARS) {
        Some((at, _)) => format!("{}…", &text[..at]),
        None => text.to_owned(),
    }
}
