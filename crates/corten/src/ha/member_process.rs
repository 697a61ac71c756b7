//! etcd's process: found again where it went on without us, started where it does not run, and started again when it ends.

use std::{
    ffi::{OsStr, OsString},
    fs, io,
    path::PathBuf,
    process::{Child, Command},
    time::Duration,
};

use anyhow::{Context, Result};
use corten_cli::etcd_member::EtcdMemberRecord;
use corten_machine::{Process, locked_process, open_log, service_manager::NOTIFY_SOCKET};
use rustix::process::{Pid, Signal};
use tokio::{
    sync::watch,
    time::{Instant, sleep},
};

use super::{Place, entry, upkeep::State};
use crate::ha_options::HaOptions;

const PAUSE_FIRST: Duration = Duration::from_millis(500);
const PAUSE_MAX: Duration = Duration::from_secs(30);
/// One that ran for so long has failed anew, not again.
const RAN_WELL: Duration = Duration::from_secs(60);
/// How long it has to end in order.
const GRACE: Duration = Duration::from_secs(15);

pub(super) struct MemberProcess {
    place: Place,
    options: HaOptions,
    log: PathBuf,
    n_starts: u32,
}

/// A member that has this in its environment leaves all others behind: once is enough.
const FORCE: &str = "ETCD_FORCE_NEW_CLUSTER";

/// One run of it.
struct Run {
    process: Process,
    /// Where this process started it: it has to be waited for.
    child: Option<Child>,
}

impl MemberProcess {
    pub(super) fn new(place: Place, options: HaOptions) -> Result<Self> {
        let folder = place.data.join("log");
        fs::create_dir_all(&folder).with_context(|| format!("making {}", folder.display()))?;
        Ok(Self { place, options, log: folder.join("etcd.log"), n_starts: 0 })
    }

    /// Keeps it running until `stopping`; then it ends. One that was removed from its cluster is not started again.
    pub(super) async fn keep(mut self, mut stopping: watch::Receiver<bool>, state: watch::Receiver<State>) {
        let mut pause = PAUSE_FIRST;
        loop {
            let begun = Instant::now();
            let how = match self.run(&mut stopping, state.clone()).await {
                Ok(Some(how)) => how,
                Ok(None) => return,
                Err(error) => format!("{error:#}"),
            };
            if state.borrow().is_removed {
                tracing::error!(
                    "the member of etcd on this machine was removed from its cluster: it is not started again"
                );
                told(&mut stopping).await;
                return;
            }
            if begun.elapsed() >= RAN_WELL {
                pause = PAUSE_FIRST;
            }
            let log = self.log.display();
            tracing::error!(how, %log, pause = ?pause, "the member of etcd has ended; it is started again");
            tokio::select! {
                biased;
                () = told(&mut stopping) => return,
                () = sleep(pause) => {}
            }
            pause = (pause * 2).min(PAUSE_MAX);
        }
    }

    /// How it ended by itself; `None` where it was told to.
    async fn run(
        &mut self,
        stopping: &mut watch::Receiver<bool>,
        mut state: watch::Receiver<State>,
    ) -> Result<Option<String>> {
        let run = tokio::select! {
            biased;
            () = told(stopping) => return Ok(None),
            run = self.begin() => run?,
        };
        tokio::select! {
            biased;
            () = told(stopping) => {
                run.end().await;
                Ok(None)
            }
            // It would go on for ever without a leader.
            () = removed(&mut state) => {
                run.end().await;
                Ok(Some("it was removed".to_owned()))
            }
            ended = run.process.ended() => {
                ended.context("waiting for etcd")?;
                Ok(Some(run.how()))
            }
        }
    }

    async fn begin(&mut self) -> Result<Run> {
        let lock = self.place.folder.lock();
        let looking = || format!("looking who holds {}", lock.display());
        if let Some(process) = locked_process::holder(&lock).with_context(looking)? {
            tracing::info!(
                "the member of etcd went on without Corten, as it was started: other options count after `corten down`"
            );
            if self.n_starts == 0 && std::env::var_os(FORCE).is_some() {
                tracing::warn!("{FORCE} says nothing to an etcd that runs: `corten down` first");
            }
            return Ok(Run { process, child: None });
        }
        let mut record = EtcdMemberRecord::load(&self.place.data)?.context("member.json is gone")?;
        if self.n_starts > 0 {
            // One that could not begin, because others have come or gone since it was taken, is told of them.
            entry::enter(&self.place, &mut record).await?;
        }
        self.start(&record)
    }

    fn start(&mut self, record: &EtcdMemberRecord) -> Result<Run> {
        let log = open_log(&self.log).with_context(|| format!("opening {}", self.log.display()))?;
        let errors = log.try_clone().context("opening the log of etcd")?;
        let (name, args) = (&self.options.program, args(&self.place, &self.options, record));
        let mut program = Command::new(name);
        program.args(&args).stdout(log).stderr(errors).current_dir("/").env_remove(NOTIFY_SOCKET);
        for variable in args.iter().filter_map(|it| variable(it)) {
            program.env_remove(variable);
        }
        if self.n_starts > 0 {
            program.env_remove(FORCE);
        }
        self.n_starts += 1;
        let started = locked_process::start_holding(&self.place.folder.lock(), &mut program);
        let child = started.with_context(|| format!("starting {}", name.display()))?;
        let child = child.context("another process has just started it")?;
        tracing::info!(pid = child.id(), "the member of etcd is started");
        let process = Process::find(Pid::from_child(&child)).context("looking after etcd")?;
        Ok(Run { process, child: Some(child) })
    }
}

/// An error says that nobody is there any more to tell: that is an end, too.
async fn told(stopping: &mut watch::Receiver<bool>) {
    let _ = stopping.wait_for(|it| *it).await;
}

/// Ready once it is none of the members any more.
async fn removed(state: &mut watch::Receiver<State>) {
    if state.wait_for(|it| it.is_removed).await.is_err() {
        std::future::pending().await
    }
}

impl Run {
    async fn end(self) {
        for signal in [Signal::TERM, Signal::KILL] {
            self.process.signal(signal);
            if tokio::time::timeout(GRACE, self.process.ended()).await.is_ok() {
                break;
            }
            tracing::warn!("the member of etcd does not end");
        }
        self.how();
    }

    fn how(self) -> String {
        match self.child.map(|mut it| it.try_wait()) {
            Some(Ok(Some(status))) => status.to_string(),
            Some(Err(error)) => io::Error::to_string(&error),
            Some(Ok(None)) | None => "ended".to_owned(),
        }
    }
}

/// What says the same as the option in the environment: etcd does not start where both are given.
fn variable(option: &OsStr) -> Option<String> {
    let name = option.to_str()?.strip_prefix("--")?.split('=').next()?;
    Some(format!("ETCD_{}", name.replace('-', "_").to_uppercase()))
}

fn args(place: &Place, options: &HaOptions, record: &EtcdMemberRecord) -> Vec<OsString> {
    let (client, peer) = (record.client_url(), record.peer_url());
    let state = if record.is_joined { "existing" } else { "new" };
    let quota = options.quota_bytes.to_string();
    let words = [
        ("name", &*record.name),
        ("listen-client-urls", &client),
        ("advertise-client-urls", &client),
        ("listen-peer-urls", &peer),
        ("initial-advertise-peer-urls", &peer),
        ("initial-cluster", &record.initial_cluster),
        ("initial-cluster-state", state),
        ("initial-cluster-token", &record.token),
        ("quota-backend-bytes", &quota),
        ("log-level", "warn"),
        ("client-cert-auth", "true"),
        ("peer-client-cert-auth", "true"),
    ];
    let data = place.folder.data();
    let files = [
        ("data-dir", &data),
        ("trusted-ca-file", &place.files.ca),
        ("cert-file", &place.files.server.0),
        ("key-file", &place.files.server.1),
        ("peer-trusted-ca-file", &place.files.ca),
        ("peer-cert-file", &place.files.peer.0),
        ("peer-key-file", &place.files.peer.1),
    ];
    let option = |name: &str, value: &OsStr| {
        let mut option = OsString::from(format!("--{name}="));
        option.push(value);
        option
    };
    let words = words.iter().map(|(name, value)| option(name, value.as_ref()));
    words.chain(files.iter().map(|(name, path)| option(name, path.as_os_str()))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_an_option_says_the_environment_does_not() {
        let of = |it: &str| variable(it.as_ref());
        assert_eq!(of("--quota-backend-bytes=1").as_deref(), Some("ETCD_QUOTA_BACKEND_BYTES"));
        assert_eq!(of("--data-dir=/a=b").as_deref(), Some("ETCD_DATA_DIR"));
        assert_eq!(of("etcd"), None);
    }
}
