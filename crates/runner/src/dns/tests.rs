use corten_dns::{Name, answer, parse};
use parking_lot::Mutex;
use serde_json::{Value, json};

use super::*;
use crate::fake::{FakeApi, Fault, clock};

const SERVICE: &str = "/api/v1/namespaces/kube-system/services/kube-dns";
const SLICE: &str = "/apis/discovery.k8s.io/v1/namespaces/kube-system/endpointslices/kube-dns";

/// The loop, against a server that has namespaces and nothing else.
struct RunningLoop {
    api: Arc<FakeApi>,
    hands: Arc<FakeHands>,
    journal: Arc<JournalBook>,
    leads: watch::Sender<bool>,
    stop: watch::Sender<bool>,
    task: tokio::task::JoinHandle<()>,
}

#[derive(Default)]
struct FakeHands {
    zone: Mutex<Option<Zone>>,
    kept: Mutex<Vec<String>>,
}

impl NameHands for FakeHands {
    fn publish(&self, zone: Zone) {
        *self.zone.lock() = Some(zone);
    }

    fn keeps(&self) -> bool {
        true
    }

    fn keep(&self, zone: String) -> BoxFuture<'_, ()> {
        self.kept.lock().push(zone);
        Box::pin(std::future::ready(()))
    }
}

impl RunningLoop {
    fn start(api: Arc<FakeApi>) -> Self {
        for name in ["kube-system", "shop"] {
            api.put(&format!("/api/v1/namespaces/{name}"), json!({ "metadata": { "name": name } }));
        }
        let leads = watch::Sender::new(true);
        let place = ServerLocation {
            cluster_ip: [10, 96, 0, 10].into(),
            node_name: "n1".into(),
            node_ip: [192, 0, 2, 9].into(),
            port: 10053,
        };
        let upkeep = Some((place, leads.subscribe()));
        Self::start_with(api, leads, upkeep)
    }

    fn start_with(
        api: Arc<FakeApi>,
        leads: watch::Sender<bool>,
        upkeep: Option<(ServerLocation, watch::Receiver<bool>)>,
    ) -> Self {
        let (hands, journal) = (Arc::new(FakeHands::default()), Arc::new(JournalBook::default()));
        let settings = NameSettings {
            client: api.client(),
            watches: None,
            keeper: Keeper::new(Name::parse("cluster.local").expect("a name")),
            hands: hands.clone(),
            upkeep,
            clock: clock(),
            journal: journal.clone(),
        };
        let (stop, mut stopped) = watch::channel(false);
        let shutdown = async move {
            let _ = stopped.wait_for(|it| *it).await;
        };
        Self { api, hands, journal, leads, stop, task: tokio::spawn(run_dns(settings, shutdown)) }
    }

    /// Lets time pass until it is so.
    async fn until(&self, what: &str, is_so: impl Fn(&Self) -> bool) {
        for _ in 0..10_000 {
            if is_so(self) {
                return;
            }
            tokio::time::advance(Duration::from_millis(10)).await;
            tokio::task::yield_now().await;
        }
        panic!("{what}");
    }

    /// The code of the answer for a name, and its last bytes.
    fn ask(&self, name: &str) -> Option<(u8, [u8; 4])> {
        let mut packet = vec![0, 7, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0];
        for label in name.split('.') {
            packet.push(u8::try_from(label.len()).expect("short"));
            packet.extend_from_slice(label.as_bytes());
        }
        packet.extend_from_slice(&[0, 0, 1, 0, 1]);
        let zone = self.hands.zone.lock().clone()?;
        let mut out = Vec::new();
        answer(&parse(&packet).expect("a query"), &zone, 0, 512, &mut out);
        Some((out[3] & 0xf, *out.last_chunk()?))
    }

    fn waits(&self) -> Vec<String> {
        let decisions = self.journal.decisions(&SERVICES, &corten_dns::key());
        decisions.into_iter().flat_map(|it| it.waits).map(|it| it.reason).collect()
    }

    fn port(&self) -> Option<Value> {
        self.api.object(SLICE).map(|it| it["ports"][0]["port"].clone())
    }
}

fn service(name: &str, address: &str) -> Value {
    json!({ "metadata": { "name": name, "namespace": "shop" }, "spec": { "clusterIP": address } })
}

#[tokio::test(start_paused = true)]
async fn what_is_written_is_answered() {
    let running = RunningLoop::start(FakeApi::new());
    let web = "web.shop.svc.cluster.local";
    running.until("the zone is complete", |it| it.ask(web).is_some_and(|it| it.0 == 3)).await;
    let path = "/api/v1/namespaces/shop/services/web";
    running.api.put(path, service("web", "10.96.0.7"));
    running.until("it is found", |it| it.ask(web) == Some((0, [10, 96, 0, 7]))).await;
    running.api.put(path, service("web", "10.96.0.8"));
    running.until("it has changed", |it| it.ask(web) == Some((0, [10, 96, 0, 8]))).await;
    running.api.remove(path);
    running.until("it is gone", |it| it.ask(web).is_some_and(|it| it.0 == 3)).await;
    let slice = json!({
        "metadata": { "name": "db-1", "namespace": "shop", "labels": { "kubernetes.io/service-name": "db" } },
        "addressType": "IPv4", "endpoints": [{ "addresses": ["10.244.0.9"] }], "ports": [],
    });
    running.api.put("/apis/discovery.k8s.io/v1/namespaces/shop/endpointslices/db-1", slice);
    running.api.put("/api/v1/namespaces/shop/services/db", service("db", "None"));
    let db = "db.shop.svc.cluster.local";
    running.until("its endpoints are found", |it| it.ask(db) == Some((0, [10, 244, 0, 9]))).await;
    running.api.remove("/api/v1/namespaces/shop");
    running.until("its namespace is gone", |it| it.ask(db).is_some_and(|it| it.0 == 3)).await;
}

#[tokio::test(start_paused = true)]
async fn the_way_to_the_server_is_kept() {
    let api = FakeApi::new();
    // The first try fails, and another is made.
    api.fault(Fault::Refused("POST", 500, "InternalError"));
    let running = RunningLoop::start(api);
    running.until("both are made", |it| it.api.object(SERVICE).is_some() && it.api.object(SLICE).is_some()).await;
    assert_eq!(running.port(), Some(json!(10053)));
    let mut slice = running.api.object(SLICE).expect("it is there");
    slice["ports"][0]["port"] = json!(1);
    running.api.put(SLICE, slice);
    running.until("it is put right", |it| it.port() == Some(json!(10053))).await;
    running.api.remove(SLICE);
    running.api.remove(SERVICE);
    running.until("they come back", |it| it.api.object(SERVICE).is_some() && it.api.object(SLICE).is_some()).await;
    running.until("and nothing is waited for", |it| it.waits().is_empty()).await;
    // Once it is right it is left alone.
    running.api.writes();
    for _ in 0..100 {
        tokio::time::advance(Duration::from_secs(1)).await;
        tokio::task::yield_now().await;
    }
    assert!(running.api.writes().is_empty());
}

#[tokio::test(start_paused = true)]
async fn only_one_that_leads_has_the_service_lead_to_it() {
    let running = RunningLoop::start(FakeApi::new());
    let place = |it: &RunningLoop| it.api.object(SLICE).map(|it| it["endpoints"][0]["nodeName"].clone());
    running.until("it leads", |it| place(it) == Some(json!("n1"))).await;
    running.leads.send_replace(false);
    let mut slice = running.api.object(SLICE).expect("it is there");
    (slice["endpoints"][0]["nodeName"], slice["endpoints"][0]["addresses"]) = (json!("n2"), json!(["192.0.2.10"]));
    running.api.put(SLICE, slice);
    tokio::time::advance(Duration::from_secs(120)).await;
    tokio::task::yield_now().await;
    assert_eq!(place(&running), Some(json!("n2")), "it is who leads that writes");
    running.leads.send_replace(true);
    running.until("it leads again", |it| place(it) == Some(json!("n1"))).await;
}

#[tokio::test(start_paused = true)]
async fn who_stands_in_the_way_is_named() {
    let api = FakeApi::new();
    let mut theirs = service("kube-dns", "10.96.0.77");
    theirs["metadata"]["namespace"] = json!("kube-system");
    api.put(SERVICE, theirs);
    let running = RunningLoop::start(api);
    running.until("it is said", |it| it.waits() == ["ClusterDNSElsewhere"]).await;
    running.api.remove(SERVICE);
    running.until("and then no longer", |it| it.api.object(SLICE).is_some() && it.waits().is_empty()).await;

    let taken = Error::Status(Box::new(corten_meta::Status::internal("provided IP is already allocated")));
    let service_writer = DnsServiceWriter::new(
        running.api.client(),
        ServerLocation {
            cluster_ip: [10, 96, 0, 10].into(),
            node_name: "n1".into(),
            node_ip: [192, 0, 2, 9].into(),
            port: 1,
        },
        clock(),
        running.journal.clone(),
    );
    let wait = service_writer.failed(&taken);
    assert_eq!((wait.reason.as_str(), wait.actor), ("ClusterDNSAddressTaken", Actor::Operator));
    assert!(wait.message.contains("10.96.0.10"), "{}", wait.message);
}

#[tokio::test(start_paused = true)]
async fn a_node_without_a_control_plane_writes_nothing_and_keeps_what_it_knows() {
    let api = FakeApi::new();
    for name in ["kube-system", "shop"] {
        api.put(&format!("/api/v1/namespaces/{name}"), json!({ "metadata": { "name": name } }));
    }
    let path = "/api/v1/namespaces/shop/services/web";
    api.put(path, service("web", "10.96.0.7"));
    let running = RunningLoop::start_with(api, watch::Sender::new(false), None);
    let n_kept = |it: &RunningLoop| it.hands.kept.lock().len();
    running.until("it is kept", |it| n_kept(it) == 1).await;
    assert!(running.hands.kept.lock()[0].contains("10.96.0.7"));

    // What changes often is kept once a minute, and at the end.
    let begin = Instant::now();
    for address in 8..20 {
        running.api.put(path, service("web", &format!("10.96.0.{address}")));
        running
            .until("it has changed", |it| it.ask("web.shop.svc.cluster.local") == Some((0, [10, 96, 0, address])))
            .await;
    }
    running.until("it is kept again", |it| n_kept(it) == 2).await;
    assert!(begin.elapsed() >= Duration::from_secs(55), "{:?}", begin.elapsed());
    assert!(running.hands.kept.lock()[1].contains("10.96.0.19"));
    running.api.remove(path);
    running.until("it is gone", |it| it.ask("web.shop.svc.cluster.local").is_some_and(|it| it.0 == 3)).await;
    let RunningLoop { api, hands, stop, task, .. } = running;
    stop.send_replace(true);
    task.await.expect("it ends");
    let kept = hands.kept.lock();
    assert!(kept.len() == 3 && !kept[2].contains("10.96.0.19"), "{kept:?}");
    assert!(api.writes().is_empty() && api.object(SERVICE).is_none());
}
