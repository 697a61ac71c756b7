//! What the kubelet's server asks of the cluster, asked by its node; what it serves with, and what it tells of the node's loops.

use std::sync::Arc;

use corten_api::version::VERSION;
use corten_client::{Client, RequestTallies};
use corten_host::{Caller, CertificateTimes, Cluster, Journals, Lasting, Measures, NodeAccess, OwnList, ServingKey};
use corten_meta::Time;
use corten_metrics::scraped::number;
use corten_reconcile::{
    LoopMetric, MetricKind, Tally,
    node_journal::{self, NODE_JOURNALS_MAX, NodeJournals},
};
use corten_runner::{
    JournalBook, NodeCaller, NodeInquiries, NodeQuestion, OwnPods, ServingCertificate, ServingKeys, ServingNames,
};
use futures_util::future::BoxFuture;
use serde_json::{Value, json};

use crate::{
    cluster_access::{ClusterAccess, ClusterTrust},
    process::Clock,
};

/// What the kubelet itself has is told in the place of the API's where no server answers.
pub(crate) struct NodeCluster {
    pub(crate) inquiries: NodeInquiries,
    pub(crate) own: Arc<OwnPods>,
    /// Does a server answer?
    pub(crate) client: Client,
}

impl NodeCluster {
    async fn own_pod(&self, namespace: &str, name: &str) -> Result<Option<Value>, String> {
        let is_it = |it: &&Value| it["metadata"]["namespace"] == namespace && it["metadata"]["name"] == name;
        Ok(self.own_objects().await?.pods.iter().find(is_it).cloned())
    }

    async fn own_objects(&self) -> Result<OwnList, String> {
        let own = self.own.ask().await.ok_or("the kubelet does not say what it has")?;
        let value = |it: serde_json::Result<Value>| it.map_err(|it| it.to_string());
        Ok(OwnList {
            node: own.node.map(|it| value(serde_json::to_value(it))).transpose()?,
            pods: own.pods.into_iter().map(|it| value(serde_json::to_value(it))).collect::<Result<_, _>>()?,
        })
    }
}

impl Cluster for NodeCluster {
    fn review_token(&self, token: String) -> BoxFuture<'_, Result<Option<Caller>, String>> {
        Box::pin(async move {
            let caller = self.inquiries.review_token(token).await.map_err(|it| it.to_string())?;
            Ok(caller.map(|NodeCaller { user, uid, groups }| Caller { user, uid, groups }))
        })
    }

    fn review_access(&self, caller: Caller, access: NodeAccess) -> BoxFuture<'_, Result<bool, String>> {
        let Caller { user, uid, groups } = caller;
        let caller = NodeCaller { user, uid, groups };
        let question = NodeQuestion { caller, verb: access.verb, subresource: access.subresource };
        Box::pin(async move { self.inquiries.review_access(question).await.map_err(|it| it.to_string()) })
    }

    fn pod(&self, namespace: String, name: String) -> BoxFuture<'_, Result<Option<Value>, String>> {
        Box::pin(async move {
            if self.client.is_cut_off() {
                return self.own_pod(&namespace, &name).await;
            }
            self.inquiries.pod(&namespace, &name).await.map_err(|it| it.to_string())
        })
    }

    fn pods(&self) -> BoxFuture<'_, Result<Value, String>> {
        Box::pin(async move {
            if self.client.is_cut_off() {
                let pods = self.own_objects().await?.pods;
                return Ok(json!({ "kind": "PodList", "apiVersion": "v1", "metadata": {}, "items": pods }));
            }
            self.inquiries.pods().await.map_err(|it| it.to_string())
        })
    }

    fn own(&self) -> BoxFuture<'_, Result<OwnList, String>> {
        Box::pin(self.own_objects())
    }
}

/// The kubelet's own key and certificate.
pub(crate) struct Keys {
    pub(crate) own: Arc<ServingKey>,
    pub(crate) trust: Arc<dyn ClusterTrust>,
}

impl ServingKeys for Keys {
    /// None that another authority signed than the one of now: that is trusted for a while only.
    fn current(&self) -> Option<ServingCertificate> {
        if !self.own.is_signed_by(&self.trust.signer_pem()) {
            return None;
        }
        let Lasting { from, until, dns, addresses } = self.own.lasting()?;
        Some(ServingCertificate { from, until, names: ServingNames { dns, addresses } })
    }

    fn request(&self, names: &ServingNames) -> Result<String, String> {
        self.own.request(&names.dns, &names.addresses)
    }

    fn install(&self, certificate: &str) -> Result<(), String> {
        self.own.install(certificate)
    }

    fn outdated(&self) -> BoxFuture<'_, ()> {
        let mut changes = self.trust.changes();
        Box::pin(async move {
            // An error says that there is no authority any more.
            let _ = changes.changed().await;
        })
    }
}

/// What the loops of this process have noted, as far as they are a node's.
pub(crate) struct NodeLoops(pub(crate) Arc<JournalBook>);

impl Journals for NodeLoops {
    fn of(&self, namespace: &str, journal: &str) -> Option<Value> {
        let (resource, key) = node_journal::about(namespace, journal)?;
        let journal = node_journal::of_node(&resource, &key, self.0.decisions(&resource, &key));
        serde_json::to_value(journal).ok()
    }

    fn waiting(&self) -> Value {
        let waiting = self.0.waiting(|resource, _, _| node_journal::is_of_nodes(resource));
        let journals =
            waiting.iter().map(|(resource, key)| node_journal::of_node(resource, key, self.0.decisions(resource, key)));
        let items = journals.filter(|it| !it.decisions.is_empty()).take(NODE_JOURNALS_MAX).collect();
        serde_json::to_value(NodeJournals { items }).unwrap_or_default()
    }
}

static CLIENT_RENEW_ERRORS: LoopMetric = LoopMetric {
    name: "kubelet_certificate_manager_client_expiration_renew_errors",
    help: "[ALPHA] Counter of certificate renewal errors.",
    labels: &[],
    kind: MetricKind::Counter,
};

/// What this process counts as a node's.
pub(crate) struct NodeMeasures {
    journal: Arc<JournalBook>,
    requests: RequestTallies,
    trust: Arc<dyn ClusterTrust>,
    serving: Arc<ServingKey>,
    clock: Clock,
    started: Time,
}

impl NodeMeasures {
    pub(crate) fn new(cluster: &ClusterAccess, serving: Arc<ServingKey>) -> Self {
        Self {
            journal: cluster.journal.clone(),
            requests: cluster.requests().clone(),
            trust: cluster.trust.clone(),
            serving,
            clock: cluster.clock.clone(),
            started: (cluster.clock)(),
        }
    }
}

impl Measures for NodeMeasures {
    fn tallies(&self) -> Vec<Tally> {
        let mut tallies = self.journal.of_node().tallies();
        tallies.extend(self.requests.tallies());
        let mut renewals = Tally::new(&CLIENT_RENEW_ERRORS, 1);
        renewals.count::<&str>(&[], number(self.trust.client_certificate().renew_errors));
        tallies.push(renewals);
        tallies
    }

    fn process(&self) -> String {
        corten_metrics::encoded(&corten_metrics::process(self.started.unix_millis() / 1000, VERSION))
    }

    fn certificates(&self) -> CertificateTimes {
        let now = (self.clock)();
        let left = |until: Time| (until.unix_millis() - now.unix_millis()) / 1000;
        CertificateTimes {
            client: self.trust.client_certificate().until.map(left),
            server: self.serving.lasting().map(|it| left(it.until)),
        }
    }
}

#[cfg(test)]
mod tests {
    use tokio::sync::watch;

    use super::*;
    use crate::cluster_access::ClientCertificate;

    struct Trust;

    impl ClusterTrust for Trust {
        fn ca_pem(&self) -> String {
            String::new()
        }

        fn signer_pem(&self) -> String {
            String::new()
        }

        fn changes(&self) -> watch::Receiver<()> {
            watch::Sender::new(()).subscribe()
        }

        fn client_certificate(&self) -> ClientCertificate {
            ClientCertificate { until: Some(Time::from_unix_seconds(90)), renew_errors: 3 }
        }
    }

    #[test]
    fn a_node_tells_of_its_process_and_its_certificates() {
        let dir = tempfile::tempdir().expect("a temporary folder");
        let measures = NodeMeasures {
            journal: Arc::default(),
            requests: RequestTallies::default(),
            trust: Arc::new(Trust),
            serving: Arc::new(ServingKey::load("n1", dir.path(), "")),
            clock: Arc::new(|| Time::from_unix_seconds(100)),
            started: Time::from_unix_seconds(90),
        };
        assert!(measures.process().contains("process_start_time_seconds 90\n"), "{}", measures.process());
        assert_eq!(measures.certificates(), CertificateTimes { client: Some(-10), server: None });
        let tallies = measures.tallies();
        let renewals = tallies.iter().find(|it| it.metric.name == CLIENT_RENEW_ERRORS.name).expect("it is told");
        assert!((renewals.rows()[0].sum - 3.0).abs() < 1e-9, "{renewals:?}");
    }
}
