//! `corten snapshot`: copies of all that the cluster has stored, taken while it runs, and clusters made of them.

use std::{
    path::{Path, PathBuf},
    process::ExitCode,
};

use anyhow::{Context, Result};
use clap::{Arg, ArgMatches, Command, value_parser};
use corten_cli::{Failure, Verb, command_on, etcd_member::EtcdMemberRecord, output};
use corten_node_process::node_folders::DATA_DIR;
use corten_pki::EtcdFiles;
use corten_store::embedded::{Archive, ArchiveError, OpenError};
use serde::Serialize;

use crate::{
    etcd_snapshot_file::{self, Unreadable},
    ha::restore::{self, BUMP},
};

pub(crate) const VERB: Verb = Verb {
    name: "snapshot",
    about: "Copy all that the cluster has stored into a file, and make a store of such a file",
    long_about: "`save` reads the store in the data folder, also while the server runs: no answered write is missing, and nothing \
                 waits for it. With --revision it goes back to an earlier resourceVersion, as far as the log still has it. \
                 `restore` makes the store of a data folder that has none. The file holds all Secrets: only its owner may read \
                 it. Certificates and keys are not in it: they are in DIR/pki. Works on the store in DIR/store; an etcd is \
                 copied with `etcdctl snapshot save`, and where Corten runs it both commands are said.",
    examples: "  corten snapshot save /backup/monday\n  corten snapshot save /backup/before --revision 1042\n  \
               corten snapshot status /backup/monday\n  corten down && mv /var/lib/corten/store /var/lib/corten/store.old && \
               corten snapshot restore /backup/monday && corten up",
    args,
    run,
};

fn args(command: Command) -> Command {
    let verb = |name: &'static str, about: &'static str, file: &'static str| {
        let file = Arg::new("file").value_name("FILE").required(true).value_parser(value_parser!(PathBuf)).help(file);
        output::args(Command::new(name).about(about).arg(file))
    };
    let data_dir = Arg::new("data-dir").long("data-dir").value_name("DIR").value_parser(value_parser!(PathBuf));
    let data_dir = data_dir.default_value(DATA_DIR).help("Where the cluster keeps everything");
    let revision = |name: &'static str| {
        Arg::new(name).long(name).value_name("NUMBER").value_parser(value_parser!(u64).range(0..=i64::MAX as u64))
    };
    let save = verb("save", "Copy the store into a new file", "The file to write")
        .arg(data_dir.clone())
        .arg(revision("revision").help("As it was at this resourceVersion [default: the newest]"));
    let restore =
        verb("restore", "Make a store of the file", "A file that `corten snapshot save` wrote").arg(data_dir).arg(
            revision("bump-revision").default_value(BUMP).help(
                "Go on so many revisions later: clients that have seen what the file does not have then list again",
            ),
        );
    command
        .subcommand_required(true)
        .arg_required_else_help(true)
        .subcommand(save)
        .subcommand(verb("status", "Say what is in a file, and check that it is whole", "The file to read"))
        .subcommand(restore)
}

fn run(matches: &ArgMatches) -> Result<ExitCode> {
    let (verb, matches) = matches.subcommand().expect("one is required");
    let file: &PathBuf = matches.get_one("file").context("clap asks for it")?;
    match verb {
        "save" => {
            refuse_member(matches, |dir, member| copy_member(dir, member, file))?;
            let store = store(matches)?;
            let archive =
                Archive::of_store(&store, matches.get_one("revision").copied()).map_err(|it| unreadable(it, &store))?;
            archive.save(file).map_err(|it| match it {
                ArchiveError::Exists { path } => {
                    Failure::new(format!("{} is there already: name a new file", path.display())).into()
                }
                other => anyhow::Error::from(other),
            })?;
            tell(matches, &Summary::of(&archive), "saved")?;
        }
        "restore" => restore(matches, file)?,
        _ => tell(matches, &Summary::of(&archive_of(file)?), "whole")?,
    }
    Ok(ExitCode::SUCCESS)
}

fn restore(matches: &ArgMatches, file: &Path) -> Result<()> {
    let bump = *matches.get_one("bump-revision").context("clap gives a default")?;
    refuse_member(matches, |dir, _| restore_member(dir, file, bump))?;
    let (store, archive) = (store(matches)?, archive_of(file)?);
    let mut summary = Summary::of(&archive);
    summary.revision = archive.restore(&store, bump).map_err(|error| match error {
        ArchiveError::Exists { path } => {
            let (path, message) = (path.display(), format!("{} holds a store already", path.display()));
            anyhow::Error::from(Failure::new(message).next(format!("corten down && mv {path} {path}.old")))
        }
        ArchiveError::Unreadable(error @ OpenError::Locked { .. }) => {
            Failure::new(error.to_string()).next("corten down").into()
        }
        other => other.into(),
    })?;
    tell(matches, &summary, "restored")
}

/// # Errors
/// It is none, or no whole one. Snapshots of etcd are etcd's to read.
fn archive_of(file: &Path) -> Result<Archive> {
    let refused = match Archive::of_file(file) {
        Err(ArchiveError::Unreadable(OpenError::Damaged { reason, .. })) => reason,
        other => return Ok(other?),
    };
    if etcd_snapshot_file::check(file) != Err(Unreadable::Foreign) {
        let message = format!("{} is a snapshot of etcd, and none of a store of Corten's", file.display());
        let mut failure = Failure::new(message);
        failure.details.push("`corten migrate` makes a store of an etcd that it was restored to".to_owned());
        return Err(failure.next(format!("etcdutl snapshot status {}", file.display())).into());
    }
    Err(Failure::new(format!("{} is no whole snapshot of a store: {refused}", file.display())).into())
}

fn data_dir(matches: &ArgMatches) -> Result<PathBuf> {
    let dir: &PathBuf = matches.get_one("data-dir").context("clap gives a default")?;
    std::path::absolute(dir).with_context(|| format!("finding {}", dir.display()))
}

fn store(matches: &ArgMatches) -> Result<PathBuf> {
    Ok(data_dir(matches)?.join("store"))
}

/// Where Corten runs an etcd the cluster is there, and etcd's own programs copy it: `command` says how.
fn refuse_member(matches: &ArgMatches, command: impl Fn(&Path, &EtcdMemberRecord) -> Failure) -> Result<()> {
    let dir = data_dir(matches)?;
    match EtcdMemberRecord::load(&dir)? {
        Some(member) => Err(command(&dir, &member).into()),
        None => Ok(()),
    }
}

fn copy_member(dir: &Path, member: &EtcdMemberRecord, file: &Path) -> Failure {
    let files = EtcdFiles::of(&dir.join("pki"));
    let [ca, certificate, key] = [&files.ca, &files.client.0, &files.client.1].map(|it| it.display());
    Failure::new("the cluster is in an etcd that Corten runs, which copies itself").next(format!(
        "etcdctl --endpoints {} --cacert {ca} --cert {certificate} --key {key} snapshot save {}",
        member.client_url(),
        file.display()
    ))
}

fn restore_member(dir: &Path, file: &Path, bump: u64) -> Failure {
    // What is not whole is refused by etcd's program, too: but then the cluster is down, and its member put aside.
    if let Err(why) = etcd_snapshot_file::check(file) {
        return Failure::new(format!("the cluster is in an etcd that Corten runs, and {} {why}", file.display()));
    }
    let mut failure = Failure::new("the cluster is in an etcd that Corten runs, and is restored on one machine first");
    failure.details.push(
        "the other machines take part again as those that have lost their disk: `corten reset` there, and then a new line of \
         `corten token create --control-plane`"
            .to_owned(),
    );
    let restore = restore::command(dir, &file.display().to_string(), &bump.to_string());
    failure.next(format!("{} && {restore}", command_on(dir, "down")))
}

fn unreadable(error: ArchiveError, store: &Path) -> anyhow::Error {
    match error {
        ArchiveError::NoStore { .. } => no_store(store),
        ArchiveError::Io { cause, .. } if cause.kind() == std::io::ErrorKind::NotFound => no_store(store),
        other => other.into(),
    }
}

fn no_store(store: &Path) -> anyhow::Error {
    let message = format!("{} holds no store: name the cluster's folder with --data-dir", store.display());
    Failure::new(message).into()
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Summary {
    api_version: &'static str,
    kind: &'static str,
    revision: u64,
    keys: u64,
    bytes: u64,
    hash: String,
}

impl Summary {
    fn of(archive: &Archive) -> Self {
        Self {
            api_version: "corten.dev/v1",
            kind: "Snapshot",
            revision: archive.revision(),
            keys: archive.n_keys(),
            bytes: archive.bytes(),
            hash: format!("{:08x}", archive.hash()),
        }
    }
}

fn tell(matches: &ArgMatches, summary: &Summary, done: &str) -> Result<()> {
    if output::format(matches) == output::Format::Json {
        return output::json(summary);
    }
    let Summary { revision, keys, bytes, hash, .. } = summary;
    output::text(&format!("{done}: revision {revision}, {keys} keys, {bytes} bytes, hash {hash}\n"))
}
