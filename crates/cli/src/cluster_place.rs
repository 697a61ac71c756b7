//! Where the cluster that was asked is, as seen from this machine: what may be run here without starting another one.

#[cfg(test)]
mod tests;

use std::{net::IpAddr, path::PathBuf};

use clap::ArgMatches;
use corten_machine::Layout;
use corten_meta::address::{authority, is_reachable, split_host_port};

use crate::connection::{self, Connection};
use corten_console::shell::quoted;
use corten_node_process::{
    node_folders::RUN_DIR,
    node_process::{NodeProcess, command_for, layout_of},
    node_record::Record,
};

/// What is known of it.
#[derive(Clone, Debug, Default)]
pub(crate) struct ClusterPlace {
    /// Its URL, as the kubeconfig has it.
    pub(crate) server: String,
    /// The options that name it, as they were given: ` --kubeconfig=FILE --context=NAME`.
    pub(crate) options: String,
    /// The folder of this machine that holds its data.
    data: Option<PathBuf>,
    /// The folders of its node, where that runs on this machine.
    node: Option<Layout>,
}

impl ClusterPlace {
    pub(crate) fn of(matches: &ArgMatches, connection: &Connection) -> Self {
        let data = connection::data_folders(matches).into_iter().next();
        let node = data.as_deref().and_then(|data| {
            let node = NodeProcess { layout: layout_of(data) };
            node.runs().ok()?.then_some(node.layout)
        });
        let kubeconfig = matches.get_one::<PathBuf>("kubeconfig").map(|it| it.to_string_lossy().into_owned());
        let context = matches.get_one::<String>("context").cloned();
        let options = [("kubeconfig", kubeconfig), ("context", context)];
        let given = options.into_iter().filter_map(|(name, it)| Some(format!(" --{name}={}", quoted(&it?))));
        Self { server: connection.server.clone(), options: given.collect(), data, node }
    }

    /// Does only its own machine reach it, by the address that was asked?
    pub(crate) fn is_loopback(&self) -> bool {
        let host = self.host_and_port().0;
        host == "localhost" || host.parse::<IpAddr>().is_ok_and(|it| !is_reachable(it))
    }

    /// Starts its node on this machine where it has stopped; none where it has no node here.
    pub(crate) fn up(&self) -> Option<String> {
        self.node.as_ref().map(|it| command_for(it, "up"))
    }

    /// Has it served at all addresses, with its other options as they are. None where `corten up` does not run it.
    pub(crate) fn serve_everywhere(&self) -> Option<String> {
        let layout = self.node.as_ref()?;
        let options = Record::load(&layout.data).options.into_iter().filter(|it| !it.starts_with("--bind="));
        let up = options.fold(command_for(layout, "up"), |command, it| command + " " + &quoted(&it));
        Some(format!("{} && {up} --bind=0.0.0.0", command_for(layout, "down")))
    }

    /// As [`Self::up`], for a control plane alone, once its process has ended: the same cluster goes on, at the same port.
    pub(crate) fn up_after_server(&self) -> Option<String> {
        let data = self.data.as_deref()?;
        Some(format!("{} --port={}", command_for(&Layout::new(data, RUN_DIR), "up"), self.port()))
    }

    /// Shows which process serves it, where that is one of this machine.
    pub(crate) fn listener(&self) -> String {
        format!("ss -tlnp 'sport = :{}'", self.port())
    }

    fn port(&self) -> u16 {
        self.host_and_port().1.parse().unwrap_or(443)
    }

    /// The port is empty where the URL has none.
    fn host_and_port(&self) -> (&str, &str) {
        split_host_port(authority(&self.server))
    }
}

#[cfg(test)]
impl ClusterPlace {
    /// A control plane alone, with its data in this folder of the machine; none: it is elsewhere.
    pub(crate) fn of_server(server: &str, data: Option<&str>) -> Self {
        Self {
            server: server.to_owned(),
            options: " --kubeconfig=lab.conf".into(),
            data: data.map(PathBuf::from),
            node: None,
        }
    }

    /// That of a node which runs on this machine.
    pub(crate) fn of_node(server: &str, data: &str) -> Self {
        Self { node: Some(Layout::new(std::path::Path::new(data), RUN_DIR)), ..Self::of_server(server, Some(data)) }
    }
}
