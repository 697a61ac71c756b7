//! What a priority level is given: its share of the seats, what it lends and borrows, and its queues.

use serde::Deserialize;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PriorityLevel {
    pub name: String,
    pub uid: String,
    pub shares: u32,
    pub lendable_percent: u32,
    /// `None` of one that is exempt: nobody waits in it.
    pub limited: Option<Limited>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limited {
    /// How much it borrows at most; `None` borrows what there is.
    pub borrowing_percent: Option<u32>,
    /// `None` refuses what finds no seat.
    pub queuing: Option<Queuing>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Queuing {
    #[serde(default = "queues")]
    pub queues: u32,
    #[serde(default = "hand_size")]
    pub hand_size: u32,
    #[serde(default = "queue_length_limit")]
    pub queue_length_limit: u32,
}

fn queues() -> u32 {
    64
}

fn hand_size() -> u32 {
    8
}

fn queue_length_limit() -> u32 {
    50
}

#[derive(Deserialize)]
struct Object {
    metadata: Metadata,
    spec: Spec,
}

#[derive(Deserialize)]
struct Metadata {
    name: String,
    #[serde(default)]
    uid: String,
}

#[derive(Deserialize)]
struct Spec {
    #[serde(default)]
    limited: Option<LimitedSpec>,
    #[serde(default)]
    exempt: Option<ExemptSpec>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct ExemptSpec {
    #[serde(default)]
    nominal_concurrency_shares: u32,
    #[serde(default)]
    lendable_percent: u32,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct LimitedSpec {
    #[serde(default = "shares")]
    nominal_concurrency_shares: u32,
    #[serde(default)]
    lendable_percent: u32,
    #[serde(default)]
    borrowing_limit_percent: Option<u32>,
    #[serde(default)]
    limit_response: LimitResponse,
}

fn shares() -> u32 {
    30
}

#[derive(Default, Deserialize)]
struct LimitResponse {
    #[serde(rename = "type", default)]
    response: Response,
    #[serde(default)]
    queuing: Option<Queuing>,
}

#[derive(Default, PartialEq, Eq, Deserialize)]
enum Response {
    Queue,
    #[default]
    Reject,
}

/// More queues than this are no help to anybody, and each takes memory.
const QUEUES_MAX: u32 = 10_000_000;
const QUEUES_KEPT_MAX: u32 = 4096;

impl Queuing {
    /// What is made of it: the API takes up to ten million queues, and so many flows are told apart by far fewer.
    pub(crate) fn queues(&self) -> usize {
        self.queues.clamp(1, QUEUES_MAX).min(QUEUES_KEPT_MAX) as usize
    }

    pub(crate) fn hand_size(&self) -> usize {
        (self.hand_size.max(1) as usize).min(self.queues())
    }
}

impl PriorityLevel {
    /// Reads a stored PriorityLevelConfiguration; `None` where it is none that the API would take.
    pub fn read(object: &[u8]) -> Option<Self> {
        let Object { metadata, spec } = serde_json::from_slice(object).ok()?;
        let Metadata { name, uid } = metadata;
        let Some(limited) = spec.limited else {
            let ExemptSpec { nominal_concurrency_shares: shares, lendable_percent } = spec.exempt.unwrap_or_default();
            return Some(Self { name, uid, shares, lendable_percent, limited: None });
        };
        let LimitResponse { response, queuing } = limited.limit_response;
        let default = Queuing { queues: queues(), hand_size: hand_size(), queue_length_limit: queue_length_limit() };
        let queuing = (response == Response::Queue).then(|| queuing.unwrap_or(default));
        Some(Self {
            name,
            uid,
            shares: limited.nominal_concurrency_shares,
            lendable_percent: limited.lendable_percent,
            limited: Some(Limited { borrowing_percent: limited.borrowing_limit_percent, queuing }),
        })
    }
}

/// The seats of a level where nobody lends: its share of all, rounded up.
pub fn nominal(seats: u32, shares: u32, all_shares: u64) -> u32 {
    let whole = (u64::from(seats) * u64::from(shares)).div_ceil(all_shares.max(1));
    u32::try_from(whole).unwrap_or(u32::MAX)
}
