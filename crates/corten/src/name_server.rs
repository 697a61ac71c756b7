//! The cluster's name server on this node: its sockets, what feeds it, and the address Pods know it by.
//!
//! ```text
//! DATA/kubelet/names   all names as they were known last, where the control plane may be another machine
//! ```

use std::{net::IpAddr, ops::RangeInclusive, path::PathBuf, sync::Arc};

use anyhow::{Context, Result};
use corten_api::cluster_network::ClusterNetwork;
use corten_api::lease_times::LeaseTimes;
use corten_client::BoxFuture;
use corten_dns::{Keeper, Name, ServerLocation, Zone};
use corten_host::{DnsOptions, DnsServer, Ipv4Way, ListServers, WaysOut, ZoneSlot, servers_of_machine};
use corten_machine::write_whole;
use corten_meta::Key;
use corten_nat64::Ends;
use corten_network::has_way_out;
use corten_proxy::rules::Backend;
use corten_runner::{Candidate, Loops, NameHands, NameSettings, NodeWatches, Stopping, lead, whole};
use tokio::{sync::watch, task::JoinSet};

use crate::{
    cluster_access::ClusterAccess, in_process, network_options::DnsForwarding, node_routes::OtherNodes, process,
};

/// Below the ports of Services and those the kernel gives out; the first is usual, the others are for when somebody has it.
pub(crate) const PORTS: RangeInclusive<u16> = 10053..=10068;

/// Where the name server is, and the address Pods know it by.
pub(crate) struct About<'a> {
    pub(crate) node_name: &'a str,
    pub(crate) address: IpAddr,
    pub(crate) cluster_ip: IpAddr,
    pub(crate) network: &'a ClusterNetwork,
    pub(crate) dns: &'a DnsForwarding,
    pub(crate) peers: OtherNodes,
    pub(crate) upkeep: Upkeep,
    /// Where names are kept for a start without the API; `None`: they are in this process.
    pub(crate) kept: Option<PathBuf>,
    /// Told where names are answered once they are.
    pub(crate) place: watch::Sender<Option<Backend>>,
    pub(crate) watches: Option<NodeWatches>,
}

/// Who has the Service `kube-dns` lead to a name server, for nodes that have none.
#[derive(Clone, Copy)]
pub(crate) enum Upkeep {
    Own,
    /// Of several one, by a lease.
    Elected(LeaseTimes),
    OfOthers,
}

/// The lease of whom the Service `kube-dns` leads to.
const LEASE: &str = "corten-name-server";

/// What this process has of names.
struct Hands {
    slot: ZoneSlot,
    place: (Backend, watch::Sender<Option<Backend>>),
    kept: Option<PathBuf>,
}

impl NameHands for Hands {
    fn publish(&self, zone: Zone) {
        let is_complete = zone.is_complete();
        self.slot.publish(zone);
        if is_complete {
            self.place.1.send_if_modified(|it| it.replace(self.place.0) != Some(self.place.0));
        }
    }

    fn keeps(&self) -> bool {
        self.kept.is_some()
    }

    fn keep(&self, zone: String) -> BoxFuture<'_, ()> {
        let path = self.kept.clone();
        Box::pin(async move {
            let Some(path) = path else { return };
            let shown = path.display().to_string();
            let written = tokio::task::spawn_blocking(move || write_whole(&path, 0o600, zone.as_bytes())).await;
            if let Ok(Err(error)) = written {
                tracing::warn!(%error, path = shown, "names are not kept for a start without the API")
            }
        })
    }
}

/// Begins to serve on the node's address. Whether Pods are to ask is what it gives: without an address that they can reach there is no
/// name server.
pub(crate) async fn start(
    tasks: &mut JoinSet<()>,
    loops: &Loops,
    cluster: &ClusterAccess,
    about: About<'_>,
) -> Result<bool> {
    let About { node_name, address, cluster_ip, network, dns, peers, upkeep, kept, place, watches } = about;
    if address.is_loopback() {
        tracing::warn!("this machine has no address that pods can reach: names of the cluster cannot be asked for");
        return Ok(false);
    }
    let domain = Name::parse(&network.domain).context("reading the cluster's domain")?;
    let keeper = move || Keeper::new(domain);
    let options = DnsOptions {
        addresses: vec![address],
        ports: PORTS,
        networks: network.cluster_cidrs.iter().map(ToString::to_string).collect(),
        is_peer: Box::new(move |it| peers.have(it)),
        own_names: vec![cluster_ip],
        servers: upstreams(dns),
        ipv4: network.is_ipv6_only().then_some(Ipv4Way {
            way_to: |it| Ends::LOCAL.way_to(it),
            ways_out: || WaysOut { ipv4: has_way_out(true), ipv6: has_way_out(false) },
        }),
        stub_domains: dns.stub_domains.clone(),
    };
    let server = DnsServer::bind(options, keeper().zone()).await;
    let server =
        server.with_context(|| format!("listening on {address}, ports {PORTS:?}, for names of the cluster"))?;
    let port = server.port();
    tracing::info!(%address, port, "names of the cluster are answered");
    let hands = Arc::new(Hands { slot: server.zone(), place: (Backend { address, port }, place), kept });
    if let Some(zone) = kept_zone(&hands, domain) {
        hands.publish(zone);
    }
    let location = ServerLocation { cluster_ip, node_name: node_name.to_owned(), node_ip: address, port };
    let upkeep = follow(tasks, cluster, upkeep).map(|leads| (location, leads));
    let client = cluster.client(in_process::controller("dns-controller"));
    let (clock, journal) = (cluster.clock.clone(), cluster.journal.clone());
    let told = cluster.when_stopping();
    tasks.spawn(loops.spawn("dns", move || {
        let settings = NameSettings {
            client: client.clone(),
            watches: watches.clone(),
            keeper: keeper(),
            hands: hands.clone(),
            upkeep: upkeep.clone(),
            clock: clock.clone(),
            journal: journal.clone(),
        };
        whole(corten_runner::run_dns(settings, told.now()))
    }));
    tasks.spawn(server.serve(cluster.stopping()));
    Ok(true)
}

/// What was known when this node ran last; the API's word takes its place.
fn kept_zone(hands: &Hands, domain: Name) -> Option<Zone> {
    let text = std::fs::read_to_string(hands.kept.as_ref()?).ok()?;
    Zone::of_kept(domain, &text)
}

fn upstreams(dns: &DnsForwarding) -> ListServers {
    if dns.upstreams.is_empty() {
        return Box::new(servers_of_machine);
    }
    let told = dns.upstreams.clone();
    Box::new(move || told.clone())
}

/// Is it this name server that the Service leads to? Whoever runs the controllers may have none.
fn follow(tasks: &mut JoinSet<()>, cluster: &ClusterAccess, upkeep: Upkeep) -> Option<watch::Receiver<bool>> {
    let times = match upkeep {
        Upkeep::Own => return Some(watch::channel(true).1),
        Upkeep::Elected(times) => times,
        Upkeep::OfOthers => return None,
    };
    let (leads, told) = watch::channel(false);
    let candidate = Candidate {
        client: cluster.client(in_process::controller("dns-controller")),
        clock: cluster.clock.clone(),
        lease: Key::new("kube-system", LEASE),
        identity: process::candidate_name(),
        component: "dns-controller".into(),
        times,
    };
    let stopping = cluster.when_stopping();
    tasks.spawn(async move {
        let begin = |over: &Stopping, _| {
            leads.send_replace(true);
            let (over, leads) = (over.now(), leads.clone());
            let mut tasks = JoinSet::new();
            tasks.spawn(async move {
                over.await;
                leads.send_replace(false);
            });
            tasks
        };
        lead(candidate, &stopping, begin, || {}).await;
    });
    Some(told)
}
