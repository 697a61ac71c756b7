//! How often several control planes were disturbed.

/// What was done to control planes in a history.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Interruptions {
    /// Links between a server and the store that were cut, slowed or half cut, or whose streams broke.
    pub links: u64,
    /// Servers that a client did not reach.
    pub partitions: u64,
    /// Processes that stood still.
    pub pauses: u64,
    /// Processes that ended, in order or not.
    pub ends: u64,
}
