//! How much work expressions of an administrator's file may take over what a stranger chose: the name of an object, the claims of a
//! token.
//!
//! Upstream bounds what each expression costs, and a request's deadline ends what costs little and takes long. Here all
//! expressions of one question share so much work, and what takes more than a moment holds up nobody on the same thread.

use corten_cacher::apart::apart;
use corten_cel::{Fuel, MOMENT};

/// For all conditions of a webhook, or all expressions of an issuer: about a tenth of a second.
const BUDGET: u64 = Fuel::OBJECT / 5;

/// What `evaluate` comes to. It is begun anew where a moment is not enough.
pub(crate) fn evaluated<T>(evaluate: impl Fn() -> T) -> T {
    let fuel = Fuel::new(BUDGET);
    let (found, was_enough) = fuel.lend(MOMENT, &evaluate);
    if was_enough { found } else { apart(|| fuel.lend(u64::MAX, &evaluate).0) }
}
