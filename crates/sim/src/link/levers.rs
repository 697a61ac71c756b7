//! What befalls a link, and the process at this end of it.

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

use crate::{freezer::Freezer, seeded_rng::SeededRng, signal::Signal};

const FORGOTTEN_PERCENT: u64 = 75;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Trouble {
    #[default]
    None,
    /// Everything is late.
    Slow,
    /// Nobody listens: each request is known not to have been sent, and streams end.
    Refused,
    /// Nothing passes, in both directions.
    Cut,
    /// Requests do not arrive; what was asked for before still comes.
    Deaf,
    /// Requests arrive, and are done; nothing comes back.
    Mute,
    /// Requests are answered, streams tell nothing.
    Stalled,
}

impl Trouble {
    pub(crate) const ALL: [Self; 6] = [Self::Slow, Self::Refused, Self::Cut, Self::Deaf, Self::Mute, Self::Stalled];

    pub(super) fn passes_there(self) -> bool {
        !matches!(self, Self::Refused | Self::Cut | Self::Deaf)
    }

    pub(super) fn passes_back(self) -> bool {
        !matches!(self, Self::Refused | Self::Cut | Self::Mute)
    }

    pub(super) fn streams(self) -> bool {
        self.passes_back() && self != Self::Stalled
    }
}

#[derive(Clone, Copy, Default)]
struct Condition {
    trouble: Trouble,
    /// How often all streams broke.
    n_breaks: u64,
}

/// Shared by whoever troubles a link and all who use it, one after the other.
#[derive(Clone, Default)]
pub(crate) struct Levers {
    condition: Arc<Signal<Condition>>,
    pub(crate) freezer: Freezer,
    /// What a stream that breaks was to go on with is now and then no longer kept.
    forgets: bool,
    n_forgotten: Arc<AtomicU64>,
}

impl Levers {
    pub(crate) fn new(forgets: bool) -> Self {
        Self { forgets, ..Self::default() }
    }

    /// Is it kept no longer? Told once of a stream that breaks.
    pub(super) fn forget(&self, dice: &SeededRng) -> bool {
        let is_forgotten = self.forgets && dice.percent(FORGOTTEN_PERCENT);
        self.n_forgotten.fetch_add(u64::from(is_forgotten), Ordering::Relaxed);
        is_forgotten
    }

    pub(crate) fn n_forgotten(&self) -> u64 {
        self.n_forgotten.load(Ordering::Relaxed)
    }

    pub(crate) fn set(&self, trouble: Trouble) {
        self.condition.modify(|it| {
            it.trouble = trouble;
            it.n_breaks += u64::from(trouble == Trouble::Refused);
        });
    }

    pub(crate) fn break_streams(&self) {
        self.condition.modify(|it| it.n_breaks += 1);
    }

    pub(crate) fn trouble(&self) -> Trouble {
        self.condition.get().trouble
    }

    pub(super) fn n_breaks(&self) -> u64 {
        self.condition.get().n_breaks
    }

    /// Ready once streams have broken that began after so many breaks.
    pub(super) async fn broken(&self, n_breaks: u64) {
        self.condition.until(|it| it.n_breaks != n_breaks).await;
    }

    /// Ready once the trouble of the moment lets it pass.
    pub(super) async fn until(&self, passes: fn(Trouble) -> bool) {
        self.condition.until(|it| passes(it.trouble)).await;
    }
}
