//! Asks other servers, remembers what they said, and notices when their answer would come from here.
//!
//! One question is under way once, however many wait for it: that spares the servers, and leaves an attacker one port and
//! one id to guess instead of many.

use std::{
    collections::BTreeMap,
    io,
    net::{IpAddr, SocketAddr},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use arc_swap::ArcSwap;
use corten_dns::{Cache, CachedAnswer, NO_ERROR, NX_DOMAIN, Name, Question, Reading};
use futures_util::{
    FutureExt,
    future::{BoxFuture, Shared},
};
use tokio::time::{Instant, timeout};

use super::{Ipv4Way, ListServers, WaysOut, exchange::exchange, upstreams::Upstreams};

const CACHE_BYTES_MAX: usize = 8 << 20;
/// How long one server may take before another is asked.
const PATIENCE: Duration = Duration::from_millis(1500);
/// What a client's own patience is, and so how long looking may take.
const PATIENCE_IN_ALL: Duration = Duration::from_secs(5);
const ROUNDS: usize = 2;
/// How long a circle stays a circle before it is looked at again.
const LOOP_INTERVAL: Duration = Duration::from_secs(60);
const HINFO: u16 = 13;

pub(super) struct Forwarder {
    upstreams: Upstreams,
    /// The longest domain first.
    stub_domains: Vec<(Name, Upstreams)>,
    ipv4: Option<Ipv4Way>,
    /// As they were last looked at.
    ways_out: ArcSwap<WaysOut>,
    cache: Mutex<Cache>,
    under_way: Mutex<BTreeMap<Question, Shared<BoxFuture<'static, Option<CachedAnswer>>>>>,
    began: Instant,
    circle: Mutex<Circle>,
}

/// Is one of the other servers, in the end, this one?
struct Circle {
    /// A name nobody asks for but this server.
    name: Name,
    found_at: Option<Instant>,
}

impl Forwarder {
    pub(super) fn new(
        own: Vec<SocketAddr>,
        own_names: Vec<IpAddr>,
        servers: ListServers,
        stub_domains: Vec<(Name, Vec<SocketAddr>)>,
        ipv4: Option<Ipv4Way>,
    ) -> io::Result<Self> {
        let stub = |(domain, servers): (Name, Vec<SocketAddr>)| {
            let upstreams = Upstreams::new(own.clone(), own_names.clone(), Box::new(move || servers.clone()));
            // These servers do not change.
            upstreams.reread();
            (domain, upstreams)
        };
        let mut stub_domains: Vec<(Name, Upstreams)> = stub_domains.into_iter().map(stub).collect();
        stub_domains.sort_by_key(|it| std::cmp::Reverse(it.0.as_wire().len()));
        Ok(Self {
            stub_domains,
            upstreams: Upstreams::new(own, own_names, servers),
            ways_out: ArcSwap::from_pointee(ipv4.as_ref().map(|it| (it.ways_out)()).unwrap_or_default()),
            ipv4,
            cache: Mutex::new(Cache::new(CACHE_BYTES_MAX)),
            under_way: Mutex::default(),
            began: Instant::now(),
            circle: Mutex::new(Circle { name: name_of_chance()?, found_at: None }),
        })
    }

    /// Sees to the list of servers; a new one is tried for circles.
    pub(super) async fn keep(&self) {
        if let Some(ipv4) = &self.ipv4 {
            self.ways_out.store(Arc::new((ipv4.ways_out)()));
        }
        let is_due = lock(&self.circle).found_at.is_some_and(|it| it.elapsed() >= LOOP_INTERVAL);
        if self.upstreams.reread() || is_due {
            self.look_for_circles().await;
        }
    }

    async fn look_for_circles(&self) {
        let Ok(name) = name_of_chance() else { return };
        *lock(&self.circle) = Circle { name, found_at: None };
        let question = Question { name, qtype: HINFO, dnssec_ok: false, checking_disabled: false };
        for server in self.upstreams.in_order() {
            // Whatever it says: the question is whether it comes here to ask.
            let _ = exchange(server, &question, PATIENCE).await;
        }
        if lock(&self.circle).found_at.is_some() {
            tracing::error!(
                servers = ?self.upstreams.in_order(),
                "a name server of this machine asks the cluster's: no name outside the cluster can be resolved"
            );
        }
    }

    /// What is known already.
    pub(super) fn known(&self, question: &Question) -> Option<CachedAnswer> {
        lock(&self.cache).find(question, self.now()).filter(|it| !it.is_stale)
    }

    /// Asks, with everybody else who asks the same.
    pub(super) async fn look_up(self: &Arc<Self>, question: &Question) -> Option<CachedAnswer> {
        {
            let mut circle = lock(&self.circle);
            if circle.name == question.name {
                circle.found_at = Some(Instant::now());
            }
            // Servers of a domain are not those that ask this one.
            if circle.found_at.is_some() && self.stub(&question.name).is_none() {
                return None;
            }
        }
        let under_way = {
            let mut all = lock(&self.under_way);
            all.entry(*question).or_insert_with(|| self.clone().ask(*question).boxed().shared()).clone()
        };
        under_way.await
    }

    async fn ask(self: Arc<Self>, question: Question) -> Option<CachedAnswer> {
        let learned = self.learn(&question).await;
        let now = self.now();
        let found = match learned {
            Some(reading) => {
                let reading = Arc::new(reading);
                lock(&self.cache).keep(&question, reading.clone(), now);
                Some(CachedAnswer { reading, age: 0, is_stale: false })
            }
            // Better what held a while ago than nothing.
            None => lock(&self.cache).find(&question, now),
        };
        lock(&self.under_way).remove(&question);
        found
    }

    /// The answer, with addresses that stand for others' where it has none that can be reached. Both questions are asked at once, so that
    /// nobody waits for longer.
    async fn learn(&self, question: &Question) -> Option<Reading> {
        let ask = async |question: &Question| timeout(PATIENCE_IN_ALL, self.ask_all(question)).await.ok().flatten();
        let ways_out = **self.ways_out.load();
        let ipv4 = self.ipv4.as_ref().filter(|_| ways_out.ipv4);
        let Some((ipv4, instead)) = ipv4.zip(corten_dns::instead(question)) else { return ask(question).await };
        let known = self.known(&instead).map(|it| it.reading);
        let ask_instead = async {
            match known {
                Some(known) => Some(known),
                None => ask(&instead).await.map(Arc::new).inspect(|it| {
                    lock(&self.cache).keep(&instead, it.clone(), self.now());
                }),
            }
        };
        let (reading, found) = tokio::join!(ask(question), ask_instead);
        if reading.as_ref().is_none_or(|it| it.lacks_ipv6() || !ways_out.ipv6)
            && let Some(made) = found.and_then(|it| it.as_ipv6(question, ipv4.way_to))
        {
            return Some(made);
        }
        reading
    }

    /// The first good answer; else the last bad one.
    async fn ask_all(&self, question: &Question) -> Option<Reading> {
        let mut bad = None;
        let upstreams = self.stub(&question.name).unwrap_or(&self.upstreams);
        for _ in 0..ROUNDS {
            for server in upstreams.in_order() {
                match exchange(server, question, PATIENCE).await {
                    Ok(reading) if matches!(reading.code, NO_ERROR | NX_DOMAIN) => {
                        upstreams.answered(server, true);
                        return Some(reading);
                    }
                    Ok(reading) => bad = Some(reading),
                    Err(error) => {
                        tracing::debug!(%server, name = %question.name, %error, "a name server does not answer");
                        upstreams.answered(server, false);
                    }
                }
            }
            if bad.is_some() {
                break;
            }
        }
        bad
    }

    /// The servers of the domain that the name is within.
    fn stub(&self, name: &Name) -> Option<&Upstreams> {
        self.stub_domains.iter().find(|it| name.is_within(&it.0)).map(|it| &it.1)
    }

    #[cfg(test)]
    pub(super) fn reread(&self) {
        self.upstreams.reread();
    }

    #[cfg(test)]
    pub(super) fn is_in_circle(&self) -> bool {
        lock(&self.circle).found_at.is_some()
    }

    fn now(&self) -> u64 {
        self.began.elapsed().as_secs()
    }
}

fn name_of_chance() -> io::Result<Name> {
    let mut chance = [0; 16];
    aws_lc_rs::rand::fill(&mut chance).map_err(|_| io::Error::other("the machine has no random numbers"))?;
    let text = format!("{:016x}.{:x}", u128::from_ne_bytes(chance) >> 64, chance[15]);
    Name::parse(&text).ok_or_else(|| io::Error::other("digits are no name"))
}

fn lock<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}
