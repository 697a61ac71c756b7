//! The cluster's name server on this node: its sockets, what feeds it, and the address Pods know it by.

use std::{net::IpAddr, ops::RangeInclusive};

use anyhow::{Context, Result};
use corten_api::cluster_network::ClusterNetwork;
use corten_dns::{Keeper, Name, ServerLocation};
use corten_host::{DnsOptions, DnsServer, ListServers, servers_of_machine};
use corten_runner::{Candidate, LeaseTimes, Loops, whole};
use tokio::{sync::watch, task::JoinSet};

use crate::{
    cluster_access::{ClusterAccess, Stopping},
    in_process,
    leadership::lead,
    network_options::DnsForwarding,
    node_routes::OtherNodes,
    process,
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
    /// Of the lease by which one of several name servers is the Service's; `None` where there is one.
    pub(crate) lease_times: Option<LeaseTimes>,
}

/// The lease of whom the Service `kube-dns` leads to.
const LEASE: &str = "corten-name-server";

/// Begins to serve on the node's address, for all Pods of the cluster; gives the address for their resolv.conf.
///
/// Without an address that Pods can reach there is no name server: then the answer is none.
pub(crate) async fn start(
    tasks: &mut JoinSet<()>,
    loops: &Loops,
    cluster: &ClusterAccess,
    about: About<'_>,
) -> Result<bool> {
    let About { node_name, address, cluster_ip, network, dns, peers, lease_times } = about;
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
        stub_domains: dns.stub_domains.clone(),
    };
    let server = DnsServer::bind(options, keeper().zone()).await;
    let server =
        server.with_context(|| format!("listening on {address}, ports {PORTS:?}, for names of the cluster"))?;
    let place = ServerLocation { cluster_ip, node_name: node_name.to_owned(), node_ip: address, port: server.port() };
    tracing::info!(%address, port = server.port(), "names of the cluster are answered");
    let slot = server.zone();
    let leads = follow_lease(tasks, cluster, lease_times);
    let client = cluster.client(in_process::controller("dns-controller"));
    let (clock, journal) = (cluster.clock.clone(), cluster.journal.clone());
    let told = cluster.when_stopping();
    tasks.spawn(loops.spawn("dns", move || {
        let (client, place, slot) = (client.clone(), place.clone(), slot.clone());
        let leads = leads.clone();
        let (clock, journal) = (clock.clone(), journal.clone());
        let publish = move |zone| slot.publish(zone);
        whole(corten_runner::run_dns(client, keeper(), publish, (place, leads), (clock, journal), told.now()))
    }));
    tasks.spawn(server.serve(cluster.stopping()));
    Ok(true)
}

fn upstreams(dns: &DnsForwarding) -> ListServers {
    if dns.upstreams.is_empty() {
        return Box::new(servers_of_machine);
    }
    let told = dns.upstreams.clone();
    Box::new(move || told.clone())
}

/// Of several name servers, which all answer, one is the Service's: is it this one? Whoever runs the controllers may have none.
fn follow_lease(tasks: &mut JoinSet<()>, cluster: &ClusterAccess, times: Option<LeaseTimes>) -> watch::Receiver<bool> {
    let (leads, told) = watch::channel(times.is_none());
    let Some(times) = times else { return told };
    let candidate = Candidate {
        client: cluster.client(in_process::controller("dns-controller")),
        clock: cluster.clock.clone(),
        lease: LEASE,
        identity: process::candidate_name(),
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
    told
}
