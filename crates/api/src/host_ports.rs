//! Ports of the host: which a Pod asks for, and which collide; which of them the API server chooses for Pods with their node's
//! network, what annotations say of those, and from which range they are.

use core::ops::RangeInclusive;
use std::{collections::BTreeMap, fmt};

use crate::cluster_network::NodePorts;

/// Every address of the host.
const ANY_IP: &str = "0.0.0.0";

/// One port of the host that a Pod asks for. By number and protocol first: ports that may collide stand together where they are
/// sorted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct HostPort<'p> {
    pub port: i32,
    pub protocol: &'p str,
    pub ip: &'p str,
}

/// A port of a container as its spec has it; what is absent is empty, or 0.
#[derive(Clone, Copy, Debug, Default)]
pub struct ContainerPort<'p> {
    pub host_port: i32,
    pub container_port: i32,
    pub protocol: &'p str,
    pub host_ip: &'p str,
}

impl<'p> HostPort<'p> {
    /// The port of the host that this one is; `None` where it is none. In the host's network each of a container is.
    pub fn of(port: ContainerPort<'p>, in_host_network: bool) -> Option<Self> {
        let ContainerPort { host_port, container_port, protocol, host_ip } = port;
        let port = if in_host_network && host_port == 0 { container_port } else { host_port };
        let or = |text: &'p str, default: &'static str| if text.is_empty() { default } else { text };
        (port > 0).then(|| Self { port, protocol: or(protocol, "TCP"), ip: or(host_ip, ANY_IP) })
    }

    pub fn is_on_any_ip(self) -> bool {
        self.ip == ANY_IP
    }

    /// The same port on every address.
    #[must_use]
    pub fn on_any_ip(self) -> Self {
        Self { ip: ANY_IP, ..self }
    }

    /// Two Pods of a node cannot have the same number and protocol on an address they have in common (`HostPortInfo` of
    /// kube-scheduler).
    pub fn collides(self, other: Self) -> bool {
        self.port == other.port
            && self.protocol == other.protocol
            && (self.ip == other.ip || self.is_on_any_ip() || other.is_on_any_ip())
    }
}

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
