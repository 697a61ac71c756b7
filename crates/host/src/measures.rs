//! What of a node's process its hands do not know, as the kubelet's server tells it.

use corten_reconcile::Tally;

/// See the module's documentation.
pub trait Measures: Send + Sync + 'static {
    /// What its loops and clients have counted.
    fn tallies(&self) -> Vec<Tally>;
    /// What the process is and takes of the machine, in Prometheus' text format.
    fn process(&self) -> String;
    /// In how many seconds the certificates end.
    fn certificates(&self) -> CertificateTimes;
}

/// In seconds from now, negative where it has ended; nothing where there is none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CertificateTimes {
    /// What the node shows API servers. One in the process of its API server shows none.
    pub client: Option<i64>,
    /// What the kubelet serves with.
    pub server: Option<i64>,
}
