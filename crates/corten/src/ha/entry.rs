//! How this machine's member gets among the others: it is the first, it goes on, it comes to others, or it takes the place of the one
//! that this machine had and lost.

use std::{
    fs,
    net::IpAddr,
    path::{Path, PathBuf},
    time::Duration,
};

use anyhow::{Context, Result, bail};
use corten_cli::{
    Failure,
    control_plane_record::{ControlPlaneRecord, etcd_cluster},
    etcd_member::EtcdMemberRecord,
};
use corten_etcd::{Member, Members, Refusal};
use corten_machine::write_whole;
use tokio::time::Instant;

use super::{Place, restore};
use crate::ha_options::HaOptions;

/// How often others are asked again, and for how long.
const AGAIN: Duration = Duration::from_secs(1);
const PATIENCE: Duration = Duration::from_secs(60);

/// Who this machine's member is. It stays who it was, once it has been one of the members.
///
/// # Errors
/// Its address was to become another one, or there is none that others reach.
pub(super) fn record(place: &Place, options: &HaOptions, name: &str) -> Result<EtcdMemberRecord> {
    fs::create_dir_all(place.folder.path()).with_context(|| format!("making {}", place.folder.path().display()))?;
    let was_member = |it: &EtcdMemberRecord| !it.initial_cluster.is_empty();
    if let Some(record) = EtcdMemberRecord::load(&place.data)?.filter(was_member) {
        return match options.bind.filter(|it| !it.is_unspecified() && *it != record.address) {
            Some(bind) => bail!(
                "the member of etcd on this machine is at {}, and --bind says {bind}: a member keeps its address. `corten node remove`, \
                 `corten reset` and a join make it one with another",
                record.address
            ),
            None => Ok(record),
        };
    }
    let control_plane = ControlPlaneRecord::joined(&place.data)?;
    let mut record = EtcdMemberRecord {
        name: name.to_owned(),
        address: address(options.bind)?,
        token: uuid::Uuid::new_v4().to_string(),
        initial_cluster: String::new(),
        is_joined: control_plane.is_some(),
        client_urls: control_plane.map(|it| it.etcd_servers).unwrap_or_default(),
    };
    if !record.is_joined {
        record.initial_cluster = format!("{}={}", record.name, record.peer_url());
        record.client_urls = vec![record.client_url()];
    }
    record.save(&place.data)?;
    Ok(record)
}

/// The one that was given, or that of the machine's way out.
fn address(bind: Option<IpAddr>) -> Result<IpAddr> {
    if let Some(bind) = bind.filter(|it| !it.is_unspecified()) {
        return Ok(bind);
    }
    let own = corten_network::addresses().first().copied();
    own.ok_or_else(|| {
        Failure::new("this machine has no address that others reach").next("corten up --ha --bind ADDRESS").into()
    })
}

/// Puts etcd's authority, as another control plane handed it over, where a member has it.
pub(super) fn take_authority(place: &Place) -> Result<()> {
    let pki = place.data.join("pki");
    let handed = [
        (pki.join("etcd-ca.crt"), &place.files.ca),
        (pki.join(corten_cli::SHARED_ETCD_AUTHORITY_KEY), &place.files.ca_key),
    ];
    if !handed[1].0.exists() {
        return Ok(());
    }
    let of_etcd = pki.join("etcd");
    fs::create_dir_all(&of_etcd).with_context(|| format!("making {}", of_etcd.display()))?;
    for (from, to) in &handed {
        let bytes = fs::read(from).with_context(|| format!("reading {}", from.display()))?;
        write_whole(to, 0o600, &bytes).with_context(|| format!("writing {}", to.display()))?;
    }
    // The key goes first: without it nothing is taken again, and a certificate that is left does no harm.
    for (from, _) in handed.iter().rev() {
        fs::remove_file(from).with_context(|| format!("removing {}", from.display()))?;
    }
    Ok(())
}

/// Makes the member one of the others, where it is not yet; then etcd can be started.
///
/// # Errors
/// The others do not take it, or do not answer.
pub(super) async fn enter(place: &Place, record: &mut EtcdMemberRecord) -> Result<()> {
    let has_met_others = || Ok::<_, anyhow::Error>(record.is_joined || etcd_cluster(&place.data)?.is_some());
    if place.folder.has_data() || !has_met_others()? {
        return Ok(());
    }
    let own = record.client_url();
    let others: Vec<String> = record.client_urls.iter().filter(|it| **it != own).cloned().collect();
    if others.is_empty() {
        return Err(only_one_lost(place).into());
    }
    let end = Instant::now() + PATIENCE;
    let mut said = String::new();
    loop {
        let members = Members::new(&others, Some(&place.tls())).map_err(anyhow::Error::msg)?;
        let refusal = match admitted(&members, place, record).await {
            Ok(initial_cluster) => {
                put_aside(place)?;
                (record.initial_cluster, record.is_joined) = (initial_cluster, true);
                return record.save(&place.data);
            }
            Err(NotAdmitted::ByPlace(failure)) => return Err(failure.into()),
            Err(NotAdmitted::ByEtcd(refusal)) => refusal,
        };
        let text = refusal.to_string();
        match refusal {
            Refusal::Never(_) => return Err(Failure::new(text).into()),
            Refusal::NoQuorum(_) if Instant::now() >= end => return Err(no_quorum(&text).into()),
            _ if text != said => tracing::warn!(reason = text, "the member of etcd is not taken yet"),
            _ => {}
        }
        said = text;
        tokio::time::sleep(AGAIN).await;
    }
}

/// What a start that failed left is of no member, and etcd would take it for what the new one has applied.
fn put_aside(place: &Place) -> Result<()> {
    let (data, aside) = (place.folder.data(), place.folder.data_before());
    if !data.exists() {
        return Ok(());
    }
    if aside.exists() {
        fs::remove_dir_all(&aside).with_context(|| format!("removing {}", aside.display()))?;
    }
    fs::rename(&data, &aside).with_context(|| format!("renaming {} to {}", data.display(), aside.display()))
}

/// A snapshot makes another cluster of it, and wants a folder that is not there.
fn only_one_lost(place: &Place) -> Failure {
    let message = format!("what the only member of etcd had is gone from {}", place.folder.data().display());
    let mut failure = Failure::new(message);
    failure.details.push("put a copy of the folder back, or restore a snapshot into it".into());
    if let Some(aside) = newest_aside(&place.folder.data()) {
        failure.details.push(format!("beside it lies {}, which a restore has put aside", aside.display()));
    }
    failure.next(restore::command(&place.data, "FILE", restore::BUMP))
}

/// What the command that restores a snapshot has put aside last.
fn newest_aside(data: &Path) -> Option<PathBuf> {
    let prefix = format!("{}.before-", data.file_name()?.to_str()?);
    let all = fs::read_dir(data.parent()?).ok()?.flatten();
    let asides = all.filter(|it| it.file_name().to_str().is_some_and(|it| it.starts_with(&prefix)));
    asides.map(|it| it.path()).max()
}

fn no_quorum(said: &str) -> Failure {
    let mut failure = Failure::new(format!("too few members of etcd answer to take another one: {said}"));
    let details = [
        "members come and go only while more than half of them answer: start the machines of the others again",
        "where those never come back, one machine goes on alone with what it has: docs/how-to/run-three-machines.md",
    ];
    failure.details = details.map(str::to_owned).into();
    failure.next("corten why # on a machine with a member that runs")
}

/// Why this machine's member is none of the others.
enum NotAdmitted {
    ByEtcd(Refusal),
    /// The name or the address is another member's.
    ByPlace(Failure),
}

impl From<Refusal> for NotAdmitted {
    fn from(refusal: Refusal) -> Self {
        Self::ByEtcd(refusal)
    }
}

/// What is to be done so that this machine's member is one of those that there are.
#[derive(Debug, PartialEq)]
enum Step<'a> {
    Add,
    /// It was taken, and never began.
    Begin,
    /// Who was at this address is gone, if it does not answer.
    TakePlaceOf(&'a Member),
    /// Another machine has the name: whether it is lost is not known here.
    NameIsOf(&'a Member),
}

fn step<'a>(all: &'a [Member], record: &EtcdMemberRecord) -> Step<'a> {
    let peer_url = record.peer_url();
    let is_here = |it: &Member| it.peer_urls.contains(&peer_url);
    if let Some(elsewhere) = all.iter().find(|it| it.name == record.name && !is_here(it)) {
        return Step::NameIsOf(elsewhere);
    }
    match all.iter().find(|it| is_here(it)) {
        Some(here) if here.name.is_empty() => Step::Begin,
        Some(here) => Step::TakePlaceOf(here),
        None => Step::Add,
    }
}

/// The members with which etcd is to begin here, as its option `--initial-cluster` names them.
async fn admitted(members: &Members, place: &Place, record: &EtcdMemberRecord) -> Result<String, NotAdmitted> {
    loop {
        let all = members.list(true).await?;
        match step(&all, record) {
            Step::Begin => return Ok(initial_cluster(&all, record)),
            Step::NameIsOf(other) => return Err(NotAdmitted::ByPlace(name_is_of(other))),
            Step::TakePlaceOf(before) => {
                if let Some(url) = answering(before, place).await {
                    let name = &before.name;
                    let said = format!("the member {name} of etcd answers at {url}: another machine has this address");
                    let own = "corten up --ha --bind ADDRESS --join … # with an address that no other machine has";
                    return Err(NotAdmitted::ByPlace(Failure::new(said).next(own)));
                }
                tracing::warn!(
                    name = before.name,
                    "this machine has lost what its member of etcd had: a new one takes its place"
                );
                members.remove(before.id).await?;
            }
            Step::Add => {
                let all = members.add_learner(&record.peer_url()).await?;
                tracing::info!(name = record.name, "this machine's member of etcd was taken");
                return Ok(initial_cluster(&all, record));
            }
        }
    }
}

fn name_is_of(other: &Member) -> Failure {
    let name = &other.name;
    let urls = other.peer_urls.join(", ");
    let mut failure = Failure::new(format!(
        "another machine has the name {name}: its member of etcd is at {urls}, which is not here"
    ));
    failure.details = vec![
        "where that machine is there, give this one another name: `corten reset`, and the line again with --node-name"
            .into(),
        "where it never comes back, or this is the same one at another address, take its member out first".into(),
    ];
    failure.next(format!("corten node remove {name} # on another machine with a member"))
}

/// Where it answers, if it does.
async fn answering(member: &Member, place: &Place) -> Option<String> {
    for url in &member.client_urls {
        let asked = Members::new(std::slice::from_ref(url), Some(&place.tls())).ok()?;
        if asked.status(0).await.is_ok_and(|it| it.id == member.id) {
            return Some(url.clone());
        }
    }
    None
}

fn initial_cluster(all: &[Member], record: &EtcdMemberRecord) -> String {
    let peer_url = record.peer_url();
    let entries = all.iter().flat_map(|member| {
        let is_own = member.peer_urls.contains(&peer_url);
        // One that has not begun has no name yet, and etcd wants one.
        let other = if member.name.is_empty() { format!("{:x}", member.id) } else { member.name.clone() };
        let name = if is_own { record.name.clone() } else { other };
        member.peer_urls.iter().map(move |url| format!("{name}={url}"))
    });
    entries.collect::<Vec<_>>().join(",")
}

/// Takes the member of a machine that goes out of the cluster, as this machine's own is asked. Was there one?
///
/// # Errors
/// This machine has no member, or without that one too few would be there.
pub(crate) async fn departed(data: &Path, name: &str) -> Result<bool> {
    let Some(record) = EtcdMemberRecord::load(data)? else { return Ok(false) };
    let place = Place::of(data);
    let end = Instant::now() + PATIENCE;
    loop {
        let members = Members::new(&record.client_urls, Some(&place.tls())).map_err(anyhow::Error::msg)?;
        let refusal = match gone(&members, name, &record).await {
            Ok(was_there) => return Ok(was_there),
            Err(refusal) => refusal,
        };
        match refusal {
            Refusal::NotYet(_) if Instant::now() < end => tokio::time::sleep(AGAIN).await,
            Refusal::Never(said) => return Err(Failure::new(said).into()),
            Refusal::NotYet(said) | Refusal::NoQuorum(said) => {
                let message =
                    format!("the member {name} of etcd cannot be taken out: too few would be there without it: {said}");
                return Err(Failure::new(message).next("corten why").into());
            }
        }
    }
}

async fn gone(members: &Members, name: &str, record: &EtcdMemberRecord) -> Result<bool, Refusal> {
    let all = members.list(true).await?;
    let Some(member) = all.iter().find(|it| it.name == name || it.peer_urls.iter().any(|url| url == name)) else {
        return Ok(false);
    };
    if all.len() == 1 {
        return Err(Refusal::Never(format!("{name} has the only member of etcd, and with it the cluster")));
    }
    if name == record.name {
        tracing::warn!(name, "this machine's own member of etcd goes");
    }
    members.remove(member.id).await?;
    Ok(true)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(data: &Path) -> (Place, HaOptions) {
        let options = HaOptions {
            data: data.to_owned(),
            bind: Some("10.0.0.1".parse().expect("an address")),
            program: "/bin/true".into(),
            quota_bytes: 1,
            compaction_interval: Duration::ZERO,
        };
        (Place::of(data), options)
    }

    #[test]
    fn a_member_stays_who_it_is() {
        let folder = tempfile::tempdir().expect("a folder");
        let (place, mut options) = place(folder.path());
        let first = record(&place, &options, "m1").expect("made");
        assert_eq!((&*first.initial_cluster, first.is_joined), ("m1=https://10.0.0.1:2380", false));
        options.bind = None;
        assert_eq!(record(&place, &options, "other").expect("read"), first);
        options.bind = Some("10.0.0.2".parse().expect("an address"));
        let refused = record(&place, &options, "m1").expect_err("refused").to_string();
        assert!(refused.contains("is at 10.0.0.1, and --bind says 10.0.0.2"), "{refused}");
    }

    #[test]
    fn one_that_begins_among_others_names_them_all() {
        let folder = tempfile::tempdir().expect("a folder");
        let (place, options) = place(folder.path());
        let record = record(&place, &options, "m1").expect("made");
        let member = |id: u64, name: &str, url: &str| Member {
            id,
            name: name.into(),
            peer_urls: vec![url.into()],
            ..Member::default()
        };
        let all = [
            member(1, "m2", "https://10.0.0.2:2380"),
            member(0xab, "", "https://10.0.0.3:2380"),
            member(3, "", "https://10.0.0.1:2380"),
        ];
        let expected = "m2=https://10.0.0.2:2380,ab=https://10.0.0.3:2380,m1=https://10.0.0.1:2380";
        assert_eq!(initial_cluster(&all, &record), expected);
    }

    #[tokio::test]
    async fn an_only_member_that_lost_all_is_not_begun_anew() {
        let folder = tempfile::tempdir().expect("a folder");
        let (place, options) = place(folder.path());
        let mut record = record(&place, &options, "m1").expect("made");
        enter(&place, &mut record).await.expect("it is the first");
        fs::write(folder.path().join("etcd-cluster"), "abc\n").expect("written");
        let refused = async |record: &mut EtcdMemberRecord| {
            let refused = enter(&place, record).await.expect_err("refused");
            let failure = refused.downcast::<Failure>().expect("it says what to do");
            assert!(failure.message.contains("the only member of etcd had is gone"), "{failure}");
            failure.next.expect("a command")
        };
        let (root, etcd) = (folder.path().display(), folder.path().join("etcd"));
        let restore = format!(
            "etcdutl snapshot restore FILE --bump-revision 1000000000 --mark-compacted --data-dir {root}/etcd/data && rm -f \
             {root}/etcd-cluster && corten up --data-dir={root}"
        );
        assert_eq!(refused(&mut record).await, restore);
        // etcd makes these before it knows whether it can begin.
        let member = place.folder.data().join("member");
        fs::create_dir_all(member.join("snap")).expect("made");
        fs::create_dir_all(member.join("wal")).expect("made");
        fs::write(member.join("snap/db"), "").expect("written");
        let aside = format!("mv -T {0}/data {0}/data.before-$(date +%s) && {restore}", etcd.display());
        assert_eq!(refused(&mut record).await, aside);
        fs::write(member.join("wal/0000000000000000-0000000000000000.wal"), "").expect("written");
        enter(&place, &mut record).await.expect("it goes on");
    }

    #[test]
    fn what_a_failed_start_left_is_put_aside() {
        let folder = tempfile::tempdir().expect("a folder");
        let (place, _) = place(folder.path());
        put_aside(&place).expect("there is nothing");
        for n in ["1", "2"] {
            fs::create_dir_all(place.folder.data()).expect("made");
            fs::write(place.folder.data().join("file"), n).expect("written");
            put_aside(&place).expect("aside");
            assert!(!place.folder.data().exists());
            assert_eq!(fs::read_to_string(place.folder.data_before().join("file")).expect("kept"), n);
        }
    }

    #[test]
    fn the_authority_is_taken_though_it_was_interrupted() {
        let folder = tempfile::tempdir().expect("a folder");
        let (place, _) = place(folder.path());
        let pki = folder.path().join("pki");
        let key = pki.join(corten_cli::SHARED_ETCD_AUTHORITY_KEY);
        fs::create_dir_all(&pki).expect("made");
        take_authority(&place).expect("nothing was handed over");
        fs::write(pki.join("etcd-ca.crt"), "certificate").expect("written");
        take_authority(&place).expect("without the key it was taken before");
        fs::write(&key, "key").expect("written");
        take_authority(&place).expect("taken");
        assert!(!key.exists() && !pki.join("etcd-ca.crt").exists());
        let kept = (fs::read(&place.files.ca).expect("there"), fs::read(&place.files.ca_key).expect("there"));
        assert_eq!(kept, (b"certificate".to_vec(), b"key".to_vec()));
    }

    #[test]
    fn a_place_is_taken_only_at_the_same_address() {
        let folder = tempfile::tempdir().expect("a folder");
        let (place, options) = place(folder.path());
        let record = record(&place, &options, "m1").expect("made");
        let member = |id: u64, name: &str, address: &str| Member {
            id,
            name: name.into(),
            peer_urls: vec![format!("https://{address}:2380")],
            ..Member::default()
        };
        let other = member(2, "m2", "10.0.0.2");
        assert_eq!(step(std::slice::from_ref(&other), &record), Step::Add);
        let renamed = member(1, "before", "10.0.0.1");
        let begun = member(3, "", "10.0.0.1");
        let elsewhere = member(4, "m1", "10.0.0.4");
        assert_eq!(step(&[other.clone(), renamed.clone()], &record), Step::TakePlaceOf(&renamed));
        assert_eq!(step(&[other.clone(), begun.clone()], &record), Step::Begin);
        for here in [vec![], vec![renamed], vec![begun]] {
            let all = [vec![other.clone(), elsewhere.clone()], here].concat();
            assert_eq!(step(&all, &record), Step::NameIsOf(&elsewhere));
        }
        let said = name_is_of(&elsewhere);
        assert!(said.message.contains("the name m1: its member of etcd is at https://10.0.0.4:2380"), "{said}");
        assert_eq!(said.next.as_deref(), Some("corten node remove m1 # on another machine with a member"));
    }

    #[test]
    fn one_that_was_never_taken_may_be_called_otherwise() {
        let folder = tempfile::tempdir().expect("a folder");
        let (place, mut options) = place(folder.path());
        fs::create_dir(place.folder.path()).expect("made");
        let never = EtcdMemberRecord {
            name: "m1".into(),
            address: "10.0.0.9".parse().expect("an address"),
            token: "t".into(),
            initial_cluster: String::new(),
            is_joined: true,
            client_urls: vec!["https://10.0.0.2:2379".into()],
        };
        never.save(folder.path()).expect("written");
        options.bind = Some("10.0.0.1".parse().expect("an address"));
        let record = record(&place, &options, "m4").expect("made anew");
        assert_eq!((&*record.name, record.peer_url()), ("m4", "https://10.0.0.1:2380".to_owned()));
    }
}
