//! What befalls a link, and the process at this end of it.

use std::sync::Arc;

use crate::{freezer::Freezer, signal::Signal};

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
}

impl Levers {
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
