//! The cluster's name server on this node: its sockets, what feeds it, and the address Pods know it by.

use std::{net::IpAddr, ops::RangeInclusive};

use anyhow::{Context, Result};
use corten_dns::{Keeper, Name, Place};
use corten_host::{DnsOptions, DnsServer, servers_of_machine};
use tokio::task::JoinSet;

use crate::{control_plane::ControlPlane, in_process};

const DOMAIN: &str = "cluster.local";
/// Below the ports of Services and those the kernel gives out; the first is usual, the others are for when somebody has it.
pub(crate) const PORTS: RangeInclusive<u16> = 10053..=10068;

/// Begins to serve on `address`, for Pods of `networks`; gives the address for their resolv.conf.
///
/// Without an address that Pods can reach there is no name server: then the answer is none.
pub(crate) async fn start(
    tasks: &mut JoinSet<()>,
    control_plane: &ControlPlane,
    node_name: &str,
    address: IpAddr,
    networks: Vec<String>,
    cluster_ip: IpAddr,
) -> Result<bool> {
    if address.is_loopback() {
        tracing::warn!("this machine has no address that pods can reach: names of the cluster cannot be asked for");
        return Ok(false);
    }
    let keeper = Keeper::new(Name::parse(DOMAIN).context("reading the cluster's domain")?);
    let options = DnsOptions {
        addresses: vec![address],
        ports: PORTS,
        networks,
        own_names: vec![cluster_ip],
        servers: Box::new(servers_of_machine),
    };
    let server = DnsServer::bind(options, keeper.zone()).await;
    let server =
        server.with_context(|| format!("listening on {address}, ports {PORTS:?}, for names of the cluster"))?;
    let place = Place { cluster_ip, node_name: node_name.to_owned(), node_ip: address, port: server.port() };
    tracing::info!(%address, port = server.port(), "names of the cluster are answered");
    let slot = server.zone();
    let client = in_process::client(&control_plane.server, in_process::controller("dns"));
    let (clock, journal) = (control_plane.clock.clone(), control_plane.journal.clone());
    let publish = move |zone| slot.publish(zone);
    tasks.spawn(corten_runner::run_dns(client, keeper, publish, place, clock, journal, control_plane.stopping()));
    tasks.spawn(server.serve(control_plane.stopping()));
    Ok(true)
}
