//! The way from the command line to an API server: which kubeconfig, which context, which namespace.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use anyhow::{Context as _, Result};
use clap::{Arg, ArgMatches, Command, value_parser};
use corten_client::{
    Client,
    https::HttpsTransport,
    kubeconfig::{self, Kubeconfig},
};

use crate::node_process::DATA_DIR;

/// A client for one cluster, with what the command line said about it.
pub(crate) struct Connection {
    pub(crate) client: Client,
    pub(crate) namespace: String,
    runtime: tokio::runtime::Runtime,
}

impl Connection {
    pub(crate) fn block_on<T>(&self, work: impl Future<Output = T>) -> T {
        self.runtime.block_on(work)
    }
}

/// Adds `--kubeconfig`, `--context` and `-n`.
pub(crate) fn args(command: Command) -> Command {
    command
        .arg(
            Arg::new("kubeconfig").long("kubeconfig").value_name("FILE").value_parser(value_parser!(PathBuf)).help(
                "Where the cluster is described [default: $KUBECONFIG, ~/.kube/config, or what `corten up` wrote]",
            ),
        )
        .arg(Arg::new("context").long("context").value_name("NAME").help("Which context of the kubeconfig to use"))
        .arg(
            Arg::new("namespace")
                .short('n')
                .long("namespace")
                .value_name("NAME")
                .help("The namespace [default: the context's, or default]"),
        )
}

/// Opens the connection that [`args`] asked for. Nothing is sent yet.
///
/// # Errors
/// There is no usable kubeconfig.
pub(crate) fn open(matches: &ArgMatches) -> Result<Connection> {
    let text = |name: &str| matches.get_one::<String>(name).map(String::as_str);
    let config = load(matches.get_one::<PathBuf>("kubeconfig"))?;
    let target = config.target(text("context")).context("reading the kubeconfig")?;
    let namespace = match text("namespace") {
        Some(namespace) => namespace.to_owned(),
        None if target.namespace.is_empty() => "default".to_owned(),
        None => target.namespace.clone(),
    };
    let transport = HttpsTransport::new(&target).context("preparing the connection")?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().context("starting the runtime")?;
    Ok(Connection { client: Client::new(Arc::new(transport)), namespace, runtime })
}

/// The folders of this machine that hold the data of the cluster that [`args`] asked for: where it does not answer, what is
/// known of it is there.
pub(crate) fn data_folders(matches: &ArgMatches) -> Vec<PathBuf> {
    let path = matches.get_one::<PathBuf>("kubeconfig");
    let context = matches.get_one::<String>("context").map(String::as_str);
    let Ok(config) = load(path) else { return vec![PathBuf::from(DATA_DIR)] };
    let Ok(target) = config.target(context) else { return Vec::new() };
    let read = path.map_or_else(kubeconfig::default_paths, |it| vec![it.clone()]);
    let beside = read.iter().filter_map(|it| std::path::absolute(it).ok()?.parent().map(Path::to_owned));
    let is_its = |data: &PathBuf| {
        let admin = Kubeconfig::load(&data.join("admin.kubeconfig")).and_then(|it| it.target(None));
        admin.is_ok_and(|it| !it.ca.is_empty() && it.ca == target.ca && it.server == target.server)
    };
    beside.chain([PathBuf::from(DATA_DIR)]).filter(is_its).collect()
}

fn load(path: Option<&PathBuf>) -> Result<Kubeconfig> {
    if let Some(path) = path {
        return Kubeconfig::load(path).with_context(|| format!("reading {}", path.display()));
    }
    let admin = PathBuf::from(crate::ADMIN_KUBECONFIG);
    let nothing_else = kubeconfig::default_paths().iter().all(|it| !it.exists());
    if nothing_else && admin.exists() {
        return Kubeconfig::load(&admin).with_context(|| format!("reading {}", admin.display()));
    }
    Kubeconfig::load_default().context("no cluster is known: start one with `corten up`, or name one with --kubeconfig")
}
