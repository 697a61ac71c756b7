//! A write that names no revision is tried again while other writes of its object come first, until the request's deadline (etcd3's
//! `GuaranteedUpdate`).
//!
//! Those that lost once take turns, first come, first served: each then loses to newcomers only, and nobody loses for ever.

use std::time::Duration;

use corten_meta::Status;
use tokio::{
    sync::{Semaphore, SemaphorePermit},
    time::Instant,
};

use super::request_scope::RequestScope;
use crate::context::Context;

/// What a write of the server itself has, whose request has no deadline.
const DEADLINE: Duration = Duration::from_secs(60);
/// How long a turn is waited for. A webhook that is asked about an object may write that object itself, and waits then for whoever
/// waits for the webhook.
const TURN: Duration = Duration::from_secs(1);
/// Objects share these by hash. Who shares one waits a little longer, and nothing else.
const N_TURNS: usize = 64;

static TURNS: [Semaphore; N_TURNS] = [const { Semaphore::const_new(1) }; N_TURNS];

pub(super) struct GuaranteedUpdate {
    deadline: Instant,
    turn: Option<SemaphorePermit<'static>>,
}

impl GuaranteedUpdate {
    pub(super) fn begin(ctx: &Context) -> Self {
        Self { deadline: ctx.deadline.unwrap_or_else(|| Instant::now() + DEADLINE), turn: None }
    }

    /// Another write came first. Comes when it is this one's turn to try again.
    ///
    /// # Errors
    /// 409 at the deadline.
    pub(super) async fn again(&mut self, target: &RequestScope) -> Result<(), Status> {
        if Instant::now() >= self.deadline {
            return Err(Status::stale(target.resource(), &target.name));
        }
        if self.turn.is_none() {
            let turn = tokio::time::timeout(TURN, turns(target).acquire()).await;
            self.turn = turn.ok().map(|it| it.expect("it is never closed"));
        }
        Ok(())
    }
}

fn turns(target: &RequestScope) -> &'static Semaphore {
    let RequestScope { namespace, name, kind, .. } = target;
    let key = format!("{}/{}/{namespace}/{name}", kind.resource.group, kind.resource.plural);
    let place = usize::try_from(corten_meta::stable_hash(key.as_bytes()) % N_TURNS as u64);
    &TURNS[place.expect("less than the number of turns")]
}
