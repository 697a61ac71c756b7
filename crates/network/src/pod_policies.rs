//! Where a new Pod waits until its policies are in the kernel: its sandbox is not made before.
//!
//! ```text
//! sandbox is plugged in ──► plug ──► the loop of policies ──► its rules are taken ──► laid ──► the first container may start
//! ```

use std::{
    collections::BTreeMap,
    net::IpAddr,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use corten_machine::Layout;
use corten_netpolicy::PodSandbox;
use tokio::sync::{Notify, oneshot, watch};

use crate::{PolicyRules, cni::PodLink};

/// Whoever waits longer begins anew: its sandbox is taken down, and made again after a while.
const DEADLINE: Duration = Duration::from_secs(30);

/// What happened to a sandbox's network.
#[derive(Clone, Debug)]
pub enum PlugEvent {
    In(PodSandbox),
    /// By the sandbox's id.
    Out(String),
}

/// The sandboxes of a node on their way to the loop that lays policies. Clones are the same.
#[derive(Clone)]
pub struct PodPolicies {
    layout: Arc<Layout>,
    link: PodLink,
    state: Arc<Mutex<State>>,
    news: Arc<Notify>,
    /// Have the rules of all policies been taken once?
    has_begun: Arc<watch::Sender<bool>>,
}

#[derive(Default)]
struct State {
    /// Is there a loop?
    is_enforced: bool,
    events: Vec<PlugEvent>,
    waiting: BTreeMap<String, oneshot::Sender<()>>,
    /// Why the kernel does not take rules.
    refused: Option<String>,
}

impl PodPolicies {
    pub fn new(layout: &Layout, link: &PodLink) -> Self {
        Self {
            layout: Arc::new(layout.clone()),
            link: link.clone(),
            state: Arc::default(),
            news: Arc::default(),
            has_begun: Arc::default(),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Who plugs the Pods in.
    pub fn link(&self) -> &PodLink {
        &self.link
    }

    /// From now on Pods wait.
    pub fn enforce(&self) {
        self.state().is_enforced = true;
    }

    /// Waits until the rules of all policies are there: whoever goes on with a sandbox of an earlier run finds it led. A node
    /// that cannot have them goes on all the same after a while.
    pub async fn begun(&self) {
        let mut begun = self.has_begun.subscribe();
        // An error says that time is up, or that nobody can tell any more.
        let _ = tokio::time::timeout(DEADLINE, begun.wait_for(|it| *it)).await;
    }

    /// Does a Pod wait for its policies?
    pub fn is_enforced(&self) -> bool {
        self.state().is_enforced
    }

    /// Waits until the policies of the Pod in this sandbox hold.
    ///
    /// # Errors
    /// They do not after a while.
    pub async fn plug(&self, plugged: PodSandbox) -> Result<(), String> {
        let sandbox = plugged.sandbox.clone();
        let laid = {
            let (tell, laid) = oneshot::channel();
            let mut state = self.state();
            if !state.is_enforced {
                return Ok(());
            }
            state.waiting.insert(sandbox.clone(), tell);
            state.events.push(PlugEvent::In(plugged));
            laid
        };
        self.news.notify_one();
        match tokio::time::timeout(DEADLINE, laid).await {
            Ok(Ok(())) => Ok(()),
            _ => {
                let mut state = self.state();
                state.waiting.remove(&sandbox);
                let why = state.refused.clone().unwrap_or_else(|| "the node does not know them yet".to_owned());
                Err(format!("they were not laid within {} s: {why}", DEADLINE.as_secs()))
            }
        }
    }

    /// A sandbox is unplugged, which had these addresses: the next who has them is asked by none of its flows.
    pub async fn unplug(&self, sandbox: &str, addresses: &[IpAddr]) {
        {
            let mut state = self.state();
            if !state.is_enforced {
                return;
            }
            state.events.push(PlugEvent::Out(sandbox.to_owned()));
        }
        self.news.notify_one();
        let rules = PolicyRules::new(&self.layout);
        if let Err(error) = rules.forget(addresses.iter().copied().collect()).await {
            tracing::warn!(%error, sandbox, "flows of a pod that is gone cannot be forgotten");
        }
    }

    /// What happened since the last call, once there is something.
    pub async fn next(&self) -> Vec<PlugEvent> {
        loop {
            let events = std::mem::take(&mut self.state().events);
            if !events.is_empty() {
                return events;
            }
            self.news.notified().await;
        }
    }

    /// The policies of these sandboxes hold.
    pub fn laid<'a>(&self, sandboxes: impl IntoIterator<Item = &'a String>) {
        let mut state = self.state();
        for sandbox in sandboxes {
            if let Some(tell) = state.waiting.remove(sandbox) {
                // Nobody listens who has waited too long.
                let _ = tell.send(());
            }
        }
    }

    /// Why the kernel does not take rules, for those who wait.
    /// Nothing once they are taken.
    pub fn refused(&self, why: Option<String>) {
        self.has_begun.send_if_modified(|it| !std::mem::replace(it, *it || why.is_none()) && why.is_none());
        self.state().refused = why;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn nobody_waits_where_nothing_is_enforced() {
        let dir = tempfile::tempdir().expect("a temporary folder");
        let layout = Layout::new(dir.path().join("data"), dir.path().join("run"));
        let policies = PodPolicies::new(&layout, &PodLink::Bridge);
        assert_eq!(policies.plug(PodSandbox::default()).await, Ok(()));
        policies.enforce();
        policies.unplug("a", &[]).await;
        assert!(matches!(&policies.next().await[..], [PlugEvent::Out(it)] if it == "a"));
    }
}
