//! Who could hold a Lease, and which of them is to.

use std::time::Duration;

use corten_api::resources;
use corten_meta::{MicroTime, ObjectMeta, Time, release};
use serde::Deserialize;

use super::ELECTION;
use crate::projections::projection;

/// The one strategy that elections are held by here (`coordinationv1.OldestEmulationVersion`).
pub(super) const STRATEGY: &str = "OldestEmulationVersion";
/// Who has not renewed itself for so long is no candidate any more (`leaseCandidateValidDuration`).
const VALID: Duration = Duration::from_secs(30 * 60);

#[derive(Deserialize)]
pub(super) struct Candidate {
    pub(super) metadata: ObjectMeta,
    #[serde(default)]
    pub(super) spec: CandidateSpec,
}
projection!(Candidate, resources::LEASE_CANDIDATES);

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct CandidateSpec {
    pub(super) lease_name: String,
    binary_version: String,
    emulation_version: String,
    strategy: String,
    ping_time: Option<MicroTime>,
    renew_time: Option<MicroTime>,
}

type Version = (u64, u64, u64);

impl Candidate {
    fn pinged(&self) -> Option<Time> {
        self.spec.ping_time.map(|it| Time(it.0))
    }

    fn renewed(&self) -> Option<Time> {
        self.spec.renew_time.map(|it| Time(it.0))
    }

    /// When it is a candidate no longer.
    pub(super) fn expires(&self) -> Option<Time> {
        Some(self.renewed().or(self.metadata.creation_timestamp)?.after(VALID))
    }

    pub(super) fn is_expired(&self, now: Time) -> bool {
        self.expires().is_some_and(|it| it < now)
    }

    /// It has renewed itself just now.
    pub(super) fn is_present(&self, now: Time) -> bool {
        self.renewed().is_some_and(|it| now < it.after(ELECTION)) && self.has_answered()
    }

    pub(super) fn has_answered(&self) -> bool {
        self.pinged().is_none_or(|pinged| self.renewed().is_some_and(|it| pinged <= it))
    }

    /// It was asked, and still has time to answer.
    pub(super) fn may_answer(&self, now: Time) -> bool {
        !self.has_answered() && self.pinged().is_some_and(|it| now < it.after(ELECTION))
    }

    fn binary(&self) -> Version {
        release(&self.spec.binary_version).unwrap_or_default()
    }
}

/// What the candidates of the newest program say; `None` where they do not agree.
pub(super) fn strategy<'a>(candidates: &[&'a Candidate]) -> Option<&'a str> {
    let newest = candidates.iter().map(|it| it.binary()).max()?;
    let mut said = candidates.iter().filter(|it| it.binary() == newest).map(|it| &*it.spec.strategy);
    let first = said.next()?;
    said.all(|it| it == first).then_some(first)
}

/// The one that behaves like the oldest version; of several the oldest program; of several the one that came first.
pub(super) fn best<'a>(candidates: &[&'a Candidate]) -> Option<&'a Candidate> {
    let order = |it: &&Candidate| {
        let emulated = release(&it.spec.emulation_version)?;
        let binary = release(&it.spec.binary_version)?;
        Some((emulated, binary, it.metadata.creation_timestamp, it.metadata.name.clone()))
    };
    let able = candidates.iter().copied().filter_map(|it| Some((order(&it)?, it)));
    able.min_by(|one, other| one.0.cmp(&other.0)).map(|it| it.1)
}
