//! Of several control planes over one store one runs the loops: the holder of a Lease, as with client-go's `leaderelection`.
//!
//! A holder that could not renew its lease in time ends its term before anybody else may begin one. Within the process of an API server
//! its writes name the revision of the lease ([`Term::revision`]), so that none of a former holder is committed, however long it was held
//! up on its way. Who writes from outside ends at once when it leads no more.

use corten_api::lease_times::LeaseTimes;
use corten_client::{
    Client,
    lease::{Holder, Lease},
};
use corten_meta::Key;
use corten_reconcile::EventType;
use tokio::{
    sync::watch,
    time::{Instant, sleep, sleep_until, timeout_at},
};

use crate::{Clock, EventRecorder};

/// Who wants to hold a lease.
pub struct Candidate {
    pub client: Client,
    pub clock: Clock,
    pub lease: Key,
    /// Unlike that of every other process.
    pub identity: String,
    /// What users see as the source of the event that tells who leads: `default-scheduler`, `kube-controller-manager`.
    pub component: String,
    pub times: LeaseTimes,
}

/// The time in which this process holds the lease.
pub struct Term {
    lease: Lease,
    clock: Clock,
    times: LeaseTimes,
    /// When the last renewal that went well was asked for.
    renewed: Instant,
    /// Of the lease, as this process wrote it last; 0 once the term is over.
    revision: watch::Sender<u64>,
    /// Tells that the term has begun, while it lasts.
    events: EventRecorder,
}

impl Candidate {
    /// Waits until the lease is this process's.
    pub async fn elected(&self) -> Term {
        let mut lease = Lease::new(self.client.clone(), self.lease.clone(), &*self.identity, self.times.duration);
        let mut told = String::new();
        loop {
            let asked = Instant::now();
            match lease.renew((self.clock)()).await {
                Ok(Holder::Me) => {
                    let (revision, _) = watch::channel(lease.revision());
                    tracing::info!(lease = %self.lease, identity = self.identity, "this process leads now");
                    let events = self.announcement(&lease);
                    return Term {
                        lease,
                        clock: self.clock.clone(),
                        times: self.times,
                        renewed: asked,
                        revision,
                        events,
                    };
                }
                Ok(Holder::Other { holder, .. }) if told != holder => {
                    tracing::info!(lease = %self.lease, holder, "another process leads: this one waits");
                    told = holder;
                }
                Ok(Holder::Other { .. }) => {}
                Err(error) if told != error.to_string() => {
                    tracing::warn!(lease = %self.lease, %error, "the lease cannot be had");
                    told = error.to_string();
                }
                Err(_) => {}
            }
            sleep(self.times.retry_period).await;
        }
    }

    /// `LeaderElection: … became leader`, as client-go's `resourcelock` records it.
    fn announcement(&self, lease: &Lease) -> EventRecorder {
        let mut events = EventRecorder::new(self.client.clone(), &*self.component);
        let message = format!("{} became leader", self.identity);
        events.record(&lease.reference(), EventType::Normal, "LeaderElection", &message, (self.clock)());
        events
    }
}

impl Term {
    /// The revision of the lease, which changes with each renewal; 0 once the term is over.
    pub fn revision(&self) -> watch::Receiver<u64> {
        self.revision.subscribe()
    }

    /// Renews the lease until that fails for too long, or somebody else has it.
    pub async fn keep(&mut self) {
        let Self { lease, clock, times, renewed, revision, events } = self;
        tokio::select! {
            biased;
            () = renew(lease, clock, *times, renewed, revision) => {}
            () = events.run() => {}
        }
        self.end();
    }

    /// Nothing more is written in this term; once all that wrote in it has ended, [`Term::release`] it.
    pub fn end(&self) {
        self.revision.send_replace(0);
    }

    /// Gives the lease back, so that the next term begins at once.
    pub async fn release(mut self) {
        let end = self.renewed + self.times.renew_deadline;
        match timeout_at(end, self.lease.release()).await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => tracing::debug!(%error, "the lease cannot be given back"),
            Err(_) => tracing::debug!("the lease cannot be given back in time"),
        }
    }
}

async fn renew(
    lease: &mut Lease,
    clock: &Clock,
    times: LeaseTimes,
    renewed: &mut Instant,
    revision: &watch::Sender<u64>,
) {
    let mut next = *renewed + times.retry_period;
    loop {
        sleep_until(next).await;
        let asked = Instant::now();
        next = asked + times.retry_period;
        let end = *renewed + times.renew_deadline;
        if asked >= end {
            tracing::error!("this process stood still for too long: it leads no more");
            break;
        }
        match timeout_at(end, lease.renew(clock())).await {
            Ok(Ok(Holder::Me)) => {
                *renewed = asked;
                revision.send_replace(lease.revision());
            }
            Ok(Ok(Holder::Other { holder, .. })) => {
                tracing::warn!(holder, "another process leads now");
                break;
            }
            Ok(Err(error)) if Instant::now() < end => tracing::warn!(%error, "the lease cannot be renewed yet"),
            Ok(Err(_)) | Err(_) => {
                tracing::error!("the lease could not be renewed in time: this process leads no more");
                break;
            }
        }
    }
}

#[cfg(test)]
mod tests;
