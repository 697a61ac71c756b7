//! The member of etcd that Corten runs on a machine (`--ha`): what it is, and how it and the others are.
//!
//! ```text
//! DATA/etcd/member.json    the member: written before it is started for the first time
//! DATA/etcd/health.json    how all members are, as this machine sees it: written anew while Corten runs
//! DATA/etcd/lock           held by etcd itself, as its standard input
//! DATA/etcd/goes-on        the node ends to be replaced by another program: its member goes on meanwhile
//! DATA/etcd/data/          etcd's own
//! DATA/etcd/data.before/   what a start left that failed before etcd had begun there
//! ```

use std::{
    fs,
    io::{self, ErrorKind},
    net::IpAddr,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result};
use corten_machine::write_whole;
use corten_meta::Time;
use serde::{Deserialize, Serialize, de::DeserializeOwned};

const FOLDER: &str = "etcd";

/// etcd's own ports.
pub const CLIENT_PORT: u16 = 2379;
pub const PEER_PORT: u16 = 2380;

/// The annotation of an API server's Lease that names the members, as the server's machine sees them.
pub const MEMBERS: &str = "corten.dev/etcd-members";

/// Where a member keeps its things.
#[derive(Clone, Debug)]
pub struct EtcdFolder(PathBuf);

impl EtcdFolder {
    pub fn of(data: &Path) -> Self {
        Self(data.join(FOLDER))
    }

    pub fn path(&self) -> &Path {
        &self.0
    }

    pub fn record(&self) -> PathBuf {
        self.0.join("member.json")
    }

    pub fn health(&self) -> PathBuf {
        self.0.join("health.json")
    }

    pub fn lock(&self) -> PathBuf {
        self.0.join("lock")
    }

    /// There while the node of another program takes the place of the one that ends: the member need not end with it.
    pub fn goes_on(&self) -> PathBuf {
        self.0.join("goes-on")
    }

    pub fn data(&self) -> PathBuf {
        self.0.join("data")
    }

    pub fn data_before(&self) -> PathBuf {
        self.0.join("data.before")
    }

    /// Has etcd begun there? It makes `member/` and `member/snap/db` before it knows whether it can, so its log counts, as for
    /// itself (`wal.Exist`).
    pub fn has_data(&self) -> bool {
        let log = fs::read_dir(self.data().join("member/wal"));
        log.into_iter().flatten().flatten().any(|it| it.path().extension().is_some_and(|it| it == "wal"))
    }
}

/// The member of this machine.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct EtcdMemberRecord {
    /// The machine's name, or its node's; no other member has it.
    pub name: String,
    /// Where the others reach it.
    pub address: IpAddr,
    /// etcd's `--initial-cluster-token`: keeps apart two clusters that were started with the same members.
    pub token: String,
    /// As etcd's option of that name: the members at the first start.
    pub initial_cluster: String,
    /// It was added to members that ran already; false for the first member.
    pub is_joined: bool,
    /// Where clients reach the members, as they were known last.
    pub client_urls: Vec<String>,
}

impl EtcdMemberRecord {
    /// # Errors
    /// The file cannot be read.
    pub fn load(data: &Path) -> Result<Option<Self>> {
        let path = EtcdFolder::of(data).record();
        read(&path).with_context(|| format!("reading {}", path.display()))
    }

    /// # Errors
    /// The file cannot be written.
    pub fn save(&self, data: &Path) -> Result<()> {
        let path = EtcdFolder::of(data).record();
        write(&path, self).with_context(|| format!("writing {}", path.display()))
    }

    pub fn client_url(&self) -> String {
        url(self.address, CLIENT_PORT)
    }

    pub fn peer_url(&self) -> String {
        url(self.address, PEER_PORT)
    }
}

/// An address of etcd's.
pub fn url(address: IpAddr, port: u16) -> String {
    format!("https://{}", std::net::SocketAddr::new(address, port))
}

/// How the members are, as one machine sees them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct EtcdHealth {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub at: Option<Time>,
    /// Do those that answer agree on what is written?
    pub has_quorum: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lost_since: Option<Time>,
    pub members: Vec<MemberHealth>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct MemberHealth {
    pub name: String,
    pub url: String,
    pub is_own: bool,
    /// It is still being given what the others have.
    pub is_learner: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub away_since: Option<Time>,
    /// Why it is away.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub says: Option<String>,
    /// `NOSPACE`, `CORRUPT`
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub alarms: Vec<String>,
}

impl EtcdHealth {
    /// None where no member was seen, or the file is torn: it is written again in a moment.
    pub fn load(data: &Path) -> Option<Self> {
        read(&EtcdFolder::of(data).health()).ok().flatten()
    }

    /// On a full disk what was written before makes room: it would be believed, and is not so any more.
    ///
    /// # Errors
    /// It cannot be written; then nothing is there.
    pub fn save(&self, data: &Path) -> io::Result<()> {
        let path = EtcdFolder::of(data).health();
        write(&path, self).or_else(|error| {
            if error.kind() != ErrorKind::StorageFull || fs::remove_file(&path).is_err() {
                return Err(error);
            }
            write(&path, self)
        })
    }

    /// Members that vote, and how many of them must agree.
    pub fn n_voters(&self) -> (usize, usize) {
        let n = self.members.iter().filter(|it| !it.is_learner).count();
        (n, n / 2 + 1)
    }

    /// The others, by name, that write nothing any more where this machine's member goes and is not taken out first.
    pub fn others_that_need_own(&self) -> Vec<&str> {
        let there = self.members.iter().filter(|it| !it.is_learner && it.away_since.is_none());
        let (own, others): (Vec<_>, Vec<_>) = there.partition(|it| it.is_own);
        let is_needed = self.has_quorum && !own.is_empty() && others.len() < self.n_voters().1;
        others.into_iter().filter(|_| is_needed).map(|it| &*it.name).collect()
    }
}

fn read<T: DeserializeOwned>(path: &Path) -> io::Result<Option<T>> {
    match fs::read(path) {
        Ok(text) => serde_json::from_slice(&text).map(Some).map_err(io::Error::from),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

fn write<T: Serialize>(path: &Path, value: &T) -> io::Result<()> {
    write_whole(path, 0o600, &serde_json::to_vec_pretty(value)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn etcd_has_begun_where_its_log_is() {
        let folder = tempfile::tempdir().expect("a folder");
        let etcd = EtcdFolder::of(folder.path());
        let (log, snapshots) = (etcd.data().join("member/wal"), etcd.data().join("member/snap"));
        assert!(!etcd.has_data());
        fs::create_dir_all(&snapshots).expect("made");
        fs::write(snapshots.join("db"), "").expect("written");
        fs::create_dir(&log).expect("made");
        fs::write(log.join("0.tmp"), "").expect("written");
        assert!(!etcd.has_data(), "it was refused before it began");
        fs::write(log.join("0000000000000000-0000000000000000.wal"), "").expect("written");
        assert!(etcd.has_data());
    }

    #[test]
    fn a_member_is_needed_where_too_few_are_left_without_it() {
        let member = |name: &str, is_away: bool| MemberHealth {
            name: name.into(),
            is_own: name == "own",
            away_since: is_away.then(|| Time::from_unix_seconds(1)),
            ..MemberHealth::default()
        };
        let own = || member("own", false);
        for (members, expected) in [
            (vec![own()], &[][..]),
            (vec![own(), member("b", false)], &["b"]),
            (vec![own(), member("b", false), member("c", false)], &[]),
            (vec![own(), member("b", false), member("c", true)], &["b"]),
            (vec![member("own", true), member("b", false), member("c", false)], &[]),
        ] {
            let health = EtcdHealth { has_quorum: true, members, ..EtcdHealth::default() };
            assert_eq!(health.others_that_need_own(), expected, "{health:?}");
        }
    }

    #[test]
    fn what_is_kept_is_read_again() {
        let folder = tempfile::tempdir().expect("a folder");
        let data = folder.path();
        assert_eq!(EtcdMemberRecord::load(data).expect("nothing"), None);
        fs::create_dir(data.join(FOLDER)).expect("made");
        let record = EtcdMemberRecord {
            name: "m1".into(),
            address: "fd00::1".parse().expect("an address"),
            token: "t".into(),
            initial_cluster: "m1=https://[fd00::1]:2380".into(),
            is_joined: false,
            client_urls: vec!["https://[fd00::1]:2379".into()],
        };
        record.save(data).expect("written");
        assert_eq!(EtcdMemberRecord::load(data).expect("read"), Some(record.clone()));
        assert_eq!(
            (record.client_url(), record.peer_url()),
            (record.client_urls[0].clone(), record.initial_cluster[3..].into())
        );
        assert_eq!(EtcdHealth::load(data), None);
        let mut health = EtcdHealth { has_quorum: true, ..EtcdHealth::default() };
        health.members = vec![MemberHealth::default(); 3];
        health.members[2].is_learner = true;
        health.save(data).expect("written");
        assert_eq!(EtcdHealth::load(data), Some(health.clone()));
        assert_eq!(health.n_voters(), (2, 2));
    }
}
