//! What the node is told: the options that are given, those of the `up` before, and what one that runs was given instead.

use std::{
    ffi::OsString,
    path::{Path, PathBuf},
};

use anyhow::Result;
use clap::{ArgMatches, Command, parser::ValueSource};
use corten_options::{node_options, server_options};
use corten_records::etcd_member::EtcdFolder;

use super::{args, replacement};
use corten_console::{failure::Failure, shell::quoted};
use corten_node_process::{
    command_line::CommandLine,
    node_name::NodeName,
    node_process::{NodeProcess, command_for},
    node_record::Record,
};

/// The command line, less the name, of the node that `up` starts with these options.
///
/// # Errors
/// The folders cannot be named, or what the node was called cannot be read.
pub fn node_line(matches: &ArgMatches) -> Result<Vec<OsString>> {
    let node = NodeProcess::of(matches)?;
    let (matches, _) = as_before(matches, &Record::load(&node.layout.data).options);
    let name = NodeName::of(&matches, &node.layout.data)?.name;
    let folders = [("--data-dir", &node.layout.data), ("--run-dir", &node.layout.run)];
    let folders = folders.into_iter().flat_map(|(option, folder)| [OsString::from(option), folder.into()]);
    Ok(folders.chain(arguments(&node, &matches, &name)?.into_iter().map(OsString::from)).collect())
}

/// What the node is told, less its folders.
pub(super) fn arguments(node: &NodeProcess, matches: &ArgMatches, name: &str) -> Result<Vec<String>> {
    let flag = |name: &str| matches.get_one::<String>(name).cloned().expect("has a default");
    let port = |name: &str| matches.get_one::<u16>(name).expect("has a default").to_string();
    let settings =
        [("--port", port("port")), ("--node-name", name.to_owned()), ("--kubelet-port", port("kubelet-port"))];
    let manifests = matches.get_one::<PathBuf>("pod-manifest-path").map(std::path::absolute).transpose()?;
    let manifests = manifests.map(|it| ("--pod-manifest-path", it.to_string_lossy().into_owned()));
    // Where Corten runs an etcd, the address is that of its member unless another one is given.
    let binds = !is_ha(matches, node) || matches.value_source("bind") == Some(ValueSource::CommandLine);
    let settings = binds.then(|| ("--bind", flag("bind"))).into_iter().chain(settings).chain(manifests);
    let mut args: Vec<String> = settings.flat_map(|(name, value)| [name.to_owned(), value]).collect();
    args.extend(server_options::given(matches));
    args.extend(node_options::given(matches));
    Ok(args)
}

pub(super) fn is_ha(matches: &ArgMatches, node: &NodeProcess) -> bool {
    server_options::is_on(matches, "ha") || EtcdFolder::of(&node.layout.data).record().exists()
}

/// What was given, so that it can be given again.
pub(super) fn options(matches: &ArgMatches) -> Vec<String> {
    let of_server = server_options::given(matches);
    let others = given(matches).into_iter().filter(|it| !server_options::is_one(it));
    let options = others.filter_map(|name| {
        let values = matches.get_raw(name)?;
        Some(values.map(move |it| format!("--{name}={}", it.display())))
    });
    options.flatten().chain(of_server).collect()
}

/// A bare `up` goes on with the options of the one before; one that has any has those alone. What is worth knowing of that.
pub(super) fn as_before(matches: &ArgMatches, before: &[String]) -> (ArgMatches, Option<String>) {
    let words = |options: &[String]| options.iter().map(|it| quoted(it)).collect::<Vec<_>>().join(" ");
    if before.is_empty() {
        return (matches.clone(), None);
    }
    if !given(matches).is_empty() {
        let name = |option: &str| option.split('=').next().unwrap_or_default().to_owned();
        let now: Vec<String> = options(matches).iter().map(|it| name(it)).collect();
        let gone: Vec<String> = before.iter().filter(|it| !now.contains(&name(it))).cloned().collect();
        let remark = format!("without options of before: {}", words(&gone));
        return (matches.clone(), (!gone.is_empty()).then_some(remark));
    }
    let restart = replacement::is_asked(matches).then(|| OsString::from("--restart"));
    let own = ["data-dir", "run-dir", "timeout"].iter().filter_map(|name| {
        let mut option = OsString::from(format!("--{name}="));
        option.push(matches.get_raw(name)?.next()?);
        Some(option)
    });
    let line = [OsString::from("up")].into_iter().chain(own).chain(restart).chain(before.iter().map(OsString::from));
    // An option that this version knows no more is not taken up.
    match args(Command::new("up")).try_get_matches_from(line) {
        Ok(all) => (all, Some(format!("as before: {}", words(before)))),
        Err(_) => (matches.clone(), Some(format!("the options of before are not known any more: {}", words(before)))),
    }
}

/// A node that runs keeps the options it was started with.
pub(super) fn refuse_other_options(node: &NodeProcess, args: &[String], matches: &ArgMatches) -> Result<()> {
    let Some((pid, _)) = node.process().ok().flatten() else { return Ok(()) };
    let Ok(running) = CommandLine::of(pid) else { return Ok(()) };
    let differing = differences(&given(matches), &CommandLine::new(pid, args), &running, &node.layout.data);
    if differing.is_empty() {
        return Ok(());
    }
    let with_options =
        |verb| options(matches).iter().fold(command_for(&node.layout, verb), |it, option| it + " " + &quoted(option));
    let runs = format!("the cluster runs already, and not as asked: {}", differing.join(", "));
    // Its Pods are of a node with another name.
    if differing.iter().any(|it| it.starts_with("--node-name ")) {
        let (down, up) = (command_for(&node.layout, "down"), with_options("up"));
        return Err(Failure::new(format!("{runs}; take it down first")).next(format!("{down} && {up}")).into());
    }
    Err(Failure::new(runs).next(with_options("up --restart")).into())
}

/// Of the options that were given, those that the running node has with other values. Where it was given none, the default
/// holds.
pub(super) fn differences(given: &[&str], wanted: &CommandLine, running: &CommandLine, data: &Path) -> Vec<String> {
    let differs = |option: &&str| {
        let wanted = wanted.value(option)?;
        let runs = running.value(option).map(str::to_owned).or_else(|| default_of(option, data));
        let is_same = runs.as_deref() == Some(wanted);
        let runs = runs.map_or_else(|| "not set".to_owned(), |it| format!("{it:?}"));
        (!is_same).then(|| format!("--{option} is {runs}, not {wanted:?}"))
    };
    given.iter().filter_map(differs).collect()
}

pub(super) fn default_of(option: &str, data: &Path) -> Option<String> {
    match option {
        "node-name" => NodeName::unasked(data).ok().map(|it| it.name),
        "pod-manifest-path" => Some(data.join("manifests").display().to_string()),
        _ => {
            let command = args(Command::new("up"));
            let arg = command.get_arguments().find(|it| it.get_long() == Some(option))?;
            arg.get_default_values().first().map(|it| it.to_string_lossy().into_owned())
        }
    }
}

/// The options of the node that stood on the command line.
pub(super) fn given(matches: &ArgMatches) -> Vec<&str> {
    const NOT_OF_NODE: [&str; 8] =
        ["data-dir", "run-dir", "timeout", "restart", "join", "token", "ca-hash", "certificate-key"];
    let is_given = |it: &&str| matches.value_source(it) == Some(ValueSource::CommandLine) && !NOT_OF_NODE.contains(it);
    matches.ids().map(clap::Id::as_str).filter(is_given).collect()
}
