//! What a snapshot says beside its keys.

/// A lease, and how long it was granted for.
#[derive(Clone, Copy, Debug)]
pub struct Lease {
    pub id: i64,
    pub ttl: i64,
}

/// What a snapshot says beside its keys.
#[derive(Clone, Copy, Debug)]
pub struct State<'a> {
    /// The newest revision. All before it counts as compacted.
    pub revision: i64,
    pub leases: &'a [Lease],
}
