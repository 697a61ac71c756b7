//! Objects in foreground deletion that wait for each other: none of them would ever go.

use std::collections::BTreeSet;

use corten_meta::ObjectMeta;
use corten_reconcile::View;

use super::{is_waiting, owners::owner_of};

/// So many references are followed. Where there are more, everybody counts as being in a circle, and an owner may go before a
/// dependent that waits itself. Upstream's `attemptToDeleteItem` looks no further than one step in any case.
const FOLLOWED_MAX: usize = 2_000;

/// What waits for an object, by way of owners that wait themselves.
pub(super) enum TransitiveDependents<'v> {
    These(BTreeSet<&'v str>),
    TooManyToTell,
}

impl<'v> TransitiveDependents<'v> {
    pub(super) fn for_object(view: &'v View, object: &'v ObjectMeta) -> Self {
        let (mut found, mut to_see) = (BTreeSet::new(), vec![object]);
        let mut n_followed = 0_usize;
        while let Some(object) = to_see.pop() {
            n_followed = n_followed.saturating_add(object.owner_references.len());
            if n_followed > FOLLOWED_MAX {
                return Self::TooManyToTell;
            }
            let blocked = object.owner_references.iter().filter(|it| it.block_owner_deletion == Some(true));
            let waiting = blocked.filter_map(|it| owner_of(view, object, it)).filter(|it| is_waiting(it));
            to_see.extend(waiting.filter(|it| found.insert(&*it.uid)));
        }
        Self::These(found)
    }

    pub(super) fn is_empty(&self) -> bool {
        matches!(self, Self::These(found) if found.is_empty())
    }

    pub(super) fn has(&self, uid: &str) -> bool {
        match self {
            Self::These(found) => found.contains(uid),
            Self::TooManyToTell => true,
        }
    }
}
