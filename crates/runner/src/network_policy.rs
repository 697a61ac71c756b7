//! Gives the mind of policies its hands: what is new of Pods, Namespaces and NetworkPolicies goes into the kernel.
//!
//! A sandbox that is just plugged in is led to its policies when the view holds the Pod, and policies and namespaces as new as
//! that: a policy that was there before the Pod is one that it meets. Whoever started the sandbox waits for it.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use corten_api::resources::{NAMESPACES, NETWORK_POLICIES, PODS};
use corten_client::{BoxFuture, Client, Informer, Progress, ResourceIndex, version_number};
use corten_meta::Key;
use corten_netpolicy::{
    Event, NetworkPolicies, PodMatch, PodSandbox, Step,
    projections::{Namespace, NetworkPolicy, Pod},
    rules::Change,
};
use corten_reconcile::{Decision, Wait};
use tokio::time::Instant;

use crate::{
    Clock, JournalBook, keeping,
    kernel_table::{LOOK, Table, TableHands, TableLoop, Words, informer, poll_informer, run_table},
};

/// Acts on the kernel of one machine, and hears of its sandboxes. Errors are told to people.
pub trait PolicyHands: TableHands {
    /// All of it at once, or nothing.
    fn apply(&self, changes: Vec<Change>) -> BoxFuture<'_, Result<(), String>>;
    /// All sandboxes that have a network.
    /// # Errors
    /// The runtime does not tell just now.
    fn plugged(&self) -> BoxFuture<'_, Result<Vec<PodSandbox>, String>>;
    /// Which of them may still be there.
    ///
    /// # Errors
    /// As there.
    fn sandboxes(&self) -> BoxFuture<'_, Result<BTreeSet<String>, String>>;
    /// What happened to sandboxes since the last call, once there is something: plugged in, or gone.
    fn next_plugs(&self) -> BoxFuture<'_, Vec<Result<PodSandbox, String>>>;
    /// The policies of these sandboxes hold: their containers may start.
    fn laid(&self, sandboxes: &BTreeSet<String>);
    /// Why rules are refused, for those who wait; nothing once they are taken.
    fn refused(&self, why: Option<String>);
    /// Why packets pass by the rules, where some do.
    fn gap(&self) -> BoxFuture<'_, Option<String>>;
}

/// What the loop is given.
pub struct NetworkPolicySettings {
    pub node_name: String,
    /// What the packets of the node's Pods are known by.
    pub pod_match: PodMatch,
    pub client: Client,
    pub hands: Arc<dyn PolicyHands>,
    pub clock: Clock,
    pub journal: Arc<JournalBook>,
}

const WORDS: Words = Words {
    by: corten_netpolicy::NAME,
    resource: NETWORK_POLICIES,
    rules: "the packet rules of network policies",
    gone: "PolicyRulesGone",
    refused: "PolicyRulesRefused",
    backoff_max: Duration::from_secs(5),
};
/// A server that does not say how far its watches have come is asked for lists after this.
const PROGRESS: Duration = Duration::from_secs(1);
/// A Pod that the API does not know for so long is one that only its node knows.
const UNKNOWN: Duration = Duration::from_secs(5);

/// Runs until `shutdown` is ready. The rules stay, and the next run goes on with them.
pub async fn run_network_policy(settings: NetworkPolicySettings, shutdown: impl Future<Output = ()> + Send) {
    let mut running = PolicyLoop::new(settings);
    tokio::pin!(shutdown);
    // What is plugged in already runs: it is led as soon as the first lists are there. Until it is known the rules of before stay.
    let plugged = tokio::select! {
        () = &mut shutdown => return,
        plugged = all_plugged(&*running.hands) => plugged,
    };
    let _: Step = running.policies.step(plugged.into_iter().map(Event::Plugged));
    run_table(running, shutdown).await;
}

/// Asked until the runtime tells.
async fn all_plugged(hands: &dyn PolicyHands) -> Vec<PodSandbox> {
    loop {
        match hands.plugged().await {
            Ok(plugged) => return plugged,
            Err(error) => tracing::warn!(error, "it is not known which pods are plugged in"),
        }
        tokio::time::sleep(PROGRESS).await;
    }
}

type Plugs = Vec<Result<PodSandbox, String>>;

/// A sandbox whose policies are not known for certain yet.
struct Parked {
    plugged: PodSandbox,
    since: Instant,
    /// The revision up to which policies and namespaces must have been seen.
    barrier: Option<u64>,
    /// They are listed for it.
    is_listed: bool,
}

/// How far the cluster has come, while somebody waits for that.
struct Followed {
    progress: Progress,
    /// Of policies and of namespaces.
    places: [ResourceIndex; 2],
}

struct PolicyLoop {
    policies: NetworkPolicies,
    client: Client,
    hands: Arc<dyn PolicyHands>,
    table: Table,
    pods: Informer<Box<Pod>>,
    namespaces: Informer<Box<Namespace>>,
    objects: Informer<Box<NetworkPolicy>>,
    plugs: BoxFuture<'static, Plugs>,
    parked: BTreeMap<String, Parked>,
    followed: Option<Followed>,
    /// How far the view had come when it was last looked at.
    was_seen: u64,
    /// Why packets pass by the rules.
    gap: Option<String>,
}

impl PolicyLoop {
    fn new(settings: NetworkPolicySettings) -> Self {
        let NetworkPolicySettings { node_name, pod_match, client, hands, clock, journal } = settings;
        let all = |resource, how| keeping::params(resource, how).seeded_by(corten_netpolicy::NAME);
        Self {
            policies: NetworkPolicies::new(&node_name).with_pod_match(pod_match),
            pods: informer(&client, all(PODS, keeping::SELECTED_PODS)),
            namespaces: informer(&client, all(NAMESPACES, keeping::NAMESPACES)),
            objects: informer(&client, all(NETWORK_POLICIES, keeping::NETWORK_POLICIES)),
            table: Table::new(WORDS, (&node_name, &client), hands.clone(), clock, journal),
            plugs: next_plugs(hands.clone()),
            parked: BTreeMap::new(),
            followed: None,
            was_seen: 0,
            gap: None,
            hands,
            client,
        }
    }

    /// Sandboxes that came wait here; those that went are told at once.
    fn park(&mut self, plugs: Plugs) -> Vec<Event> {
        let mut gone = Vec::new();
        for plug in plugs {
            match plug {
                Ok(plugged) => {
                    let sandbox = plugged.sandbox.clone();
                    let parked = Parked { plugged, since: Instant::now(), barrier: None, is_listed: false };
                    self.parked.insert(sandbox, parked);
                }
                Err(sandbox) => {
                    self.parked.remove(&sandbox);
                    gone.push(Event::Unplugged(sandbox));
                }
            }
        }
        gone
    }

    /// Up to where policies and namespaces have been seen.
    fn seen(&self) -> u64 {
        let versions = [self.objects.version(), self.namespaces.version()];
        let versions = versions.map(|it| version_number(it).unwrap_or_default());
        let [policies, namespaces] = match &self.followed {
            Some(Followed { progress, places }) => [0, 1].map(|idx| progress.of(places[idx], versions[idx])),
            None => versions,
        };
        policies.min(namespaces)
    }

    /// Nothing may have come of policies and namespaces because there is nothing new: only the server knows that, and it is asked while a
    /// sandbox waits.
    fn poll_progress(&mut self, context: &mut Context<'_>) {
        if self.parked.is_empty() {
            self.followed = None;
            return;
        }
        let Followed { progress, .. } = self.followed.get_or_insert_with(|| {
            let mut progress = Progress::new(self.client.clone());
            let places = [&NETWORK_POLICIES, &NAMESPACES].map(|it| progress.place(it));
            Followed { progress, places }
        });
        while progress.poll(context).is_ready() {}
    }
}

impl TableLoop for PolicyLoop {
    type Event = Event;
    type Step = Step;

    fn table(&mut self) -> &mut Table {
        &mut self.table
    }

    fn is_synced(&self) -> bool {
        let n_lists = [self.pods.n_lists(), self.namespaces.n_lists(), self.objects.n_lists()];
        n_lists.iter().all(|it| *it > 0)
    }

    fn poll_news(&mut self, context: &mut Context<'_>, events: &mut Vec<Event>) -> bool {
        poll_informer(&mut self.objects, context, events, Event::Policy, |it| Some(Event::PolicyGone(it)));
        let gone = |it: Key| Some(Event::NamespaceGone(it.name));
        poll_informer(&mut self.namespaces, context, events, Event::Namespace, gone);
        poll_informer(&mut self.pods, context, events, Event::Pod, |it| Some(Event::PodGone(it)));
        let mut is_ready = false;
        if let Poll::Ready(plugs) = self.plugs.as_mut().poll(context) {
            self.plugs = next_plugs(self.hands.clone());
            events.extend(self.park(plugs));
            is_ready = true;
        }
        self.poll_progress(context);
        // How far the view has come is only of interest to those who wait for it.
        let seen = self.seen();
        is_ready |= !self.parked.is_empty() && seen != self.was_seen;
        self.was_seen = seen;
        is_ready
    }

    fn due(&self) -> Option<Instant> {
        let now = Instant::now();
        self.parked.values().map(Parked::next_look).filter(|it| *it > now).min()
    }

    /// A sandbox may have gone without a word.
    async fn look(&mut self) -> Vec<Event> {
        let gap = self.hands.gap().await;
        if gap != self.gap {
            self.gap = gap;
            self.table.explain(self.policies.decisions(), self.remark().as_ref());
        }
        // Of a sandbox that the runtime does not tell of just now nothing is taken away.
        let Ok(there) = self.hands.sandboxes().await else { return vec![Event::Look] };
        let gone = self.policies.plugged().keys().filter(|it| !there.contains(*it));
        gone.cloned().map(Event::Unplugged).chain([Event::Look]).collect()
    }

    fn step(&mut self, events: Vec<Event>) -> Step {
        self.policies.step(events)
    }

    fn forgotten(step: &Step) -> &[Key] {
        &step.forgotten
    }

    /// The sandboxes for whose Pods the view is new enough.
    fn released(&mut self) -> Vec<Event> {
        let (seen, pods_seen) = (self.seen(), version_number(self.pods.version()).unwrap_or_default());
        // Nobody knows of anything newer while no server answers: what is known holds.
        let (now, mut lists, is_cut_off) = (Instant::now(), false, self.client.is_cut_off());
        let mut released = Vec::new();
        for (sandbox, parked) in &mut self.parked {
            if parked.barrier.is_none() && (self.policies.knows(&parked.plugged) || parked.since + UNKNOWN <= now) {
                parked.barrier = Some(pods_seen);
            }
            match parked.barrier {
                Some(barrier) if barrier <= seen || is_cut_off => released.push(sandbox.clone()),
                Some(_) if parked.since + PROGRESS <= now && !parked.is_listed => {
                    parked.is_listed = true;
                    lists = true;
                }
                _ => {}
            }
        }
        if lists {
            self.objects.relist();
            self.namespaces.relist();
        }
        released.iter().filter_map(|it| self.parked.remove(it)).map(|it| Event::Plugged(it.plugged)).collect()
    }

    async fn change(&mut self, step: Step) -> Result<Vec<(Key, Decision)>, String> {
        let (begin, n_changes) = (Instant::now(), step.changes.len());
        self.hands.apply(step.changes).await?;
        if n_changes > 0 {
            tracing::debug!(n_changes, took = ?begin.elapsed(), "the packet rules of policies changed");
        }
        self.hands.laid(&step.laid);
        Ok(step.decisions)
    }

    /// In place of what the kernel holds.
    async fn whole(&mut self) -> Result<(), String> {
        self.gap = self.hands.gap().await;
        self.hands.apply(self.policies.whole()).await?;
        self.hands.laid(&self.policies.laid());
        Ok(())
    }

    fn counts(&self) -> (usize, usize) {
        self.policies.counts()
    }

    fn decisions(&self) -> Vec<(Key, Decision)> {
        self.policies.decisions()
    }

    fn tell_refused(&self, why: Option<&str>) {
        self.hands.refused(why.map(str::to_owned));
    }

    fn remark(&self) -> Option<Wait> {
        let gap = self.gap.as_ref()?;
        Some(self.table.wait("NotFiltered", format!("on node {} {gap}", self.table.node_name())))
    }
}

fn next_plugs(hands: Arc<dyn PolicyHands>) -> BoxFuture<'static, Plugs> {
    Box::pin(async move { hands.next_plugs().await })
}

impl Parked {
    /// When there is something to do for it though nothing came.
    fn next_look(&self) -> Instant {
        let after = match self.barrier {
            None => UNKNOWN,
            Some(_) if !self.is_listed => PROGRESS,
            Some(_) => UNKNOWN + LOOK,
        };
        self.since + after
    }
}

#[cfg(test)]
mod tests;
