//! `corten server`: the control plane alone, in the foreground.

use std::{net::IpAddr, path::PathBuf, process::ExitCode, sync::Arc};

use anyhow::{Context, Result, bail};
use clap::{Arg, ArgMatches, Command, value_parser};
use corten_apiserver::LogFilter;
use corten_cli::{Verb, server_options};

use crate::{
    access_options::AccessOptions,
    control_plane::{ControlPlane, Settings},
    logging, process,
    switches::Switches,
};

pub(crate) const VERB: Verb = Verb {
    name: "server",
    about: "Run the control plane alone, in the foreground",
    long_about: "Store, API server, controllers and scheduler in one process, without root and without a node: for tests \
                 and measurements. Writes DIR/admin.kubeconfig, with the certificates inside. \
                 Logs go to standard error; SIGTERM ends it cleanly. No answered write is ever lost.",
    examples: "  corten server --data-dir ./cluster --port 6443\n  kubectl --kubeconfig ./cluster/admin.kubeconfig get namespaces",
    args,
    run,
};

fn args(command: Command) -> Command {
    corten_cli::node_options::log_args(settings_args(command))
}

/// The options every verb with a control plane has.
pub(super) fn settings_args(command: Command) -> Command {
    let command = command
        .arg(
            Arg::new("data-dir")
                .long("data-dir")
                .value_name("DIR")
                .value_parser(value_parser!(PathBuf))
                .default_value("/var/lib/corten")
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

pub(super) fn settings(matches: &ArgMatches, log: Arc<dyn LogFilter>) -> Result<Settings> {
    let required = "clap gives a default";
    let encryption = server_options::file(matches, "encryption-provider-config");
    let reloads_encryption = server_options::is_on(matches, "encryption-provider-config-automatic-reload");
    if reloads_encryption && encryption.is_none() {
        // `EtcdOptions.Validate` of kube-apiserver refuses the same.
        bail!("--encryption-provider-config-automatic-reload must be set with --encryption-provider-config");
    }
    Ok(Settings {
        data_dir: matches.get_one::<PathBuf>("data-dir").context(required)?.clone(),
        bind: *matches.get_one("bind").context(required)?,
        port: *matches.get_one("port").context(required)?,
        audit_log: matches.get_one::<PathBuf>("audit-log").cloned(),
        audit_policy: matches.get_one::<PathBuf>("audit-policy-file").cloned(),
        access: AccessOptions::of(matches)?,
        encryption,
        reloads_encryption,
        gateways: Vec::new(),
        node: None,
        switches: Switches::of(
            &server_options::list(matches, "controllers"),
            server_options::is_on(matches, "no-scheduler"),
        )?,
        log,
    })
}

fn run(matches: &ArgMatches) -> Result<ExitCode> {
    let log = logging::begin(matches)?;
    let settings = settings(matches, log)?;
    process::block_on(async {
        let mut signals = process::Signals::listen()?;
        let control_plane = ControlPlane::start(&settings).await?;
        signals.told_to_end().await;
        control_plane.stop().await;
        Ok(ExitCode::SUCCESS)
    })
}
