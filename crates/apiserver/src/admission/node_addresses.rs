//! What a node may say it is reached at: never at a name or an address of the cluster, the API server or another node.
//!
//! Looked at is what is new: a node that is already known under an address does not fall silent because somebody else comes
//! to have it, too.

use corten_api::resources::{NODES, SERVICES};
use corten_kinds::reserved::Host;
use serde_json::Value;

use super::Attributes;
use crate::{Server, services};

/// One node's claims.
struct Claimant<'a> {
    server: &'a Server,
    node: &'a str,
    /// Runs in this process: it has this machine's names and addresses, as the server does.
    is_local: bool,
}

/// Why `node` may not write what is in `status.addresses` of its Node; `None` where it may.
pub(super) fn refused(request: &Attributes<'_>, node: &str, object: &Value) -> Option<String> {
    let server = &request.ctx.server;
    let is_local = server.config().machine.node.as_deref() == Some(node);
    let claimant = Claimant { server, node, is_local };
    let before: Vec<Host> = request.old.into_iter().flat_map(hosts).collect();
    let mut new = hosts(object).filter(|it| !before.contains(it));
    new.find_map(|it| {
        let owner = claimant.owner(&it)?;
        Some(format!("node {node:?} is not allowed to claim the address {:?}: it belongs to {owner}", it.to_string()))
    })
}

fn hosts(node: &Value) -> impl Iterator<Item = Host> + use<'_> {
    let addresses = node["status"]["addresses"].as_array().into_iter().flatten();
    addresses.map(|it| Host::parse(it["address"].as_str().unwrap_or_default()))
}

impl Claimant<'_> {
    /// Whose it is, where it is not the node's.
    fn owner(&self, host: &Host) -> Option<String> {
        let is_own = self.is_local && (host.is_loopback() || Host::parse(self.node) == *host);
        if host.is_reserved() && !is_own {
            return Some("the cluster".into());
        }
        let caches = self.server.caches();
        if let Some((name, namespace)) = host.service()
            && caches.get(&SERVICES).is_some_and(|it| it.get(namespace, name).is_some())
        {
            return Some("a Service".into());
        }
        if self.is_local {
            return None;
        }
        if let Host::Address(address) = host
            && services::is_in_range(caches, *address)
        {
            return Some("the range of Services' addresses".into());
        }
        if self.is_of_server(host) {
            return Some("the API server".into());
        }
        self.other_node(host).map(|it| format!("node {it:?}"))
    }

    fn is_of_server(&self, host: &Host) -> bool {
        let config = self.server.config();
        let advertised = config.advertise.map(|it| Host::of(it.ip()));
        advertised.as_ref() == Some(host) || Host::parse(&config.machine.host_name) == *host
    }

    /// A node that is silent may be gone, and its address another's now. Its name stays its own.
    fn other_node(&self, host: &Host) -> Option<String> {
        // Whatever others say: a node's name is its own.
        if Host::parse(self.node) == *host {
            return None;
        }
        let nodes = self.server.caches().get(&NODES).expect("nodes are a row of the table").snapshot();
        let others = nodes.iter().filter(|it| it.name() != self.node);
        let mut others = others.map(|it| (it.name().to_owned(), it.parse()));
        let found =
            others.find(|(name, it)| Host::parse(name) == *host || !is_silent(it) && hosts(it).any(|it| it == *host));
        found.map(|it| it.0)
    }
}

fn is_silent(node: &Value) -> bool {
    let mut conditions = node["status"]["conditions"].as_array().into_iter().flatten();
    conditions.any(|it| it["type"] == "Ready" && it["status"] == "Unknown")
}
