//! `--ha`: the cluster is in an etcd that Corten runs, with a member on this machine. The member is there before the control plane, is
//! looked after beside it, and ends after it.
//!
//! etcd goes on where this process is killed or another program takes its place, and is found again by the next one: the others need not
//! vote anew for that.

mod entry;
mod look;
mod member_process;
mod quota_keeper;
pub(crate) mod restore;
mod upkeep;

use std::path::PathBuf;

use anyhow::{Context, Result, bail};
use corten_cli::etcd_member::{EtcdFolder, EtcdMemberRecord};
use corten_etcd::TlsFiles;
use corten_pki::{EtcdAuthority, EtcdFiles};
use tokio::{sync::watch, task::JoinHandle};

pub(crate) use entry::departed;

use self::{
    member_process::MemberProcess,
    upkeep::{State, Upkeep},
};
use crate::{
    control_plane::Settings,
    etcd_api,
    etcd_options::{EtcdOptions, Joint},
    ha_options::HaOptions,
    process,
};

/// A member that is looked after until [`Member::stop`].
pub(crate) struct Member {
    folder: EtcdFolder,
    stopping: watch::Sender<bool>,
    state: watch::Receiver<State>,
    /// Where the control plane leaves its store, once it has one.
    joint: Joint,
    tasks: Vec<JoinHandle<()>>,
}

/// What came of a start.
pub(crate) enum Start {
    /// There is no member to run.
    Without,
    Runs(Member),
    /// The process was told to end meanwhile.
    Told,
}

/// What is the same for all that is done with a member.
#[derive(Clone)]
struct Place {
    data: PathBuf,
    folder: EtcdFolder,
    files: EtcdFiles,
}

impl Place {
    fn of(data: &std::path::Path) -> Self {
        Self { data: data.to_owned(), folder: EtcdFolder::of(data), files: EtcdFiles::of(&data.join("pki")) }
    }

    fn tls(&self) -> TlsFiles {
        TlsFiles { ca: self.files.ca.clone(), client: Some(self.files.client.clone()) }
    }
}

/// Has the member of this machine run, and those of others agree with it: then `settings` say where the cluster is kept. As long
/// as too few members are there it waits for them.
///
/// # Errors
/// The member cannot be one, or was removed.
pub(crate) async fn start(settings: &mut Settings, name: &str, signals: &mut process::Signals) -> Result<Start> {
    let Some(options) = settings.ha.clone() else { return Ok(Start::Without) };
    corten_machine::close_for_server(&options.data)?;
    let place = Place::of(&options.data);
    // Of the program whose place this one takes.
    let _ = std::fs::remove_file(place.folder.goes_on());
    let mut record = entry::record(&place, &options, name)?;
    if options.bind.is_none() {
        settings.bind = record.address;
    }
    entry::take_authority(&place)?;
    let authority = EtcdAuthority::of_member(&place.data.join("pki"), &etcd_api::names_of_member(record.address));
    let authority = authority.context("preparing the certificates of etcd's member")?;
    tokio::select! {
        biased;
        () = signals.told_to_end() => return Ok(Start::Told),
        entered = entry::enter(&place, &mut record) => entered?,
    }
    let mut member = begin(place.clone(), &options, record, authority)?;
    let ready = tokio::select! {
        biased;
        () = signals.told_to_end() => None,
        ready = member.ready() => Some(ready),
    };
    match ready {
        Some(Ok(servers)) => {
            settings.etcd =
                Some(EtcdOptions::of_member(servers, place.tls(), options.compaction_interval, member.joint.clone()));
            Ok(Start::Runs(member))
        }
        Some(Err(error)) => {
            member.stop().await;
            Err(error)
        }
        None => {
            member.stop().await;
            Ok(Start::Told)
        }
    }
}

fn begin(place: Place, options: &HaOptions, record: EtcdMemberRecord, authority: EtcdAuthority) -> Result<Member> {
    let (stopping, stop) = watch::channel(false);
    let (said, state) = watch::channel(State::default());
    let process = MemberProcess::new(place.clone(), options.clone())?;
    let joint = Joint::default();
    let folder = place.folder.clone();
    let kept = tokio::spawn(process.keep(stop.clone(), state.clone()));
    let upkeep = Upkeep::new(place, record, options.quota_bytes, authority, joint.clone());
    let tasks = vec![kept, tokio::spawn(upkeep.keep(stop, said))];
    Ok(Member { folder, stopping, state, joint, tasks })
}

impl Member {
    /// Where the members are, this machine's first, once they agree and it is one of them.
    async fn ready(&mut self) -> Result<Vec<String>> {
        let state =
            self.state.wait_for(|it| it.is_ready || it.is_removed).await.context("looking after etcd's member")?;
        if state.is_removed {
            bail!(
                corten_cli::Failure::new(
                    "the member of etcd on this machine was removed from its cluster, and comes back only as a new one"
                )
                .next("corten reset && corten up --ha --join … # as `corten token create --control-plane` prints it")
            );
        }
        Ok(state.urls.clone())
    }

    /// Ends the member in order; leaves it where another program takes this one's place.
    pub(crate) async fn stop(self) {
        if self.folder.goes_on().exists() {
            tracing::info!("the member of etcd goes on: another program takes this one's place");
            return self.leave().await;
        }
        self.stopping.send_replace(true);
        for task in self.tasks {
            if let Err(error) = task.await {
                tracing::error!(%error, "a task that looks after etcd's member broke");
            }
        }
    }

    /// Nobody looks after it from now on, until the next start.
    async fn leave(self) {
        for task in self.tasks {
            task.abort();
            // It was told to.
            let _ = task.await;
        }
    }
}

/// Ends it, where there is one, or leaves it to who comes next.
pub(crate) async fn stop(member: Option<Member>) {
    if let Some(member) = member {
        member.stop().await;
    }
}
