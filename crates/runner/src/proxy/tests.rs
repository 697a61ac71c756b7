use corten_proxy::Config;
use parking_lot::Mutex;
use serde_json::json;

use super::*;
use crate::fake::{FakeApi, clock};

/// A kernel that takes what it is told to, and can lose it all.
#[derive(Default)]
struct FakeKernel {
    refusals: Mutex<u32>,
    is_emptied: Mutex<bool>,
    applied: Mutex<Vec<Vec<String>>>,
    forgotten: Mutex<Vec<Stale>>,
    listening: Mutex<BTreeSet<(Protocol, u16)>>,
}

impl FakeKernel {
    fn n_applied(&self) -> usize {
        self.applied.lock().len()
    }

    fn last(&self) -> Vec<String> {
        self.applied.lock().last().cloned().unwrap_or_default()
    }
}

impl TableHands for FakeKernel {
    fn is_there(&self) -> BoxFuture<'_, Result<bool, String>> {
        Box::pin(async { Ok(!std::mem::take(&mut *self.is_emptied.lock())) })
    }
}

impl PacketHands for FakeKernel {
    fn existing(&self) -> BoxFuture<'_, Result<Existing, String>> {
        Box::pin(async { Ok(Existing::default()) })
    }

    fn apply(&self, changes: Vec<Change>) -> BoxFuture<'_, Result<(), String>> {
        Box::pin(async move {
            let mut refusals = self.refusals.lock();
            if *refusals > 0 && !changes.is_empty() {
                *refusals -= 1;
                return Err("operation not permitted".to_owned());
            }
            if !changes.is_empty() {
                self.applied.lock().push(changes.iter().map(ToString::to_string).collect());
            }
            Ok(())
        })
    }

    fn forget(&self, stale: BTreeSet<Stale>) -> BoxFuture<'_, Result<usize, String>> {
        self.forgotten.lock().extend(stale);
        Box::pin(async { Ok(0) })
    }

    fn forget_unbound(&self, _: BTreeMap<Frontend, BTreeSet<Backend>>) -> BoxFuture<'_, Result<usize, String>> {
        Box::pin(async { Ok(0) })
    }

    fn listening(&self) -> BoxFuture<'_, BTreeSet<(Protocol, u16)>> {
        Box::pin(async { self.listening.lock().clone() })
    }

    fn answer_health(&self, _: Vec<Health>) {}
}

const SERVICE: &str = "/api/v1/namespaces/default/services/dns";
const SLICE: &str = "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices/dns-a";

fn put(api: &FakeApi, addresses: &[&str]) {
    put_annotated(api, addresses, &json!({}));
}

fn put_annotated(api: &FakeApi, addresses: &[&str], annotations: &serde_json::Value) {
    let ports = json!([{"name": "dns", "port": 53, "protocol": "UDP"}]);
    let spec = json!({"clusterIP": "10.96.0.10", "clusterIPs": ["10.96.0.10"], "ports": ports, "type": "ClusterIP"});
    api.put(SERVICE, json!({"metadata": {"name": "dns", "namespace": "default"}, "spec": spec}));
    let endpoints: Vec<_> = addresses.iter().map(|it| json!({"addresses": [it]})).collect();
    let labels = json!({"kubernetes.io/service-name": "dns"});
    let metadata = json!({"name": "dns-a", "namespace": "default", "labels": labels, "annotations": annotations});
    api.put(SLICE, json!({"metadata": metadata, "addressType": "IPv4", "endpoints": endpoints, "ports": ports}));
}

async fn until(mut is_done: impl FnMut() -> bool) {
    for _ in 0..100_000 {
        if is_done() {
            return;
        }
        tokio::time::advance(Duration::from_millis(10)).await;
        tokio::task::yield_now().await;
    }
    panic!("it never came about");
}

#[tokio::test(start_paused = true)]
async fn what_is_refused_is_explained_and_said_again_as_a_whole() {
    let api = FakeApi::new();
    put(&api, &["10.244.0.2", "10.244.0.3"]);
    let (kernel, journal) = (Arc::new(FakeKernel::default()), Arc::new(JournalBook::default()));
    *kernel.refusals.lock() = 2;
    let settings = ProxySettings {
        proxy: Proxy::new(Config { node_name: "n1".into(), ..Config::default() }),
        node_name: "n1".into(),
        client: api.client(),
        watches: None,
        hands: kernel.clone(),
        clock: clock(),
        journal: journal.clone(),
    };
    let (stop, mut stopped) = tokio::sync::watch::channel(false);
    let shutdown = async move {
        let _ = stopped.wait_for(|it| *it).await;
    };
    let running = tokio::spawn(run_proxy(settings, shutdown));
    let waits = || -> Vec<String> {
        let decisions = journal.decisions(&SERVICES, &Key::new("default", "dns"));
        decisions.into_iter().flat_map(|it| it.waits).map(|it| it.reason).collect()
    };
    until(|| waits() == ["ServiceRulesRefused"]).await;
    assert_eq!(kernel.n_applied(), 0);
    until(|| kernel.n_applied() == 1 && waits().is_empty()).await;
    assert!(kernel.last().contains(&"add table".to_owned()), "{:?}", kernel.last());

    // From here on only what differs is said, and flows of the endpoint that went are forgotten.
    put(&api, &["10.244.0.3"]);
    until(|| kernel.n_applied() == 2 && !kernel.forgotten.lock().is_empty()).await;
    assert!(kernel.last().len() < 6 && !kernel.last().contains(&"add table".to_owned()), "{:?}", kernel.last());
    let backends: Vec<_> =
        kernel.forgotten.lock().iter().filter_map(|it| it.backend).map(|it| it.to_string()).collect();
    assert_eq!(backends, ["10.244.0.2:53"]);

    // Refused amid everything else: the whole again.
    *kernel.refusals.lock() = 1;
    put(&api, &["10.244.0.3", "10.244.0.4"]);
    until(|| kernel.n_applied() == 3).await;
    assert!(kernel.last().contains(&"add table".to_owned()), "{:?}", kernel.last());

    // Somebody emptied the ruleset.
    *kernel.is_emptied.lock() = true;
    until(|| kernel.n_applied() == 4).await;
    assert!(
        kernel
            .last()
            .contains(&"add element services4 { 10.96.0.10 . udp . 53 : goto svc4/default/dns/udp/53 }".to_owned())
    );

    api.remove(SERVICE);
    until(|| journal.decisions(&SERVICES, &Key::new("default", "dns")).is_empty()).await;
    stop.send_replace(true);
    running.await.expect("it ended");
}

#[tokio::test(start_paused = true)]
async fn a_process_of_the_machine_gets_its_port_back() {
    let api = FakeApi::new();
    put(&api, &["10.244.0.2"]);
    let spec = json!({"clusterIP": "10.96.0.10", "clusterIPs": ["10.96.0.10"], "type": "ClusterIP", "externalIPs": ["172.30.0.2"],
        "ports": [{"name": "dns", "port": 53, "protocol": "UDP"}]});
    api.put(SERVICE, json!({"metadata": {"name": "dns", "namespace": "default"}, "spec": spec}));
    let (kernel, journal) = (Arc::new(FakeKernel::default()), Arc::new(JournalBook::default()));
    let config = Config { node_name: "n1".into(), addresses: vec![[172, 30, 0, 2].into()], ..Config::default() };
    let settings = ProxySettings {
        proxy: Proxy::new(config),
        node_name: "n1".into(),
        client: api.client(),
        watches: None,
        hands: kernel.clone(),
        clock: clock(),
        journal: journal.clone(),
    };
    let work = async {
        let added = "add element services4 { 172.30.0.2 . udp . 53 : goto ext4/default/dns/udp/53 }";
        until(|| kernel.last().iter().any(|it| it == added)).await;
        *kernel.listening.lock() = [(Protocol::Udp, 53)].into();
        until(|| kernel.last().iter().any(|it| it == "delete element services4 { 172.30.0.2 . udp . 53 }")).await;
        let decisions = journal.decisions(&SERVICES, &Key::new("default", "dns"));
        assert_eq!(decisions[0].waits.iter().map(|it| &*it.reason).collect::<Vec<_>>(), ["PortTaken"]);
    };
    run_proxy(settings, work).await;
}

#[tokio::test(start_paused = true)]
async fn a_range_that_is_added_has_its_addresses() {
    let api = FakeApi::new();
    put(&api, &["10.244.0.2"]);
    let spec = json!({"clusterIP": "10.96.0.10", "clusterIPs": ["10.96.0.10"], "type": "ClusterIP", "externalIPs": ["10.196.0.5"],
        "ports": [{"name": "dns", "port": 53, "protocol": "UDP"}]});
    api.put(SERVICE, json!({"metadata": {"name": "dns", "namespace": "default"}, "spec": spec}));
    let (kernel, journal) = (Arc::new(FakeKernel::default()), Arc::new(JournalBook::default()));
    let settings = ProxySettings {
        proxy: Proxy::new(Config { node_name: "n1".into(), ..Config::default() }),
        node_name: "n1".into(),
        client: api.client(),
        watches: None,
        hands: kernel.clone(),
        clock: clock(),
        journal: journal.clone(),
    };
    const RANGE: &str = "/apis/networking.k8s.io/v1/servicecidrs/more";
    let work = async {
        let added = "add element services4 { 10.196.0.5 . udp . 53 : goto ext4/default/dns/udp/53 }";
        until(|| kernel.last().iter().any(|it| it == added)).await;
        api.put(RANGE, json!({"metadata": {"name": "more"}, "spec": {"cidrs": ["10.196.0.0/16"]}}));
        until(|| kernel.last().iter().any(|it| it == "delete element services4 { 10.196.0.5 . udp . 53 }")).await;
        let decisions = journal.decisions(&SERVICES, &Key::new("default", "dns"));
        assert_eq!(decisions[0].waits.iter().map(|it| &*it.reason).collect::<Vec<_>>(), ["ExternalAddressRefused"]);
        api.remove(RANGE);
        until(|| kernel.last().iter().any(|it| it == added)).await;
    };
    run_proxy(settings, work).await;
}

/// How long an endpoint is on its way from its Pod to the kernel, as the slice's annotation says when that began.
#[tokio::test(start_paused = true)]
async fn what_began_since_is_counted_once_the_kernel_has_it() {
    let api = FakeApi::new();
    let (kernel, journal, clock) = (Arc::new(FakeKernel::default()), Arc::new(JournalBook::default()), clock());
    let triggered = |addresses: &[&str], at: corten_meta::Time| {
        let at = json!({"endpoints.kubernetes.io/last-change-trigger-time": at.to_string()});
        put_annotated(&api, addresses, &at);
    };
    // Before the loop began: nobody knows how long the rest took.
    triggered(&["10.244.0.2"], corten_meta::Time::from_unix_seconds(999_000));
    let settings = ProxySettings {
        proxy: Proxy::new(Config { node_name: "n1".into(), ..Config::default() }),
        node_name: "n1".into(),
        client: api.client(),
        watches: None,
        hands: kernel.clone(),
        clock: clock.clone(),
        journal: journal.clone(),
    };
    let counted = |name: &str| {
        let tallies = journal.of_node().tallies();
        let rows = tallies.iter().filter(|it| it.metric.name == name).flat_map(|it| it.rows().to_vec());
        rows.map(|it| (it.labels.join(","), it.n)).collect::<Vec<_>>()
    };
    let programmed = || counted("kubeproxy_network_programming_duration_seconds");
    let work = async {
        until(|| kernel.n_applied() == 1).await;
        assert_eq!(programmed(), []);
        // The whole table, which has the Service and no element of the other family.
        assert_eq!(counted("kubeproxy_sync_proxy_rules_duration_seconds"), [("IPv4".to_owned(), 1)]);
        // Refused at first: it goes on taking. Times in objects are whole seconds, and one of the loop's own second may be of before.
        tokio::time::advance(Duration::from_secs(5)).await;
        *kernel.refusals.lock() = 1;
        triggered(&["10.244.0.2", "10.244.0.3"], clock());
        until(|| kernel.n_applied() == 2).await;
        until(|| programmed() == [("IPv4".to_owned(), 1)]).await;
        let tallies = journal.of_node().tallies();
        let tally = tallies.iter().find(|it| it.metric.name.contains("programming")).expect("it is told");
        assert!(tally.rows()[0].sum >= 0.1, "the refusal was waited for: {tally:?}");
        assert_eq!(counted("kubeproxy_sync_proxy_rules_duration_seconds"), [("IPv4".to_owned(), 3)]);
    };
    run_proxy(settings, work).await;
}
