//! `corten controllers`: the controllers in a process of their own, over any API server, in the place of kube-controller-manager.

use std::{process::ExitCode, sync::Arc};

use anyhow::{Context, Result};
use clap::{ArgMatches, Command};
use corten_api::lease_times::LeaseTimes;
use corten_cli::Verb;
use corten_client::{
    Client, Transport,
    https::HttpsTransport,
    kubeconfig::{Kubeconfig, RestConfig},
};
use corten_meta::Key;
use corten_runner::{Candidate, JournalBook, Signer, Stopping};
use tokio::task::JoinSet;

use crate::{
    cluster_loops::{CONTROLLERS, NAMESPACE},
    controller_loops::ControllerLoops,
    controllers_options::{self, ControllersOptions},
    leadership::lead_until_told,
    logging,
    loop_access::{LoopAccess, RemoteAccess},
    process::{self, Clock},
    remote_loops::RemoteLoops,
    service_account_credentials::AccountClients,
    signer::{AuthoritySigner, SigningKey},
};

pub(crate) const VERB: Verb = Verb {
    name: "controllers",
    about: "Run the controllers of a cluster, in the foreground",
    long_about: "Runs Corten's controllers over the API server that FILE describes, of Corten or of Kubernetes, in the place of \
                 kube-controller-manager and by its options. A server of Corten's runs them itself unless it is told --controllers=. \
                 One process at a time runs them, which holds the lease kube-system/kube-controller-manager; others wait. One that loses \
                 its lease ends with an error. What the server does not serve is done without: the log says which loops do not run for \
                 it. What a server of Corten's does by loops that Kubernetes does not have, for nodes' volumes and in the place of its \
                 etcd, stays with it, and what the controllers wait for is told by the log alone, not by `corten why`. The kubeconfig's user \
                 needs the rights of all controllers, or with --use-service-account-credentials those of system:kube-controller-manager. \
                 Logs go to standard error; SIGTERM ends it.",
    examples: "  corten server --data-dir ./cluster --controllers= &\n  corten controllers --kubeconfig ./cluster/admin.kubeconfig --cluster-cidr 10.244.0.0/16 \\\n    \
               --cluster-signing-cert-file ./cluster/pki/ca.crt --cluster-signing-key-file ./cluster/pki/ca.key\n  \
               corten controllers --kubeconfig controller-manager.conf --use-service-account-credentials --cluster-cidr 10.244.0.0/16 \
               --service-cluster-ip-range 10.96.0.0/12 --cluster-signing-cert-file ca.crt --cluster-signing-key-file ca.key",
    args,
    run,
};

fn args(command: Command) -> Command {
    corten_options::node_options::log_args(controllers_options::args(command))
}

fn run(matches: &ArgMatches) -> Result<ExitCode> {
    logging::begin(matches)?;
    let options = ControllersOptions::of(matches)?;
    let target = Kubeconfig::load(&options.kubeconfig)?.target(None).context("reading the kubeconfig")?;
    process::block_on(run_until_told(options, target))?;
    Ok(ExitCode::SUCCESS)
}

/// Until a signal ends it. It waits for its lease, unless it is told to do without.
async fn run_until_told(options: ControllersOptions, target: RestConfig) -> Result<()> {
    let (clock, journal) = (process::clock(), Arc::new(JournalBook::default()));
    let loops = process::loops(journal.clone(), clock.clone())?;
    let access = access(&target, options.has_accounts, &clock)?;
    let candidate = options.lease_times.map(|it| candidate(it, &access.client, &clock));
    if options.signing.is_none() {
        tracing::info!(
            "signing requests are not answered: --cluster-signing-cert-file and --cluster-signing-key-file name no authority"
        );
    }
    let signer = options.signing.map(|it| AuthoritySigner { key: SigningKey::Files(it), clock: clock.clone() });
    let settings = corten_controllers::Settings {
        network: options.network,
        root_ca: options.root_ca,
        ..corten_controllers::Settings::default()
    };
    let client = access.client.clone();
    let controllers = ControllerLoops {
        access: LoopAccess::Remote(Box::new(access)),
        signer: signer.map(|it| Arc::new(it) as Arc<dyn Signer>),
        journal,
        clock,
        loops: loops.clone(),
        switches: options.switches,
        settings,
    };
    let kubeconfig_ca = (!target.ca.is_empty()).then(|| String::from_utf8_lossy(&target.ca).into_owned());
    let remote = RemoteLoops { controllers, client, kubeconfig_ca };
    let begin = |told: &Stopping| {
        let mut tasks = JoinSet::new();
        tasks.spawn(remote.run(told.clone()));
        tasks
    };
    lead_until_told(&loops, candidate, begin).await
}

fn access(target: &RestConfig, has_accounts: bool, clock: &Clock) -> Result<RemoteAccess> {
    let connect = |target: &RestConfig| HttpsTransport::new(target).context("preparing the connection");
    let client = Client::new(Arc::new(connect(target)?));
    if !has_accounts {
        return Ok(RemoteAccess { client, accounts: None });
    }
    let nobody = RestConfig { identity: None, token: None, ..target.clone() };
    let transport: Arc<dyn Transport> = Arc::new(connect(&nobody)?);
    let accounts = AccountClients::new(client.clone(), transport, clock.clone());
    Ok(RemoteAccess { client, accounts: Some(accounts) })
}

fn candidate(times: LeaseTimes, client: &Client, clock: &Clock) -> Candidate {
    Candidate {
        client: client.clone(),
        clock: clock.clone(),
        lease: Key::new(NAMESPACE, CONTROLLERS),
        identity: process::candidate_name(),
        component: CONTROLLERS.to_owned(),
        times,
    }
}
