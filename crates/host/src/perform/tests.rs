//! A kubelet with real hands: pods run, fail, are asked for logs and commands, survive a restart, and go.

use std::{collections::BTreeMap, fs, path::PathBuf, sync::Arc, time::Duration};

use corten_api::core::v1::Pod;
use corten_kubelet::{ApiEffect, Config, Effect, Event, Kubelet, PodRef};
use corten_machine::{Layout, command};
use corten_meta::Time;
use futures_util::future::BoxFuture;
use jiff::Timestamp;
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair};
use rustls_pki_types::{CertificateDer, PrivateKeyDer, ServerName, pem::PemObject};
use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    sync::oneshot,
    task::JoinSet,
    time::{Instant, timeout},
};

use super::NodeHands;
use crate::{Caller, Cluster, Containerd, KubeletServer, NodeAccess, Options, Serving, stop_all};

const IN_TIME: Duration = Duration::from_secs(90);

/// An API server of a few lines, and the kubelet's driver.
struct TestNode {
    kubelet: Kubelet,
    hands: NodeHands,
    pods: BTreeMap<String, Value>,
    settings: BTreeMap<String, std::sync::Arc<[u8]>>,
    running: JoinSet<Vec<Event>>,
    wake: Option<Instant>,
    version: u64,
    events: Vec<String>,
}

fn now() -> Time {
    Time(Timestamp::now())
}

impl TestNode {
    fn new(hands: NodeHands) -> Self {
        let mut test_node = Self {
            kubelet: Kubelet::new(Config::new("n1", "192.0.2.1")),
            hands,
            pods: BTreeMap::new(),
            settings: BTreeMap::from([("key".to_owned(), b"value\n"[..].into())]),
            running: JoinSet::new(),
            wake: None,
            version: 0,
            events: Vec::new(),
        };
        test_node.begin();
        test_node
    }

    fn begin(&mut self) {
        for pod in self.pods.clone().into_values() {
            self.step(Event::Pod(serde_json::from_value(pod).expect("a pod")));
        }
        self.step(Event::PodsSynced);
        self.step(Event::ServicesSynced);
        let hands = self.hands.clone();
        self.running.spawn(async move { hands.events().await });
    }

    /// As after a crash: the mind forgets all, the machine nothing.
    async fn restart(&mut self) {
        self.running.shutdown().await;
        self.hands = NodeHands { inner: Arc::new(super::Inner::like(&self.hands.inner)) };
        self.kubelet = Kubelet::new(self.kubelet.config().clone());
        self.begin();
    }

    fn create(&mut self, name: &str, spec: &Value) {
        let mut spec = spec.clone();
        spec["nodeName"] = "n1".into();
        let pod = json!({
            "metadata": {"name": name, "namespace": "default", "uid": format!("uid-{name}")},
            "spec": spec,
            "status": {"phase": "Pending"},
        });
        self.store(name, pod);
    }

    fn store(&mut self, name: &str, mut pod: Value) {
        self.version += 1;
        pod["metadata"]["resourceVersion"] = self.version.to_string().into();
        self.pods.insert(name.to_owned(), pod.clone());
        self.step(Event::Pod(serde_json::from_value(pod).expect("a pod")));
    }

    fn delete(&mut self, name: &str) {
        let mut pod = self.pods[name].clone();
        pod["metadata"]["deletionTimestamp"] = json!(now());
        pod["metadata"]["deletionGracePeriodSeconds"] = 1.into();
        self.store(name, pod);
    }

    fn step(&mut self, event: Event) {
        let mut told = vec![event];
        while let Some(event) = told.pop() {
            for effect in self.kubelet.step(event, now()) {
                match effect {
                    Effect::Host(effect) => {
                        let hands = self.hands.clone();
                        self.running.spawn(async move { hands.perform(effect).await });
                    }
                    Effect::Api(effect) => told.extend(self.api(effect)),
                    Effect::Node(effect) => {
                        let hands = self.hands.clone();
                        self.running.spawn(async move { hands.perform_node(effect).await });
                    }
                    Effect::WakeAt(at) => self.wake = Some(Instant::now() + at.since(now())),
                    Effect::Record { .. } | Effect::Forget { .. } => {}
                }
            }
        }
    }

    fn api(&mut self, effect: ApiEffect) -> Vec<Event> {
        match effect {
            ApiEffect::PatchPodStatus { pod, patch } => {
                self.version += 1;
                let stored = self.pods.get_mut(&pod.key.name).expect("known");
                for (name, value) in patch["status"].as_object().expect("a status") {
                    stored["status"][name] = value.clone();
                }
                stored["metadata"]["resourceVersion"] = self.version.to_string().into();
                let result = Ok(serde_json::from_value::<Box<Pod>>(stored.clone()).expect("a pod"));
                vec![Event::StatusPatched { pod, result }]
            }
            ApiEffect::DeletePod { pod } => {
                self.pods.remove(&pod.key.name);
                vec![Event::PodGone(PodRef { ..pod })]
            }
            ApiEffect::Event { reason, message, .. } => {
                self.events.push(format!("{reason}: {message}"));
                Vec::new()
            }
            ApiEffect::Follow(source) => {
                let data = (source.key.name == "settings").then(|| self.settings.clone());
                vec![Event::Source { source, data }]
            }
            _ => Vec::new(),
        }
    }

    /// Drives the kubelet until the pods are as wanted.
    async fn until(&mut self, what: &str, wanted: impl Fn(&BTreeMap<String, Value>) -> bool) {
        let driven = timeout(IN_TIME, async {
            while !wanted(&self.pods) {
                let wake = self.wake.unwrap_or_else(|| Instant::now() + IN_TIME);
                tokio::select! {
                    biased;
                    Some(events) = self.running.join_next() => {
                        let events = events.expect("a hand does not panic");
                        // The machine is watched all the time.
                        if events.iter().any(|it| matches!(it, Event::Snapshot(_) | Event::Facts(_))) {
                            let hands = self.hands.clone();
                            self.running.spawn(async move { hands.events().await });
                        }
                        events.into_iter().for_each(|it| self.step(it));
                    }
                    () = tokio::time::sleep_until(wake) => {
                        self.wake = None;
                        self.step(Event::Tick);
                    }
                }
            }
        });
        let in_time = driven.await.is_ok();
        assert!(
            in_time,
            "{what}: {:#?} {:#?}",
            self.pods.values().map(|it| &it["status"]).collect::<Vec<_>>(),
            self.events
        );
    }
}

fn layout() -> Layout {
    let place = PathBuf::from(format!("/tmp/corten-k{}", std::process::id()));
    Layout {
        cgroup_root: format!("corten-kubelet-test-{}", std::process::id()),
        bridge: "cortentest1".to_owned(),
        nft_table: "corten_kubelet_test".to_owned(),
        image_folders: vec![place.join("images")],
        ..Layout::new(place.join("data"), place.join("run"))
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_kubelet_runs_pods_on_a_real_machine() {
    let cache = std::env::var_os("CORTEN_IMAGES").map_or_else(|| "/var/cache/corten/images".into(), PathBuf::from);
    let is_root = rustix::process::geteuid().is_root();
    let has_containerd = is_root && command::run("containerd", &["--version"], "").await.is_ok();
    let archives = [cache.join("pause.tar"), cache.join("busybox.tar")];
    if !has_containerd || !archives.iter().all(|it| it.exists()) {
        eprintln!("skipped: needs root and containerd, and what images/build makes");
        return;
    }
    let layout = layout();
    let images = &layout.image_folders[0];
    fs::create_dir_all(images).expect("a folder");
    for archive in archives {
        fs::copy(&archive, images.join(archive.file_name().expect("a name"))).expect("copied");
    }
    let options = Options { pod_cidrs: vec!["10.245.78.0/24".to_owned()], ..Options::default() };
    let node = timeout(IN_TIME, Containerd::start(layout.clone(), options)).await.expect("in time").expect("started");
    node.import_images(|_| true).await;
    let outcome = tokio::spawn(run_pods(node)).await;
    let stopped = timeout(IN_TIME, stop_all(&layout)).await.expect("in time");
    crate::erase(&layout).expect("erased");
    let _ = fs::remove_dir_all(layout.data.parent().expect("a folder"));
    outcome.expect("the pods did as they should");
    stopped.expect("stopped");
}

fn container(pod: &Value) -> &Value {
    &pod["status"]["containerStatuses"][0]
}

fn is_ready(pod: &Value) -> bool {
    let conditions = pod["status"]["conditions"].as_array();
    conditions.is_some_and(|it| it.iter().any(|it| it["type"] == "Ready" && it["status"] == "True"))
}

async fn run_pods(node: Containerd) {
    let mut test_node = TestNode::new(NodeHands::new(&node));
    test_node.create(
        "web",
        &json!({
            "volumes": [{"name": "cfg", "configMap": {"name": "settings"}}, {"name": "data", "emptyDir": {}}],
            "containers": [{
                "name": "app",
                "image": "busybox:1.35",
                "command": ["sh", "-c", "echo hello $(NAME); cat /cfg/key; touch /data/ready; trap 'exit 4' TERM; while :; do sleep 0.1; done"],
                "env": [{"name": "NAME", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}],
                "volumeMounts": [{"name": "cfg", "mountPath": "/cfg"}, {"name": "data", "mountPath": "/data"}],
                "readinessProbe": {"exec": {"command": ["test", "-e", "/data/ready"]}, "periodSeconds": 1},
                "resources": {"limits": {"memory": "64Mi", "cpu": "1"}},
            }],
        }),
    );
    test_node.until("web is ready", |pods| is_ready(&pods["web"])).await;
    assert!(test_node.pods["web"]["status"]["podIP"].as_str().expect("an address").starts_with("10.245.78."));
    let before = container(&test_node.pods["web"])["containerID"].clone();

    test_node.create("bad", &json!({"containers": [{"name": "app", "image": "busybox:1.35", "command": ["nosuch"]}]}));
    test_node.create("none", &json!({"containers": [{"name": "app", "image": "localhost:1/none:1"}]}));
    test_node.create(
        "job",
        &json!({
            "restartPolicy": "Never",
            "containers": [{
                "name": "app",
                "image": "busybox:1.35",
                "command": ["sh", "-c", "echo -n bye >/dev/termination-log; exit 3"],
            }],
        }),
    );
    test_node
        .until("bad, none and job failed", |pods| {
            let last = &container(&pods["bad"])["lastState"]["terminated"];
            let is_bad = last["reason"] == "StartError"
                && container(&pods["bad"])["state"]["waiting"]["reason"] == "CrashLoopBackOff";
            let is_none = container(&pods["none"])["state"]["waiting"]["reason"] == "ImagePullBackOff";
            is_bad && is_none && pods["job"]["status"]["phase"] == "Failed"
        })
        .await;
    let exit = &container(&test_node.pods["job"])["state"]["terminated"];
    assert_eq!((&exit["exitCode"], &exit["reason"], &exit["message"]), (&json!(3), &json!("Error"), &json!("bye")));
    let last = &container(&test_node.pods["bad"])["lastState"]["terminated"];
    assert_eq!(last["exitCode"], 128);
    // Each runtime in its own words.
    let message = last["message"].as_str().expect("a message");
    assert!(message.contains("nosuch") && message.contains("not found in $PATH"), "{message}");

    answers_the_api_server(&test_node.hands).await;

    // The mind starts anew: it finds out what runs, brings the files up to date, and restarts nothing.
    test_node.settings.insert("key".to_owned(), b"other\n"[..].into());
    test_node.restart().await;
    let file = test_node.hands.layout().pod("uid-web").join("volumes/kubernetes.io~configmap/cfg/key");
    test_node.until("the file is new", |_| fs::read(&file).is_ok_and(|it| it == b"other\n")).await;
    let containers = test_node.hands.cri().list_containers(None).await.expect("answered");
    let app = containers.iter().filter(|it| it.labels["io.kubernetes.pod.uid"] == "uid-web");
    assert_eq!(app.map(|it| format!("containerd://{}", it.id)).collect::<Vec<_>>(), [before.as_str().expect("an id")]);
    assert_eq!(container(&test_node.pods["web"])["restartCount"], 0);
    for name in ["web", "bad", "none", "job"] {
        test_node.delete(name);
    }
    test_node.until("all are gone", BTreeMap::is_empty).await;
    let left = test_node.hands.cri().list_pod_sandboxes(None).await.expect("answered");
    assert!(left.is_empty(), "{left:?}");
    assert_eq!(fs::read_dir(test_node.hands.layout().pods()).expect("listed").count(), 0);
}

// ---- the server ----

struct Pki {
    ca: CertifiedIssuer<'static, KeyPair>,
}

impl Pki {
    fn new() -> Self {
        let mut params = CertificateParams::new(Vec::new()).expect("no names");
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().expect("a key");
        Self { ca: CertifiedIssuer::self_signed(params, key).expect("signed") }
    }

    fn issue(&self, name: &str, sans: &[&str]) -> (String, String) {
        let sans: Vec<String> = sans.iter().map(|it| (*it).to_owned()).collect();
        let mut params = CertificateParams::new(sans).expect("valid names");
        params.distinguished_name.push(DnType::CommonName, name);
        if name.starts_with("system:node:") {
            params.distinguished_name.push(DnType::OrganizationName, "system:nodes");
        }
        let key = KeyPair::generate().expect("a key");
        (params.signed_by(&key, &self.ca).expect("signed").pem(), key.serialize_pem())
    }
}

/// One request over a fresh connection, and all that comes back within the time.
async fn ask(port: u16, pki: &Pki, name: Option<&str>, request: &str, until: &str) -> String {
    let mut roots = rustls::RootCertStore::empty();
    roots.add(CertificateDer::from_pem_slice(pki.ca.pem().as_bytes()).expect("a certificate")).expect("added");
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let config = rustls::ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
    let config = config.expect("versions").with_root_certificates(roots);
    let config = match name {
        None => config.with_no_client_auth(),
        Some(name) => {
            let (certificate, key) = pki.issue(name, &[]);
            let certificate = CertificateDer::from_pem_slice(certificate.as_bytes()).expect("a certificate");
            let key = PrivateKeyDer::from_pem_slice(key.as_bytes()).expect("a key");
            config.with_client_auth_cert(vec![certificate], key).expect("usable")
        }
    };
    let stream = TcpStream::connect(("127.0.0.1", port)).await.expect("connected");
    let server = ServerName::try_from("localhost").expect("a name");
    let tls = tokio_rustls::TlsConnector::from(Arc::new(config)).connect(server, stream).await;
    let mut tls = tls.expect("TLS");
    tls.write_all(request.as_bytes()).await.expect("sent");
    let mut answer = Vec::new();
    let reading = async {
        let mut piece = [0; 4096];
        while !String::from_utf8_lossy(&answer).contains(until) {
            match tls.read(&mut piece).await {
                Ok(n) if n > 0 => answer.extend_from_slice(&piece[..n]),
                _ => break,
            }
        }
    };
    let _ = timeout(Duration::from_secs(10), reading).await;
    String::from_utf8_lossy(&answer).into_owned()
}

fn get(path: &str) -> String {
    format!("GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
}

fn shown(certificate: &str, key: &str) -> Arc<rustls::sign::SingleCertAndKey> {
    let chain = CertificateDer::pem_slice_iter(certificate.as_bytes()).collect::<Result<_, _>>().expect("certificates");
    let key = PrivateKeyDer::from_pem_slice(key.as_bytes()).expect("a key");
    let key = rustls::crypto::aws_lc_rs::sign::any_supported_type(&key).expect("a key that signs");
    Arc::new(rustls::sign::CertifiedKey::new(chain, key).into())
}

/// Knows one token, lets the API server do all, and its bearer read what is healthy.
struct TestCluster;

impl Cluster for TestCluster {
    fn review_token(&self, token: String) -> BoxFuture<'_, Result<Option<Caller>, String>> {
        let reader = Caller { user: "reader".into(), ..Caller::default() };
        Box::pin(async move { Ok((token == "good").then_some(reader)) })
    }

    fn review_access(&self, caller: Caller, access: NodeAccess) -> BoxFuture<'_, Result<bool, String>> {
        let reads = caller.user == "reader" && access == NodeAccess { verb: "get", subresource: "healthz" };
        Box::pin(async move { Ok(caller.user == "kube-apiserver-kubelet-client" || reads) })
    }

    fn pod(&self, _: String, name: String) -> BoxFuture<'_, Result<Option<Value>, String>> {
        let containers = json!([{ "name": "app" }, { "name": "slow" }]);
        let statuses = json!([
            { "name": "app", "state": { "running": {} } },
            { "name": "slow", "state": { "waiting": { "reason": "ImagePullBackOff" } } },
        ]);
        let pod = json!({
            "metadata": { "name": name }, "spec": { "containers": containers },
            "status": { "containerStatuses": statuses },
        });
        Box::pin(async move { Ok((name == "web").then_some(pod)) })
    }

    fn pods(&self) -> BoxFuture<'_, Result<Value, String>> {
        Box::pin(async { Ok(json!({ "kind": "PodList", "items": [{ "metadata": { "name": "web" } }] })) })
    }

    fn own(&self) -> BoxFuture<'_, Result<crate::OwnList, String>> {
        let pod = json!({
            "metadata": { "name": "web", "namespace": "default" }, "spec": { "containers": [{ "name": "app" }] },
        });
        Box::pin(async move { Ok(crate::OwnList { node: None, pods: vec![pod] }) })
    }
}

struct TestJournals;

impl crate::Journals for TestJournals {
    fn of(&self, namespace: &str, journal: &str) -> Option<Value> {
        (namespace == "default" && journal == "pods.web").then(|| json!({ "kind": "Journal" }))
    }

    fn waiting(&self) -> Value {
        json!({ "items": [] })
    }
}

struct TestMeasures;

static RENEWALS: corten_reconcile::LoopMetric = corten_reconcile::LoopMetric {
    name: "kubelet_server_expiration_renew_errors",
    help: "Counter of certificate renewal errors.",
    labels: &[],
    kind: corten_reconcile::MetricKind::Counter,
};

impl crate::Measures for TestMeasures {
    fn tallies(&self) -> Vec<corten_reconcile::Tally> {
        vec![corten_reconcile::Tally::new(&RENEWALS, 1)]
    }

    fn process(&self) -> String {
        "process_open_fds 7\n".into()
    }

    fn certificates(&self) -> crate::CertificateTimes {
        crate::CertificateTimes { client: None, server: Some(-5) }
    }
}

async fn answers_the_api_server(hands: &NodeHands) {
    let pki = Pki::new();
    let (certificate, key) = pki.issue("system:node:n1", &["localhost"]);
    let serving = Serving {
        node: "n1".into(),
        hands: hands.clone(),
        port: 10250,
        managers: corten_kubelet::ManagersConfig::default(),
        own: shown(&certificate, &key),
        client_ca: pki.ca.pem(),
        cluster: Arc::new(TestCluster),
        journals: Arc::new(TestJournals),
        measures: Arc::new(TestMeasures),
    };
    let server = KubeletServer::new(serving).expect("usable");
    let listener = TcpListener::bind(("127.0.0.1", 0)).await.expect("bound");
    let port = listener.local_addr().expect("an address").port();
    let (stop, stopping) = oneshot::channel::<()>();
    let serving = tokio::spawn(async move { server.serve(listener, async { drop(stopping.await) }).await });
    const API: Option<&str> = Some("kube-apiserver-kubelet-client");
    const NODE: Option<&str> = Some("system:node:n1");
    let exec = |query: &str, protocol: &str| {
        format!(
            "GET /exec/default/web/app?{query} HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
             Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\
             Sec-WebSocket-Protocol: {protocol}\r\n\r\n"
        )
    };
    for (name, request, expected) in [
        (None, get("/healthz"), "HTTP/1.1 401 Unauthorized"),
        (Some("mallory"), get("/healthz"), "HTTP/1.1 403 Forbidden"),
        (
            Some("mallory"),
            get("/pods"),
            "Forbidden (user=mallory, verb=get, resource=nodes, subresource(s)=[pods proxy])",
        ),
        (None, get("/healthz").replace("Host", "Authorization: Bearer good\r\nHost"), "\r\n\r\nok"),
        (None, get("/pods").replace("Host", "Authorization: Bearer good\r\nHost"), "HTTP/1.1 403 Forbidden"),
        (None, get("/healthz").replace("Host", "Authorization: Bearer bad\r\nHost"), "HTTP/1.1 401 Unauthorized"),
        (API, get("/healthz"), "\r\n\r\nok"),
        (API, get("/healthz").replace("GET", "POST"), "HTTP/1.1 405 Method Not Allowed"),
        (API, get("/logs/"), "logs endpoint is disabled."),
        (API, get("/configz"), "\"kubeletconfig\""),
        (API, get("/configz"), "\"cpuManagerPolicy\":\"none\""),
        (API, get("/runningpods/"), "\"name\":\"web\""),
        (API, get("/run/default/web/app?cmd=echo+ran").replace("GET", "POST"), "\r\n\r\nran\n"),
        (API, get("/journals/default/pods.web"), "{\"kind\":\"Journal\"}"),
        (API, get("/journals/default/secrets.web"), "HTTP/1.1 404 Not Found"),
        (API, get("/journals"), "{\"items\":[]}"),
        (Some("mallory"), get("/journals/default/pods.web"), "HTTP/1.1 403 Forbidden"),
        (API, get("/metrics"), "\nkubelet_server_expiration_renew_errors 0\n"),
        (API, get("/metrics"), "\nkubelet_certificate_manager_client_ttl_seconds +Inf\n"),
        (API, get("/metrics"), "\nkubelet_certificate_manager_server_ttl_seconds -5\n"),
        (API, get("/metrics"), "\nkubelet_pod_start_duration_seconds_count "),
        (API, get("/metrics"), "\nkubelet_cgroup_manager_duration_seconds_count{operation_type=\"create\"} "),
        (
            API,
            get("/metrics"),
            "\nvolume_manager_total_volumes{plugin_name=\"kubernetes.io/configmap\",state=\"actual_state_of_world\"} ",
        ),
        (
            API,
            get("/metrics"),
            "\nstorage_operation_duration_seconds_count{volume_plugin=\"kubernetes.io/configmap\",\
             operation_name=\"volume_mount\",status=\"success\",migrated=\"false\"} ",
        ),
        (API, get("/nothing"), "HTTP/1.1 404 Not Found"),
        (API, get("/pods"), "\"name\":\"web\""),
        (API, get("/containerLogs/default/web/app"), "hello web\nvalue\n"),
        (API, get("/containerLogs/default/web/app?tailLines=1"), "value\n"),
        (
            API,
            get("/containerLogs/default/web/app?previous=true"),
            "previous terminated container \"app\" in pod \"web\" not found",
        ),
        (API, get("/containerLogs/default/web/app?tailLines=x"), "HTTP/1.1 400 Bad Request"),
        (API, get("/exec/default/web/app?command=true&output=1"), "Upgrade request required"),
        (API, get("/exec/default/web/app?command=true"), "you must specify at least 1 of stdin, stdout, stderr"),
        (API, exec("command=echo&command=hi&output=1", "v4.channel.k8s.io"), "\u{1}hi\n"),
        (API, exec("command=echo&command=hi&output=1", "v5.channel.k8s.io"), "\u{1}hi\n"),
        (API, exec("command=false&output=1", "v5.channel.k8s.io"), "NonZeroExitCode"),
        (API, exec("command=true&output=1", "v6.channel.k8s.io"), "HTTP/1.1 403 Forbidden"),
        (
            API,
            get("/containerLogs/default/web/slow"),
            "container \"slow\" in pod \"web\" is waiting to start: trying and failing to pull image",
        ),
        (NODE, get("/api/v1/namespaces/default/pods"), "\"name\":\"web\""),
        (NODE, get("/api/v1/namespaces/default/pods/web/log?tailLines=1"), "value\n"),
        (
            NODE,
            exec("command=echo&command=hi&stdout=true&container=app", "v5.channel.k8s.io")
                .replace("/exec/default/web/app", "/api/v1/namespaces/default/pods/web/exec"),
            "\u{1}hi\n",
        ),
        (NODE, get("/apis/corten.dev/v1/namespaces/default/journals/pods.web"), "{\"kind\":\"Journal\"}"),
        (NODE, get("/api/v1/namespaces/default/secrets/a"), "HTTP/1.1 404 Not Found"),
        (NODE, get("/api/v1/namespaces/default/pods/web").replace("GET", "DELETE"), "HTTP/1.1 405 Method Not Allowed"),
        (NODE, get("/pods"), "HTTP/1.1 403 Forbidden"),
        (Some("system:node:n2"), get("/api/v1/pods"), "HTTP/1.1 403 Forbidden"),
        (API, get("/api/v1/pods"), "HTTP/1.1 404 Not Found"),
        (API, get("/containerLogs/default/web/none"), "container \"none\" not found in pod \"web\""),
        (API, get("/containerLogs/default/none/app"), "pod \"none\" not found"),
        (
            API,
            exec("command=x&output=1", "v4.channel.k8s.io").replace("/web/", "/other/"),
            "container not found (\"app\")",
        ),
    ] {
        let answer = ask(port, &pki, name, &request, expected).await;
        assert!(answer.contains(expected), "{request}\n{answer}");
    }
    stop.send(()).expect("heard");
    timeout(IN_TIME, serving).await.expect("in time").expect("joined");
}
