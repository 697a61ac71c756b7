//! The room that a member's file takes: what is not used is given back, and a full member takes writes again.
//!
//! A member answers nothing while it is defragmented. So one is at a time, only where that gains something, and how the members
//! are is looked at meanwhile.

use std::{sync::Arc, time::Duration};

use corten_etcd::{EtcdStore, MemberStatus, Members, TlsFiles};
use corten_store::Store as _;
use tokio::{task::JoinSet, time::Instant};

use super::look::Look;
use crate::process;

/// Each member has its turn to be defragmented, one after the other.
const TURN_SECONDS: i64 = 600;
/// Less is not worth it.
const UNUSED_BYTES_MIN: u64 = 64 << 20;
/// What a full store need not keep is forgotten so often: who deletes something is given its room soon.
const COMPACT_EVERY: Duration = Duration::from_secs(15);
/// A full member is defragmented again after so long, and after twice as long each time.
const DEFRAGMENT_PAUSE: Duration = Duration::from_secs(15);
const DEFRAGMENT_PAUSE_MAX: Duration = Duration::from_secs(600);
/// A full member waits so long for each one that is before it: that one may not be looked after.
const PATIENCE: Duration = Duration::from_secs(120);
const NO_SPACE: &str = "NOSPACE";

pub(super) struct QuotaKeeper {
    own_url: String,
    tls: TlsFiles,
    quota_bytes: u64,
    /// The turn of the last defragmentation.
    turn: i64,
    /// As long as this machine's member is full.
    full: Option<Full>,
    /// One task at most.
    defragmenting: JoinSet<()>,
}

struct Full {
    since: Instant,
    compacted: Option<Instant>,
    defragmented: Option<Instant>,
    pause: Duration,
}

impl Full {
    fn new() -> Self {
        Self { since: Instant::now(), compacted: None, defragmented: None, pause: DEFRAGMENT_PAUSE }
    }
}

/// What is next for a full member.
#[derive(Debug, PartialEq, Eq)]
enum Next {
    /// Too much is in use, or another one is before it.
    Wait,
    Defragment,
    /// It has room for writes.
    Disarm,
}

impl QuotaKeeper {
    pub(super) fn new(own_url: String, tls: TlsFiles, quota_bytes: u64) -> Self {
        Self { own_url, tls, quota_bytes, turn: 0, full: None, defragmenting: JoinSet::new() }
    }

    /// `status` is what this machine's member said of itself in `look`.
    pub(super) async fn look_after(&mut self, look: &Look, status: &MemberStatus, store: Option<&Arc<EtcdStore>>) {
        while let Some(ended) = self.defragmenting.try_join_next() {
            if let Err(error) = ended {
                tracing::error!(%error, "the task that defragments etcd's member broke");
            }
        }
        if !self.defragmenting.is_empty() {
            return;
        }
        if look.alarms.contains(&(status.id, NO_SPACE)) {
            return self.make_room(look, status, store).await;
        }
        self.full = None;
        let turn = process::clock()().0.as_second() / TURN_SECONDS;
        if self.turn != turn && is_due(look, status, turn) {
            self.turn = turn;
            self.defragment();
        }
    }

    /// A full member takes no writes: what it need not keep is forgotten, its room is given back, and then it takes them again.
    async fn make_room(&mut self, look: &Look, status: &MemberStatus, store: Option<&Arc<EtcdStore>>) {
        let full = self.full.get_or_insert_with(Full::new);
        if let Some(store) = store
            && full.compacted.is_none_or(|it| it.elapsed() >= COMPACT_EVERY)
        {
            full.compacted = Some(Instant::now());
            forget(store).await;
            // What it uses now the next look says.
            return;
        }
        match next(look, status, self.quota_bytes, full.since.elapsed()) {
            Next::Defragment if full.defragmented.is_none_or(|it| it.elapsed() >= full.pause) => {
                if full.defragmented.is_some() {
                    full.pause = (full.pause * 2).min(DEFRAGMENT_PAUSE_MAX);
                }
                full.defragmented = Some(Instant::now());
                self.defragment();
            }
            Next::Disarm => self.disarm(status.id).await,
            Next::Defragment | Next::Wait => {}
        }
    }

    async fn disarm(&self, id: u64) {
        let disarmed = match Members::new(std::slice::from_ref(&self.own_url), Some(&self.tls)) {
            Ok(members) => members.disarm(id).await.map_err(|it| it.to_string()),
            Err(error) => Err(error),
        };
        match disarmed {
            Ok(()) => tracing::warn!("etcd was full; it takes writes again"),
            Err(error) => tracing::warn!(error, "etcd's alarm NOSPACE stays"),
        }
    }

    fn defragment(&mut self) {
        let (url, tls) = (self.own_url.clone(), self.tls.clone());
        self.defragmenting.spawn(async move {
            let done = match Members::new(&[url], Some(&tls)) {
                Ok(members) => members.defragment(0).await,
                Err(error) => Err(error),
            };
            match done {
                Ok(()) => tracing::info!("the member of etcd has given unused room back"),
                Err(error) => tracing::warn!(error, "the member of etcd cannot be defragmented"),
            }
        });
    }
}

async fn forget(store: &EtcdStore) {
    let compacted = match store.newest().await {
        Ok(newest) => store.compact(newest).await,
        Err(error) => Err(error),
    };
    if let Err(error) = compacted {
        tracing::warn!(%error, "etcd is full, and cannot be compacted");
    }
}

/// Has a member that is not full its turn, and is it worth it?
fn is_due(look: &Look, status: &MemberStatus, turn: i64) -> bool {
    let all_answer = look.members.iter().all(|it| matches!(it.status, Some(Ok(_))));
    let unused = status.db_bytes.saturating_sub(status.db_bytes_in_use);
    let is_worth_it = unused >= UNUSED_BYTES_MIN && unused >= status.db_bytes / 2;
    let mut ids: Vec<u64> = look.members.iter().map(|it| it.member.id).collect();
    ids.sort_unstable();
    let whose = usize::try_from(turn).unwrap_or_default() % ids.len().max(1);
    all_answer && is_worth_it && ids.get(whose) == Some(&status.id)
}

/// A tenth is kept free, so that it is not full again at once.
fn next(look: &Look, own: &MemberStatus, quota_bytes: u64, waited: Duration) -> Next {
    let bytes_max = quota_bytes / 10 * 9;
    if own.db_bytes < bytes_max {
        return Next::Disarm;
    }
    let gains = |it: &MemberStatus| it.db_bytes >= bytes_max && it.db_bytes_in_use < bytes_max;
    if !gains(own) {
        return Next::Wait;
    }
    let is_before = |it: &MemberStatus| it.id < own.id && gains(it) && look.alarms.contains(&(it.id, NO_SPACE));
    let statuses = look.members.iter().filter_map(|it| it.status.as_ref()?.as_ref().ok());
    let n_before = u32::try_from(statuses.filter(|it| is_before(it)).count()).unwrap_or(u32::MAX);
    if waited >= PATIENCE.saturating_mul(n_before) { Next::Defragment } else { Next::Wait }
}

#[cfg(test)]
mod tests {
    use corten_etcd::Member;

    use super::*;
    use crate::ha::look::ObservedMember;

    const MIB: u64 = 1 << 20;

    fn status(id: u64, mib: u64, mib_in_use: u64) -> MemberStatus {
        MemberStatus { id, is_learner: false, db_bytes: mib * MIB, db_bytes_in_use: mib_in_use * MIB }
    }

    fn look(statuses: &[MemberStatus], full: &[u64]) -> Look {
        let observed = |it: &MemberStatus| ObservedMember {
            member: Member { id: it.id, ..Member::default() },
            status: Some(Ok(it.clone())),
        };
        Look::of(statuses.iter().map(observed).collect(), full.iter().map(|id| (*id, NO_SPACE)).collect())
    }

    #[test]
    fn a_full_member_is_defragmented_where_that_gives_it_room() {
        for (mib, mib_in_use, expected) in [
            (100, 95, Next::Wait),
            (100, 90, Next::Wait),
            (100, 89, Next::Defragment),
            (90, 20, Next::Defragment),
            (89, 20, Next::Disarm),
        ] {
            let own = status(1, mib, mib_in_use);
            let look = look(std::slice::from_ref(&own), &[1]);
            assert_eq!(next(&look, &own, 100 * MIB, Duration::ZERO), expected, "{mib} {mib_in_use}");
        }
    }

    #[test]
    fn full_members_are_defragmented_one_after_the_other() {
        let own = status(3, 100, 10);
        let of = |others: &[MemberStatus], full: &[u64], waited: Duration| {
            let all = [others, std::slice::from_ref(&own)].concat();
            next(&look(&all, full), &own, 100 * MIB, waited)
        };
        let (first, second) = (status(1, 100, 10), status(2, 100, 10));
        let both = [first.clone(), second.clone()];
        assert_eq!(of(&both, &[1, 2, 3], PATIENCE), Next::Wait);
        assert_eq!(of(&both, &[1, 2, 3], PATIENCE * 2), Next::Defragment, "nobody looks after them");
        assert_eq!(of(&[status(1, 20, 10), second.clone()], &[2, 3], Duration::ZERO), Next::Wait);
        assert_eq!(of(&[status(1, 20, 10), status(2, 20, 10)], &[3], Duration::ZERO), Next::Defragment);
        assert_eq!(of(&[status(1, 100, 95)], &[1, 3], Duration::ZERO), Next::Defragment, "it gains nothing");
        assert_eq!(of(&[status(4, 100, 10)], &[3, 4], Duration::ZERO), Next::Defragment, "it comes later");
    }

    #[test]
    fn unused_room_is_given_back_in_turn() {
        let (one, other) = (status(1, 200, 90), status(2, 200, 150));
        let look = look(&[one.clone(), other.clone()], &[]);
        assert_eq!([0, 1, 2].map(|turn| is_due(&look, &one, turn)), [true, false, true]);
        assert!(!is_due(&look, &other, 1), "it is worth nothing");
    }
}
