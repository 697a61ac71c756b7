//! `corten why KIND/NAME`: what an object waits for, since when, and who must act.

use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use clap::{Arg, ArgMatches, Command};
use corten_client::Error;
use corten_kinds::Kind;
use corten_meta::Key;

use crate::{
    Verb, connection,
    output::{self, Format},
    why::{Account, State, explain, render},
};

pub(crate) const VERB: Verb = Verb {
    name: "why",
    about: "Say why an object is not running: what it waits for, since when, who must act",
    long_about: "Reads the object, its warnings and the journals of the loops that look after it, and follows what they \
                 wait for: from a Deployment to its ReplicaSet to the Pod that holds it up, and there to the step that is \
                 stuck.\n\nExit codes: 0 nothing is waited for, 3 it goes on by itself, 4 somebody must act, 1 it could \
                 not be told.",
    examples: "  corten why pod/web-1\n  corten why deployment/user-service -n shop\n  corten why deploy user-service -o json",
    args,
    run,
};

fn args(command: Command) -> Command {
    let target = Arg::new("target").value_names(["KIND/NAME"]).num_args(1..=2).required(true);
    let target = target.help("The object: pod/web-1, or pod web-1; short names work: po, deploy, rs");
    connection::args(output::args(command.arg(target)))
}

fn run(matches: &ArgMatches) -> Result<ExitCode> {
    let (kind, name) = target(matches)?;
    let connection = connection::open(matches)?;
    let namespace = if kind.resource.namespaced { connection.namespace.clone() } else { String::new() };
    let key = Key::new(namespace, name);
    let account =
        connection.block_on(explain(&connection.client, kind, &key)).map_err(|error| told(error, kind, &key))?;
    print(&account, output::format(matches))?;
    Ok(ExitCode::from(match account.state {
        State::Fine | State::Finished => 0,
        State::Progressing | State::Terminating => 3,
        State::Blocked => 4,
    }))
}

fn target(matches: &ArgMatches) -> Result<(&'static Kind, String)> {
    let words: Vec<&String> = matches.get_many("target").context("clap requires a target")?.collect();
    let (kind, name) = match &words[..] {
        [one] => {
            one.split_once('/').with_context(|| format!("{one:?} names no object: say KIND/NAME, as in pod/web-1"))?
        }
        [kind, name] => (kind.as_str(), name.as_str()),
        _ => bail!("say KIND/NAME, as in pod/web-1"),
    };
    let row = corten_kinds::by_name(&kind.to_lowercase())
        .with_context(|| format!("there is no kind {kind:?}: `kubectl api-resources` lists what there is"))?;
    Ok((row, name.to_owned()))
}

fn told(error: Error, kind: &Kind, key: &Key) -> anyhow::Error {
    match error {
        Error::Status(status) if status.is_not_found() => {
            let place =
                if key.namespace.is_empty() { String::new() } else { format!(" in namespace {}", key.namespace) };
            let everywhere = if key.namespace.is_empty() { "" } else { " --all-namespaces" };
            let list = format!("kubectl get {}{everywhere}", kind.resource.plural);
            anyhow::anyhow!("there is no {} {:?}{place}; `{list}` lists what there is", kind.singular, key.name)
        }
        other => anyhow::Error::new(other).context(format!("reading {} {key}", kind.singular)),
    }
}

fn print(account: &Account, format: Format) -> Result<()> {
    match format {
        Format::Json => output::json(account),
        Format::Text => output::text(&render(account, output::now(), output::colour())),
    }
}
