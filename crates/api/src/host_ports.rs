//! Ports of the host that the API server chooses for Pods with their node's network: what annotations say of them, and from which
//! range they are.

use core::ops::RangeInclusive;
use std::{collections::BTreeMap, fmt};

use crate::cluster_network::NodePorts;

/// Of a Pod, or of a Namespace for its Pods: [`HOST`] or [`POD`].
pub const NETWORK: &str = "corten.dev/network";
pub const HOST: &str = "host";
pub const POD: &str = "pod";

/// The API server's note on a Pod, as JSON: see [`Noted`].
pub const HOST_PORTS: &str = "corten.dev/host-ports";

/// The ports that are chosen, by their names; 0 is still to be chosen.
pub type Noted = BTreeMap<String, u16>;

/// Of each server, which may change.
pub const HOST_PORT_RANGE: &str = "host-port-range";

const RANGE: RangeInclusive<u16> = 20_000..=29_999;

/// The ports that Pods are given. Each server may be told others at its next start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostPortRange(pub RangeInclusive<u16>);

impl Default for HostPortRange {
    fn default() -> Self {
        Self(RANGE)
    }
}

impl fmt::Display for HostPortRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.0.start(), self.0.end())
    }
}

impl HostPortRange {
    /// As [`NodePorts::parse`].
    pub fn parse(text: &str) -> Option<Self> {
        NodePorts::parse(text).map(|it| Self(it.0))
    }

    pub fn overlaps(&self, services: &NodePorts) -> bool {
        self.0.start() <= services.0.end() && services.0.start() <= self.0.end()
    }
}
