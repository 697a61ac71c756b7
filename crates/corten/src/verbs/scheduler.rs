//! `corten scheduler`: one more scheduler, in a process of its own, beside whichever others a cluster has.

use std::{path::PathBuf, process::ExitCode, sync::Arc};

use anyhow::{Context, Result};
use clap::{Arg, ArgMatches, Command, value_parser};
use corten_cli::Verb;
use corten_client::{Client, https::HttpsTransport, kubeconfig::Kubeconfig};
use corten_meta::Key;
use corten_runner::{Candidate, JournalBook, Stopping, whole};
use corten_scheduler::{Config, LeaderElection, Scheduler};
use tokio::task::JoinSet;

use crate::{
    leadership::lead_until_told,
    logging,
    process::{self, Clock},
    scheduler_options,
};

pub(crate) const VERB: Verb = Verb {
    name: "scheduler",
    about: "Run one more scheduler for a cluster, in the foreground",
    long_about: "Places the Pods whose schedulerName is one of the profiles of FILE, default-scheduler without one, beside the \
                 scheduler of the cluster's API servers and any other. Schedulers that place the same Pods get in each other's way \
                 and lose time, and overcommit nothing, since the API server refuses a binding for which the node has no room; with \
                 leaderElection.leaderElect in FILE, one of those that share a lease schedules, and the others wait. One that loses its \
                 lease ends with an error. API servers that share an etcd have kube-system/kube-scheduler, the default, for their own \
                 scheduler: one with profiles of its own names another. The kubeconfig's user needs the rights of system:kube-scheduler, \
                 and to get and update a lease of another name. Logs go to standard error; SIGTERM ends it.",
    examples: "  corten scheduler --kubeconfig scheduler.kubeconfig --config batch.yaml",
    args,
    run,
};

fn args(command: Command) -> Command {
    let file = |name: &'static str, help: &'static str| {
        Arg::new(name).long(name).value_name("FILE").value_parser(value_parser!(PathBuf)).help(help)
    };
    let command = command
        .arg(file(
            "kubeconfig",
            "Where the cluster is described, and as whom it is asked [default: clientConnection.kubeconfig of the configuration]",
        ))
        .arg(file(
            "config",
            "A KubeSchedulerConfiguration (kubescheduler.config.k8s.io/v1) [default: Kubernetes' defaults]",
        ));
    corten_options::node_options::log_args(command)
}

fn run(matches: &ArgMatches) -> Result<ExitCode> {
    logging::begin(matches)?;
    let config = scheduler_options::config(matches.get_one::<PathBuf>("config").map(PathBuf::as_path))?;
    let kubeconfig: Option<&PathBuf> = matches.get_one("kubeconfig").or(config.kubeconfig.as_ref());
    let kubeconfig = kubeconfig.context(
        "which cluster? Name it with --kubeconfig, or with clientConnection.kubeconfig of the configuration",
    )?;
    let target = Kubeconfig::load(kubeconfig)?.target(None).context("reading the kubeconfig")?;
    let transport = HttpsTransport::new(&target).context("preparing the connection")?;
    process::block_on(run_until_told(config, Client::new(Arc::new(transport))))?;
    Ok(ExitCode::SUCCESS)
}

/// Until a signal ends it. It waits for its lease, where its configuration names one.
async fn run_until_told(config: Config, client: Client) -> Result<()> {
    let (clock, journal) = (process::clock(), Arc::new(JournalBook::default()));
    let loops = process::loops(journal.clone(), clock.clone())?;
    let candidate = config.leader_election.as_ref().map(|it| candidate(it, config.component(), &client, &clock));
    let begin = |told: &Stopping| {
        let told = told.clone();
        let mut tasks = JoinSet::new();
        let scheduling = loops.spawn("scheduler", move || {
            let scheduler = Scheduler::new(config.clone());
            whole(corten_runner::run_scheduler(scheduler, client.clone(), clock.clone(), journal.clone(), told.now()))
        });
        tasks.spawn(async move {
            scheduling.await;
            Ok(())
        });
        tasks
    };
    lead_until_told(&loops, candidate, begin).await
}

fn candidate(election: &LeaderElection, component: &str, client: &Client, clock: &Clock) -> Candidate {
    Candidate {
        client: client.clone(),
        clock: clock.clone(),
        lease: Key::new(&*election.namespace, &*election.name),
        identity: process::candidate_name(),
        component: component.to_owned(),
        times: election.times,
    }
}
