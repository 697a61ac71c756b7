//! How the members of an etcd are that Corten runs, as this machine has written it down.

mod disk;

use std::{
    path::{Path, PathBuf},
    time::Duration,
};

use corten_machine::Layout;
use corten_meta::{
    Time,
    address::{authority, split_host_port},
};
use corten_records::etcd_member::{EtcdHealth, MemberHealth};

use super::{
    duration::duration,
    survey::{Group, Survey},
};
use corten_console::shell::quoted;
use corten_node_process::{
    node_folders::{RUN_DIR, log_in},
    node_process::{command_for, command_on},
};

/// What is older was written by a Corten that does not run any more.
const CURRENT: Duration = Duration::from_secs(90);

fn current(data: &Path, now: Time) -> Option<EtcdHealth> {
    EtcdHealth::load(data).filter(|it| it.at.is_some_and(|at| now.since(at) <= CURRENT))
}

/// What somebody must see to.
pub(crate) fn concerns(data: &Path, now: Time) -> Vec<Group> {
    let of_members = current(data, now).map(|it| of(&it, data, now)).unwrap_or_default();
    disk::concern(data).into_iter().chain(of_members).collect()
}

/// The others, by name, that can go on only with this machine's member, and its own name.
pub(crate) fn needed_by(data: &Path, now: Time) -> Option<(String, Vec<String>)> {
    let health = current(data, now)?;
    let others: Vec<String> = health.others_that_need_own().into_iter().map(str::to_owned).collect();
    let own = health.members.iter().find(|it| it.is_own)?.name.clone();
    (!others.is_empty()).then_some((own, others))
}

/// Too few members agree: why nothing is answered. None where enough do.
pub(crate) fn quorum_lost(data: &Path, now: Time) -> Option<Survey> {
    current(data, now).filter(|it| !it.has_quorum)?;
    Some(Survey::of_cluster(concerns(data, now)))
}

fn of(health: &EtcdHealth, data: &Path, now: Time) -> Vec<Group> {
    let mut concerns: Vec<Group> =
        [lost(health, data, now), removed(health, data), not_redundant(health)].into_iter().flatten().collect();
    let (n, needed) = health.n_voters();
    let n_there = health.members.iter().filter(|it| !it.is_learner && it.away_since.is_none()).count();
    for member in &health.members {
        if let Some(away) = away(member, data, now) {
            let quorum = if !health.has_quorum {
                format!("{needed} of {n} are needed")
            } else if n_there > needed {
                format!("{n_there} of {n} members agree, {needed} are needed")
            } else {
                format!("{n_there} of {n} members agree, and {needed} are needed: the next loss stops all writes")
            };
            let mut group = Group::of_cluster(
                &subject(member),
                format!("EtcdMemberAway: {away}; {quorum}"),
                start(member, health, data),
            );
            group.since = member.away_since;
            concerns.push(group);
        }
        if member.alarms.iter().any(|it| it == "NOSPACE") {
            let summary = "EtcdNoSpace: it is full and takes no writes. Corten forgets what was replaced and gives the room back; where \
                           it stays full, too much is kept: delete what is not needed, or set ETCD_QUOTA_BACKEND_BYTES higher"
                .to_owned();
            concerns.push(Group::of_cluster(&subject(member), summary, "kubectl get all,configmaps,secrets -A".into()));
        }
        if member.alarms.iter().any(|it| it == "CORRUPT") {
            let summary =
                "EtcdCorrupt: it holds other data than the other members. Take it out, and have it come again"
                    .to_owned();
            concerns.push(Group::of_cluster(&subject(member), summary, format!("corten node remove {}", member.name)));
        }
    }
    concerns
}

fn subject(member: &MemberHealth) -> String {
    format!("etcd/{}", member.name)
}

fn away(member: &MemberHealth, data: &Path, now: Time) -> Option<String> {
    let since = member.away_since?;
    let says = match &member.says {
        Some(says) => says.clone(),
        None if member.is_own => format!("what it said last is in {}", etcd_log(data).display()),
        None => "nobody says why".to_owned(),
    };
    let place =
        if member.is_own { "this machine's member".to_owned() } else { format!("the member at {}", member.url) };
    let (ago, since) = (duration(now.since(since)), since.whole_seconds());
    Some(format!("{place} does not answer for {ago}, since {since}: {says}"))
}

/// What brings it back.
fn start(member: &MemberHealth, health: &EtcdHealth, data: &Path) -> String {
    let name = &member.name;
    if member.is_own {
        up(data)
    } else if health.has_quorum {
        format!("corten up # on {name}; where it never comes back: corten node remove {name}")
    } else {
        format!("corten up # on {name}")
    }
}

/// Wherever it is pasted, it starts no other cluster than the one with these data.
fn up(data: &Path) -> String {
    command_on(data, "up")
}

/// This machine's member goes on without the others.
fn alone(data: &Path) -> String {
    let down = command_on(data, "down");
    // A control plane alone has no folder for the machine's run.
    let server = command_for(&Layout::new(data, RUN_DIR), "server");
    format!("{down} && ETCD_FORCE_NEW_CLUSTER=true {server} --ha")
}

fn etcd_log(data: &Path) -> PathBuf {
    log_in(data).with_file_name("etcd.log")
}

fn is_unreached(member: &MemberHealth) -> bool {
    let says = member.says.as_deref().unwrap_or_default().to_lowercase();
    ["no route", "in time", "unreachable", "timed out", "deadline"].iter().any(|it| says.contains(it))
}

/// `10.0.0.1` of `https://10.0.0.1:2379`.
fn host(url: &str) -> &str {
    split_host_port(authority(url)).0
}

fn lost(health: &EtcdHealth, data: &Path, now: Time) -> Option<Group> {
    if health.has_quorum {
        return None;
    }
    let (n, needed) = health.n_voters();
    let voters = || health.members.iter().filter(|it| !it.is_learner);
    let away: Vec<&MemberHealth> = voters().filter(|it| it.away_since.is_some()).collect();
    let n_there = n - away.len();
    let since = health.lost_since.unwrap_or(now);
    let how_long = format!("{}, since {}", duration(now.since(since)), since.whole_seconds());
    let (summary, next) = if n > 0 && n_there >= needed {
        let mut peers = voters().filter(|it| !it.is_own && it.away_since.is_none());
        (
            format!(
                "EtcdQuorumLost: {n_there} of {n} members of etcd answer, which are enough, and do not agree on a leader: nothing is read \
                 or written for {how_long}. Packets between them may be lost, large ones above all where an MTU is larger than \
                 the link takes"
            ),
            large_packet(peers.next(), data),
        )
    } else {
        (
            format!(
                "EtcdQuorumLost: {n_there} of {n} members of etcd answer, and {needed} must agree: nothing is read or written for {how_long}"
            ),
            bring_back(&away, data),
        )
    };
    let mut group = Group::of_cluster("etcd", summary, next);
    group.since = Some(since);
    Some(group)
}

/// This machine's member is none of those that agree. What it had goes with `corten reset`, and a new one comes in its place.
fn removed(health: &EtcdHealth, data: &Path) -> Option<Group> {
    if !health.has_quorum || health.members.is_empty() || health.members.iter().any(|it| it.is_own) {
        return None;
    }
    let names: Vec<&str> = health.members.iter().map(|it| &*it.name).collect();
    let summary = format!(
        "EtcdMemberRemoved: this machine's member of etcd was removed, and those that there are ({}) go on without it: its API server \
         asks them",
        names.join(", ")
    );
    let next = format!(
        "corten token create --control-plane # on {}; then here: {}, and the line that was printed",
        names.join(" or "),
        command_on(data, "reset")
    );
    Some(Group::of_cluster("etcd", summary, next))
}

/// Two are worse than one: either stops both.
fn not_redundant(health: &EtcdHealth) -> Option<Group> {
    let is_whole = health.has_quorum && health.members.iter().all(|it| !it.is_learner && it.away_since.is_none());
    if !is_whole || health.members.len() != 2 {
        return None;
    }
    let names: Vec<&str> = health.members.iter().map(|it| &*it.name).collect();
    let summary = format!(
        "EtcdNotRedundant: etcd has 2 members, {}, and both must agree: the loss of either stops all writes. With a third the \
         cluster goes on without any one of them",
        names.join(" and ")
    );
    let next = format!("corten token create --control-plane # on {}; its line on a third machine", names.join(" or "));
    Some(Group::of_cluster("etcd", summary, next))
}

/// Shows whether a packet of 1400 bytes reaches another member; then what etcd itself says.
fn large_packet(peer: Option<&MemberHealth>, data: &Path) -> String {
    let log = tail_of_log(data);
    let Some(peer) = peer.map(|it| host(&it.url)) else { return log };
    // Less what IP and ICMP put before it.
    let size = if peer.contains(':') { 1352 } else { 1372 };
    format!("ping -c 3 -M do -s {size} {peer}; {log}")
}

fn tail_of_log(data: &Path) -> String {
    format!("tail -n 40 {}", quoted(&etcd_log(data).to_string_lossy()))
}

/// What brings those back that are away and are needed.
fn bring_back(away: &[&MemberHealth], data: &Path) -> String {
    let names: Vec<&str> = away.iter().map(|it| &*it.name).collect();
    match names.is_empty() {
        // This machine may be the one that is cut off: none of the others so much as refuses a connection.
        _ if away.len() > 1 && away.iter().all(|it| !it.is_own && is_unreached(it)) => format!(
            "ping {} # no other member is reached: look at this machine's own link first; then corten up # on {}",
            host(&away[0].url),
            names.join(" or ")
        ),
        true => tail_of_log(data),
        false if away.iter().any(|it| it.is_own) => format!("{} # or corten up, on {}", up(data), names.join(" or ")),
        false => format!(
            "corten up # on {}; where none of them comes back, this one goes on alone, until it is up: {}",
            names.join(" or "),
            alone(data)
        ),
    }
}

#[cfg(test)]
mod tests;
