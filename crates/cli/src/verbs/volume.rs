//! `corten volume move`: what a claim holds goes to another node. The cluster does it; this asks for it and tells how far it is.

mod users;

use std::{
    process::ExitCode,
    time::{Duration, Instant},
};

use anyhow::{Context, Result, bail};
use clap::{Arg, ArgMatches, Command, value_parser};
use corten_api::{
    core::v1::{PersistentVolume, PersistentVolumeClaim},
    resources::{NODES, PERSISTENT_VOLUME_CLAIMS, PERSISTENT_VOLUMES},
    volumes::{LOCAL_DRIVER, MOVE_TO},
};
use corten_client::{Client, PatchType};
use corten_meta::Key;
use corten_provisioner::moves::{MOVE_CONDITION, node_of, wish};
use serde_json::json;

use crate::{
    Verb,
    connection::{self, Connection},
};
use corten_console::{failure::Failure, progress::Progress};

pub(crate) const VERB: Verb = Verb {
    name: "volume",
    about: "Move what a claim holds to another node",
    long_about: "`move` has the volume of a claim of the built-in driver (class `local`) copied to another node, over the way that the API \
                 server has to both. No Pod may use the claim meanwhile; the scheduler places none until it is done. Each piece is compared \
                 by its hash, an interrupted copy goes on where it ended, and what the first node holds is removed when the volume is \
                 bound on the other one. The cluster does it: ending the command does not end the move. `corten why pvc/CLAIM` tells \
                 how far it is.",
    examples: "  corten volume move data --to two\n  corten volume move data-db-0 --to two --namespace shop\n  \
               kubectl annotate pvc data local.corten.dev/move-to-   # calls it off",
    args,
    run,
};

/// How often it is looked how far it is.
const PERIOD: Duration = Duration::from_millis(500);

fn args(command: Command) -> Command {
    let to = Arg::new("to").long("to").value_name("NODE").required(true).help("The node that is to have the volume");
    let timeout = Arg::new("timeout")
        .long("timeout")
        .value_name("SECONDS")
        .value_parser(value_parser!(u64))
        .default_value("3600")
        .help("How long to wait for it; the move goes on after that");
    let verb = connection::args(Command::new("move").about("Have the volume of a claim on another node"))
        .arg(Arg::new("claim").value_name("CLAIM").required(true).help("The PersistentVolumeClaim's name"))
        .arg(to)
        .arg(timeout);
    command.subcommand_required(true).arg_required_else_help(true).subcommand(verb)
}

fn run(matches: &ArgMatches) -> Result<ExitCode> {
    let (_, matches) = matches.subcommand().expect("one is required");
    let text = |name: &str| matches.get_one::<String>(name).expect("it is required").as_str();
    let connection = connection::open(matches)?;
    let seconds = *matches.get_one::<u64>("timeout").expect("has a default");
    let name = text("claim").trim_start_matches("pvc/");
    let asked = Move {
        connection: &connection,
        key: Key::new(connection.namespace.as_str(), name),
        to: text("to"),
        end: Instant::now() + Duration::from_secs(seconds.min(u64::from(u32::MAX))),
    };
    connection.block_on(asked.carry_out())?;
    Ok(ExitCode::SUCCESS)
}

struct Move<'m> {
    connection: &'m Connection,
    key: Key,
    to: &'m str,
    end: Instant,
}

impl Move<'_> {
    fn client(&self) -> &Client {
        &self.connection.client
    }

    async fn carry_out(&self) -> Result<()> {
        let mut progress = Progress::begin();
        let (claim, volume) = self.movable().await?;
        let from = node_of(&volume).unwrap_or_default().to_owned();
        if from != self.to && wish(&claim) != Some(self.to) {
            users::refuse_used(self.client(), &self.key, &from).await?;
        }
        if from == self.to && wish(&claim).is_none() {
            progress.done(&format!("persistentvolumeclaim/{} is on node {}", self.key.name, self.to));
            return Ok(());
        }
        let patch = json!({ "metadata": { "annotations": { MOVE_TO: self.to } } });
        let asked = self.client().patch(&PERSISTENT_VOLUME_CLAIMS, &self.key, "", &PatchType::Merge, &patch).await;
        asked.with_context(|| format!("asking for the move of persistentvolumeclaim/{}", self.key.name))?;
        self.follow(&mut progress, &from).await
    }

    async fn claim(&self) -> Result<PersistentVolumeClaim> {
        match self.client().get_as(&PERSISTENT_VOLUME_CLAIMS, &self.key).await {
            Err(error) if error.is_not_found() => {
                let message = format!("there is no persistentvolumeclaim {} in {}", self.key.name, self.key.namespace);
                Err(Failure::new(message).next(format!("kubectl get pvc -n {}", self.key.namespace)).into())
            }
            other => other.with_context(|| format!("asking for persistentvolumeclaim/{}", self.key.name)),
        }
    }

    async fn volume(&self, claim: &PersistentVolumeClaim) -> Result<PersistentVolume> {
        let name = claim.spec.as_ref().and_then(|it| it.volume_name.clone()).filter(|it| !it.is_empty());
        let Some(name) = name else {
            let message = format!("persistentvolumeclaim/{} has no volume yet: its Pod decides where", self.key.name);
            return Err(Failure::new(message).next(format!("corten why pvc/{}", self.key.name)).into());
        };
        let volume = self.client().get_as(&PERSISTENT_VOLUMES, &Key::cluster(name.as_str())).await;
        volume.with_context(|| format!("asking for persistentvolume/{name}"))
    }

    /// The claim and its volume, where that can go to the node.
    async fn movable(&self) -> Result<(PersistentVolumeClaim, PersistentVolume)> {
        let claim = self.claim().await?;
        let volume = self.volume(&claim).await?;
        let driver = volume.spec.as_ref().and_then(|it| it.csi.as_ref()).map(|it| it.driver.as_str());
        if driver != Some(LOCAL_DRIVER) {
            let what = driver.unwrap_or("no driver");
            bail!(
                "the volume of persistentvolumeclaim/{} is of {what}: only those of {LOCAL_DRIVER} are moved",
                self.key.name
            );
        }
        match self.client().get(&NODES, &Key::cluster(self.to)).await {
            Err(error) if error.is_not_found() => {
                Err(Failure::new(format!("there is no node {}", self.to)).next("kubectl get nodes").into())
            }
            other => other.map(|_| (claim, volume)).with_context(|| format!("asking for node {}", self.to)),
        }
    }

    /// Tells how far it is, until the claim no longer wishes for it.
    async fn follow(&self, progress: &mut Progress, from: &str) -> Result<()> {
        loop {
            let claim = self.claim().await?;
            let conditions = claim.status.as_ref().and_then(|it| it.conditions.as_ref());
            let told = conditions.into_iter().flatten().find(|it| it.type_ == MOVE_CONDITION);
            let message = told.and_then(|it| it.message.clone()).unwrap_or_default();
            let is_wished = wish(&claim).is_some();
            let is_there = !is_wished && node_of(&self.volume(&claim).await?) == Some(self.to);
            match (is_wished, is_there) {
                (false, true) => {
                    progress.done(&outcome(&self.key.name, from, self.to));
                    return Ok(());
                }
                (false, false) => {
                    let why = if message.is_empty() { "it was called off" } else { &message };
                    bail!("persistentvolumeclaim/{} is not moved: {why}", self.key.name);
                }
                (true, _) => {
                    progress.doing(if message.is_empty() { "waiting for the cluster".into() } else { message })
                }
            }
            if Instant::now() >= self.end {
                let failure = Failure::new(format!(
                    "persistentvolumeclaim/{} is not moved yet: the cluster goes on",
                    self.key.name
                ));
                return Err(failure.next(format!("corten why pvc/{} -n {}", self.key.name, self.key.namespace)).into());
            }
            tokio::time::sleep(PERIOD).await;
        }
    }
}

/// Who asks for the node that has it while it goes to another one calls that off.
fn outcome(claim: &str, from: &str, to: &str) -> String {
    match from == to {
        true => format!("persistentvolumeclaim/{claim} stays on node {from}: its move is called off"),
        false => format!("persistentvolumeclaim/{claim} is on node {to}: what node {from} had of it is removed"),
    }
}

#[cfg(test)]
mod tests;
