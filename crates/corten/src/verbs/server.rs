//! `corten server`: the control plane alone, in the foreground.

use std::{net::IpAddr, path::PathBuf, process::ExitCode, sync::Arc, time::Duration};

use anyhow::{Context, Error, Result, bail};
use clap::{Arg, ArgMatches, Command, parser::ValueSource, value_parser};
use corten_api::{
    cluster_network::{ClusterNetwork, NodePorts},
    load_balancer::AddressPool,
};
use corten_apiserver::LogFilter;
use corten_cli::{Verb, control_plane_record::ControlPlaneRecord};
use corten_node_process::node_folders::DATA_DIR;
use corten_options::server_options;
use corten_pki::sharing::CertificateKey;

use crate::{
    access_options::AccessOptions,
    begin_again::begin_again_without,
    control_plane::{ControlPlane, Settings},
    etcd_options::EtcdOptions,
    ha,
    ha_options::HaOptions,
    joined::{Invitation, join_control_plane},
    leader_options, logging,
    network_options::NetworkOptions,
    process, scheduler_options,
    switches::Switches,
};

pub(crate) const VERB: Verb = Verb {
    name: "server",
    about: "Run the control plane alone, in the foreground",
    long_about: "Store, API server, controllers and scheduler in one process, without root and without a node. \
                 Writes DIR/admin.kubeconfig, with the certificates inside. \
                 Logs go to standard error; SIGTERM ends it cleanly. No answered write is ever lost. \
                 With --join it is another control plane of a cluster that is kept in an etcd: `corten token create --control-plane` \
                 prints the line. The cluster's keys, and how to reach its etcd, are then in DIR, and later starts need none of the \
                 options of that line. With --ha Corten runs the etcd, too: a member of it on this machine, supervised beside the server.",
    examples: "  corten server --data-dir ./cluster --port 6443\n  \
               corten server --bind 10.0.0.2 --join https://10.0.0.1:6443 --token abcdef.0123456789abcdef --ca-hash sha256:… --certificate-key …\n  kubectl --kubeconfig ./cluster/admin.kubeconfig get namespaces",
    args,
    run,
};

fn args(command: Command) -> Command {
    corten_options::node_options::log_args(settings_args(invitation_args(command)))
}

/// The options that `corten token create --control-plane` prints.
pub(super) fn invitation_args(command: Command) -> Command {
    let text = |name: &'static str, value: &'static str| Arg::new(name).long(name).value_name(value);
    command
        .arg(text("join", "URL").help("Be another control plane of the cluster whose API server this is"))
        .arg(text("token", "ID.SECRET").requires("join").help("A token of `corten token create --control-plane`"))
        .arg(text("ca-hash", "sha256:DIGITS").requires("join").help("Of the public key of the cluster's authority"))
        .arg(text("certificate-key", "DIGITS").requires("join").help("The key that opens the cluster's certificates"))
}

/// The options every verb with a control plane has.
pub(super) fn settings_args(command: Command) -> Command {
    let command = command
        .arg(
            Arg::new("data-dir")
                .long("data-dir")
                .value_name("DIR")
                .value_parser(value_parser!(PathBuf))
                .default_value(DATA_DIR)
                .help("Where everything is kept"),
        )
        .arg(
            Arg::new("bind")
                .long("bind")
                .value_name("ADDRESS")
                .value_parser(value_parser!(IpAddr))
                .default_value("127.0.0.1")
                .help("The address to serve at. A node's own Pods reach the API at a loopback address, too"),
        )
        .arg(
            Arg::new("port")
                .long("port")
                .value_name("PORT")
                .value_parser(value_parser!(u16))
                .default_value("6443")
                .help("The port to serve at; 0 for any free one"),
        )
        .arg(
            Arg::new("audit-log")
                .long("audit-log")
                .value_name("FILE")
                .value_parser(value_parser!(PathBuf))
                .help("Record every change here, a line of JSON each (audit.k8s.io/v1)"),
        )
        .arg(
            Arg::new("audit-policy-file")
                .long("audit-policy-file")
                .value_name("FILE")
                .value_parser(value_parser!(PathBuf))
                .requires("audit-log")
                .help("What to record, and how much of it (a Policy of audit.k8s.io/v1)"),
        )
        .arg(
            Arg::new("token-auth-file")
                .long("token-auth-file")
                .value_name("FILE")
                .value_parser(value_parser!(PathBuf))
                .help("Bearer tokens that are good for ever: token,user,uid,\"group1,group2\", a line each"),
        );
    server_options::args(command)
}

/// The node of a machine that has joined a cluster has no control plane that could be told anything.
pub(super) fn refuse_for_joined_node(matches: &ArgMatches, server: &str) -> Result<()> {
    let command = settings_args(Command::new("server"));
    let is_given = |it: &&Arg| matches.value_source(it.get_id().as_str()) == Some(ValueSource::CommandLine);
    let of_server = |it: &&Arg| it.get_id() != "data-dir";
    match command.get_arguments().filter(is_given).find(of_server).and_then(Arg::get_long) {
        Some(option) => {
            bail!("--{option} is for a control plane, and this machine is a node of the cluster at {server}")
        }
        None => Ok(()),
    }
}

/// `corten down` waits for this, and then for all that ends.
const SHUTDOWN_DELAY_MAX: Duration = Duration::from_secs(10);

/// Addresses that are nobody's in the cluster.
fn load_balancer_pool(matches: &ArgMatches, network: &ClusterNetwork) -> Result<AddressPool, String> {
    AddressPool::parse(&server_options::list(matches, "load-balancer-pool"))?
        .apart_from(&network.cluster_cidrs, "Pods'")?
        .apart_from(&network.service_cidrs, "Services' within the cluster")
}

pub(super) fn settings(matches: &ArgMatches, log: Arc<dyn LogFilter>) -> Result<Settings> {
    let required = "clap gives a default";
    let data_dir = matches.get_one::<PathBuf>("data-dir").context(required)?.clone();
    let joined = ControlPlaneRecord::joined(&data_dir)?;
    let encryption = server_options::file(matches, "encryption-provider-config")
        .or_else(|| joined.as_ref()?.encryption_provider_config.clone());
    let reloads_encryption = server_options::is_on(matches, "encryption-provider-config-automatic-reload");
    if reloads_encryption && encryption.is_none() {
        // `EtcdOptions.Validate` of kube-apiserver refuses the same.
        bail!("--encryption-provider-config-automatic-reload must be set with --encryption-provider-config");
    }
    let ha = HaOptions::of(matches, &data_dir)?;
    let etcd = if ha.is_some() { None } else { EtcdOptions::of(matches, joined.as_ref())? };
    let is_shared = ha.is_some() || etcd.is_some();
    let network = NetworkOptions::of(matches, &data_dir, joined.as_ref())?;
    let bind: IpAddr = *matches.get_one("bind").context(required)?;
    network.refuse_addresses_of_machine(&[vec![bind], corten_network::addresses()].concat())?;
    let load_balancer_pool = load_balancer_pool(matches, &network.network)
        .map_err(|it| Error::msg(it).context("reading --load-balancer-pool"))?;
    if is_shared && network.node_ports != NodePorts::default() {
        bail!(
            "--service-node-port-range is for a cluster in the data folder: in an etcd the ports are {}",
            NodePorts::default()
        );
    }
    let shutdown_delay = server_options::time(matches, "shutdown-delay-duration");
    if shutdown_delay > SHUTDOWN_DELAY_MAX {
        bail!("--shutdown-delay-duration must be {SHUTDOWN_DELAY_MAX:?} at most: what ends Corten waits no longer");
    }
    Ok(Settings {
        data_dir,
        bind,
        port: *matches.get_one("port").context(required)?,
        audit_log: matches.get_one::<PathBuf>("audit-log").cloned(),
        audit_policy: matches.get_one::<PathBuf>("audit-policy-file").cloned(),
        access: AccessOptions::of(matches)?,
        etcd_listen: server_options::address(matches, "etcd-listen").map_err(Error::msg)?,
        encryption,
        lease_times: leader_options::lease_times(matches, is_shared)?,
        etcd,
        ha,
        reloads_encryption,
        network,
        gateways: Vec::new(),
        has_ipv6: false,
        node: None,
        switches: Switches::of(
            &server_options::list(matches, "controllers"),
            server_options::is_on(matches, "no-scheduler"),
        )?,
        load_balancer_pool,
        scheduler: scheduler_options::config_of_server(server_options::file(matches, "scheduler-config").as_deref())?,
        shutdown_delay,
        log,
    })
}

fn run(matches: &ArgMatches) -> Result<ExitCode> {
    let log = logging::begin(matches)?;
    if join(matches)? {
        begin_again_without(&["--join", "--token", "--ca-hash", "--certificate-key"])?;
    }
    let mut settings = settings(matches, log)?;
    process::block_on(async {
        let mut signals = process::Signals::listen()?;
        let member = match ha::start(&mut settings, &process::host_name(), &mut signals).await? {
            ha::Start::Told => return Ok(ExitCode::SUCCESS),
            ha::Start::Without => None,
            ha::Start::Runs(member) => Some(member),
        };
        let served = serve(&settings, &mut signals).await;
        ha::stop(member).await;
        served.map(|()| ExitCode::SUCCESS)
    })
}

async fn serve(settings: &Settings, signals: &mut process::Signals) -> Result<()> {
    let control_plane = ControlPlane::start(settings).await?;
    signals.told_to_end().await;
    tokio::select! {
        () = control_plane.leave() => {}
        // Who says it twice does not wait.
        () = signals.told_to_end() => {}
    }
    control_plane.stop().await;
    Ok(())
}

/// Has the data folder become that of a control plane of the cluster that `--join` names. Is there such a cluster to join?
pub(super) fn join(matches: &ArgMatches) -> Result<bool> {
    let text = |name: &str| matches.get_one::<String>(name).map(String::as_str);
    let Some(server) = text("join") else { return Ok(false) };
    let invitation = Invitation::of(server, text("token"), text("ca-hash"))?;
    let key = match text("certificate-key") {
        Some(text) => Some(CertificateKey::parse(text).context("--certificate-key: a key is 64 hexadecimal digits")?),
        None => None,
    };
    let data = matches.get_one::<PathBuf>("data-dir").context("clap gives a default")?;
    let data = std::path::absolute(data).with_context(|| format!("finding {}", data.display()))?;
    corten_machine::close_data(&data)?;
    process::block_on(join_control_plane(&invitation, key.as_ref(), &data))?;
    Ok(true)
}
