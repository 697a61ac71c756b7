//! Looks after the member and knows the others: makes it vote, follows who comes and goes, and writes down how all of them are.

use std::time::Duration;

use corten_cli::{
    control_plane_record::ControlPlaneRecord,
    etcd_member::{EtcdHealth, EtcdMemberRecord},
};
use corten_etcd::Members;
use corten_pki::{EtcdAuthority, RENEWAL_INTERVAL};
use tokio::{sync::watch, time::Instant};

use super::{
    Place,
    look::{Look, ObservedMember},
    quota_keeper::QuotaKeeper,
};
use crate::{etcd_options::Joint, process};

/// How often members are looked at.
const EVERY: Duration = Duration::from_secs(2);
/// While they do not agree, or this one does not vote.
const OFTEN: Duration = Duration::from_millis(300);
/// What is written down is no older, so that who reads it knows that somebody looks.
const WRITE_EVERY: Duration = Duration::from_secs(30);
/// Certificates are read again so often, and where the members changed.
const CONNECT_EVERY: Duration = Duration::from_secs(3600);

/// After so many looks in a row it counts as removed, and is ended.
const MISSING: u32 = 3;

/// What is known of the member while it is looked after.
#[derive(Clone, Default)]
pub(super) struct State {
    /// It votes, and enough members agree.
    pub(super) is_ready: bool,
    pub(super) is_removed: bool,
    /// Where clients reach those that vote.
    pub(super) urls: Vec<String>,
}

pub(super) struct Upkeep {
    place: Place,
    record: EtcdMemberRecord,
    quota_keeper: QuotaKeeper,
    authority: EtcdAuthority,
    /// The control plane's, once it has one.
    joint: Joint,
    asked: Option<(Members, Vec<String>, Instant)>,
    health: EtcdHealth,
    written: Option<Instant>,
    renewed: Instant,
    /// So many looks in a row it was none of those that there are.
    n_missing: u32,
}

impl Upkeep {
    pub(super) fn new(
        place: Place,
        record: EtcdMemberRecord,
        quota_bytes: u64,
        authority: EtcdAuthority,
        joint: Joint,
    ) -> Self {
        let health = EtcdHealth::load(&place.data).unwrap_or_default();
        let quota_keeper = QuotaKeeper::new(record.client_url(), place.tls(), quota_bytes);
        Self {
            place,
            record,
            quota_keeper,
            authority,
            joint,
            asked: None,
            health,
            written: None,
            renewed: Instant::now(),
            n_missing: 0,
        }
    }

    /// Until `stopping`.
    pub(super) async fn keep(mut self, mut stopping: watch::Receiver<bool>, state: watch::Sender<State>) {
        loop {
            let is_well = tokio::select! {
                biased;
                _ = stopping.wait_for(|it| *it) => return,
                is_well = self.round(&state) => is_well,
            };
            tokio::select! {
                biased;
                _ = stopping.wait_for(|it| *it) => return,
                () = tokio::time::sleep(if is_well { EVERY } else { OFTEN }) => {}
            }
        }
    }

    /// Is all as it should be?
    async fn round(&mut self, state: &watch::Sender<State>) -> bool {
        self.renew();
        let own_url = self.record.client_url();
        let look = match self.members() {
            Ok((members, urls)) => Look::at(members, urls, &own_url).await,
            Err(error) => {
                tracing::error!(error, "members of etcd cannot be asked");
                return true;
            }
        };
        self.write_down(&look);
        let urls = look.urls(&own_url);
        self.n_missing = if look.is_missing(&self.record) { self.n_missing + 1 } else { 0 };
        // One that begins may be known by its answer alone, and one that was taken a moment ago before all say so.
        if self.n_missing >= MISSING {
            if !state.borrow().is_removed {
                let members: Vec<&str> = look.members.iter().map(|it| &*it.member.name).collect();
                tracing::warn!(?members, "this machine's member of etcd is not among those that they agree on");
            }
            // The API server here still runs, and asks the others.
            self.follow(&urls);
            state.send_modify(|it| it.is_removed = true);
            return true;
        }
        let Some(own) = look.own(&self.record).filter(|_| look.is_agreed) else { return false };
        self.correct(own).await;
        let votes = !own.member.is_learner;
        if let (true, Some(Ok(status))) = (votes, &own.status) {
            self.quota_keeper.look_after(&look, status, self.joint.get()).await;
        }
        self.follow(&urls);
        if votes && !state.borrow().is_ready {
            state.send_modify(|it| (it.is_ready, it.urls) = (true, urls));
        }
        votes
    }

    fn members(&mut self) -> Result<(&Members, &[String]), String> {
        let mut urls = self.record.client_urls.clone();
        let own = self.record.client_url();
        if !urls.contains(&own) {
            urls.push(own);
        }
        let is_current = self.asked.as_ref().is_some_and(|it| it.1 == urls && it.2.elapsed() < CONNECT_EVERY);
        if !is_current {
            let members = Members::new(&urls, Some(&self.place.tls()))?;
            self.asked = Some((members, urls, Instant::now()));
        }
        let (members, urls, _) = self.asked.as_ref().ok_or("there is none")?;
        Ok((members, urls))
    }

    fn renew(&mut self) {
        if self.renewed.elapsed() < RENEWAL_INTERVAL {
            return;
        }
        self.renewed = Instant::now();
        // etcd reads them for each connection, and so does the store.
        if let Err(error) = self.authority.renew() {
            tracing::error!(%error, "the certificates of etcd's member cannot be renewed");
        }
    }

    fn write_down(&mut self, look: &Look) {
        let now = process::clock()().whole_seconds();
        let health = look.health(&self.record, &self.health, now);
        self.tell(&health);
        let is_news = EtcdHealth { at: None, ..health.clone() } != EtcdHealth { at: None, ..self.health.clone() };
        self.health = health;
        if is_news || self.written.is_none_or(|it| it.elapsed() >= WRITE_EVERY) {
            match self.health.save(&self.place.data) {
                Ok(()) => self.written = Some(Instant::now()),
                Err(error) => tracing::warn!(%error, "how etcd's members are cannot be written down"),
            }
        }
    }

    fn tell(&self, health: &EtcdHealth) {
        if health.has_quorum != self.health.has_quorum && self.written.is_some() {
            if health.has_quorum {
                tracing::info!("enough members of etcd agree");
            } else {
                tracing::error!("too few members of etcd agree: nothing is read or written until they do");
            }
        }
        for member in &health.members {
            let before = self.health.members.iter().find(|it| it.name == member.name);
            let (name, url) = (&*member.name, &*member.url);
            match (before.and_then(|it| it.away_since), member.away_since) {
                (None, Some(_)) => tracing::warn!(name, url, reason = member.says, "a member of etcd is away"),
                (Some(_), None) => tracing::info!(name, url, "a member of etcd is back"),
                _ => {}
            }
        }
    }

    /// One that has caught up votes; one that began from a snapshot says where it is.
    async fn correct(&self, own: &ObservedMember) {
        let Some((members, ..)) = &self.asked else { return };
        let peer = self.record.peer_url();
        let (corrected, is_now) = if own.member.is_learner {
            (members.promote(own.member.id).await, "is one of those that vote")
        } else if own.member.peer_urls.contains(&peer) {
            return;
        } else {
            (members.moved(own.member.id, &peer).await, "has told the others where it is")
        };
        match corrected {
            Ok(()) => tracing::info!(name = own.member.name, "the member of etcd on this machine {is_now}"),
            Err(refusal) => tracing::debug!(%refusal, "the member of etcd is not as it should be yet"),
        }
    }

    /// All that asks etcd asks those that are there now, and later starts do.
    fn follow(&mut self, urls: &[String]) {
        if let Some(store) = self.joint.get()
            && let Err(error) = store.set_members(urls)
        {
            tracing::error!(error, "the members of etcd are not followed");
        }
        if self.record.client_urls == urls || urls.is_empty() {
            return;
        }
        self.record.client_urls = urls.to_vec();
        let kept = self.record.save(&self.place.data).and_then(|()| {
            // What another control plane is told.
            let Some(mut told) = ControlPlaneRecord::load(&self.place.data)? else { return Ok(()) };
            told.etcd_servers = urls.to_vec();
            told.save(&self.place.data)
        });
        if let Err(error) = kept {
            tracing::warn!(error = format!("{error:#}"), "where the members of etcd are cannot be kept");
        }
    }
}
