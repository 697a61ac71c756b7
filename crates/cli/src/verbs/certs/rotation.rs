//! The steps that replace something: each is done to the folder of keys, and then waited for where a server runs.

use std::{
    collections::BTreeMap,
    process::ExitCode,
    time::{Duration, Instant, SystemTime},
};

use anyhow::{Context, Result, bail};
use corten_meta::Time;
use corten_pki::{
    self, InUse,
    rotation::{self, Rotating},
};
use serde::Serialize;

use super::Keys;
use crate::{own_kubeconfig, why::duration::duration};
use corten_console::{
    failure::Failure,
    output::{self, Format},
    progress::Progress,
};
use corten_node_process::node_process::command_for;

/// What can be replaced beside the one of before.
pub(super) struct Rotated {
    verb: &'static str,
    name: &'static str,
    begin: fn(&Keys) -> Result<bool, corten_pki::Error>,
    drop: fn(&Keys) -> Result<bool, corten_pki::Error>,
    has_old: fn(Rotating) -> bool,
    users: fn(&InUse) -> &BTreeMap<String, Time>,
    /// What those show who are named as users.
    shown: &'static str,
}

pub(super) const AUTHORITY: Rotated = Rotated {
    verb: "certs rotate-ca",
    name: "authority",
    begin: |keys| rotation::begin_authority(&keys.dir, SystemTime::now()),
    drop: |keys| rotation::drop_authority(&keys.dir),
    has_old: |it| it.authority,
    users: |it| &it.old_certificates,
    shown: "certificates it signed",
};

pub(super) const TOKEN_KEY: Rotated = Rotated {
    verb: "certs rotate-token-key",
    name: "key of tokens",
    begin: |keys| rotation::begin_token_key(&keys.dir),
    drop: |keys| rotation::drop_token_key(&keys.dir),
    has_old: |it| it.token_key,
    users: |it| &it.old_tokens,
    shown: "tokens it signed",
};

/// How long a server may take to take up what the folder says, and the kubelet to have its certificate signed.
const TAKEN_UP_WITHIN: Duration = Duration::from_secs(60);
const PERIOD: Duration = Duration::from_millis(50);
/// Who used the one of before within this time is taken to use it still.
const RECENT: Duration = Duration::from_secs(24 * 3600);
/// Somebody must act: as of `corten why`.
const BLOCKED: u8 = 4;

/// What was done, and what is left.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Report {
    api_version: &'static str,
    kind: &'static str,
    /// `Renewed`, `Rotating`, `Rotated`, `Refused`.
    state: &'static str,
    message: String,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    certificates: Vec<String>,
    /// Who used the one of before, and when they last did.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    users_of_old: BTreeMap<String, Time>,
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<String>,
}

impl Report {
    fn new(state: &'static str, message: String) -> Self {
        let (certificates, users_of_old) = (Vec::new(), BTreeMap::new());
        Self {
            api_version: "corten.dev/v1",
            kind: "CertificateRotation",
            state,
            message,
            certificates,
            users_of_old,
            next: None,
        }
    }

    fn print(&self, format: Format) -> Result<()> {
        if format == Format::Json {
            return output::json(self);
        }
        let mut text = format!("{}\n", self.message);
        for (user, last) in &self.users_of_old {
            text += &format!("  {user}, last {} ago\n", duration(output::now().since(*last)));
        }
        if let Some(next) = &self.next {
            text += &format!("run next:      {next}\n");
        }
        output::text(&text)
    }
}

pub(super) fn renew(keys: &Keys, names: Vec<String>, format: Format) -> Result<ExitCode> {
    let _lock = keys.lock()?;
    let listed = rotation::list(&keys.dir, &keys.kubelet())?;
    let kubelet = keys.kubelet();
    let is_kubelets = |name: &str| kubelet.file_stem().is_some_and(|it| it == name);
    let own: Vec<String> =
        listed.into_iter().filter(|it| !it.is_authority && !is_kubelets(&it.name)).map(|it| it.name).collect();
    if let Some(name) = names.iter().find(|it| !own.contains(it)) {
        let why = match name.as_str() {
            "ca" | "ca-old" => "an authority is replaced by `rotate-ca`".to_owned(),
            name if is_kubelets(name) => "the kubelet asks for its certificate itself, by a signing request".to_owned(),
            _ => format!("there are {}", own.join(", ")),
        };
        bail!("there is no certificate {name:?} to renew: {why}");
    }
    let names = if names.is_empty() { own } else { names };
    let mut progress = Progress::begin();
    for name in &names {
        rotation::renew(&keys.dir, name, SystemTime::now())?;
        progress.done(&format!("{name} is issued anew"));
    }
    wait_until_shown(keys, &mut progress)?;
    renew_kubeconfig(keys, &mut progress)?;
    drop(progress);
    Report { certificates: names.clone(), ..Report::new("Renewed", format!("renewed: {}", names.join(", "))) }
        .print(format)?;
    Ok(ExitCode::SUCCESS)
}

pub(super) fn begin(keys: &Keys, what: &Rotated, format: Format) -> Result<ExitCode> {
    let _lock = keys.lock()?;
    let mut progress = Progress::begin();
    let name = what.name;
    if (what.begin)(keys)? {
        progress.done(&format!("a new {name} signs from now on"));
    } else {
        progress.done(&format!("a new {name} signs already: what was begun goes on"));
    }
    wait_until_taken_up(keys, &mut progress)?;
    renew_kubeconfig(keys, &mut progress)?;
    drop(progress);
    let report = if (what.has_old)(rotation::state(&keys.dir)?) {
        let message = format!(
            "the new {name} signs, and the one of before is still trusted. Renew copies of kubeconfigs and authorities; \
             nothing of before is believed once the old one is dropped. Seen with {}:",
            what.shown
        );
        let users_of_old = users(keys, what)?;
        let message = if users_of_old.is_empty() { message.replace(":", " so far: nobody") } else { message };
        let next = Some(format!("{} --drop-old", command_for(&keys.node.layout, what.verb)));
        Report { users_of_old, next, ..Report::new("Rotating", message) }
    } else {
        Report::new(
            "Rotated",
            format!("the new {name} signs; nothing that the one of before signed was valid any more"),
        )
    };
    report.print(format)?;
    Ok(ExitCode::SUCCESS)
}

pub(super) fn drop_old(keys: &Keys, what: &Rotated, is_forced: bool, format: Format) -> Result<ExitCode> {
    let _lock = keys.lock()?;
    let name = what.name;
    if !(what.has_old)(rotation::state(&keys.dir)?) {
        Report::new("Rotated", format!("there is no {name} of before")).print(format)?;
        return Ok(ExitCode::SUCCESS);
    }
    let mut progress = Progress::begin();
    // Not before all is issued anew: the cluster's own parts are users, too.
    wait_until_taken_up(keys, &mut progress)?;
    let now = output::now();
    let users_of_old: BTreeMap<String, Time> =
        users(keys, what)?.into_iter().filter(|(_, last)| now.since(*last) < RECENT).collect();
    if !users_of_old.is_empty() && !is_forced {
        drop(progress);
        let message = format!("the {name} of before is not dropped: within the last day {} were shown by", what.shown);
        let next = Some(format!("{} --drop-old --force", command_for(&keys.node.layout, what.verb)));
        Report { users_of_old, next, ..Report::new("Refused", message) }.print(format)?;
        return Ok(ExitCode::from(BLOCKED));
    }
    renew_kubeconfig(keys, &mut progress)?;
    (what.drop)(keys)?;
    progress.done(&format!("the {name} of before is dropped"));
    wait_until_taken_up(keys, &mut progress)?;
    renew_kubeconfig(keys, &mut progress)?;
    drop(progress);
    Report::new("Rotated", format!("the {name} of before is trusted no more")).print(format)?;
    Ok(ExitCode::SUCCESS)
}

fn users(keys: &Keys, what: &Rotated) -> Result<BTreeMap<String, Time>> {
    Ok(InUse::said(&keys.dir)?.map(|it| (what.users)(&it).clone()).unwrap_or_default())
}

/// Waits until the server that runs, if one does, trusts and shows what the folder says, and the kubelet, too.
fn wait_until_taken_up(keys: &Keys, progress: &mut Progress) -> Result<()> {
    if !keys.is_served()? {
        progress.done("the cluster is down: it begins with this at the next start");
        return Ok(());
    }
    progress.doing("waiting until the server uses it");
    let wanted = InUse::wanted(&keys.dir)?;
    let end = Instant::now() + TAKEN_UP_WITHIN;
    loop {
        let is_known = InUse::said(&keys.dir)?.is_some_and(|it| it.is_same(&wanted));
        // Before it says so the server has issued anew what is its own; the kubelet asks for its certificate after that.
        let kubelets = rotation::list(&keys.dir, &keys.kubelet())?.pop();
        let is_kubelet_late = kubelets.is_some_and(|it| !it.is_authority && it.signer == "ca-old");
        match (is_known, is_kubelet_late) {
            (true, false) => break,
            _ if Instant::now() > end => {
                let who = if is_known { "the kubelet" } else { "the server" };
                let message = format!("{who} has not taken up what {} says", keys.dir.display());
                let log = keys.node.log_path();
                return Err(Failure::new(message).next(format!("grep -i certificate {} | tail", log.display())).into());
            }
            _ => std::thread::park_timeout(PERIOD),
        }
        if !keys.is_served()? {
            bail!("the cluster ended meanwhile: nothing is lost, run the command again");
        }
    }
    progress.done("the server uses it, and clients are told");
    Ok(())
}

/// Waits until the administrator's kubeconfig shows what was renewed.
fn wait_until_shown(keys: &Keys, progress: &mut Progress) -> Result<()> {
    if !keys.is_served()? {
        progress.done("the cluster is down: it begins with this at the next start");
        return Ok(());
    }
    progress.doing("waiting until the server shows them");
    let end = Instant::now() + TAKEN_UP_WITHIN;
    let path = keys.dir.join("admin.crt");
    let certificate = std::fs::read(&path).with_context(|| format!("reading {}", path.display()))?;
    let shown = || {
        let config = corten_client::kubeconfig::Kubeconfig::load(&keys.admin_kubeconfig()).ok()?;
        config.target(None).ok()?.identity.map(|it| it.0)
    };
    while shown().is_none_or(|it| it != certificate) {
        if Instant::now() > end {
            let message = format!("the server does not take up what {} holds", keys.dir.display());
            bail!(Failure::new(message).next("corten why"));
        }
        std::thread::park_timeout(PERIOD);
    }
    progress.done("the server shows them");
    Ok(())
}

fn renew_kubeconfig(keys: &Keys, progress: &mut Progress) -> Result<()> {
    let Some(path) = own_kubeconfig::usual() else { return Ok(()) };
    if own_kubeconfig::renew(&path, &keys.admin_kubeconfig())? {
        progress.done(&format!("{} is renewed", path.display()));
    }
    Ok(())
}
