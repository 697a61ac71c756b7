//! Leader election by a Lease: one of several candidates works, another takes over when that one is silent.

use std::{future::Future, time::Duration};

use anyhow::{Result, bail};
use k8s_openapi::{
    api::coordination::v1::{Lease, LeaseSpec},
    apimachinery::pkg::apis::meta::v1::MicroTime,
    jiff::{SignedDuration, Timestamp},
};
use kube::{
    Api,
    api::{ObjectMeta, PostParams},
};
use tokio::time::{MissedTickBehavior, interval};

/// For how long a leader that is silent is believed to live.
const VALID: Duration = Duration::from_secs(2);
/// How often a leader renews its lease, and the others look at it.
const RETRY: Duration = Duration::from_millis(200);

pub struct Candidate {
    pub leases: Api<Lease>,
    pub lease: &'static str,
    pub identity: &'static str,
}

impl Candidate {
    /// Waits for the lease, works while it is renewed, and ends with an error when it is lost.
    pub async fn work_while_leading(&self, work: impl Future<Output = ()>) -> Result<()> {
        let mut ticks = interval(RETRY);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        while !self.holds().await? {
            ticks.tick().await;
        }
        let mut work = std::pin::pin!(work);
        loop {
            tokio::select! {
                () = &mut work => return Ok(()),
                _ = ticks.tick() => {
                    if !self.holds().await? {
                        bail!("{} does not lead any more", self.identity);
                    }
                }
            }
        }
    }

    /// Whether the lease is this candidate's, once it has been taken or renewed where it may be.
    async fn holds(&self) -> Result<bool> {
        let params = PostParams::default();
        let Some(mut lease) = self.leases.get_opt(self.lease).await? else {
            let metadata = ObjectMeta { name: Some(self.lease.into()), ..ObjectMeta::default() };
            let lease = Lease { metadata, spec: Some(self.renewed(LeaseSpec::default())) };
            return was_first(self.leases.create(&params, &lease).await);
        };
        let spec = lease.spec.take().unwrap_or_default();
        if spec.holder_identity.as_deref().is_some_and(|it| it != self.identity) && !has_expired(&spec) {
            return Ok(false);
        }
        lease.spec = Some(self.renewed(spec));
        was_first(self.leases.replace(self.lease, &params, &lease).await)
    }

    fn renewed(&self, spec: LeaseSpec) -> LeaseSpec {
        let now = MicroTime(Timestamp::now());
        let is_taken = spec.holder_identity.as_deref() != Some(self.identity);
        LeaseSpec {
            holder_identity: Some(self.identity.into()),
            acquire_time: if is_taken { Some(now.clone()) } else { spec.acquire_time },
            lease_transitions: Some(spec.lease_transitions.unwrap_or(-1) + i32::from(is_taken)),
            lease_duration_seconds: i32::try_from(VALID.as_secs()).ok(),
            renew_time: Some(now),
            ..spec
        }
    }
}

/// A conflict is no error: another candidate was quicker.
fn was_first(written: kube::Result<Lease>) -> Result<bool> {
    match written {
        Ok(_) => Ok(true),
        Err(kube::Error::Api(status)) if status.code == 409 => Ok(false),
        Err(error) => Err(error.into()),
    }
}

fn has_expired(spec: &LeaseSpec) -> bool {
    let valid = SignedDuration::from_secs(spec.lease_duration_seconds.unwrap_or_default().into());
    spec.renew_time.as_ref().is_none_or(|it| Timestamp::now().duration_since(it.0) > valid)
}
