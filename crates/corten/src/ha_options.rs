//! What `--ha` is told.

use std::{
    net::IpAddr,
    path::{Path, PathBuf},
    time::Duration,
};

use anyhow::{Context, Result, bail};
use clap::{ArgMatches, parser::ValueSource};
use corten_cli::{
    Failure, command_on,
    control_plane_record::ControlPlaneRecord,
    etcd_member::{CLIENT_PORT, EtcdFolder, EtcdMemberRecord, PEER_PORT},
    up_with,
};
use corten_etcd::is_new_enough;
use corten_options::server_options;

/// What etcd takes at most, where its own `ETCD_QUOTA_BACKEND_BYTES` says nothing else: what etcd's authors advise at most.
const QUOTA_BYTES: u64 = 8 << 30;
const QUOTA_VARIABLE: &str = "ETCD_QUOTA_BACKEND_BYTES";
/// Of an etcd that somebody else runs.
const OF_OTHERS: [&str; 6] =
    ["etcd-cafile", "etcd-certfile", "etcd-keyfile", "etcd-listen", "etcd-prefix", "etcd-servers"];
const PROGRAM: &str = "etcd";

#[derive(Clone, Debug)]
pub(crate) struct HaOptions {
    /// Absolute.
    pub(crate) data: PathBuf,
    /// The address that was given for the API.
    pub(crate) bind: Option<IpAddr>,
    pub(crate) program: PathBuf,
    pub(crate) quota_bytes: u64,
    pub(crate) compaction_interval: Duration,
}

impl HaOptions {
    /// `None` where Corten runs no etcd. It goes on to where it did before.
    ///
    /// # Errors
    /// Other options contradict it, etcd is not installed, or the cluster is kept elsewhere.
    pub(crate) fn of(matches: &ArgMatches, data: &Path) -> Result<Option<Self>> {
        let record = EtcdMemberRecord::load(data)?;
        let is_on = server_options::is_on(matches, "ha");
        if !is_on && record.is_some() && matches.value_source("ha") == Some(ValueSource::CommandLine) {
            bail!("--ha=false: the cluster of {} is in the etcd that Corten runs here", data.display());
        }
        if !is_on && record.is_none() {
            if server_options::any_given(matches, "etcd-binary") {
                bail!("--etcd-binary is the program that --ha starts: it needs --ha");
            }
            return Ok(None);
        }
        if let Some(option) = OF_OTHERS.iter().find(|it| server_options::any_given(matches, it)) {
            bail!("--{option} is about another etcd than the one that Corten runs (--ha): leave one of both out");
        }
        refuse_ports_of_etcd(matches)?;
        let is_given = matches.value_source("bind") == Some(ValueSource::CommandLine);
        let quota = std::env::var(QUOTA_VARIABLE).ok();
        let quota = quota.map(|it| it.parse().with_context(|| format!("reading {QUOTA_VARIABLE}={it}"))).transpose()?;
        // As etcd takes it, 0 says nothing.
        let quota = quota.filter(|it| *it > 0);
        let data = std::path::absolute(data).with_context(|| format!("finding {}", data.display()))?;
        if record.is_none() {
            refuse_other_cluster(&data)?;
        }
        Ok(Some(Self {
            bind: is_given.then(|| address(matches)).transpose()?,
            program: program(server_options::file(matches, "etcd-binary"))?,
            quota_bytes: quota.unwrap_or(QUOTA_BYTES),
            compaction_interval: server_options::time(matches, "etcd-compaction-interval"),
            data,
        }))
    }
}

/// Its member listens at them beside the server.
fn refuse_ports_of_etcd(matches: &ArgMatches) -> Result<()> {
    for option in ["port", "kubelet-port"] {
        let port = matches.try_get_one::<u16>(option).ok().flatten();
        if let Some(port) = port.filter(|it| [CLIENT_PORT, PEER_PORT].contains(it)) {
            bail!("--{option} {port} is a port of etcd, which Corten runs here");
        }
    }
    Ok(())
}

/// Of `--bind`, which not every verb reads as an address.
fn address(matches: &ArgMatches) -> Result<IpAddr> {
    let given = matches.get_raw("bind").and_then(|mut it| it.next()).unwrap_or_default().to_string_lossy();
    given.parse().with_context(|| format!("--bind: {given} is no address"))
}

/// A cluster that is kept elsewhere is not left behind.
fn refuse_other_cluster(data: &Path) -> Result<()> {
    if let Some(record) = ControlPlaneRecord::load(data)?.filter(|it| !it.is_ha) {
        let message =
            format!("the cluster of {} is in another etcd, at {}", data.display(), record.etcd_servers.join(","));
        let mut failure = Failure::new(message);
        failure
            .details
            .push("another server of it joins by `corten server --join`; --ha begins in a folder of its own".into());
        return Err(failure.next("corten token create --control-plane").into());
    }
    let store = data.join("store");
    let has_store = std::fs::read_dir(&store).is_ok_and(|mut it| it.next().is_some());
    if !has_store || EtcdFolder::of(data).has_data() {
        return Ok(());
    }
    let failure = Failure::new(format!("the cluster is in {}, the store of this one machine", store.display()));
    Err(failure.next(migrate(data)).into())
}

/// The commands that take what is in the store into a member's folder.
fn migrate(data: &Path) -> String {
    let (down, up, member) = (command_on(data, "down"), up_with(data, "--ha"), EtcdFolder::of(data).data());
    let data = data.display();
    format!(
        "{down} && corten migrate --from {data} --to {data}/etcd.snapshot && etcdutl snapshot restore {data}/etcd.snapshot --data-dir {} \
         && rm {data}/etcd.snapshot && mv {data}/store {data}/store.before && {up}",
        member.display()
    )
}

/// Where the program is.
fn program(given: Option<PathBuf>) -> Result<PathBuf> {
    let is_program = |it: &PathBuf| rustix::fs::access(it, rustix::fs::Access::EXEC_OK).is_ok() && it.is_file();
    if let Some(given) = given {
        if is_program(&given) {
            refuse_older(&given)?;
            return Ok(given);
        }
        let message = format!("--etcd-binary: {} is no program", given.display());
        bail!(Failure::new(message).next("name the file of etcd itself, with the right to run it"));
    }
    let folders = std::env::var_os("PATH").unwrap_or_default();
    let found = std::env::split_paths(&folders).map(|it| it.join(PROGRAM)).find(is_program);
    let found = found.ok_or_else(|| {
        let mut failure = Failure::new("etcd is not installed: --ha starts the one that is packaged");
        failure.details.push("where it is elsewhere: --etcd-binary FILE".into());
        anyhow::Error::from(failure.next("apt-get install etcd-server"))
    })?;
    refuse_older(&found)?;
    Ok(found)
}

/// One that does not say how old it is may begin: the server asks it once more.
fn refuse_older(program: &Path) -> Result<()> {
    let Ok(said) = std::process::Command::new(program).arg("--version").output() else { return Ok(()) };
    let said = String::from_utf8_lossy(&said.stdout);
    let Some(version) = said.lines().find_map(|it| it.strip_prefix("etcd Version: ")) else { return Ok(()) };
    if is_new_enough(version) {
        return Ok(());
    }
    let message = format!("{} is etcd {version}, and 3.4.31, 3.5.13 or newer is needed", program.display());
    let mut failure = Failure::new(message);
    failure.details.push("Debian 13 has one that is new enough; elsewhere name it: --etcd-binary FILE".into());
    Err(failure.next("apt-cache policy etcd-server").into())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(line: &str, data: &Path) -> String {
        let bind = clap::Arg::new("bind").long("bind").value_parser(clap::value_parser!(IpAddr));
        let command = server_options::args(clap::Command::new("server")).arg(bind.default_value("127.0.0.1"));
        let matches = command.try_get_matches_from(line.split(' ')).expect(line);
        match HaOptions::of(&matches, data) {
            Ok(None) => "none".into(),
            Ok(Some(it)) => format!("{:?} {}", it.bind, it.program.display()),
            Err(error) => format!("{error:#}"),
        }
    }

    #[test]
    fn what_contradicts_it_is_refused() {
        let folder = tempfile::tempdir().expect("a folder");
        let data = folder.path();
        for (line, expected) in [
            ("server", "none"),
            ("server --ha=false", "none"),
            ("server --etcd-binary=/bin/true", "--etcd-binary is the program that --ha starts: it needs --ha"),
            ("server --ha --etcd-binary=/bin/true", "None /bin/true"),
            ("server --ha --etcd-binary=/bin/true --bind 10.0.0.1", "Some(10.0.0.1) /bin/true"),
            ("server --ha --etcd-binary=/etc/passwd", "--etcd-binary: /etc/passwd is no program"),
            (
                "server --ha --etcd-servers=https://a:2379",
                "--etcd-servers is about another etcd than the one that Corten runs (--ha): leave one of both out",
            ),
        ] {
            assert_eq!(said(line, data), expected, "{line}");
        }
        let other = tempfile::tempdir().expect("a folder");
        std::fs::create_dir(other.path().join("etcd")).expect("made");
        let record = EtcdMemberRecord {
            name: "m1".into(),
            address: "10.0.0.1".parse().expect("an address"),
            token: "t".into(),
            initial_cluster: "m1=https://10.0.0.1:2380".into(),
            is_joined: false,
            client_urls: Vec::new(),
        };
        record.save(other.path()).expect("written");
        assert_eq!(said("server --etcd-binary=/bin/true", other.path()), "None /bin/true", "it goes on");
        let refused = said("server --ha=false --etcd-binary=/bin/true", other.path());
        assert!(refused.starts_with("--ha=false: the cluster of "), "{refused}");
        std::fs::create_dir(data.join("store")).expect("made");
        std::fs::write(data.join("store/1.log"), "").expect("written");
        let refused = said("server --ha --etcd-binary=/bin/true", data);
        assert!(refused.ends_with("the store of this one machine"), "{refused}");
        std::fs::create_dir_all(data.join("etcd/data/member/wal")).expect("made");
        std::fs::write(data.join("etcd/data/member/wal/0.wal"), "").expect("written");
        assert_eq!(said("server --ha --etcd-binary=/bin/true", data), "None /bin/true", "it was migrated");
    }
}
