//! Keeps the ways to other nodes' Pods: watches the Nodes, and has the kernel follow.

use std::{collections::BTreeMap, pin::pin, sync::Arc, time::Duration};

use corten_api::resources::NODES;
use corten_client::{Backoff, BoxFuture, Client, Identity, Informer, InformerEvent, decode_projection};
use corten_meta::Key;
use corten_proxy::{LocalNode, PlacedNode, PodRoutes, RefusedWay, pod_routes};
use corten_reconcile::{Actor, Decision, Wait};
use tokio::time::{Instant, sleep_until};

use crate::{Clock, JournalBook, keeping};

/// Acts on the kernel of one machine. Errors are told to people.
pub trait RouteHands: Send + Sync + 'static {
    /// Makes the kernel have these ways and no others. Gives those that it refuses, while it takes the others.
    fn apply(&self, wanted: PodRoutes) -> BoxFuture<'_, Result<Vec<RefusedWay>, String>>;
}

/// The loop's name in journals.
const NAME: &str = "pod-routes";
/// What comes together is written together.
const PAUSE: Duration = Duration::from_millis(50);
/// How often to look whether somebody has changed them.
const LOOK: Duration = Duration::from_secs(10);
const BACKOFF_FIRST: Duration = Duration::from_millis(200);

/// What the loop is given.
pub struct PodRouteSettings {
    pub local_node: LocalNode,
    pub client: Client,
    pub hands: Arc<dyn RouteHands>,
    pub clock: Clock,
    pub journal: Arc<JournalBook>,
}

/// Runs until `shutdown` is ready. The routes stay.
pub async fn run_pod_routes(settings: PodRouteSettings, shutdown: impl Future<Output = ()> + Send) {
    let shutdown = pin!(shutdown);
    tokio::select! {
        biased;
        () = shutdown => {}
        () = follow(settings) => {}
    }
}

async fn follow(settings: PodRouteSettings) {
    let params = keeping::params(NODES, keeping::ROUTED_NODES).seeded_by(NAME);
    let mut informer: Informer<PlacedNode> = Informer::decoding(settings.client.clone(), params, |bytes| {
        let node: PlacedNode = decode_projection(&bytes)?;
        Ok((Identity::of(&node.metadata), node))
    });
    let mut nodes: BTreeMap<String, PlacedNode> = BTreeMap::new();
    let mut backoff = Backoff::new(BACKOFF_FIRST, LOOK, 1);
    let (mut said, mut last) = (Vec::new(), None);
    let mut due = Instant::now() + LOOK;
    loop {
        let event = tokio::select! {
            biased;
            event = informer.next() => Some(event),
            () = sleep_until(due) => None,
        };
        match event {
            Some(InformerEvent::Applied(node, identity)) => drop(nodes.insert(identity.key.name, node)),
            Some(InformerEvent::Deleted(meta)) => drop(nodes.remove(&meta.name)),
            Some(InformerEvent::Synced(_)) => {}
            // Before all nodes are known, those that are not seen yet would lose their routes.
            None if informer.n_lists() == 0 => {}
            None => {
                let is_done = put(&settings, &nodes, &mut said, &mut last).await;
                if is_done {
                    backoff.reset();
                }
                due = Instant::now() + if is_done { LOOK } else { backoff.delay() };
                continue;
            }
        }
        // A look that is due sooner stays so, however much comes meanwhile.
        due = due.min(Instant::now() + PAUSE);
    }
}

async fn put(
    settings: &PodRouteSettings,
    nodes: &BTreeMap<String, PlacedNode>,
    said: &mut Vec<Wait>,
    last: &mut Option<PodRoutes>,
) -> bool {
    let (wanted, mut waits) = pod_routes(&settings.local_node, nodes.values());
    // A node that is alone has nothing that somebody could change.
    let is_nothing = wanted == PodRoutes::default() && last.as_ref() == Some(&wanted);
    let applied = if is_nothing { Ok(Vec::new()) } else { settings.hands.apply(wanted.clone()).await };
    let failure = match applied {
        Ok(refused) => {
            waits.extend(refusals(refused, nodes));
            None
        }
        Err(failure) => Some(failure),
    };
    *last = failure.is_none().then_some(wanted);
    if let Some(failure) = &failure {
        let message = format!("the ways to other nodes' Pods cannot be made: {failure}");
        waits.push(Wait::new("PodRoutesFailed", message, Actor::Operator));
    }
    if waits != *said {
        for wait in &waits {
            tracing::warn!(message = wait.message, "pods of another node are not reached");
        }
        let decision = Decision {
            by: NAME.into(),
            at: Some((settings.clock)()),
            waits: waits.clone(),
            error: failure.clone(),
            ..Decision::default()
        };
        settings.journal.record(&NODES, &Key::cluster(&*settings.local_node.node_name), decision);
        *said = waits;
    }
    failure.is_none()
}

/// One wait for each node whose way is refused, in the kernel's words about the first of its lines.
fn refusals(refused: Vec<RefusedWay>, nodes: &BTreeMap<String, PlacedNode>) -> Vec<Wait> {
    let mut first: BTreeMap<Option<&String>, String> = BTreeMap::new();
    for RefusedWay { node, message } in refused {
        let name = node.and_then(|address| nodes.iter().find(|it| it.1.has(address)).map(|it| it.0));
        first.entry(name).or_insert(message);
    }
    let wait = |(node, why): (Option<&String>, String)| {
        let wait = |message| Wait::new("PodRouteRefused", message, Actor::Operator);
        match node {
            Some(node) => {
                wait(format!("the kernel refuses the way to the Pods of node {node}: {why}")).on("Node", node)
            }
            None => wait(format!("the kernel refuses what belongs to this node's end of the tunnel: {why}")),
        }
    };
    first.into_iter().map(wait).collect()
}

#[cfg(test)]
mod tests {
    use parking_lot::Mutex;
    use serde_json::json;

    use super::*;
    use crate::fake::{FakeApi, clock};

    struct FakeKernel(Mutex<Vec<PodRoutes>>);

    impl RouteHands for FakeKernel {
        fn apply(&self, wanted: PodRoutes) -> BoxFuture<'_, Result<Vec<RefusedWay>, String>> {
            let strange = wanted.routes.iter().filter(|it| it.node.to_string().starts_with("203."));
            let refused = strange.map(|it| RefusedWay { node: Some(it.node), message: "unreachable".into() }).collect();
            self.0.lock().push(wanted);
            Box::pin(async { Ok(refused) })
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_node_whose_way_is_refused_is_named() {
        let api = FakeApi::new();
        for (name, range, address) in
            [("two", "10.244.1.0/24", "192.168.0.2"), ("strange", "10.244.2.0/24", "203.0.113.9")]
        {
            let node = json!({
                "metadata": { "name": name },
                "spec": { "podCIDRs": [range] },
                "status": { "addresses": [{ "type": "InternalIP", "address": address }] },
            });
            api.put(&format!("/api/v1/nodes/{name}"), node);
        }
        let (kernel, journal) = (Arc::new(FakeKernel(Mutex::default())), Arc::new(JournalBook::default()));
        let cidrs = |text: &str| corten_meta::address::Cidr::parse(text).into_iter().collect::<Vec<_>>();
        let settings = PodRouteSettings {
            local_node: LocalNode {
                node_name: "one".into(),
                addresses: vec![[192, 168, 0, 1].into()],
                pod_cidrs: cidrs("10.244.0.0/24"),
                cluster_cidrs: cidrs("10.244.0.0/16"),
                node_bits: (24, 64),
                mode: corten_proxy::PodNetworkMode::Routes,
            },
            client: api.client(),
            hands: kernel.clone(),
            clock: clock(),
            journal: journal.clone(),
        };
        let work = async {
            loop {
                let decisions = journal.decisions(&NODES, &Key::cluster("one"));
                let waits: Vec<&Wait> = decisions.iter().flat_map(|it| &it.waits).collect();
                if let [wait] = waits[..] {
                    assert_eq!(wait.reason, "PodRouteRefused");
                    assert!(wait.message.contains("node strange: unreachable"), "{}", wait.message);
                    break;
                }
                tokio::time::advance(Duration::from_millis(10)).await;
            }
        };
        run_pod_routes(settings, work).await;
        assert_eq!(kernel.0.lock().last().map(|it| it.routes.len()), Some(2));
    }
}
