//! Kinds whose objects are not in the view, though some may be stored: what an owner waits for that waits for its dependents.

use std::time::Duration;

use corten_meta::{Resource, Time};
use corten_reconcile::{Actor, View, Wait};

use super::UNREADABLE_AGAIN;
use crate::{elsewhere, projections::not_known_yet};

/// For how long after a start other servers are waited for, as upstream's collector waits for its first sync
/// (`initialSyncTimeout`): what they hold is not known then.
const FIRST_SYNC: Duration = Duration::from_secs(30);
/// When what will be known soon is asked for anew.
const SOON: Duration = Duration::from_secs(1);

pub(super) struct Unseen {
    pub(super) wait: Wait,
    pub(super) looks_again: Duration,
}

/// `None` where all kinds are known.
pub(super) fn of(view: &View, now: Time) -> Option<Unseen> {
    let names =
        |kinds: &mut dyn Iterator<Item = &Resource>| kinds.map(ToString::to_string).collect::<Vec<_>>().join(", ");
    let unreadable = view.cannot_be_listed();
    if !unreadable.is_empty() {
        let kinds = names(&mut unreadable.iter());
        let message = format!("whether anything of {kinds} refers to it is not known: they cannot be listed");
        let wait = Wait::new("DependentsUnreadable", message, Actor::Operator);
        return Some(Unseen { wait, looks_again: UNREADABLE_AGAIN });
    }
    let unestablished: Vec<Resource> = not_known_yet(view).collect();
    if let Some(first) = unestablished.first() {
        let kinds = names(&mut unestablished.iter());
        let message =
            format!("whether anything of {kinds} refers to it is not known before their definitions are established");
        let name = format!("{}.{}", first.plural, first.group);
        let wait = Wait::new("KindNotEstablished", message, Actor::Cluster).on("CustomResourceDefinition", &name);
        return Some(Unseen { wait, looks_again: SOON });
    }
    let begins = view.since().is_some_and(|it| now < it.after(FIRST_SYNC));
    (begins && elsewhere::is_being_discovered(view)).then(|| {
        let message = "whether what other API servers hold refers to it is not known: they have not been asked yet";
        Unseen { wait: Wait::new("DependentsUndiscovered", message, Actor::Cluster), looks_again: SOON }
    })
}
