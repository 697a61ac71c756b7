//! What `corten controllers` is told: kube-controller-manager's options, as far as there is something to tell.

use std::{collections::BTreeMap, path::PathBuf};

use anyhow::{Context, Result, bail};
use clap::{Arg, ArgAction, ArgMatches, Command, value_parser};
use corten_api::cluster_network::{CLUSTER_CIDR, ClusterNetwork, NODE_MASK_IPV4, NODE_MASK_IPV6, SERVICE_RANGE};
use corten_api::lease_times::LeaseTimes;
use corten_options::server_options;
use corten_pki::SigningFiles;

use crate::{leader_options, switches::Switches};

/// Upstream's names of what runs only where it is asked for: upstream's needs a cloud for the one, and `--allocate-node-cidrs` for the
/// other.
const LOAD_BALANCERS: [&str; 2] = ["service-lb-controller", "service"];
const NODE_IPAM: [&str; 2] = ["node-ipam-controller", "nodeipam"];

pub(crate) struct ControllersOptions {
    pub(crate) kubeconfig: PathBuf,
    pub(crate) has_accounts: bool,
    pub(crate) switches: Switches,
    pub(crate) network: ClusterNetwork,
    pub(crate) signing: Option<SigningFiles>,
    /// PEM.
    pub(crate) root_ca: Option<String>,
    pub(crate) lease_times: Option<LeaseTimes>,
}

pub(crate) fn args(command: Command) -> Command {
    let file = |name: &'static str, help: &'static str| {
        Arg::new(name).long(name).value_name("FILE").value_parser(value_parser!(PathBuf)).help(help)
    };
    let switch = |name: &'static str, default: &'static str, help: &'static str| {
        let arg = Arg::new(name).long(name).value_name("true|false").default_value(default).help(help);
        arg.value_parser(value_parser!(bool)).num_args(0..=1).require_equals(true).default_missing_value("true")
    };
    let command = command
        .arg(file("kubeconfig", "Where the cluster is described, and as whom it is asked").required(true))
        .arg(switch(
            "use-service-account-credentials",
            "false",
            "Write as a service account of kube-system for each controller, which the kubeconfig's user must be allowed to make and to \
             ask tokens for",
        ))
        .arg(file("cluster-signing-cert-file", "The authority whose certificates answer signing requests").requires("cluster-signing-key-file"))
        .arg(file("cluster-signing-key-file", "The key of --cluster-signing-cert-file").requires("cluster-signing-cert-file"))
        .arg(file(
            "root-ca-file",
            "By which certificates Pods know the API server: the ConfigMap kube-root-ca.crt of each namespace [default: the kubeconfig's; \
             of a server of Corten's those that it says itself]",
        ));
    election_args(network_args(command), switch)
}

fn network_args(command: Command) -> Command {
    let list = |name: &'static str, value: &'static str, help: &'static str| {
        let arg = Arg::new(name).long(name).value_name(value).help(help);
        arg.value_delimiter(',').action(ArgAction::Append).allow_hyphen_values(true)
    };
    let bits = |name: &'static str, help: &'static str| Arg::new(name).long(name).value_name("BITS").help(help);
    command
        .arg(
            list(
                "controllers",
                "NAME,…",
                "Which controllers run, by upstream's names: `*` all that are not named, NAME this one, -NAME not this one. \
                 service-lb-controller, which gives load balancers the nodes' addresses, runs only where it is named",
            )
            .default_value("*"),
        )
        .arg(list(
            CLUSTER_CIDR,
            "CIDR,…",
            "The addresses of all Pods, of which each node is given a part. Without it no node is given any, and node-ipam-controller does \
             not run",
        ))
        .arg(list(SERVICE_RANGE, "CIDR,…", "The addresses of Services [default: 10.96.0.0/12,fd00:10:96::/112]"))
        .arg(bits(NODE_MASK_IPV4, "The size of a node's part of the IPv4 range of Pods [default: 24]"))
        .arg(bits(NODE_MASK_IPV6, "The size of a node's part of the IPv6 range of Pods [default: 64]"))
}

fn election_args(command: Command, switch: impl Fn(&'static str, &'static str, &'static str) -> Arg) -> Command {
    let time = |name: &'static str, default: &'static str, help: &'static str| {
        let arg = Arg::new(name).long(name).value_name("TIME").default_value(default).help(help);
        arg.value_parser(corten_meta::duration::duration)
    };
    command
        .arg(switch(
            "leader-elect",
            "true",
            "Run the controllers only while this process holds the lease kube-system/kube-controller-manager",
        ))
        .arg(time(
            "leader-elect-lease-duration",
            "15s",
            "How long after the last renewal of the lease others wait before they take it",
        ))
        .arg(time("leader-elect-renew-deadline", "10s", "How long the holder goes on that cannot renew the lease"))
        .arg(time("leader-elect-retry-period", "2s", "How often the lease is tried for, or renewed"))
}

impl ControllersOptions {
    /// # Errors
    /// An option is wrong, or a file cannot be read.
    pub(crate) fn of(matches: &ArgMatches) -> Result<Self> {
        let signing = match (file(matches, "cluster-signing-cert-file"), file(matches, "cluster-signing-key-file")) {
            (Some(certificate), Some(key)) => {
                Some(SigningFiles::new(certificate, key).context("--cluster-signing-cert-file")?)
            }
            _ => None,
        };
        let lease_times = leader_options::lease_times(matches, true)?;
        Ok(Self {
            kubeconfig: file(matches, "kubeconfig").context("--kubeconfig is required")?,
            has_accounts: server_options::is_on(matches, "use-service-account-credentials"),
            switches: switches(matches)?,
            network: network(matches)?,
            signing,
            root_ca: file(matches, "root-ca-file").map(|it| root_ca(&it)).transpose()?,
            lease_times: server_options::is_on(matches, "leader-elect").then_some(lease_times),
        })
    }
}

fn file(matches: &ArgMatches, name: &str) -> Option<PathBuf> {
    matches.get_one::<PathBuf>(name).cloned()
}

fn switches(matches: &ArgMatches) -> Result<Switches> {
    let mut words = server_options::list(matches, "controllers");
    if !words.iter().any(|it| LOAD_BALANCERS.contains(it)) {
        words.push("-service-lb-controller");
    }
    let has_range = server_options::text_given(matches, CLUSTER_CIDR).is_some();
    match words.iter().find(|it| NODE_IPAM.contains(it)) {
        Some(name) if !has_range => bail!("--controllers names {name}, which needs --{CLUSTER_CIDR}"),
        None if !has_range => words.push("-node-ipam-controller"),
        _ => {}
    }
    Switches::of(&words, false).context("--controllers")
}

fn network(matches: &ArgMatches) -> Result<ClusterNetwork> {
    let options = [CLUSTER_CIDR, SERVICE_RANGE, NODE_MASK_IPV4, NODE_MASK_IPV6];
    let given: BTreeMap<String, String> =
        options.iter().filter_map(|it| Some(((*it).to_owned(), server_options::text_given(matches, it)?))).collect();
    ClusterNetwork::of(&given).map_err(|errors| anyhow::anyhow!(errors.join("; ")))
}

fn root_ca(path: &std::path::Path) -> Result<String> {
    let text =
        corten_files::read_to_string(path).with_context(|| format!("reading --root-ca-file {}", path.display()))?;
    if !text.contains("-----BEGIN CERTIFICATE-----") {
        bail!("--root-ca-file {} holds no certificate", path.display());
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(line: &str) -> Result<ControllersOptions> {
        let line = format!("controllers --kubeconfig k {line}");
        let matches = args(Command::new("controllers")).try_get_matches_from(line.split_whitespace());
        ControllersOptions::of(&matches.map_err(|it| anyhow::anyhow!(it.to_string()))?)
    }

    #[test]
    fn what_upstream_has_on_demand_is_on_where_it_is_asked_for() {
        for (line, ipam, load_balancers, job) in [
            ("", false, false, true),
            ("--cluster-cidr 10.1.0.0/16 --service-cluster-ip-range 10.2.0.0/16", true, false, true),
            ("--controllers *,service", false, true, true),
            ("--controllers *,-job", false, false, false),
        ] {
            let switches = read(line).expect(line).switches;
            let runs = ["node-ipam", "service", "job"].map(|it| switches.runs(it));
            assert_eq!(runs, [ipam, load_balancers, job], "{line}");
        }
    }

    #[test]
    fn what_cannot_be_meant_is_refused() {
        for (line, said) in [
            ("--controllers nodeipam", "--controllers names nodeipam, which needs --cluster-cidr"),
            ("--controllers jobs", "--controllers: \"jobs\" is not in the list of known controllers"),
            ("--cluster-signing-cert-file a", "--cluster-signing-key-file"),
            (
                "--cluster-signing-cert-file /none --cluster-signing-key-file /none",
                "--cluster-signing-cert-file: /none is not",
            ),
            ("--root-ca-file /none", "reading --root-ca-file /none"),
            ("--leader-elect-renew-deadline 20s", "must be greater than --leader-elect-renew-deadline"),
        ] {
            let error = read(line).err().map(|it| format!("{it:#}")).unwrap_or_default();
            assert!(error.contains(said), "{line}: {error}");
        }
        let given = read("--leader-elect=false").expect("fine");
        assert!(given.lease_times.is_none() && !given.has_accounts);
    }
}
