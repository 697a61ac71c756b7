//! The way from the command line to an API server: which kubeconfig, which context, which namespace.

#[cfg(test)]
mod tests;

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use anyhow::{Context as _, Result};
use clap::{Arg, ArgMatches, Command, value_parser};
use corten_client::{
    Client,
    https::HttpsTransport,
    kubeconfig::{self, Kubeconfig, RestConfig},
};

use crate::own_kubeconfig::share_authority;
use corten_console::failure::Failure;
use corten_node_process::node_folders::DATA_DIR;

/// Where `corten up` keeps the administrator's kubeconfig, unless told otherwise.
pub const ADMIN_KUBECONFIG: &str = "/var/lib/corten/admin.kubeconfig";

/// How root of a machine that has joined a cluster asks its node, in the folder `kubelet` of its data.
pub const NODE_KUBECONFIG: &str = "node.kubeconfig";

/// A client for one cluster, with what the command line said about it.
pub(crate) struct Connection {
    pub(crate) client: Client,
    pub(crate) namespace: String,
    /// What it shows to the server, as PEM.
    pub(crate) certificate: Option<Vec<u8>>,
    /// The authorities that the server is known by, as PEM.
    pub(crate) authorities: Vec<u8>,
    /// The first file that was read.
    pub(crate) kubeconfig: PathBuf,
    /// The server's URL.
    pub(crate) server: String,
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
    opened(load(matches.get_one::<PathBuf>("kubeconfig"))?, text("context"), text("namespace"))
}

/// As [`open`], by another file than the one that was asked for.
///
/// # Errors
/// It is no usable kubeconfig.
pub(crate) fn open_file(path: &Path, matches: &ArgMatches) -> Result<Connection> {
    opened(Kubeconfig::load(path)?, None, matches.get_one::<String>("namespace").map(String::as_str))
}

fn opened(config: Kubeconfig, context: Option<&str>, namespace: Option<&str>) -> Result<Connection> {
    let kubeconfig = config.path.clone().or_else(|| kubeconfig::default_paths().into_iter().find(|it| it.exists()));
    let target = config.target(context).context("reading the kubeconfig")?;
    let namespace = match namespace {
        Some(namespace) => namespace.to_owned(),
        None if target.namespace.is_empty() => "default".to_owned(),
        None => target.namespace.clone(),
    };
    let transport = HttpsTransport::new(&target).context("preparing the connection")?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().context("starting the runtime")?;
    Ok(Connection {
        client: Client::new(Arc::new(transport)),
        namespace,
        certificate: target.identity.map(|it| it.0),
        authorities: target.ca,
        kubeconfig: kubeconfig.unwrap_or_default(),
        server: target.server,
        runtime,
    })
}

/// The folders of this machine that hold the data of the cluster that [`args`] asked for: where it does not answer, what is
/// known of it is there.
pub(crate) fn data_folders(matches: &ArgMatches) -> Vec<PathBuf> {
    folders(matches, |own, asked| own.server == asked.server && share_authority(own, asked))
}

/// As [`data_folders`], by whichever address the cluster was asked for: another machine's, or a balancer's.
pub(crate) fn data_folders_of_cluster(matches: &ArgMatches) -> Vec<PathBuf> {
    folders(matches, share_authority)
}

/// The folder of this machine's node, where it has joined a cluster: beside the kubeconfig that was named, or the usual one.
pub(crate) fn joined_node(matches: &ArgMatches) -> Option<PathBuf> {
    let path = matches.get_one::<PathBuf>("kubeconfig");
    let read = path.map_or_else(kubeconfig::default_paths, |it| vec![it.clone()]);
    let beside = read.iter().filter_map(|it| std::path::absolute(it).ok()?.parent().map(Path::to_owned));
    let usual = PathBuf::from(DATA_DIR).join("kubelet");
    beside.chain([usual]).find(|it| it.join(NODE_KUBECONFIG).exists())
}

fn folders(matches: &ArgMatches, is_its: impl Fn(&RestConfig, &RestConfig) -> bool) -> Vec<PathBuf> {
    let path = matches.get_one::<PathBuf>("kubeconfig");
    let context = matches.get_one::<String>("context").map(String::as_str);
    let Ok(config) = load(path) else { return vec![PathBuf::from(DATA_DIR)] };
    let Ok(target) = config.target(context) else { return Vec::new() };
    let read = path.map_or_else(kubeconfig::default_paths, |it| vec![it.clone()]);
    let beside = read.iter().filter_map(|it| std::path::absolute(it).ok()?.parent().map(Path::to_owned));
    let is_its = |data: &PathBuf| {
        let admin = Kubeconfig::load(&data.join("admin.kubeconfig")).and_then(|it| it.target(None));
        admin.is_ok_and(|it| is_its(&it, &target))
    };
    let mut all: Vec<PathBuf> = beside.filter(is_its).collect();
    // Often it is the one beside.
    let usual = PathBuf::from(DATA_DIR);
    if !all.contains(&usual) && is_its(&usual) {
        all.push(usual);
    }
    all
}

fn load(path: Option<&PathBuf>) -> Result<Kubeconfig> {
    if let Some(path) = path {
        return Ok(Kubeconfig::load(path)?);
    }
    let paths = kubeconfig::default_paths();
    if paths.iter().any(|it| it.exists()) {
        return Ok(Kubeconfig::load_default()?);
    }
    let admin = PathBuf::from(crate::ADMIN_KUBECONFIG);
    if admin.exists() {
        return Ok(Kubeconfig::load(&admin)?);
    }
    Err(unknown_cluster(&paths, std::env::var_os("KUBECONFIG").is_some_and(|it| !it.is_empty())).into())
}

fn unknown_cluster(paths: &[PathBuf], is_told: bool) -> Failure {
    let paths: Vec<String> = paths.iter().map(|it| it.display().to_string()).collect();
    let listed = paths.join(", ");
    if is_told {
        let are = if paths.len() == 1 { "which does not exist" } else { "none of which exists" };
        return Failure::new(format!("KUBECONFIG names {listed}, {are}")).next("unset KUBECONFIG");
    }
    let nothing = if listed.is_empty() { String::new() } else { format!(": {listed} does not exist") };
    let message = format!("no cluster is known{nothing}; start one, or name a kubeconfig with --kubeconfig");
    Failure::new(message).next("sudo corten up")
}
