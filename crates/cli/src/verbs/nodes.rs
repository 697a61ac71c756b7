//! `corten node drain` and `corten node remove`: a node without Pods, and a cluster without the node.

mod evictions;

use std::{
    collections::BTreeSet,
    path::Path,
    process::ExitCode,
    time::{Duration, Instant},
};

use anyhow::{Context, Result};
use clap::{Arg, ArgAction, ArgMatches, Command, value_parser};
use corten_api::{
    api_servers::{IDENTITY_LABEL, LEASE_NAMESPACE, NODE},
    coordination::v1::Lease,
    core::v1::{Node, Pod},
    resources::{LEASES, NODES, PODS},
};
use corten_client::{Client, DeleteParams, ListParams, PatchType};
use corten_meta::Key;
use corten_records::etcd_member::{EtcdFolder, MEMBERS};
use jiff::SignedDuration;
use serde_json::json;

use crate::connection::{self, Connection};
use corten_console::{failure::Failure, progress::Progress};
use evictions::{Leaving, evict, leaving};

/// How often it is looked what is left.
const PERIOD: Duration = Duration::from_secs(1);

/// Servers renew their Leases every ten seconds.
const SERVER_AWAY: SignedDuration = SignedDuration::from_secs(60);

/// Adds both.
pub fn subcommands(command: Command) -> Command {
    let verb = |name: &'static str, about: &'static str| {
        connection::args(Command::new(name).about(about))
            .mut_arg("namespace", |it| it.hide(true))
            .arg(Arg::new("node").value_name("NODE").required(true).help("The node's name"))
            .arg(
                Arg::new("timeout")
                    .long("timeout")
                    .value_name("SECONDS")
                    .value_parser(value_parser!(u64))
                    .default_value("300")
                    .help("How long to wait"),
            )
            .arg(
                Arg::new("force")
                    .long("force")
                    .action(ArgAction::SetTrue)
                    .help("Also end Pods that nothing makes again elsewhere"),
            )
    };
    command
        .subcommand(verb("drain", "Cordon a node and evict its Pods, within their disruption budgets"))
        .subcommand(verb("remove", "Drain a node, take its machine's member of etcd out where Corten runs that, wait until the machine has stopped, and delete the node"))
        .args_conflicts_with_subcommands(true)
}

/// Takes the member of etcd that a node's machine runs out of the cluster, as the control plane of a data folder can. Was there one?
pub type TakeMemberOut<'a> = &'a dyn Fn(&Path, &str) -> Result<bool>;

/// Runs what [`subcommands`] added; `None` where that was not asked for.
pub fn run(matches: &ArgMatches, take_member_out: TakeMemberOut<'_>) -> Option<Result<ExitCode>> {
    let (verb, matches) = matches.subcommand()?;
    Some(upkeep(verb, matches, take_member_out).map(|()| ExitCode::SUCCESS))
}

fn upkeep(verb: &str, matches: &ArgMatches, take_member_out: TakeMemberOut<'_>) -> Result<()> {
    let connection = connection::open(matches)?;
    let name = matches.get_one::<String>("node").expect("it is required");
    let seconds = *matches.get_one::<u64>("timeout").expect("has a default");
    let end = Instant::now() + Duration::from_secs(seconds.min(u64::from(u32::MAX)));
    let mut progress = Progress::begin();
    let asked = Asked { connection: &connection, name, end, is_forced: matches.get_flag("force") };
    if verb == "drain" {
        return asked.drain(Waits::ForAll, &mut progress);
    }
    let folders = connection::data_folders_of_cluster(matches);
    let with_member = folders.iter().find(|it| EtcdFolder::of(it).record().exists());
    if with_member.is_none() {
        connection.block_on(asked.refuse_member())?;
    }
    let take_out = || with_member.map_or(Ok(false), |data| take_member_out(data, name));
    asked.remove(&take_out, &mut progress)
}

struct Asked<'a> {
    connection: &'a Connection,
    name: &'a str,
    end: Instant,
    is_forced: bool,
}

/// For Pods that are ending.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Waits {
    ForAll,
    /// A machine that has gone ends none any more.
    WhileReady,
}

struct Evicted {
    n_evicted: usize,
    n_left: usize,
}

impl Asked<'_> {
    fn client(&self) -> &Client {
        &self.connection.client
    }

    fn drain(&self, waits: Waits, progress: &mut Progress) -> Result<()> {
        self.connection.block_on(async {
            self.node().await?;
            let patch = json!({ "spec": { "unschedulable": true } });
            let cordoned = self.client().patch(&NODES, &Key::cluster(self.name), "", &PatchType::Merge, &patch).await;
            cordoned.with_context(|| format!("cordoning node {}", self.name))?;
            progress.done(&format!("node {} is cordoned", self.name));
            let Evicted { n_evicted, n_left } = self.evict_all(waits, progress).await?;
            progress.done(&match n_left {
                0 => format!("node {} is drained: {n_evicted} Pods have gone", self.name),
                _ => format!("node {} is not heard of: {n_left} Pods that it does not end go with it", self.name),
            });
            Ok(())
        })
    }

    async fn node(&self) -> Result<Node> {
        let none = || Failure::new(format!("there is no node {}", self.name)).next("kubectl get nodes").into();
        self.find_node().await?.ok_or_else(none)
    }

    async fn find_node(&self) -> Result<Option<Node>> {
        match self.client().get_as::<Node>(&NODES, &Key::cluster(self.name)).await {
            Err(error) if error.is_not_found() => Ok(None),
            node => node.map(Some).with_context(|| format!("asking for node {}", self.name)),
        }
    }

    /// Without its machine, a member that stays in etcd counts on among those that must agree.
    async fn refuse_member(&self) -> Result<()> {
        has_member(&self.servers().await?, self.name).map_or(Ok(()), |it| Err(it.into()))
    }

    /// What an API server says of itself lasts an hour, and as long no node may have its address: also not the machine that comes back as one.
    async fn forget_server(&self) -> Result<()> {
        for lease in self.servers().await?.iter().filter(|it| is_of(it, self.name)) {
            let key = Key::new(LEASE_NAMESPACE, lease.metadata.name.as_deref().unwrap_or_default());
            match self.client().delete(&LEASES, &key, &DeleteParams::default()).await {
                Err(error) if !error.is_not_found() => {
                    return Err(error)
                        .with_context(|| format!("deleting the Lease of the API server of {}", self.name));
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// As API servers tell of themselves.
    async fn servers(&self) -> Result<Vec<Lease>> {
        let params = ListParams {
            namespace: LEASE_NAMESPACE.to_owned(),
            label_selector: IDENTITY_LABEL.to_owned(),
            ..ListParams::default()
        };
        let leases = self.client().list_as::<Lease>(&LEASES, &params).await;
        leases.with_context(|| format!("asking for the API servers, and whether {} has a member of etcd", self.name))
    }

    async fn evict_all(&self, waits: Waits, progress: &mut Progress) -> Result<Evicted> {
        let mut n_evicted = 0;
        loop {
            let Leaving { pods, unmanaged } = leaving(&self.pods().await?);
            if let Some(first) = unmanaged.first().filter(|_| !self.is_forced) {
                let n = unmanaged.len();
                let message =
                    format!("{n} Pods on {} are made again by nothing once they have gone, first {first}", self.name);
                return Err(Failure::new(message).next(format!("corten node drain {} --force", self.name)).into());
            }
            let are_going = pods.iter().all(|it| it.is_going);
            if pods.is_empty()
                || waits == Waits::WhileReady && are_going && !self.find_node().await?.is_some_and(|it| is_ready(&it))
            {
                return Ok(Evicted { n_evicted, n_left: pods.len() });
            }
            let mut held = None;
            for pod in pods.iter().filter(|it| !it.is_going) {
                match evict(self.client(), pod).await.with_context(|| format!("evicting {}", pod.key))? {
                    None => n_evicted += 1,
                    Some(reason) => held = Some(format!("{}: {reason}", pod.key)),
                }
            }
            let is_held = held.is_some();
            let state = held.unwrap_or_else(|| format!("{} Pods are ending", pods.len()));
            if Instant::now() >= self.end {
                return Err(self.still_has_pods(&state, is_held).await?.into());
            }
            progress.doing(state);
            tokio::time::sleep(PERIOD).await;
        }
    }

    async fn still_has_pods(&self, state: &str, is_held: bool) -> Result<Failure> {
        let mut failure = Failure::new(format!("node {} still has Pods: {state}", self.name));
        if is_held {
            failure
                .details
                .push("the node stays cordoned; its Pods are evicted once the budget lets them go".to_owned());
            return Ok(failure.next("kubectl get poddisruptionbudgets --all-namespaces"));
        }
        if self.find_node().await?.is_some_and(|it| !is_ready(&it)) {
            failure.details.push("the node is not Ready: a machine that is not heard of ends no Pods".to_owned());
            return Ok(failure.next(format!("corten node remove {} # where it is gone for good", self.name)));
        }
        Ok(failure.next(format!("corten why node/{}", self.name)))
    }

    async fn pods(&self) -> Result<Vec<Pod>> {
        let params = ListParams { field_selector: format!("spec.nodeName={}", self.name), ..ListParams::default() };
        let pods = self.client().list_as::<Pod>(&PODS, &params).await;
        pods.with_context(|| format!("listing the Pods of node {}", self.name))
    }

    /// A kubelet that runs would make its Node again, and without the cordon. The member of etcd goes while its machine still runs:
    /// so there are always enough that agree.
    fn remove(&self, take_member_out: &dyn Fn() -> Result<bool>, progress: &mut Progress) -> Result<()> {
        let node = self.connection.block_on(self.find_node())?;
        if node.as_ref().is_some_and(is_ready) {
            self.drain(Waits::WhileReady, progress)?;
        }
        let had_member = take_member_out()?;
        if had_member {
            progress.done(&format!("the member {} of etcd is removed", self.name));
        }
        if node.is_none() && had_member {
            // A control plane without a node.
            return Ok(());
        }
        self.connection.block_on(async {
            while is_ready(&self.node().await?) {
                if Instant::now() >= self.end {
                    let message =
                        format!("the machine of node {} still runs, and would make its Node again", self.name);
                    let mut failure = Failure::new(message);
                    failure
                        .details
                        .push("there: `corten reset`, which takes away all that Corten has on it".to_owned());
                    return Err(failure.next(format!("corten node remove {}", self.name)).into());
                }
                progress.doing(format!(
                    "waiting until the machine of node {} has stopped: run `corten reset` there",
                    self.name
                ));
                tokio::time::sleep(PERIOD).await;
            }
            let deleted = self.client().delete(&NODES, &Key::cluster(self.name), &DeleteParams::default()).await;
            deleted.with_context(|| format!("deleting node {}", self.name))?;
            self.forget_server().await?;
            progress.done(&format!("node {} is removed", self.name));
            anyhow::Ok(())
        })
    }
}

/// Is it of the API server in the process of this node?
fn is_of(lease: &Lease, name: &str) -> bool {
    lease.metadata.annotations.as_ref().and_then(|it| it.get(NODE)).is_some_and(|it| it == name)
}

/// Why a node is not removed from a machine without a member of etcd: API servers say in their Leases that the node's has one.
fn has_member(leases: &[Lease], name: &str) -> Option<Failure> {
    let renewed = |it: &Lease| it.spec.as_ref().and_then(|it| it.renew_time.as_ref()).map(|it| it.0);
    let newest = leases.iter().filter_map(renewed).max();
    // A server that has gone knows nothing of who came and went since.
    let is_there =
        |it: &&Lease| renewed(it).zip(newest).is_some_and(|(at, newest)| newest.duration_since(at) <= SERVER_AWAY);
    let there = leases.iter().filter(is_there);
    let annotations = there.filter_map(|it| it.metadata.annotations.as_ref()?.get(MEMBERS));
    let members: BTreeSet<&str> = annotations.flat_map(|it| it.split(',')).collect();
    if !members.contains(name) {
        return None;
    }
    let others: Vec<&str> = members.into_iter().filter(|it| *it != name).collect();
    let message =
        format!("the machine of node {name} has a member of etcd, and only a machine with another one takes it out");
    let place = if others.is_empty() { String::new() } else { format!(" # on {}", others.join(" or ")) };
    Some(Failure::new(message).next(format!("corten node remove {name}{place}")))
}

fn is_ready(node: &Node) -> bool {
    let conditions = node.status.as_ref().and_then(|it| it.conditions.as_ref());
    conditions.into_iter().flatten().any(|it| it.type_ == "Ready" && it.status == "True")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_node_with_a_member_of_etcd_is_removed_where_another_one_is() {
        let lease = |minute: u8, members: Option<&str>| -> Lease {
            let annotations = members.map(|it| json!({ MEMBERS: it }));
            let renewed = format!("2026-11-26T12:{minute:02}:00.000000Z");
            let lease = json!({ "metadata": { "annotations": annotations }, "spec": { "renewTime": renewed } });
            serde_json::from_value(lease).expect("a Lease")
        };
        let leases = [lease(4, Some("m1,m2,m3")), lease(4, None), lease(5, Some("m2,m3")), lease(1, Some("m3,gone"))];
        let refused = has_member(&leases, "m3").expect("it has one");
        assert!(refused.message.contains("node m3 has a member of etcd"), "{refused}");
        assert_eq!(refused.next.as_deref(), Some("corten node remove m3 # on m1 or m2"));
        assert_eq!(has_member(&leases, "worker"), None);
        assert_eq!(has_member(&leases, "gone"), None);
        assert_eq!(has_member(&[lease(5, None)], "m3"), None);
    }
}
