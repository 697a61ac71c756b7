//! Rights that end while something goes on: it ends, too.

use std::{
    sync::{
        Arc,
        atomic::{AtomicI64, Ordering::Relaxed},
    },
    time::{Duration, SystemTime},
};

use bytes::Bytes;
use corten_access::{Identity, Peer};
use corten_cacher::body::whole;
use corten_meta::Time;
use http::Request;
use http_body_util::BodyExt;
use rustls_pki_types::{CertificateDer, pem::PemObject};
use serde_json::{Value, json};
use tokio::time::Instant;

use super::server;
use corten_cacher::body::Body;
use corten_pki::Authority;

use crate::{Config, Server};

const START: i64 = 1_800_000_000;
const MAPS: &str = "/api/v1/namespaces/default/configmaps";
const RBAC: &str = "/apis/rbac.authorization.k8s.io/v1";
const BINDINGS: &str = "/apis/rbac.authorization.k8s.io/v1/namespaces/default/rolebindings";
/// Until what ends a right is noticed where it is no RBAC object.
const A_MINUTE: Duration = Duration::from_secs(60);
/// A moment: changes of RBAC objects are told at once.
const A_MOMENT: Duration = Duration::from_secs(1);

/// A server whose clock the test sets.
struct World {
    server: Server,
    /// In seconds after the start.
    clock: Arc<AtomicI64>,
}

/// Who asks, and by what.
#[derive(Clone)]
enum Who {
    User(&'static str, &'static [&'static str]),
    Acting(&'static str, &'static str),
    Token(String),
    Certificate(Peer),
}

const ADMIN: Who = Who::User("kubernetes-admin", &["system:masters"]);

impl World {
    async fn new() -> Self {
        let clock = Arc::new(AtomicI64::new(0));
        let (of_server, of_pki, start) = (clock.clone(), clock.clone(), SystemTime::now());
        let mut pki = Authority::in_memory().expect("keys can be made");
        pki.tell_time(move || start + Duration::from_secs(of_pki.load(Relaxed).unsigned_abs()));
        let config = Config {
            clock: Arc::new(move || Time::from_unix_seconds(START + of_server.load(Relaxed))),
            pki: Arc::new(pki),
            ..server::config()
        };
        Self { server: Server::start(config).await.expect("a server over an empty store starts"), clock }
    }

    /// The server's clocks go on with the timers.
    async fn pass(&self, time: Duration) {
        self.clock.fetch_add(i64::try_from(time.as_secs()).expect("not for ever"), Relaxed);
        tokio::time::advance(time).await;
    }

    async fn ask(&self, who: &Who, method: &str, path: &str, body: &Value) -> (u16, Body) {
        let media_type = if method == "PATCH" { "application/merge-patch+json" } else { "application/json" };
        let mut request = Request::builder().method(method).uri(path).header("content-type", media_type);
        let (peer, identity) = match who {
            Who::User(name, groups) => (None, Some(Identity::new(*name, groups))),
            Who::Acting(name, other) => {
                request = request.header("impersonate-user", *other);
                (None, Some(Identity::new(*name, &[])))
            }
            Who::Token(token) => {
                request = request.header("authorization", format!("Bearer {token}"));
                (None, None)
            }
            Who::Certificate(peer) => (Some(peer.clone()), None),
        };
        let body = if body.is_null() { Bytes::new() } else { body.to_string().into() };
        let request = request.body(whole(body)).expect("a request");
        let response = self.server.answer(request, peer, identity).await;
        (response.status().as_u16(), response.into_body())
    }

    /// As the administrator; what is answered.
    async fn must(&self, method: &str, path: &str, body: Value) -> Value {
        let (code, answer) = self.ask(&ADMIN, method, path, &body).await;
        let answer = answer.collect().await.expect("a whole body").to_bytes();
        assert!((200..300).contains(&code), "{method} {path}: {code} {answer:?}");
        serde_json::from_slice(&answer).expect("JSON")
    }

    async fn map(&self, name: &str) {
        self.must("POST", MAPS, json!({ "metadata": { "name": name } })).await;
    }

    async fn watch(&self, who: &Who, path: &str) -> Body {
        let (code, mut body) = self.ask(who, "GET", path, &Value::Null).await;
        if code != 200 {
            panic!("{path}: {code} {:?}", body.frame().await);
        }
        body
    }

    /// Whoever is named here may watch config maps.
    async fn reader(&self, subject: Value) {
        let rules = json!([{ "apiGroups": [""], "resources": ["configmaps"], "verbs": ["watch"] }]);
        let role = json!({ "metadata": { "name": "reader" }, "rules": rules });
        self.must("POST", &format!("{RBAC}/namespaces/default/roles"), role).await;
        let role = json!({ "apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "reader" });
        let binding = json!({ "metadata": { "name": "reader" }, "roleRef": role, "subjects": [subject] });
        self.must("POST", BINDINGS, binding).await;
    }

    async fn token(&self, bound: Value) -> Who {
        let spec = json!({ "expirationSeconds": 600, "boundObjectRef": bound });
        let path = "/api/v1/namespaces/default/serviceaccounts/bot/token";
        let made = self.must("POST", path, json!({ "spec": spec })).await;
        Who::Token(made["status"]["token"].as_str().expect("a token").to_owned())
    }
}

async fn event(body: &mut Body) -> Option<Value> {
    let frame = body.frame().await?.expect("no error").into_data().expect("data");
    Some(serde_json::from_slice(&frame).expect("one event"))
}

fn user(name: &str) -> Value {
    json!({ "apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": name })
}

fn group(name: &str) -> Value {
    json!({ "apiGroup": "rbac.authorization.k8s.io", "kind": "Group", "name": name })
}

/// Reads on until the watch ends, and wants that to be by an error of this code, in this time, without news before it.
async fn ends(world: &World, mut watch: Body, code: u16, within: Duration, what: &str) {
    let start = Instant::now();
    world.map("after").await;
    let last = event(&mut watch).await.unwrap_or_else(|| panic!("{what}: the watch ends without a word"));
    assert_eq!((&last["type"], &last["object"]["code"]), (&json!("ERROR"), &json!(code)), "{what}: {last}");
    assert!(event(&mut watch).await.is_none(), "{what}");
    assert!(start.elapsed() <= within, "{what}: {:?}", start.elapsed());
}

#[tokio::test(start_paused = true)]
async fn watches_end_with_their_time() {
    let world = World::new().await;
    for (query, least, most) in [("&timeoutSeconds=5", 5, 5), ("&timeoutSeconds=7200", 7200, 7200), ("", 1800, 3600)] {
        let start = Instant::now();
        let mut watch = world.watch(&ADMIN, &format!("{MAPS}?watch=true{query}")).await;
        assert!(event(&mut watch).await.is_none());
        let lasted = start.elapsed();
        assert!(lasted >= Duration::from_secs(least) && lasted <= Duration::from_secs(most), "{query}: {lasted:?}");
    }
    world.server.stop().await;
}

/// A client that reads one event whenever there are two lets the watch never rest.
async fn busy(world: &World, watch: &mut Body, step: Duration) -> (usize, Option<Value>) {
    for n in 0..100 {
        world.map(&format!("busy-{n}-{}", step.as_secs())).await;
        if n == 0 {
            continue;
        }
        world.pass(step).await;
        match event(watch).await {
            Some(it) if it["type"] == "ADDED" => {}
            other => return (n, other),
        }
    }
    panic!("the watch goes on for ever");
}

#[tokio::test(start_paused = true)]
async fn a_watch_that_never_rests_ends_too() {
    let world = World::new().await;
    let mut watch = world.watch(&ADMIN, &format!("{MAPS}?watch=true&timeoutSeconds=100")).await;
    let (n, last) = busy(&world, &mut watch, Duration::from_secs(20)).await;
    assert!(n < 10 && last.is_none(), "{n} {last:?}");

    world.reader(group("system:serviceaccounts")).await;
    world.must("POST", "/api/v1/namespaces/default/serviceaccounts", json!({ "metadata": { "name": "bot" } })).await;
    let bot = world.token(Value::Null).await;
    let list = world.must("GET", MAPS, Value::Null).await;
    let now = list["metadata"]["resourceVersion"].as_str().expect("a revision");
    let mut watch = world.watch(&bot, &format!("{MAPS}?watch=true&resourceVersion={now}")).await;
    let (n, last) = busy(&world, &mut watch, Duration::from_secs(30)).await;
    assert!(n < 30 && last.is_some_and(|it| it["object"]["code"] == 401), "{n}");
    world.server.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_watch_ends_as_soon_as_no_role_allows_it() {
    const JANE: Who = Who::User("jane", &["dev"]);
    const AS_JANE: Who = Who::Acting("bob", "jane");
    let (role, binding) = (format!("{RBAC}/namespaces/default/roles/reader"), format!("{BINDINGS}/reader"));
    let acting = format!("{RBAC}/clusterrolebindings/acting");
    let other_rule = json!({ "rules": [{ "apiGroups": [""], "resources": ["secrets"], "verbs": ["watch"] }] });
    let one_name = json!({ "rules": [
        { "apiGroups": [""], "resources": ["configmaps"], "verbs": ["watch"], "resourceNames": ["a"] }] });
    for (what, who, subject, method, path, body) in [
        ("the binding goes", JANE, user("jane"), "DELETE", &binding, Value::Null),
        ("the role goes", JANE, user("jane"), "DELETE", &role, Value::Null),
        ("the role allows something else", JANE, user("jane"), "PATCH", &role, other_rule),
        ("the role allows one name", JANE, user("jane"), "PATCH", &role, one_name),
        ("the group is no subject", JANE, group("dev"), "PATCH", &binding, json!({ "subjects": [group("ops")] })),
        ("who is acted as may not", AS_JANE, user("jane"), "DELETE", &binding, Value::Null),
        ("who acts may not act", AS_JANE, user("jane"), "DELETE", &acting, Value::Null),
    ] {
        let world = World::new().await;
        world.reader(subject).await;
        let rules = json!([{ "apiGroups": [""], "resources": ["users"], "verbs": ["impersonate"] }]);
        let actor = json!({ "metadata": { "name": "acting" }, "rules": rules });
        world.must("POST", &format!("{RBAC}/clusterroles"), actor).await;
        let actor = json!({ "apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "acting" });
        let bob = json!({ "metadata": { "name": "acting" }, "roleRef": actor, "subjects": [user("bob")] });
        world.must("POST", &format!("{RBAC}/clusterrolebindings"), bob).await;
        // What the roles of the start are told of is over.
        world.pass(A_MOMENT * 2).await;

        let mut watch = world.watch(&who, &format!("{MAPS}?watch=true")).await;
        let mut bystander = world.watch(&ADMIN, &format!("{MAPS}?watch=true")).await;
        world.map("before").await;
        assert_eq!(event(&mut watch).await.expect("an event")["object"]["metadata"]["name"], "before");
        world.must(method, path, body).await;
        ends(&world, watch, 403, A_MOMENT, what).await;
        for name in ["before", "after"] {
            assert_eq!(event(&mut bystander).await.expect("an event")["object"]["metadata"]["name"], name);
        }
        world.server.stop().await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_change_that_takes_nothing_away_ends_nothing() {
    let world = World::new().await;
    world.reader(user("jane")).await;
    let mut watch = world.watch(&Who::User("jane", &[]), &format!("{MAPS}?watch=true")).await;
    for n in 0..10 {
        let role = json!({ "metadata": { "name": format!("r{n}") }, "rules": [] });
        world.must("POST", &format!("{RBAC}/clusterroles"), role).await;
        world.pass(A_MOMENT).await;
    }
    world.map("a").await;
    assert_eq!(event(&mut watch).await.expect("an event")["object"]["metadata"]["name"], "a");
    world.server.stop().await;
}

/// How a credential ends.
enum End {
    Delete(&'static str),
    After(Duration),
}

#[tokio::test(start_paused = true)]
async fn a_watch_ends_soon_after_its_credential() {
    const ACCOUNT: &str = "/api/v1/namespaces/default/serviceaccounts/bot";
    const POD: &str = "/api/v1/namespaces/default/pods/web?gracePeriodSeconds=0";
    const SECRET: &str = "/api/v1/namespaces/default/secrets/old";
    const BOOTSTRAP: &str = "/api/v1/namespaces/kube-system/secrets/bootstrap-token-abcdef";
    const HOUR: Duration = Duration::from_secs(3600);
    let of = |kind: &str, name: &str| json!({ "apiVersion": "v1", "kind": kind, "name": name });
    let cases = [
        ("plain", Value::Null, End::Delete(ACCOUNT)),
        ("plain", Value::Null, End::After(Duration::from_secs(600 + 60))),
        ("bound", of("Pod", "web"), End::Delete(POD)),
        ("bound", of("Secret", "old"), End::Delete(SECRET)),
        ("bound", of("Node", "n1"), End::Delete("/api/v1/nodes/n1")),
        ("legacy", Value::Null, End::Delete(SECRET)),
        ("legacy", Value::Null, End::Delete(ACCOUNT)),
        ("bootstrap", Value::Null, End::Delete(BOOTSTRAP)),
        ("bootstrap", Value::Null, End::After(HOUR)),
        ("certificate", Value::Null, End::After(365 * 24 * HOUR)),
    ];
    for (kind, bound, end) in cases {
        let world = World::new().await;
        for subject in ["system:serviceaccounts", "system:bootstrappers", "ops"] {
            let binding = json!({ "metadata": { "name": subject.replace(':', "-") }, "subjects": [group(subject)],
                "roleRef": { "apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "edit" } });
            world.must("POST", BINDINGS, binding).await;
        }
        let account = json!({ "metadata": { "name": "bot" } });
        world.must("POST", "/api/v1/namespaces/default/serviceaccounts", account).await;
        world.must("POST", "/api/v1/nodes", json!({ "metadata": { "name": "n1" } })).await;
        let pod = json!({ "serviceAccountName": "bot", "containers": [{ "name": "a", "image": "i" }] });
        let pod = json!({ "metadata": { "name": "web" }, "spec": pod });
        world.must("POST", "/api/v1/namespaces/default/pods", pod).await;
        let annotations = json!({ "kubernetes.io/service-account.name": "bot" });
        let secret = json!({ "metadata": { "name": "old", "annotations": annotations },
            "type": "kubernetes.io/service-account-token" });
        let legacy = world.must("POST", "/api/v1/namespaces/default/secrets", secret).await;
        let expiration = Time::from_unix_seconds(START + 3600).to_string();
        let data = json!({ "token-id": "abcdef", "token-secret": "0123456789abcdef", "expiration": expiration,
            "usage-bootstrap-authentication": "true" });
        let secret = json!({ "metadata": { "name": "bootstrap-token-abcdef" }, "stringData": data,
            "type": "bootstrap.kubernetes.io/token" });
        world.must("POST", "/api/v1/namespaces/kube-system/secrets", secret).await;

        let who = match kind {
            "legacy" => Who::Token(text_of(&legacy["data"]["token"])),
            "bootstrap" => Who::Token("abcdef.0123456789abcdef".into()),
            "certificate" => Who::Certificate(peer(&world)),
            _ => world.token(bound.clone()).await,
        };
        world.pass(A_MOMENT * 2).await;
        let mut watch = world.watch(&who, &format!("{MAPS}?watch=true&timeoutSeconds=100000000")).await;
        world.map("before").await;
        assert_eq!(event(&mut watch).await.expect("an event")["object"]["metadata"]["name"], "before");
        let what = match end {
            End::Delete(path) => {
                world.must("DELETE", path, Value::Null).await;
                // The Pod's own end is seen once nobody waits for its grace; until then the token is good.
                path.to_owned()
            }
            End::After(time) => {
                world.pass(time).await;
                format!("{time:?}")
            }
        };
        let start = Instant::now();
        let last = event(&mut watch).await.expect("a last event");
        assert_eq!((&last["type"], &last["object"]["code"]), (&json!("ERROR"), &json!(401)), "{kind} {bound} {what}");
        assert!(event(&mut watch).await.is_none());
        assert!(start.elapsed() <= A_MINUTE, "{kind} {what}: {:?}", start.elapsed());
        let (code, _) = world.ask(&who, "GET", MAPS, &Value::Null).await;
        assert_eq!(code, 401, "{kind} {bound} {what}");
        world.server.stop().await;
    }
}

fn text_of(base64: &Value) -> String {
    use base64::{Engine, engine::general_purpose::STANDARD};
    let bytes = STANDARD.decode(base64.as_str().expect("text")).expect("base64");
    String::from_utf8(bytes).expect("text")
}

fn peer(world: &World) -> Peer {
    let credential = world.server.config().pki.issue_client("ann", &["ops"]).expect("a credential");
    let chain = CertificateDer::pem_slice_iter(credential.certificate.as_bytes());
    Peer { address: ([127, 0, 0, 1], 1).into(), certificates: chain.collect::<Result<_, _>>().expect("a certificate") }
}

#[tokio::test(start_paused = true)]
async fn a_nodes_watch_ends_with_the_pod_that_needed_it() {
    const SECRETS: &str = "/api/v1/namespaces/default/secrets";
    let world = World::new().await;
    world.must("POST", SECRETS, json!({ "metadata": { "name": "s" } })).await;
    let account = json!({ "metadata": { "name": "default" } });
    world.must("POST", "/api/v1/namespaces/default/serviceaccounts", account).await;
    world.must("POST", "/api/v1/nodes", json!({ "metadata": { "name": "n1" } })).await;
    let volumes = json!([{ "name": "v", "secret": { "secretName": "s" } }]);
    let spec = json!({ "nodeName": "n1", "volumes": volumes, "containers": [{ "name": "a", "image": "i" }] });
    let pod = json!({ "metadata": { "name": "web" }, "spec": spec });
    world.must("POST", "/api/v1/namespaces/default/pods", pod).await;
    let node = Who::User("system:node:n1", &["system:nodes"]);
    let path = format!("{SECRETS}?watch=true&fieldSelector=metadata.name%3Ds");
    let mut watch = world.watch(&node, &path).await;
    assert_eq!(event(&mut watch).await.expect("an event")["type"], "ADDED");
    world.must("DELETE", "/api/v1/namespaces/default/pods/web?gracePeriodSeconds=0", Value::Null).await;
    let start = Instant::now();
    let last = event(&mut watch).await.expect("a last event");
    assert_eq!((&last["type"], &last["object"]["code"]), (&json!("ERROR"), &json!(403)), "{last}");
    assert!(start.elapsed() <= A_MINUTE);
    world.server.stop().await;
}
