//! `corten etcd`: the embedded store for others than Corten's own API server, with etcd's API.

use std::{net::SocketAddr, path::PathBuf, process::ExitCode};

use anyhow::{Context, Result, anyhow};
use clap::{Arg, ArgMatches, Command, value_parser};
use corten_cli::Verb;
use corten_node_process::node_folders::DATA_DIR;
use corten_store::Store as _;
use tokio::sync::watch;

use crate::{
    anew::disk_is_back,
    etcd_api::{self, EtcdApi},
    logging, process,
};

pub(crate) const VERB: Verb = Verb {
    name: "etcd",
    about: "Serve an embedded store with etcd's API, for kube-apiserver, other Corten servers, or etcdctl",
    long_about: "One member of etcd whose data are Corten's store: everything in memory, one log on disk, every answered write durable. \
                 Values are those that clients write. History is kept for the last 100,000 changes or 128 MiB, also where nobody \
                 compacts. Clients show a certificate of DIR/pki/etcd/ca.crt, such as DIR/pki/apiserver-etcd-client.crt. \
                 There are no other members and no users. `etcdctl snapshot save` copies it for an etcd, `corten snapshot save FILE \
                 --data-dir DIR/etcd` for another `corten etcd`, both while it runs. Logs go to standard error; SIGTERM ends it cleanly.",
    examples: "  corten etcd --data-dir ./etcd --listen 127.0.0.1:2379\n  etcdctl --endpoints https://127.0.0.1:2379 --cacert \
               ./etcd/pki/etcd/ca.crt --cert ./etcd/pki/apiserver-etcd-client.crt --key ./etcd/pki/apiserver-etcd-client.key \
               endpoint status",
    args,
    run,
};

fn args(command: Command) -> Command {
    let command = command
        .arg(
            Arg::new("data-dir")
                .long("data-dir")
                .value_name("DIR")
                .value_parser(value_parser!(PathBuf))
                .default_value(DATA_DIR)
                .help("Where everything is kept: the store in DIR/etcd, certificates in DIR/pki"),
        )
        .arg(
            Arg::new("listen")
                .long("listen")
                .value_name("ADDRESS")
                .value_parser(value_parser!(SocketAddr))
                .default_value("127.0.0.1:2379")
                .help("The address and port to serve at"),
        );
    corten_options::node_options::log_args(command)
}

fn run(matches: &ArgMatches) -> Result<ExitCode> {
    logging::begin(matches)?;
    let data: &PathBuf = matches.get_one("data-dir").context("clap gives a default")?;
    let address: SocketAddr = *matches.get_one("listen").context("clap gives a default")?;
    process::block_on(async {
        let mut signals = process::Signals::listen()?;
        // Only the owner may look into it: it holds keys and secrets.
        corten_machine::close_for_server(data)?;
        let store = etcd_api::open_store(&data.join("etcd/store")).await?;
        let api = EtcdApi::alone(data, address, store.clone()).await?;
        let (stop, stopping) = watch::channel(false);
        let serving = tokio::spawn(api.serve(stopping));
        let ended = tokio::select! {
            () = signals.told_to_end() => Ok(ExitCode::SUCCESS),
            () = disk_is_back(Some((store.clone(), data.clone()))) => Err(anyhow!(
                "a write failed half way, and the disk takes writes again: the store has to be opened anew"
            )),
        };
        stop.send_replace(true);
        serving.await.context("serving etcd's API")?;
        store.close().await;
        ended
    })
}
