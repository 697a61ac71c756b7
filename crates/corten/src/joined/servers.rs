//! Which API servers the cluster has, for a node to ask another one where one is gone: those of the Service `kubernetes`, kept on
//! disk for a start while that one is away.

use std::{
    collections::BTreeSet,
    hash::{DefaultHasher, Hash, Hasher},
    io::ErrorKind,
    net::{IpAddr, SocketAddr},
    path::Path,
};

use anyhow::{Context, Result};
use corten_api::{discovery::v1::EndpointSlice, resources::ENDPOINT_SLICES};
use corten_client::{Client, ListParams};
use corten_machine::write_whole;
use corten_meta::address::is_reachable;

/// A slice with this label is a controller's (discovery/v1 LabelManagedBy).
const MANAGED_BY: &str = "endpointslice.kubernetes.io/managed-by";
/// So many are believed to be there.
const SERVERS_MAX: usize = 64;

/// Before the URL that the machine joined by, in the file.
const JOINED: &str = "joined ";

/// What is kept on disk of the servers.
#[derive(Debug, Default, PartialEq)]
pub(super) struct KeptServers {
    /// The URL that the machine joined by: of a server, or of a balancer. None where the file is of an older version.
    pub(super) joined: Option<String>,
    /// Those that the cluster told of, in the order in which they are asked.
    pub(super) learnt: Vec<String>,
}

impl KeptServers {
    /// # Errors
    /// The file cannot be read.
    pub(super) fn load(path: &Path) -> Result<Self> {
        let text = match std::fs::read_to_string(path) {
            Ok(text) => text,
            Err(error) if error.kind() == ErrorKind::NotFound => String::new(),
            Err(error) => return Err(error).with_context(|| format!("reading {}", path.display())),
        };
        let lines = || text.lines().map(str::trim);
        let joined = lines().find_map(|it| it.strip_prefix(JOINED)).map(str::to_owned);
        Ok(Self { joined, learnt: lines().filter(|it| is_url(it)).map(str::to_owned).collect() })
    }

    /// # Errors
    /// The file cannot be written.
    pub(super) fn save(&self, path: &Path) -> Result<()> {
        let joined = self.joined.iter().map(|it| format!("{JOINED}{it}\n"));
        let text: String = joined.chain(self.learnt.iter().map(|it| format!("{it}\n"))).collect();
        write_whole(path, 0o600, text.as_bytes()).with_context(|| format!("writing {}", path.display()))
    }
}

fn is_url(text: &str) -> bool {
    text.strip_prefix("https://").is_some_and(|it| it.parse::<SocketAddr>().is_ok())
}

/// Those that the cluster tells of, in the order in which `node` asks them; none where it tells of none that others reach.
///
/// # Errors
/// The server does not answer, or the node may not read it.
pub(super) async fn published(client: &Client, node: &str) -> Result<Vec<String>, String> {
    let params = ListParams {
        namespace: "default".into(),
        label_selector: "kubernetes.io/service-name=kubernetes".into(),
        ..ListParams::default()
    };
    let mut slices = client.list_as::<EndpointSlice>(&ENDPOINT_SLICES, &params).await.map_err(|it| it.to_string())?;
    slices.retain(is_of_api_servers);
    Ok(in_order(addresses(&slices), node))
}

/// Only API servers write the slice of this name (reconcilers/endpointsadapter.go). The others of the Service are made by controllers, out of
/// its selector, which whoever may edit Services chooses.
fn is_of_api_servers(slice: &EndpointSlice) -> bool {
    let is_managed = slice.metadata.labels.as_ref().is_some_and(|it| it.contains_key(MANAGED_BY));
    slice.metadata.name.as_deref() == Some("kubernetes") && !is_managed
}

fn addresses(slices: &[EndpointSlice]) -> BTreeSet<SocketAddr> {
    let served = slices.iter().flat_map(|slice| {
        let port = slice.ports.iter().flatten().find_map(|it| u16::try_from(it.port?).ok()).unwrap_or(443);
        let endpoints = slice.endpoints.iter().flatten();
        // An endpoint without a word on it is ready (EndpointConditions).
        let ready = endpoints.filter(|it| it.conditions.as_ref().and_then(|it| it.ready).unwrap_or(true));
        ready.flat_map(|it| &it.addresses).filter_map(move |it| Some(SocketAddr::new(it.parse::<IpAddr>().ok()?, port)))
    });
    served.filter(|it| is_reachable(it.ip())).take(SERVERS_MAX).collect()
}

/// Each node has an order of its own, so that those of a server that is gone do not all come to the same one.
fn in_order(servers: BTreeSet<SocketAddr>, node: &str) -> Vec<String> {
    let mut servers: Vec<(u64, String)> = servers
        .into_iter()
        .map(|it| {
            let mut hasher = DefaultHasher::new();
            (node, it).hash(&mut hasher);
            (hasher.finish(), format!("https://{it}"))
        })
        .collect();
    servers.sort();
    servers.into_iter().map(|it| it.1).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn slice(addresses: &[&str], port: u16, ready: Option<bool>) -> EndpointSlice {
        let endpoints: Vec<_> =
            addresses.iter().map(|it| json!({ "addresses": [it], "conditions": { "ready": ready } })).collect();
        let slice = json!({ "metadata": { "name": "kubernetes" }, "addressType": "IPv4", "endpoints": endpoints, "ports": [{ "port": port }] });
        serde_json::from_value(slice).expect("a slice")
    }

    #[test]
    fn servers_that_others_reach_are_known() {
        let slices = [
            slice(&["10.0.0.2", "10.0.0.1", "127.0.0.1"], 6443, None),
            slice(&["fd00::1"], 6444, Some(true)),
            slice(&["10.0.0.9"], 6443, Some(false)),
        ];
        let found: Vec<String> = addresses(&slices).iter().map(ToString::to_string).collect();
        assert_eq!(found, ["10.0.0.1:6443", "10.0.0.2:6443", "[fd00::1]:6444"]);
    }

    #[test]
    fn nodes_of_a_server_that_is_gone_come_to_different_ones() {
        let servers: BTreeSet<SocketAddr> = (1..=3).map(|it| SocketAddr::new([10, 0, 0, it].into(), 6443)).collect();
        let order = |n: u32| in_order(servers.clone(), &format!("node-{n}"));
        assert_eq!(order(1), order(1));
        let first = |url: &str| (0..300).filter(|it| order(*it)[0] == url).count();
        for server in &servers {
            let n = first(&format!("https://{server}"));
            assert!((50..150).contains(&n), "{server} is the first of {n}");
        }
    }

    #[test]
    fn slices_that_a_services_selector_makes_name_no_server() {
        let own = slice(&["10.0.0.1"], 6443, None);
        assert!(is_of_api_servers(&own));
        let mut made = own.clone();
        made.metadata.name = Some("kubernetes-rq4cq".into());
        assert!(!is_of_api_servers(&made));
        for manager in ["endpointslice-controller.k8s.io", "endpointslicemirroring-controller.k8s.io"] {
            let mut managed = own.clone();
            managed.metadata.labels = Some([(MANAGED_BY.to_owned(), manager.to_owned())].into());
            assert!(!is_of_api_servers(&managed), "{manager}");
        }
    }

    #[test]
    fn what_is_kept_is_read_again() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("servers");
        assert_eq!(KeptServers::load(&path).expect("none is kept"), KeptServers::default());
        let learnt = vec!["https://10.0.0.1:6443".to_owned(), "https://[fd00::1]:6443".to_owned()];
        let kept = KeptServers { joined: Some("https://balancer:6443".into()), learnt };
        kept.save(&path).expect("written");
        assert_eq!(KeptServers::load(&path).expect("read"), kept);
        std::fs::write(&path, "https://10.0.0.1:6443\nhttp://10.0.0.2:6443\nhttps://name\n\n").expect("written");
        let older = KeptServers { joined: None, learnt: vec!["https://10.0.0.1:6443".into()] };
        assert_eq!(KeptServers::load(&path).expect("read"), older);
    }
}
