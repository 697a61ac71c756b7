//! The etcd that keeps the cluster, as the command line says it in upstream's words.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
    sync::{Arc, OnceLock},
    time::Duration,
};

use anyhow::{Context, Result, bail};
use clap::ArgMatches;
use corten_api::{api_servers::host_of, cluster_network::ClusterNetwork};
use corten_cli::{
    Failure, command_on,
    control_plane_record::{ControlPlaneRecord, ETCD_CLUSTER, etcd_cluster},
};
use corten_etcd::{EtcdStore, Options, TlsFiles};
use corten_options::server_options::{any_given, file, list, time, word};
use corten_store::{Limits, registry::PREFIX};

/// What says how the etcd of `--etcd-servers` is used.
const OF_ETCD: &[&str] = &["etcd-cafile", "etcd-certfile", "etcd-compaction-interval", "etcd-keyfile", "etcd-prefix"];

pub(crate) struct EtcdOptions {
    etcd: Options,
    /// 0: other servers see to it.
    pub(crate) compaction_interval: Duration,
    /// All members that another control plane told of are at addresses that each machine has for itself.
    is_elsewhere: bool,
    /// Of an etcd that Corten runs: who looks after its members has the store, too.
    joint: Option<Joint>,
}

/// The store, once it is connected.
pub(crate) type Joint = Arc<OnceLock<Arc<EtcdStore>>>;

impl EtcdOptions {
    /// `None` where the store is in the data folder. An option that is given counts instead of what `joined` says.
    ///
    /// # Errors
    /// Some options are given without those that they need.
    pub(crate) fn of(matches: &ArgMatches, joined: Option<&ControlPlaneRecord>) -> Result<Option<Self>> {
        let compaction_interval = time(matches, "etcd-compaction-interval");
        let mut etcd = joined.map_or_else(nothing_said, as_recorded);
        let servers = list(matches, "etcd-servers");
        let is_loopback = |url: &String| host_of(url).is_some_and(|it| it.is_loopback());
        let is_elsewhere = servers.is_empty() && etcd.servers.iter().all(is_loopback);
        if !servers.is_empty() {
            etcd.servers = servers.into_iter().map(str::to_owned).collect();
        }
        if etcd.servers.is_empty() {
            if OF_ETCD.iter().any(|it| any_given(matches, it)) {
                bail!("--etcd-servers must be specified with the other options of etcd");
            }
            return Ok(None);
        }
        refuse_listening(matches)?;
        if joined.is_none() || any_given(matches, "etcd-prefix") {
            word(matches, "etcd-prefix").clone_into(&mut etcd.prefix);
        }
        etcd.tls = tls_files(|name| file(matches, name), etcd.tls.take())?;
        Ok(Some(Self { etcd, compaction_interval, is_elsewhere, joint: None }))
    }

    /// The file of what etcd is shown, where it is shown one.
    pub(crate) fn certificate(&self) -> Option<PathBuf> {
        let (certificate, _) = self.etcd.tls.as_ref()?.client.as_ref()?;
        Some(certificate.clone())
    }

    fn connecting(&self) -> String {
        let elsewhere = "etcd was told of by addresses of the machine that this one joined by: name its members with --etcd-servers";
        let what = "connecting to etcd";
        if self.is_elsewhere { format!("{what} ({elsewhere})") } else { what.to_owned() }
    }

    /// Of the etcd that Corten runs.
    pub(crate) fn of_member(servers: Vec<String>, tls: TlsFiles, compaction_interval: Duration, joint: Joint) -> Self {
        let etcd = Options { servers, tls: Some(tls), prefix: PREFIX.to_owned() };
        Self { etcd, compaction_interval, is_elsewhere: false, joint: Some(joint) }
    }

    /// What another control plane of the cluster is told. Its own is that of before where it has joined.
    ///
    /// # Errors
    /// It cannot be written.
    pub(crate) fn record(&self, data: &Path, encryption: Option<&Path>, network: &ClusterNetwork) -> Result<()> {
        let client = self.etcd.tls.as_ref().and_then(|it| it.client.as_ref());
        let joined = ControlPlaneRecord::joined(data)?;
        let record = ControlPlaneRecord {
            etcd_servers: self.etcd.servers.clone(),
            etcd_prefix: self.etcd.prefix.clone(),
            etcd_ca_file: self.etcd.tls.as_ref().map(|it| it.ca.clone()),
            etcd_cert_file: client.map(|it| it.0.clone()),
            etcd_key_file: client.map(|it| it.1.clone()),
            encryption_provider_config: encryption.map(Path::to_owned),
            is_ha: self.joint.is_some(),
            network: if *network == ClusterNetwork::default() { BTreeMap::new() } else { network.settings() },
            is_joined: joined.is_some(),
            joined_ca_hash: joined.and_then(|it| it.joined_ca_hash),
        };
        record.save(data)
    }

    /// # Errors
    /// etcd does not answer, or is not the one that this data folder belongs to.
    pub(crate) async fn connect(&self, data: &Path) -> Result<Arc<EtcdStore>> {
        let store = EtcdStore::connect(&self.etcd, Limits::default()).await.context(self.connecting())?;
        let (path, is) = (data.join(ETCD_CLUSTER), store.cluster());
        match etcd_cluster(data).with_context(|| format!("reading {}", path.display()))? {
            None => fs::write(&path, format!("{is}\n")).with_context(|| format!("writing {}", path.display()))?,
            Some(was) if was == is => {}
            Some(was) if self.joint.is_some() => {
                let message = format!(
                    "the etcd that Corten runs here is the cluster {is}, and {} belongs to the cluster {was}",
                    data.display()
                );
                let mut failure = Failure::new(message);
                failure
                    .details
                    .push("where a snapshot was restored, it is another cluster, and the file is to go".to_owned());
                return Err(failure.next(format!("rm {} && {}", path.display(), command_on(data, "up"))).into());
            }
            Some(was) => bail!(
                "the members named with --etcd-servers are of the etcd cluster {is}, and {} belongs to the cluster {was}: name members of that one, or use another --data-dir",
                data.display()
            ),
        }
        let before = data.join("store");
        if fs::read_dir(&before).is_ok_and(|mut it| it.next().is_some()) {
            tracing::warn!(folder = %before.display(), "what was kept here before is not in etcd, and is not read");
        }
        let store = Arc::new(store);
        if let Some(joint) = &self.joint {
            // It is connected once.
            let _ = joint.set(store.clone());
        }
        Ok(store)
    }
}

/// How etcd is spoken to, by the options that name files, and by `recorded` where they name none.
///
/// # Errors
/// One is given without those that it needs.
pub(crate) fn tls_files(
    given: impl Fn(&'static str) -> Option<PathBuf>,
    recorded: Option<TlsFiles>,
) -> Result<Option<TlsFiles>> {
    let (ca, client) = recorded.map_or((None, None), |it| (Some(it.ca), it.client));
    let client = match (given("etcd-certfile"), given("etcd-keyfile")) {
        (Some(certificate), Some(key)) => Some((certificate, key)),
        (None, None) => client,
        _ => bail!("--etcd-certfile and --etcd-keyfile must be specified together"),
    };
    match given("etcd-cafile").or(ca) {
        Some(ca) => Ok(Some(TlsFiles { ca, client })),
        None if client.is_some() => bail!("--etcd-cafile must be specified with --etcd-certfile"),
        None => Ok(None),
    }
}

fn refuse_listening(matches: &ArgMatches) -> Result<()> {
    if any_given(matches, "etcd-listen") {
        bail!("--etcd-listen serves the store of the data folder, which --etcd-servers puts another in the place of");
    }
    Ok(())
}

fn nothing_said() -> Options {
    Options { servers: Vec::new(), tls: None, prefix: String::new() }
}

fn as_recorded(record: &ControlPlaneRecord) -> Options {
    let client = record.etcd_cert_file.clone().zip(record.etcd_key_file.clone());
    let tls = record.etcd_ca_file.clone().map(|ca| TlsFiles { ca, client });
    Options { servers: record.etcd_servers.clone(), tls, prefix: record.etcd_prefix.clone() }
}

#[cfg(test)]
mod tests {
    use corten_options::server_options::args;

    use super::*;

    fn said(line: &str, joined: Option<ControlPlaneRecord>) -> String {
        let matches = args(clap::Command::new("server")).try_get_matches_from(line.split(' ')).expect(line);
        match EtcdOptions::of(&matches, joined.as_ref()) {
            Ok(None) => "none".into(),
            Ok(Some(it)) => format!("{} {} {:?}", it.etcd.servers.len(), it.etcd.prefix, it.compaction_interval),
            Err(error) => error.to_string(),
        }
    }

    #[test]
    fn options_that_need_others_are_refused_without_them() {
        for (line, expected) in [
            ("server", "none"),
            ("server --etcd-servers=http://a:2379,http://b:2379", "2 /registry 300s"),
            ("server --etcd-servers=http://a:2379 --etcd-prefix=/p --etcd-compaction-interval=0s", "1 /p 0ns"),
            ("server --etcd-listen=127.0.0.1:1", "none"),
            (
                "server --etcd-servers=http://a:2379 --etcd-listen=127.0.0.1:1",
                "--etcd-listen serves the store of the data folder, which --etcd-servers puts another in the place of",
            ),
            ("server --etcd-prefix=/p", "--etcd-servers must be specified with the other options of etcd"),
            (
                "server --etcd-servers=https://a:2379 --etcd-cafile=ca --etcd-certfile=crt",
                "--etcd-certfile and --etcd-keyfile must be specified together",
            ),
            (
                "server --etcd-servers=https://a:2379 --etcd-certfile=crt --etcd-keyfile=key",
                "--etcd-cafile must be specified with --etcd-certfile",
            ),
        ] {
            assert_eq!(said(line, None), expected, "{line}");
        }
    }

    #[test]
    fn who_joined_goes_on_with_what_it_was_told() {
        let folder = tempfile::tempdir().expect("a folder");
        let data = folder.path();
        fs::create_dir(data.join("pki")).expect("made");
        let joined = ControlPlaneRecord {
            etcd_servers: vec!["https://a:2379".into(), "https://b:2379".into()],
            etcd_prefix: "/other".into(),
            etcd_ca_file: Some("ca".into()),
            is_joined: true,
            joined_ca_hash: Some("sha256:a".into()),
            ..ControlPlaneRecord::default()
        };
        joined.save(data).expect("written");
        let kept = || ControlPlaneRecord::joined(data).expect("read");
        assert_eq!(said("server --etcd-compaction-interval=0s", kept()), "2 /other 0ns");
        assert_eq!(said("server --etcd-servers=https://c:2379", kept()), "1 /other 300s");
        assert_eq!(said("server --etcd-prefix=/p", kept()), "2 /p 300s");
        let tls = |line: &str| {
            let matches = args(clap::Command::new("server")).try_get_matches_from(line.split(' ')).expect(line);
            let options = EtcdOptions::of(&matches, kept().as_ref()).expect("fine").expect("etcd");
            let tls = options.etcd.tls.expect("TLS");
            (tls.ca, tls.client)
        };
        assert_eq!(tls("server"), ("ca".into(), None));
        assert_eq!(tls("server --etcd-cafile=/new"), ("/new".into(), None));
        let renewed = Some(("/crt".into(), "/key".into()));
        assert_eq!(tls("server --etcd-certfile=/crt --etcd-keyfile=/key"), ("ca".into(), renewed));
        let matches = args(clap::Command::new("server")).try_get_matches_from(["server"]).expect("no options");
        let options = EtcdOptions::of(&matches, kept().as_ref()).expect("fine").expect("etcd");
        options.record(data, Some(Path::new("/e.yaml")), &ClusterNetwork::default()).expect("written");
        assert_eq!(kept(), Some(ControlPlaneRecord { encryption_provider_config: Some("/e.yaml".into()), ..joined }));
    }

    #[test]
    fn members_at_the_other_machines_own_addresses_are_told_of() {
        let told = |servers: &[&str], line: &str| {
            let etcd_servers = servers.iter().map(|it| (*it).to_owned()).collect();
            let joined = ControlPlaneRecord { etcd_servers, is_joined: true, ..ControlPlaneRecord::default() };
            let matches = args(clap::Command::new("server")).try_get_matches_from(line.split(' ')).expect(line);
            EtcdOptions::of(&matches, Some(&joined)).expect("fine").expect("etcd").connecting()
        };
        let own = ["https://127.0.0.1:2379", "http://localhost:2379", "https://[::1]:2379"];
        assert!(told(&own, "server").contains("name its members with --etcd-servers"));
        assert_eq!(told(&own, "server --etcd-servers=https://127.0.0.1:2379"), "connecting to etcd");
        assert_eq!(told(&["https://127.0.0.1:2379", "https://10.0.0.1:2379"], "server"), "connecting to etcd");
    }
}
