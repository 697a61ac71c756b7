//! Which claims of a class get which of its volumes: all that wait, at once.
//!
//! Each gets the smallest volume that fits, of those with the fewest access modes beside the ones asked for.

use corten_api::volumes::fits;
use corten_meta::Key;
use corten_reconcile::{EFFECTS_MAX, Plan, View};

use super::{
    binding::claim_volume,
    projections::{Claim, StorageClass, Volume, of_class},
};

/// Reserves volumes for claims; each claim then binds itself to its own, under its own key.
pub(super) fn bind_all(view: &View, class: &str) -> Plan {
    let mut plan = Plan::default();
    if waits_for_consumer(view, class) {
        return plan;
    }
    let mut volumes: Vec<Option<&Volume>> = by_preference(view, class).into_iter().map(Some).collect();
    if volumes.is_empty() {
        return plan;
    }
    let (mut claims, mut first_free) = (claims(view, class), 0);
    // Who has waited longest goes first.
    claims.sort_by_key(|it| (it.metadata.creation_timestamp, it.metadata.key()));
    for claim in claims {
        // Most volumes of a class are alike: those that are given away stand together at the front.
        while volumes.get(first_free).is_some_and(Option::is_none) {
            first_free += 1;
        }
        let fitting = volumes[first_free..].iter().position(|it| it.is_some_and(|it| suits(claim, it)));
        let Some(volume) = fitting.and_then(|it| volumes[first_free + it].take()) else { continue };
        plan.effects.extend(claim_volume(volume, claim));
        if plan.effects.len() >= EFFECTS_MAX {
            break;
        }
    }
    plan
}

/// Is there a volume that this claim could get, now or when those before it have theirs?
pub(super) fn has_candidate(view: &View, claim: &Claim) -> bool {
    candidates(view, claim.class()).any(|it| suits(claim, it))
}

pub(super) fn waits_for_consumer(view: &View, class: &str) -> bool {
    let class = view.get::<StorageClass>(&Key::cluster(class));
    class.is_some_and(|it| it.fields.waits_for_consumer())
}

/// A volume that is reserved for a claim by its name is not looked for here.
fn claims<'a>(view: &'a View, class: &str) -> Vec<&'a Claim> {
    let is_free = |it: &&Claim| it.takes_any() && super::claims::reserved(view, it).is_none();
    view.found_by::<Claim>(&of_class(class)).filter(is_free).collect()
}

fn suits(claim: &Claim, volume: &Volume) -> bool {
    fits(&claim.spec, &volume.metadata, &volume.spec)
}

/// Only those whose phase says so: one that has just come may still turn out to be somebody's.
fn candidates<'a>(view: &'a View, class: &str) -> impl Iterator<Item = &'a Volume> + use<'a> {
    view.found_by::<Volume>(&of_class(class)).filter(|it| it.status.phase == "Available")
}

fn by_preference<'a>(view: &'a View, class: &str) -> Vec<&'a Volume> {
    let mut volumes: Vec<&Volume> = candidates(view, class).collect();
    volumes.sort_by_key(|it| (it.spec.access_modes.len(), it.spec.capacity.storage));
    volumes
}
