//! The members of an etcd: who they are, how each is, and that one comes or goes.

use corten_etcd_api::{
    AlarmRequest, AlarmResponse, DefragmentRequest, DefragmentResponse, MemberAddRequest, MemberAddResponse,
    MemberListRequest, MemberListResponse, MemberPromoteRequest, MemberPromoteResponse, MemberRemoveRequest,
    MemberRemoveResponse, MemberUpdateRequest, MemberUpdateResponse, StatusRequest, StatusResponse,
    method::{ALARM, DEFRAGMENT, MEMBER_ADD, MEMBER_LIST, MEMBER_PROMOTE, MEMBER_REMOVE, MEMBER_UPDATE, STATUS},
};
use std::{sync::Arc, time::Duration};

use crate::{
    client::Client,
    failure::{Certainty, Failure},
    messages::Answer,
    options::TlsFiles,
    tls::{Connector, Tls},
};

pub use corten_etcd_api::Member;

/// As etcd numbers what is done to an alarm, and its alarms.
const DEACTIVATE: i32 = 2;
const NO_SPACE: i32 = 1;
const CORRUPT: i32 = 2;
/// Defragmentation stops its member meanwhile: it copies all that is there.
const DEFRAGMENT_WAIT: Duration = Duration::from_secs(120);

/// What a member says of itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemberStatus {
    pub id: u64,
    pub is_learner: bool,
    pub db_bytes: u64,
    pub db_bytes_in_use: u64,
}

/// Why something is not done to the members.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// Another try may do it: a member was started a moment ago, or a learner has not caught up.
    #[error("{0}")]
    NotYet(String),
    /// No member answers, or those that answer are too few.
    #[error("{0}")]
    NoQuorum(String),
    #[error("{0}")]
    Never(String),
}

/// Asks members about each other. What each says is believed as far as it is of one cluster.
pub struct Members {
    client: Client,
}

impl Members {
    /// Connects when it is first asked.
    ///
    /// # Errors
    /// A file cannot be read, or an address is none.
    pub fn new(urls: &[String], tls: Option<&TlsFiles>) -> Result<Self, String> {
        let tls = tls.map(Tls::read).transpose()?;
        if urls.is_empty() {
            return Err("no member of etcd is known".into());
        }
        Ok(Self { client: Client::new(urls, &Connector { tls: tls.map(Arc::new) })? })
    }

    /// As the cluster has agreed on, where `is_agreed`; else as some member has heard.
    ///
    /// # Errors
    /// None answers; or too few are there to agree.
    pub async fn list(&self, is_agreed: bool) -> Result<Vec<Member>, Refusal> {
        let question = MemberListRequest { linearizable: is_agreed };
        self.ask(MEMBER_LIST, &question).await.map(|it: MemberListResponse| it.members)
    }

    /// All members that there are then.
    ///
    /// # Errors
    /// The cluster does not take it.
    pub async fn add_learner(&self, peer_url: &str) -> Result<Vec<Member>, Refusal> {
        let question = MemberAddRequest { peer_urls: vec![peer_url.to_owned()], is_learner: true };
        self.ask(MEMBER_ADD, &question).await.map(|it: MemberAddResponse| it.members)
    }

    /// # Errors
    /// It is no learner that has caught up, or too few are there to agree.
    pub async fn promote(&self, id: u64) -> Result<(), Refusal> {
        self.ask(MEMBER_PROMOTE, &MemberPromoteRequest { id }).await.map(|_: MemberPromoteResponse| ())
    }

    /// The others reach it at another address from now on.
    ///
    /// # Errors
    /// Too few are there to agree.
    pub async fn moved(&self, id: u64, peer_url: &str) -> Result<(), Refusal> {
        let question = MemberUpdateRequest { id, peer_urls: vec![peer_url.to_owned()] };
        self.ask(MEMBER_UPDATE, &question).await.map(|_: MemberUpdateResponse| ())
    }

    /// One that is not there has gone already.
    ///
    /// # Errors
    /// Without it too few would be there to agree, or are not now.
    pub async fn remove(&self, id: u64) -> Result<(), Refusal> {
        match self.ask(MEMBER_REMOVE, &MemberRemoveRequest { id }).await {
            Err(Refusal::Never(it)) if it.contains("member not found") => Ok(()),
            removed => removed.map(|_: MemberRemoveResponse| ()),
        }
    }

    /// The alarms that are raised, by their names.
    ///
    /// # Errors
    /// None answers.
    pub async fn alarms(&self) -> Result<Vec<(u64, &'static str)>, Refusal> {
        let answer: AlarmResponse = self.ask(ALARM, &AlarmRequest::default()).await?;
        let named = answer.alarms.iter().filter_map(|it| match it.alarm {
            NO_SPACE => Some((it.member_id, "NOSPACE")),
            CORRUPT => Some((it.member_id, "CORRUPT")),
            _ => None,
        });
        Ok(named.collect())
    }

    /// Takes the alarm NOSPACE of a member back.
    ///
    /// # Errors
    /// None answers, or too few.
    pub async fn disarm(&self, member: u64) -> Result<(), Refusal> {
        let question = AlarmRequest { action: DEACTIVATE, member_id: member, alarm: NO_SPACE };
        self.ask(ALARM, &question).await.map(|_: AlarmResponse| ())
    }

    /// Of the member with this address, in the order of [`Members::new`].
    ///
    /// # Errors
    /// It does not answer: why.
    pub async fn status(&self, at: usize) -> Result<MemberStatus, String> {
        let answer: StatusResponse =
            self.client.ask_member(at, STATUS, &StatusRequest {}).await.map_err(|it| it.message)?;
        Ok(MemberStatus {
            id: answer.header.map_or(0, |it| it.member_id),
            is_learner: answer.is_learner,
            db_bytes: answer.db_size.unsigned_abs(),
            db_bytes_in_use: answer.db_size_in_use.unsigned_abs(),
        })
    }

    /// Gives room that the member with this address no longer uses back to its disk.
    ///
    /// # Errors
    /// It does not answer in time, or cannot.
    pub async fn defragment(&self, at: usize) -> Result<(), String> {
        let asking = self.client.ask_member_within(DEFRAGMENT_WAIT, at, DEFRAGMENT, &DefragmentRequest {});
        asking.await.map(|_: DefragmentResponse| ()).map_err(|it| it.message)
    }

    async fn ask<Q, A>(&self, method: &'static str, question: &Q) -> Result<A, Refusal>
    where
        Q: prost::Message + Clone + 'static,
        A: Answer,
    {
        let mut last = None;
        for _ in self.client.urls() {
            match self.client.ask(method, question).await {
                Err(failure) if failure.says(OF_LEARNERS) => {
                    self.client.leave(&failure.member);
                    last = Some(failure);
                }
                Err(failure) if failure.certainty != Certainty::Refused => last = Some(failure),
                answer => return answer.map_err(|it| refusal(&it)),
            }
        }
        Err(last.map_or_else(|| Refusal::NoQuorum("no member of etcd is known".into()), |it| refusal(&it)))
    }
}

/// etcd's words for what passes (`server/etcdserver/api/v3rpc/rpctypes`).
const PASSING: [&str; 5] = [
    "unhealthy cluster",
    "can only promote a learner member which is in sync with leader",
    "too many learner members in cluster",
    "re-configuration failed due to not enough started members",
    "too many requests",
];

/// A learner says so of what only those that vote can answer: another member is asked.
const OF_LEARNERS: &str = "rpc not supported for learner";

fn refusal(failure: &Failure) -> Refusal {
    let said = failure.to_string();
    if PASSING.iter().chain([&OF_LEARNERS]).any(|it| failure.says(it)) {
        Refusal::NotYet(said)
    } else if failure.certainty == Certainty::Refused {
        Refusal::Never(said)
    } else {
        Refusal::NoQuorum(said)
    }
}

#[cfg(test)]
mod tests {
    use tonic::Status;

    use super::*;

    #[test]
    fn what_passes_is_told_apart_from_what_does_not() {
        let of = |status: &Status| refusal(&Failure::of("https://a:2379", status));
        let unhealthy = Status::unavailable("etcdserver: unhealthy cluster");
        assert!(matches!(of(&unhealthy), Refusal::NotYet(_)));
        let behind =
            Status::failed_precondition("etcdserver: can only promote a learner member which is in sync with leader");
        assert!(matches!(of(&behind), Refusal::NotYet(_)));
        let taken = Status::failed_precondition("etcdserver: Peer URLs already exists");
        assert!(matches!(of(&taken), Refusal::Never(_)));
        let lonely = Status::unavailable("etcdserver: request timed out");
        assert!(matches!(of(&lonely), Refusal::NoQuorum(_)));
    }

    #[test]
    fn members_come_and_go_while_the_client_is_asked() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        let _inside = runtime.enter();
        let urls = |words: &str| words.split(' ').map(|it| format!("http://{it}:2379")).collect::<Vec<_>>();
        let client = Client::new(&urls("a b c"), &Connector { tls: None }).expect("addresses");
        client.leave("http://a:2379");
        client.set_members(&urls("c b d")).expect("addresses");
        assert_eq!(client.urls(), urls("c b d"));
        assert_eq!(client.current_url(), "http://b:2379", "one that answers is asked on");
        client.set_members(&urls("d")).expect("an address");
        assert_eq!(client.current_url(), "http://d:2379");
        assert!(client.set_members(&[]).is_err() && client.set_members(&["x".into()]).is_err());
        assert_eq!(client.urls(), urls("d"));
    }
}
