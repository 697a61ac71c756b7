//! Reads which addresses, domain and name servers the cluster has, and keeps what cannot change once it is made.
//!
//! ```text
//! DATA/cluster-network.json   what the cluster was made with, by option
//! ```

mod local_prefix;

use std::{
    collections::BTreeMap,
    fs,
    io::ErrorKind,
    net::{IpAddr, SocketAddr},
    path::Path,
};

use anyhow::{Context, Result, bail};
use clap::ArgMatches;
use corten_api::{
    cluster_network::{CLUSTER_CIDR, ClusterNetwork, NODE_PORT_RANGE, NodePorts, OPTIONS},
    host_ports::{HOST_PORT_RANGE, HostPortRange},
};
use corten_cli::{Failure, control_plane_record::ControlPlaneRecord};
use corten_dns::Name;
use corten_machine::write_whole;
use corten_meta::address::Cidr;
use corten_options::server_options;

use local_prefix::{GlobalId, as_drawn_before};

const FILE: &str = "cluster-network.json";
const UPSTREAMS: &str = "dns-upstreams";
const STUB_DOMAIN: &str = "dns-stub-domain";
const DNS_PORT: u16 = 53;

/// Of the cluster, less the last three, which each server is told.
#[derive(Clone, Debug, Default)]
pub(crate) struct NetworkOptions {
    pub(crate) network: ClusterNetwork,
    /// It was made before: this server has a record of it.
    pub(crate) is_settled: bool,
    pub(crate) node_ports: NodePorts,
    pub(crate) host_ports: HostPortRange,
    pub(crate) dns: DnsForwarding,
}

/// Whom the name server asks about names that are not the cluster's.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct DnsForwarding {
    /// Empty: those of the machine.
    pub(crate) upstreams: Vec<SocketAddr>,
    pub(crate) stub_domains: Vec<(Name, Vec<SocketAddr>)>,
}

impl NetworkOptions {
    /// # Errors
    /// An option is wrong, or says something else than what the cluster was made with.
    pub(crate) fn of(matches: &ArgMatches, data: &Path, joined: Option<&ControlPlaneRecord>) -> Result<Self> {
        let given: BTreeMap<String, String> = OPTIONS
            .iter()
            .filter_map(|it| Some(((*it).to_owned(), server_options::text_given(matches, it)?)))
            .collect();
        let kept = match kept(data)? {
            Some(kept) => Some(kept),
            None => joined.map(|it| it.network.clone()),
        };
        let is_settled = kept.is_some();
        let network = match kept {
            Some(kept) => unchanged(&kept, &as_drawn_before(&given, &kept))?,
            None => ClusterNetwork::of(&GlobalId::drawn().into(&given)).map_err(refused)?,
        };
        let node_ports = match server_options::text_given(matches, NODE_PORT_RANGE) {
            Some(text) => NodePorts::parse(&text).with_context(|| {
                format!("--{NODE_PORT_RANGE} must be a range of ports, as 30000-32767, and not {text}")
            })?,
            None => NodePorts::default(),
        };
        let host_ports = host_ports(matches, &node_ports)?;
        Ok(Self { network, is_settled, node_ports, host_ports, dns: DnsForwarding::of(matches)? })
    }

    /// A cluster that is made now has no Pods at addresses of the machine.
    ///
    /// # Errors
    /// The range of Pods holds one of these.
    pub(crate) fn refuse_addresses_of_machine(&self, addresses: &[IpAddr]) -> Result<()> {
        let held = |pods: &Cidr| addresses.iter().find(|it| pods.contains(**it)).map(|it| (*pods, *it));
        match self.network.cluster_cidrs.iter().find_map(held).filter(|_| !self.is_settled) {
            Some((pods, address)) => bail!(
                "--{CLUSTER_CIDR} {pods} holds {address}, where this machine is: what is sent to machines of its network would be sent to Pods. \
                 Give a range that no machine, and nothing that Pods are to reach, has an address in"
            ),
            None => Ok(()),
        }
    }

    /// Written once the cluster is there: whoever could not begin it may begin it otherwise.
    ///
    /// # Errors
    /// It cannot be written.
    pub(crate) fn keep(&self, data: &Path) -> Result<()> {
        let wanted = self.network.settings();
        if kept(data).is_ok_and(|it| it.as_ref() == Some(&wanted)) {
            return Ok(());
        }
        let path = data.join(FILE);
        let text = serde_json::to_vec_pretty(&wanted).context("writing the addresses of the cluster")?;
        write_whole(&path, 0o600, &text).with_context(|| format!("writing {}", path.display()))
    }
}

fn kept(data: &Path) -> Result<Option<BTreeMap<String, String>>> {
    let path = data.join(FILE);
    match fs::read(&path) {
        Ok(text) => serde_json::from_slice(&text).map(Some).with_context(|| format!("reading {}", path.display())),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error).with_context(|| format!("reading {}", path.display())),
    }
}

/// What the cluster has, where nothing else is given.
fn unchanged(kept: &BTreeMap<String, String>, given: &BTreeMap<String, String>) -> Result<ClusterNetwork> {
    let network = ClusterNetwork::of(kept).map_err(refused)?;
    let differing = network.differing(given);
    if differing.is_empty() {
        return Ok(network);
    }
    let mut failure = Failure::new("the addresses and the domain of a cluster cannot be changed once it is made");
    for (name, has) in differing {
        failure.details.push(format!("this cluster has --{name}={has}, and not {}", given[&name]));
    }
    Err(failure.into())
}

/// The default gives way to what somebody says of Services.
fn host_ports(matches: &ArgMatches, services: &NodePorts) -> Result<HostPortRange> {
    let Some(text) = server_options::text_given(matches, HOST_PORT_RANGE) else { return Ok(HostPortRange::default()) };
    let range = HostPortRange::parse(&text).with_context(|| {
        format!("--{HOST_PORT_RANGE} must be a range of ports, as {}, and not {text}", HostPortRange::default())
    })?;
    if range.overlaps(services) {
        bail!(
            "--{HOST_PORT_RANGE} {range} and the ports of Services, {services}, overlap: a port would be a Pod's and a Service's"
        );
    }
    Ok(range)
}

fn refused(errors: Vec<String>) -> anyhow::Error {
    let mut errors = errors.into_iter();
    let mut failure = Failure::new(errors.next().unwrap_or_default());
    failure.details.extend(errors);
    failure.into()
}

impl DnsForwarding {
    fn of(matches: &ArgMatches) -> Result<Self> {
        Self::read(server_options::list(matches, UPSTREAMS), server_options::list(matches, STUB_DOMAIN))
    }

    /// What machines that join are told of it.
    pub(crate) fn settings(&self) -> BTreeMap<String, String> {
        let list = |it: &[SocketAddr]| it.iter().map(ToString::to_string).collect::<Vec<_>>().join(",");
        let stub_domains: Vec<_> = self.stub_domains.iter().map(|it| format!("{}={}", it.0, list(&it.1))).collect();
        let all = [(UPSTREAMS, list(&self.upstreams)), (STUB_DOMAIN, stub_domains.join(","))];
        all.into_iter().filter(|it| !it.1.is_empty()).map(|it| (it.0.to_owned(), it.1)).collect()
    }

    /// As [`Self::settings`] tells it.
    ///
    /// # Errors
    /// It is no list of name servers.
    pub(crate) fn told(told: &BTreeMap<String, String>) -> Result<Self> {
        let list = |name: &str| told.get(name).into_iter().flat_map(|it| it.split(',')).collect();
        Self::read(list(UPSTREAMS), list(STUB_DOMAIN))
    }

    fn read(upstreams: Vec<&str>, stubs: Vec<&str>) -> Result<Self> {
        let read = |option: &str, text: &str| {
            name_server(text).with_context(|| format!("--{option}: {text} is no address of a name server"))
        };
        let upstreams = upstreams.into_iter().map(|it| read(UPSTREAMS, it)).collect::<Result<_>>()?;
        let mut stub_domains: Vec<(Name, Vec<SocketAddr>)> = Vec::new();
        for word in stubs {
            let address = match word.split_once('=') {
                Some((domain, address)) => {
                    let name = Name::parse(domain).filter(|it| *it != Name::ROOT);
                    let name = name.with_context(|| format!("--{STUB_DOMAIN}: {domain:?} is no domain"))?;
                    stub_domains.push((name, Vec::new()));
                    address
                }
                None => word,
            };
            let (_, servers) = stub_domains
                .last_mut()
                .with_context(|| format!("--{STUB_DOMAIN} must be DOMAIN=ADDRESS,…, and not {word}"))?;
            servers.push(read(STUB_DOMAIN, address)?);
        }
        Ok(Self { upstreams, stub_domains })
    }
}

/// An address, with a port or without.
fn name_server(text: &str) -> Option<SocketAddr> {
    let alone = text.parse::<IpAddr>().map(|it| SocketAddr::new(it, DNS_PORT));
    alone.or_else(|_| text.parse()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(line: &str, data: &Path) -> Result<NetworkOptions> {
        let command = server_options::args(clap::Command::new("server"));
        NetworkOptions::of(&command.try_get_matches_from(line.split(' ')).expect(line), data, None)
    }

    #[test]
    fn what_the_cluster_was_made_with_stays() {
        let folder = tempfile::tempdir().expect("a folder");
        let data = folder.path();
        let made = read(
            "server --cluster-cidr=10.50.0.0/16 --service-cluster-ip-range 10.60.0.0/20 --cluster-domain=corp.example",
            data,
        );
        let made = made.expect("good options");
        made.keep(data).expect("written");
        assert_eq!(read("server --service-node-port-range=80-90", data).expect("kept").network, made.network);
        assert_eq!(read("server --cluster-domain=CORP.example.", data).expect("the same").network, made.network);
        let error = read("server --cluster-cidr=10.51.0.0/16", data).expect_err("another");
        let failure = error.downcast_ref::<Failure>().expect("a failure");
        assert_eq!(failure.details, ["this cluster has --cluster-cidr=10.50.0.0/16, and not 10.51.0.0/16"]);
    }

    #[test]
    fn a_new_cluster_has_no_pods_where_the_machine_is() {
        let folder = tempfile::tempdir().expect("a folder");
        let read = || read("server --cluster-cidr=10.50.0.0/16,fd00:50::/56", folder.path()).expect("good options");
        for (address, is_refused) in
            [("10.50.7.1", true), ("fd00:50::1", true), ("10.51.0.1", false), ("127.0.0.1", false)]
        {
            let refused = read().refuse_addresses_of_machine(&[address.parse().expect("an address")]);
            assert_eq!(refused.is_err(), is_refused, "{address}");
        }
        // One that is there goes on: its machine may have come to another network.
        read().keep(folder.path()).expect("written");
        read().refuse_addresses_of_machine(&["10.50.7.1".parse().expect("an address")]).expect("it is settled");
    }

    #[test]
    fn a_range_is_drawn_once() {
        let folder = tempfile::tempdir().expect("a folder");
        let line = "server --cluster-cidr=ula --service-cluster-ip-range=ula";
        let made = read(line, folder.path()).expect("good options");
        assert!(made.network.is_ipv6_only() && made.network != read(line, folder.path()).expect("drawn anew").network);
        made.keep(folder.path()).expect("written");
        for line in [line, "server --cluster-cidr=ula", "server"] {
            assert_eq!(read(line, folder.path()).expect(line).network, made.network, "{line}");
        }
        read("server --cluster-cidr=10.0.0.0/16,ula", folder.path()).expect_err("the cluster has no IPv4");
    }

    #[test]
    fn ports_of_pods_are_apart_from_those_of_services() {
        let folder = tempfile::tempdir().expect("a folder");
        let ports = |line: &str| read(line, folder.path()).expect(line).host_ports.to_string();
        assert_eq!(ports("server"), "20000-29999");
        assert_eq!(ports("server --host-port-range=31000-31009 --service-node-port-range=30000-30999"), "31000-31009");
        // Who had these before there were ports of Pods starts as before.
        assert_eq!(ports("server --service-node-port-range=20000-20999"), "20000-29999");
    }

    #[test]
    fn name_servers_are_read_in_any_spelling() {
        let folder = tempfile::tempdir().expect("a folder");
        let line = "server --dns-upstreams=192.0.2.1,[fd00::1]:5353 --dns-stub-domain=corp.example=10.0.0.1,fd00::2 --dns-stub-domain=a.b=10.0.0.3:54";
        let dns = read(line, folder.path()).expect("good options").dns;
        let texts = |servers: &[SocketAddr]| servers.iter().map(ToString::to_string).collect::<Vec<_>>();
        assert_eq!(texts(&dns.upstreams), ["192.0.2.1:53", "[fd00::1]:5353"]);
        assert_eq!(dns.stub_domains.len(), 2);
        assert_eq!(texts(&dns.stub_domains[0].1), ["10.0.0.1:53", "[fd00::2]:53"]);
        assert_eq!(DnsForwarding::told(&dns.settings()).expect("as it was told"), dns);
        assert!(DnsForwarding::default().settings().is_empty());
        assert_eq!(texts(&dns.stub_domains[1].1), ["10.0.0.3:54"]);
        for (line, expected) in [
            ("server --dns-upstreams=dns.example", "--dns-upstreams: dns.example is no address of a name server"),
            ("server --dns-stub-domain=10.0.0.1", "--dns-stub-domain must be DOMAIN=ADDRESS,…, and not 10.0.0.1"),
            ("server --host-port-range=x", "--host-port-range must be a range of ports, as 20000-29999, and not x"),
            (
                "server --host-port-range=29000-30000",
                "--host-port-range 29000-30000 and the ports of Services, 30000-32767, overlap: a port would be a Pod's and a Service's",
            ),
            ("server --dns-stub-domain=a..b=10.0.0.1", "--dns-stub-domain: \"a..b\" is no domain"),
            (
                "server --service-node-port-range=x",
                "--service-node-port-range must be a range of ports, as 30000-32767, and not x",
            ),
        ] {
            assert_eq!(read(line, folder.path()).expect_err(line).to_string(), expected);
        }
    }
}
