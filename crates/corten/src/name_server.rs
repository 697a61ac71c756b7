//! The cluster's name server on this node: its sockets, what feeds it, and the address Pods know it by.

use std::{net::IpAddr, ops::RangeInclusive};

use anyhow::{Context, Result};
use corten_dns::{Keeper, Name, ServerLocation};
use corten_host::{DnsOptions, DnsServer, servers_of_machine};
use corten_runner::{Loops, whole};
use tokio::task::JoinSet;

use crate::{control_plane::ControlPlane, in_process};

const DOMAIN: &str = "cluster.local";
/// Below the ports of Services and those the kernel gives out; the first is usual, the others are for when somebody has it.
pub(crate) const PORTS: RangeInclusive<u16> = 10053..=10068;

/// Where the name server is, and the address Pods know it by.
pub(crate) struct About<'a> {
    pub(crate) node_name: &'a str,
    pub(crate) address: IpAddr,
    pub(crate) cluster_ip: IpAddr,
}

/// Begins to serve on the node's address, for Pods of `networks`; gives the address for their resolv.conf.
///
/// Without an address that Pods can reach there is no name server: then the answer is none.
pub(crate) async fn start(
    tasks: &mut JoinSet<()>,
    loops: &Loops,
    control_plane: &ControlPlane,
    about: About<'_>,
    networks: Vec<String>,
) -> Result<bool> {
    let About { node_name, address, cluster_ip } = about;
    if address.is_loopback() {
        tracing::warn!("this machine has no address that pods can reach: names of the cluster cannot be asked for");
        return Ok(false);
    }
    let domain = Name::parse(DOMAIN).context("reading the cluster's domain")?;
    let keeper = move || Keeper::new(domain);
    let options = DnsOptions {
        addresses: vec![address],
        ports: PORTS,
        networks,
        own_names: vec![cluster_ip],
        servers: Box::new(servers_of_machine),
    };
    let server = DnsServer::bind(options, keeper().zone()).await;
    let server =
        server.with_context(|| format!("listening on {address}, ports {PORTS:?}, for names of the cluster"))?;
    let place = ServerLocation { cluster_ip, node_name: node_name.to_owned(), node_ip: address, port: server.port() };
    tracing::info!(%address, port = server.port(), "names of the cluster are answered");
    let slot = server.zone();
    let client = in_process::client(&control_plane.server, in_process::controller("dns"));
    let (clock, journal) = (control_plane.clock.clone(), control_plane.journal.clone());
    let told = control_plane.when_stopping();
    tasks.spawn(loops.spawn("dns", move || {
        let (client, place, slot) = (client.clone(), place.clone(), slot.clone());
        let (clock, journal) = (clock.clone(), journal.clone());
        let publish = move |zone| slot.publish(zone);
        whole(corten_runner::run_dns(client, keeper(), publish, place, clock, journal, told.now()))
    }));
    tasks.spawn(server.serve(control_plane.stopping()));
    Ok(true)
}
