//! `corten certs`: when the cluster's certificates end, and others in their places, the authority's included.
//!
//! All of it is done to the folder of keys, with the cluster up or down: a server that runs takes up what it finds there.

mod listing;
mod rotation;

use std::{fs::File, path::PathBuf, process::ExitCode};

use anyhow::{Context, Result, bail};
use clap::{Arg, ArgAction, ArgMatches, Command};
use rustix::fs::{FlockOperation, flock};

use crate::Verb;
use corten_console::output;
use corten_node_process::node_process::{self, NodeProcess};

pub(crate) const VERB: Verb = Verb {
    name: "certs",
    about: "Show and replace the cluster's certificates, its authority and the key of its tokens",
    long_about: "Certificates are renewed by themselves a month before they end; an authority lasts ten years. `rotate-ca` puts a \
                 new authority into its place without an outage: from then on it signs, every certificate of the cluster's own is \
                 issued anew, and the authority of before stays trusted, so that kubeconfigs, watches and Pods go on, until \
                 `rotate-ca --drop-old`. `rotate-token-key` does the same to the key that signs tokens of service accounts. Each \
                 step can be interrupted and run again, and works while the cluster is down. Needs to be run by the owner of the data folder: root, for a \
                 cluster of `corten up`.",
    examples: "  corten certs check-expiration\n  corten certs renew apiserver\n  corten certs rotate-ca\n  \
               corten certs rotate-ca --drop-old",
    args,
    run,
};

fn args(command: Command) -> Command {
    let verb =
        |name: &'static str, about: &'static str| output::args(node_process::args(Command::new(name).about(about)));
    let names = Arg::new("name")
        .value_name("NAME")
        .num_args(0..)
        .help("Which, as `check-expiration` names them [default: all]");
    let rotating = |command: Command| {
        let drop_old = Arg::new("drop-old").long("drop-old").action(ArgAction::SetTrue);
        let force = Arg::new("force").long("force").action(ArgAction::SetTrue).requires("drop-old");
        command
            .arg(drop_old.help("Trust the one of before no more; refused while somebody used it within the last day"))
            .arg(force.help("Do so though somebody still uses it"))
    };
    command
        .subcommand_required(true)
        .arg_required_else_help(true)
        .subcommand(verb("check-expiration", "Show when each certificate ends; 4 where one has"))
        .subcommand(verb("renew", "Issue certificates anew, under the same names").arg(names))
        .subcommand(rotating(verb(
            "rotate-ca",
            "Put a new certificate authority beside the one that signs, and sign with it",
        )))
        .subcommand(rotating(verb(
            "rotate-token-key",
            "Put a new key beside the one that signs tokens, and sign with it",
        )))
}

fn run(matches: &ArgMatches) -> Result<ExitCode> {
    let (verb, matches) = matches.subcommand().expect("one is required");
    let keys = Keys::of(matches)?;
    match verb {
        "check-expiration" => listing::run(&keys, output::format(matches)),
        "renew" => {
            let names = matches.get_many::<String>("name").into_iter().flatten().cloned().collect();
            rotation::renew(&keys, names, output::format(matches))
        }
        verb => {
            let what = if verb == "rotate-ca" { rotation::AUTHORITY } else { rotation::TOKEN_KEY };
            if matches.get_flag("drop-old") {
                rotation::drop_old(&keys, &what, matches.get_flag("force"), output::format(matches))
            } else {
                rotation::begin(&keys, &what, output::format(matches))
            }
        }
    }
}

/// The folder of keys, and whose it is.
struct Keys {
    node: NodeProcess,
    dir: PathBuf,
}

impl Keys {
    fn of(matches: &ArgMatches) -> Result<Self> {
        let node = NodeProcess::of(matches)?;
        let dir = node.layout.data.join("pki");
        if !dir.join("ca.crt").exists() {
            bail!("there is no cluster in {}: {} is missing", node.layout.data.display(), dir.join("ca.crt").display());
        }
        Ok(Self { node, dir })
    }

    /// What the kubelet serves with.
    fn kubelet(&self) -> PathBuf {
        self.node.layout.data.join("kubelet/pki/kubelet-server-current.pem")
    }

    fn admin_kubeconfig(&self) -> PathBuf {
        self.node.layout.data.join("admin.kubeconfig")
    }

    /// Is there a server that takes up what the folder says?
    fn is_served(&self) -> Result<bool> {
        node_process::is_held(&self.node.layout.data.join("store/lock"))
    }

    /// While this lives, no other command replaces anything here.
    fn lock(&self) -> Result<File> {
        let dir = File::open(&self.dir).with_context(|| format!("opening {}", self.dir.display()))?;
        match flock(&dir, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => Ok(dir),
            Err(rustix::io::Errno::WOULDBLOCK) => bail!("another `corten certs` is at work in {}", self.dir.display()),
            Err(error) => Err(error).with_context(|| format!("locking {}", self.dir.display())),
        }
    }
}
