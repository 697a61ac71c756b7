//! One look at the members: who there are, who answers, and do they agree.

use std::time::Duration;

use corten_cli::etcd_member::{EtcdHealth, EtcdMemberRecord, MemberHealth};
use corten_etcd::{Member, MemberStatus, Members};
use corten_meta::Time;
use futures_util::future::join_all;
use tokio::time::timeout;

/// One that takes longer is away.
const STATUS_WAIT: Duration = Duration::from_secs(3);

/// A member, and what it said of itself.
pub(super) struct ObservedMember {
    pub(super) member: Member,
    /// None: nobody has asked it yet, because it has just come.
    pub(super) status: Option<Result<MemberStatus, String>>,
}

pub(super) struct Look {
    /// Do they agree on who there is?
    pub(super) is_agreed: bool,
    pub(super) members: Vec<ObservedMember>,
    /// `NOSPACE` and `CORRUPT`, each of a member.
    pub(super) alarms: Vec<(u64, &'static str)>,
    /// Of the member that answers at this machine's address.
    own_id: Option<u64>,
}

impl Look {
    /// Asks those of `members`, whose addresses are `urls`; `own` is this machine's.
    pub(super) async fn at(members: &Members, urls: &[String], own: &str) -> Self {
        let ask = async |at: usize| match timeout(STATUS_WAIT, members.status(at)).await {
            Ok(status) => status,
            Err(_) => Err("it does not answer in time".to_owned()),
        };
        let asking = join_all((0..urls.len()).map(ask));
        let (statuses, agreed) = tokio::join!(asking, members.list(true));
        let is_agreed = agreed.is_ok();
        let all = match agreed {
            Ok(all) => all,
            Err(_) => members.list(false).await.unwrap_or_default(),
        };
        let alarms = if is_agreed { members.alarms().await.unwrap_or_default() } else { Vec::new() };
        let own_at = urls.iter().position(|it| it == own);
        let own_id = own_at.and_then(|at| statuses[at].as_ref().ok()).map(|it| it.id);
        let observed = all.into_iter().map(|member| {
            let at = urls.iter().position(|url| member.client_urls.contains(url));
            let status = match at {
                Some(at) => Some(statuses[at].clone()),
                None if member.client_urls.is_empty() => Some(Err("it was taken, and has not begun yet".to_owned())),
                None => None,
            };
            ObservedMember { member, status }
        });
        Self { is_agreed, members: observed.collect(), alarms, own_id }
    }

    /// This machine's is none of those that they agree on.
    pub(super) fn is_missing(&self, record: &EtcdMemberRecord) -> bool {
        self.is_agreed && self.own(record).is_none()
    }

    /// This machine's.
    pub(super) fn own(&self, record: &EtcdMemberRecord) -> Option<&ObservedMember> {
        let peer = record.peer_url();
        let is_own = |it: &&ObservedMember| it.member.peer_urls.contains(&peer) || Some(it.member.id) == self.own_id;
        self.members.iter().find(is_own)
    }

    /// Where clients reach the members that vote, `own` first.
    pub(super) fn urls(&self, own: &str) -> Vec<String> {
        let voters = self.members.iter().filter(|it| !it.member.is_learner);
        let mut urls: Vec<String> = voters.flat_map(|it| it.member.client_urls.iter().cloned()).collect();
        urls.sort_by_key(|it| it != own);
        urls
    }

    /// What is known of them now, where `before` was known.
    pub(super) fn health(&self, record: &EtcdMemberRecord, before: &EtcdHealth, now: Time) -> EtcdHealth {
        let mut members: Vec<MemberHealth> =
            self.members.iter().map(|it| self.member(it, record, before, now)).collect();
        if members.is_empty() {
            // Nobody says who there is: those that were known are away.
            let away = |it: &MemberHealth| MemberHealth { away_since: it.away_since.or(Some(now)), ..it.clone() };
            members = before.members.iter().map(away).collect();
        }
        members.sort_by(|one, other| one.name.cmp(&other.name));
        let lost_since = if self.is_agreed { None } else { before.lost_since.or(Some(now)) };
        EtcdHealth { at: Some(now), has_quorum: self.is_agreed, lost_since, members }
    }

    fn member(
        &self,
        observed: &ObservedMember,
        record: &EtcdMemberRecord,
        before: &EtcdHealth,
        now: Time,
    ) -> MemberHealth {
        let url =
            observed.member.client_urls.first().or(observed.member.peer_urls.first()).cloned().unwrap_or_default();
        let is_own = observed.member.peer_urls.contains(&record.peer_url()) || Some(observed.member.id) == self.own_id;
        let name = if observed.member.name.is_empty() { &url } else { &observed.member.name };
        let was_away = before.members.iter().find(|it| it.name == *name).and_then(|it| it.away_since);
        let says = observed.status.as_ref().and_then(|it| it.as_ref().err().cloned());
        let alarms = self.alarms.iter().filter(|it| it.0 == observed.member.id).map(|it| it.1.to_owned());
        MemberHealth {
            is_own,
            is_learner: observed.member.is_learner,
            away_since: says.as_ref().map(|_| was_away.unwrap_or(now)),
            says,
            alarms: alarms.collect(),
            name: name.clone(),
            url,
        }
    }
}

#[cfg(test)]
impl Look {
    /// As it is where they agree.
    pub(super) fn of(members: Vec<ObservedMember>, alarms: Vec<(u64, &'static str)>) -> Self {
        Self { is_agreed: true, members, alarms, own_id: None }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record() -> EtcdMemberRecord {
        EtcdMemberRecord {
            name: "b".into(),
            address: "10.0.0.2".parse().expect("an address"),
            token: String::new(),
            initial_cluster: String::new(),
            is_joined: true,
            client_urls: Vec::new(),
        }
    }

    fn observed(id: u64, name: &str, answers: bool, is_learner: bool) -> ObservedMember {
        let urls = |port: u16| vec![format!("https://10.0.0.{id}:{port}")];
        let member = Member { id, name: name.into(), peer_urls: urls(2380), client_urls: urls(2379), is_learner };
        let status = MemberStatus { id, is_learner, db_bytes: 0, db_bytes_in_use: 0 };
        ObservedMember { member, status: Some(if answers { Ok(status) } else { Err("connection refused".into()) }) }
    }

    #[test]
    fn who_is_away_has_been_since_it_was_first_seen_to_be() {
        let at = |seconds: i64| Time::from_unix_seconds(seconds);
        let look = |c: bool, is_agreed: bool| Look {
            is_agreed,
            members: vec![observed(3, "c", c, false), observed(2, "b", true, false), observed(1, "a", true, false)],
            alarms: vec![(1, "NOSPACE")],
            own_id: Some(2),
        };
        let well = look(true, true).health(&record(), &EtcdHealth::default(), at(1));
        assert!(well.members.iter().all(|it| it.away_since.is_none()) && well.has_quorum);
        assert_eq!(well.members.iter().map(|it| &*it.name).collect::<Vec<_>>(), ["a", "b", "c"]);
        assert_eq!(well.members.iter().map(|it| it.is_own).collect::<Vec<_>>(), [false, true, false]);
        assert_eq!(well.members[0].alarms, ["NOSPACE"]);
        let away = look(false, true).health(&record(), &well, at(2));
        let later = look(false, false).health(&record(), &away, at(3));
        assert_eq!(later.members[2].away_since, Some(at(2)));
        assert_eq!((later.has_quorum, later.lost_since), (false, Some(at(3))));
        let nobody = Look { is_agreed: false, members: Vec::new(), alarms: Vec::new(), own_id: None }.health(
            &record(),
            &later,
            at(4),
        );
        let since: Vec<_> = nobody.members.iter().map(|it| it.away_since).collect();
        assert_eq!((since, nobody.lost_since), (vec![Some(at(4)), Some(at(4)), Some(at(2))], Some(at(3))));
        let back = look(true, true).health(&record(), &nobody, at(5));
        assert_eq!((back.members[2].away_since, back.lost_since), (None, None));
    }

    #[test]
    fn who_is_missing_among_those_that_there_are() {
        let look = |members: Vec<ObservedMember>, own_id: Option<u64>| Look {
            is_agreed: true,
            members,
            alarms: Vec::new(),
            own_id,
        };
        assert!(!look(vec![observed(2, "b", false, false)], None).is_missing(&record()), "it is away");
        assert!(look(vec![observed(1, "a", true, false)], None).is_missing(&record()));
        // It was cut off when it was removed, and knows nothing of that.
        let runs_on = look(vec![observed(1, "a", true, false)], Some(2));
        assert!(runs_on.is_missing(&record()));
        // It began from a snapshot, which says another address.
        let began = look(vec![observed(7, "", true, false)], Some(7));
        assert!(!began.is_missing(&record()) && began.own(&record()).is_some_and(|it| it.member.id == 7));
    }

    #[test]
    fn learners_are_not_asked_by_clients() {
        let look = Look {
            is_agreed: true,
            members: vec![observed(1, "a", true, false), observed(2, "b", true, false), observed(3, "c", true, true)],
            alarms: Vec::new(),
            own_id: None,
        };
        assert_eq!(look.urls("https://10.0.0.2:2379"), ["https://10.0.0.2:2379", "https://10.0.0.1:2379"]);
    }
}
