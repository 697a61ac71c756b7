//! Whether etcd takes writes, as far as that can be told without one, and what it has of its disk.

use std::{sync::Arc, time::Duration};

use corten_etcd_api::{
    AlarmRequest, AlarmResponse, StatusRequest, StatusResponse,
    method::{ALARM, STATUS},
};
use corten_store::{DiskUse, Error};
use parking_lot::Mutex;
use tokio::{sync::watch, time::Instant};

use crate::{client::Shared, failure::Failure};

const EVERY: Duration = Duration::from_secs(10);
/// While something is wrong.
const OFTEN: Duration = Duration::from_secs(1);

/// A quota changes with a start of its member.
const QUOTA_EVERY: Duration = Duration::from_secs(300);

/// As etcd numbers its alarms.
const NO_SPACE: i32 = 1;
const CORRUPT: i32 = 2;

#[derive(Default)]
pub(crate) struct Health(Mutex<Known>);

#[derive(Default)]
struct Known {
    is_full: bool,
    is_corrupt: bool,
    db_bytes: u64,
    /// 0: it is not told.
    quota_bytes: u64,
    quota_asked: Option<Instant>,
    /// What only a new start mends.
    broken_down: Option<String>,
}

impl Health {
    pub(crate) async fn follow(self: Arc<Self>, client: Shared, mut ended: watch::Receiver<bool>) {
        loop {
            let looked = self.look(&client).await;
            let is_well = looked.is_ok() && self.writable(None).is_ok();
            tokio::select! {
                biased;
                _ = ended.wait_for(|it| *it) => return,
                () = tokio::time::sleep(if is_well { EVERY } else { OFTEN }) => {}
            }
        }
    }

    /// Failures are kept by the client.
    async fn look(&self, client: &Shared) -> Result<(), Failure> {
        let status: StatusResponse = client.ask(STATUS, &StatusRequest {}).await?;
        let told: AlarmResponse = client.ask(ALARM, &AlarmRequest::default()).await?;
        let quota_bytes = match status.db_size_quota.unsigned_abs() {
            0 => self.asked_quota(client).await,
            told => told,
        };
        let raised = |alarm: i32| told.alarms.iter().any(|it| it.alarm == alarm);
        let mut known = self.0.lock();
        (known.is_full, known.is_corrupt) = (raised(NO_SPACE), raised(CORRUPT));
        (known.db_bytes, known.quota_bytes) = (status.db_size.unsigned_abs(), quota_bytes);
        Ok(())
    }

    /// Of a member whose status does not tell it.
    async fn asked_quota(&self, client: &Shared) -> u64 {
        let known = {
            let known = self.0.lock();
            let is_new = known.quota_asked.is_some_and(|it| it.elapsed() < QUOTA_EVERY);
            if is_new {
                return known.quota_bytes;
            }
            known.quota_bytes
        };
        let told = client.quota().await;
        self.0.lock().quota_asked = Some(Instant::now());
        told.unwrap_or(known)
    }

    /// A write was refused: what that says of etcd is known before the next look.
    pub(crate) fn refused(&self, error: &Error) {
        if let Error::Unavailable(message) = error
            && message.contains("database space exceeded")
        {
            self.0.lock().is_full = true;
        }
    }

    pub(crate) fn break_down(&self, reason: String) {
        self.0.lock().broken_down = Some(reason);
    }

    pub(crate) fn is_broken_down(&self) -> bool {
        self.0.lock().broken_down.is_some()
    }

    pub(crate) fn writable(&self, trouble: Option<String>) -> Result<(), Error> {
        let known = self.0.lock();
        if let Some(reason) = known.broken_down.clone().or(trouble) {
            return Err(Error::Unavailable(reason));
        }
        let raised = match (known.is_full, known.is_corrupt) {
            (_, true) => "its alarm CORRUPT is raised: see `etcdctl alarm list`",
            (true, _) => {
                "its alarm NOSPACE is raised: compact and defragment it, then `etcdctl alarm disarm`, or raise --quota-backend-bytes"
            }
            _ => return Ok(()),
        };
        Err(Error::Unavailable(format!("etcd takes no writes: {raised}")))
    }

    /// Only where the quota is told, or all of it is used.
    pub(crate) fn disk_use(&self) -> Option<DiskUse> {
        let known = self.0.lock();
        let total = if known.quota_bytes > 0 { known.quota_bytes } else { known.db_bytes };
        let is_told = known.quota_bytes > 0 || known.is_full;
        is_told.then_some(DiskUse {
            used: known.db_bytes,
            available: total.saturating_sub(known.db_bytes),
            total,
            is_refused: known.is_full,
            is_quota: true,
        })
    }
}
