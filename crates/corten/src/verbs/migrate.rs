//! `corten migrate`: a cluster from the embedded store into an etcd, or back, with the revisions that its objects have.

use std::{fs, path::PathBuf, process::ExitCode};

use anyhow::{Context, Result, bail};
use clap::{Arg, ArgMatches, Command, value_parser};
use corten_cli::{Failure, Verb, output};
use corten_etcd::Options;
use corten_options::server_options::file;
use serde::Serialize;

use crate::{
    etcd_options::tls_files,
    migration::{self, Done},
    process,
};

pub(crate) const VERB: Verb = Verb {
    name: "migrate",
    about: "Take a cluster's objects from the embedded store into an etcd, or back",
    long_about: "Every object keeps its revisions, and the next write has the next one: watches and resourceVersions go on. Into an etcd \
                 it goes as a snapshot, because etcd takes no revisions from clients: `etcdutl snapshot restore` makes a member of the \
                 file. From an etcd, Corten's or Kubernetes's, it is read over its API into a data folder without a store. Values \
                 are converted between Corten's form and Kubernetes's, each is read again to see that nothing is lost, and what \
                 would be is refused. No API server may run meanwhile. Nothing is written before everything was read, so what was \
                 interrupted is begun again. Certificates and keys are not migrated: they are in DIR/pki.",
    examples: "  corten down && corten migrate --from /var/lib/corten --to ./etcd.snapshot\n  etcdutl snapshot restore ./etcd.snapshot \
               --data-dir /var/lib/etcd\n  corten migrate --from https://10.0.0.11:2379 --to ./cluster --etcd-cafile ca.crt \
               --etcd-certfile client.crt --etcd-keyfile client.key",
    args,
    run,
};

fn args(command: Command) -> Command {
    let file = |name: &'static str, help: &'static str| {
        Arg::new(name).long(name).value_name("FILE").value_parser(value_parser!(PathBuf)).help(help)
    };
    let from = Arg::new("from").long("from").value_name("DIR|URL,…").required(true);
    let to = Arg::new("to").long("to").value_name("FILE|DIR").required(true).value_parser(value_parser!(PathBuf));
    let prefix = Arg::new("etcd-prefix").long("etcd-prefix").value_name("PREFIX").default_value("/registry");
    let command = command
        .arg(from.help("The data folder of a cluster, or the addresses of an etcd's members"))
        .arg(to.help("The snapshot to write, or the data folder that is to have a store"))
        .arg(file("etcd-cafile", "The authority that certificates of etcd are from"))
        .arg(file("etcd-certfile", "The certificate that etcd is shown"))
        .arg(file("etcd-keyfile", "The key of --etcd-certfile"))
        .arg(prefix.help("Where the keys of the cluster begin in etcd"));
    output::args(command)
}

fn run(matches: &ArgMatches) -> Result<ExitCode> {
    let from: &String = matches.get_one("from").context("clap asks for it")?;
    let to: &PathBuf = matches.get_one("to").context("clap asks for it")?;
    let prefix: &String = matches.get_one("etcd-prefix").context("clap gives a default")?;
    let is_etcd = ["http://", "https://"].iter().any(|it| from.starts_with(it));
    let done = if is_etcd {
        let store = to.join("store");
        let etcd = Options {
            servers: from.split(',').map(str::to_owned).collect(),
            tls: tls_files(|name| file(matches, name), None)?,
            prefix: prefix.clone(),
        };
        if fs::read_dir(&store).is_ok_and(|mut it| it.next().is_some()) {
            bail!(
                Failure::new(format!("{} holds a store already", store.display()))
                    .next("name another folder with --to")
            );
        }
        corten_machine::close_for_server(to)?;
        process::block_on(migration::from_etcd(&etcd, &store))?
    } else {
        if to.exists() {
            let message = format!("{} is there already", to.display());
            bail!(Failure::new(message).next("name another file with --to"));
        }
        migration::to_snapshot(&PathBuf::from(from).join("store"), prefix, to)?
    };
    tell(matches, &done, &to.display().to_string(), is_etcd)?;
    Ok(ExitCode::SUCCESS)
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Summary {
    api_version: &'static str,
    kind: &'static str,
    revision: u64,
    keys: u64,
    left_behind: usize,
    hash: String,
}

fn tell(matches: &ArgMatches, done: &Done, to: &str, is_store: bool) -> Result<()> {
    let hash = format!("{:08x}", done.hash);
    let Done { revision, keys, left, .. } = *done;
    if output::format(matches) == output::Format::Json {
        return output::json(&Summary {
            api_version: "corten.dev/v1",
            kind: "Migration",
            revision,
            keys,
            left_behind: left,
            hash,
        });
    }
    let next = if is_store {
        format!("corten server --data-dir {to}")
    } else {
        format!("etcdutl snapshot restore {to} --data-dir DIR")
    };
    output::text(&format!(
        "migrated: revision {revision}, {keys} keys, hash {hash}; left behind: {left} keys that are no objects\nrun next:      {next}\n"
    ))
}
