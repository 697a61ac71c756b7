//! Claims that clones begin with are held from before a driver of others is asked for the clone until none of them waits for its volume
//! any more: external-provisioner's `setCloneFinalizer` and `CloningProtectionController`. As there, one that is not deleted keeps the
//! finalizer. The built-in driver needs none: it does not remove what it copies from.

use std::{collections::BTreeMap, sync::Arc};

use corten_api::{core::v1::PersistentVolumeClaim, volumes::CLONING_FINALIZER as FINALIZER};
use corten_meta::Key;

use crate::{
    sources::{is_of, source_of},
    words::ClaimFinalizers,
};

const CLAIM: &str = "PersistentVolumeClaim";

type Claims = BTreeMap<Key, Arc<PersistentVolumeClaim>>;

/// What is to be written before the claim's volume is asked for; `None`: it begins with no claim, or with one that is held already.
pub(crate) fn hold(clone: &PersistentVolumeClaim, claims: &Claims) -> Option<ClaimFinalizers> {
    let key = source_of(clone, CLAIM)?;
    let source = claims.get(&key).filter(|it| it.metadata.deletion_timestamp.is_none())?;
    let mut finalizers = source.metadata.finalizers.clone().unwrap_or_default();
    if finalizers.iter().any(|it| it == FINALIZER) {
        return None;
    }
    finalizers.push(FINALIZER.to_owned());
    Some(written(key, source, finalizers))
}

/// What lets go a claim that is deleted, once all its clones are made. `unfinished`: those that are gone themselves, and that a driver may
/// still be making.
pub(crate) fn release<'c>(
    key: &Key,
    claims: &Claims,
    mut unfinished: impl Iterator<Item = &'c PersistentVolumeClaim>,
) -> Option<ClaimFinalizers> {
    let source = claims.get(key).filter(|it| it.metadata.deletion_timestamp.is_some())?;
    let mut finalizers = source.metadata.finalizers.clone()?;
    let n_before = finalizers.len();
    finalizers.retain(|it| it != FINALIZER);
    if finalizers.len() == n_before {
        return None;
    }
    let is_waited_for = claims.values().any(|it| is_waiting(it) && is_of(it, CLAIM, key));
    (!is_waited_for && !unfinished.any(|it| is_of(it, CLAIM, key))).then(|| written(key.clone(), source, finalizers))
}

/// The claim that this one begins with, where that one is deleted: it may be let go now.
pub(crate) fn deleted_source(clone: &PersistentVolumeClaim, claims: &Claims) -> Option<Key> {
    let key = source_of(clone, CLAIM)?;
    claims.get(&key)?.metadata.deletion_timestamp.is_some().then_some(key)
}

/// Whatever it waits for.
fn is_waiting(clone: &PersistentVolumeClaim) -> bool {
    let phase = clone.status.as_ref().and_then(|it| it.phase.as_deref());
    !matches!(phase, Some("Bound" | "Lost"))
}

fn written(claim: Key, seen: &PersistentVolumeClaim, finalizers: Vec<String>) -> ClaimFinalizers {
    ClaimFinalizers { claim, version: seen.metadata.resource_version.clone().unwrap_or_default(), finalizers }
}
