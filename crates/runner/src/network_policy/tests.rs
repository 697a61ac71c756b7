use parking_lot::Mutex;
use serde_json::json;
use tokio::sync::Notify;

use corten_netpolicy::PodMatch;

use super::*;
use crate::fake::{FakeApi, clock};

/// A kernel that takes what it is told to, and can lose it all; and sandboxes that come and go.
#[derive(Default)]
struct FakeKernel {
    refusals: Mutex<u32>,
    is_emptied: Mutex<bool>,
    applied: Mutex<Vec<Vec<String>>>,
    plugs: Mutex<Vec<Result<PodSandbox, String>>>,
    news: Notify,
    plugged: Mutex<Vec<PodSandbox>>,
    laid: Mutex<BTreeSet<String>>,
    refused: Mutex<Option<String>>,
    gap: Mutex<Option<String>>,
}

impl FakeKernel {
    fn plug(&self, name: &str, address: &str) {
        let plugged = PodSandbox {
            sandbox: format!("s-{name}"),
            pod: Key::new("default", name),
            uid: format!("u-{name}"),
            addresses: vec![address.parse().expect("an address")],
            labels: Some([("app".to_owned(), "static".to_owned())].into()),
        };
        self.plugged.lock().push(plugged.clone());
        self.plugs.lock().push(Ok(plugged));
        self.news.notify_one();
    }

    fn is_laid(&self, name: &str) -> bool {
        self.laid.lock().contains(&format!("s-{name}"))
    }

    fn says(&self, text: &str) -> bool {
        self.applied.lock().iter().flatten().any(|it| it.contains(text))
    }
}

impl TableHands for FakeKernel {
    fn is_there(&self) -> BoxFuture<'_, Result<bool, String>> {
        Box::pin(async { Ok(!std::mem::take(&mut *self.is_emptied.lock())) })
    }
}

impl PolicyHands for FakeKernel {
    fn apply(&self, changes: Vec<Change>) -> BoxFuture<'_, Result<(), String>> {
        Box::pin(async move {
            let mut refusals = self.refusals.lock();
            if *refusals > 0 && !changes.is_empty() {
                *refusals -= 1;
                return Err("operation not permitted".to_owned());
            }
            self.applied.lock().push(changes.iter().map(ToString::to_string).collect());
            Ok(())
        })
    }

    fn plugged(&self) -> BoxFuture<'_, Result<Vec<PodSandbox>, String>> {
        Box::pin(async { Ok(self.plugged.lock().clone()) })
    }

    fn sandboxes(&self) -> BoxFuture<'_, Result<BTreeSet<String>, String>> {
        Box::pin(async { Ok(self.plugged.lock().iter().map(|it| it.sandbox.clone()).collect()) })
    }

    fn next_plugs(&self) -> BoxFuture<'_, Vec<Result<PodSandbox, String>>> {
        Box::pin(async {
            loop {
                let news = std::mem::take(&mut *self.plugs.lock());
                if !news.is_empty() {
                    return news;
                }
                self.news.notified().await;
            }
        })
    }

    fn laid(&self, sandboxes: &BTreeSet<String>) {
        self.laid.lock().extend(sandboxes.iter().cloned());
    }

    fn refused(&self, why: Option<String>) {
        *self.refused.lock() = why;
    }

    fn gap(&self) -> BoxFuture<'_, Option<String>> {
        Box::pin(async { self.gap.lock().clone() })
    }
}

fn put_policy(api: &FakeApi) {
    let spec = json!({"podSelector": {}, "policyTypes": ["Ingress"]});
    let object = json!({"metadata": {"name": "deny", "namespace": "default"}, "spec": spec});
    api.put("/apis/networking.k8s.io/v1/namespaces/default/networkpolicies/deny", object);
}

fn put_pod(api: &FakeApi, name: &str) {
    let metadata = json!({"name": name, "namespace": "default", "uid": format!("u-{name}")});
    let path = format!("/api/v1/namespaces/default/pods/{name}");
    api.put(&path, json!({"metadata": metadata, "spec": {"nodeName": "n1"}}));
}

async fn until(what: &str, mut is_done: impl FnMut() -> bool) {
    for _ in 0..10_000 {
        if is_done() {
            return;
        }
        tokio::time::advance(Duration::from_millis(10)).await;
        tokio::task::yield_now().await;
    }
    panic!("it never came about: {what}");
}

struct Running {
    api: Arc<FakeApi>,
    kernel: Arc<FakeKernel>,
    journal: Arc<JournalBook>,
}

impl Running {
    fn begin(api: Arc<FakeApi>, kernel: FakeKernel) -> Self {
        let (kernel, journal) = (Arc::new(kernel), Arc::new(JournalBook::default()));
        let settings = NetworkPolicySettings {
            node_name: "n1".into(),
            pod_match: PodMatch::Bridge,
            client: api.client(),
            hands: kernel.clone(),
            clock: clock(),
            journal: journal.clone(),
        };
        tokio::spawn(run_network_policy(settings, std::future::pending()));
        Self { api, kernel, journal }
    }

    fn waits(&self) -> Vec<String> {
        let decisions = self.journal.decisions(&NETWORK_POLICIES, &Key::new("default", "deny"));
        decisions.into_iter().flat_map(|it| it.waits).map(|it| it.reason).collect()
    }
}

#[tokio::test(start_paused = true)]
async fn a_sandbox_waits_for_its_pod_and_its_policies() {
    let api = FakeApi::new();
    put_policy(&api);
    put_pod(&api, "old");
    let kernel = FakeKernel::default();
    kernel.plug("old", "10.244.0.2");
    kernel.plugs.lock().clear();
    let running = Running::begin(api, kernel);
    let kernel = &running.kernel;
    until("what is plugged in already is led", || kernel.is_laid("old")).await;
    assert!(kernel.says("add element ingress4 { 10.244.0.2 : goto group/1 }"));

    kernel.plug("new", "10.244.0.3");
    until("it is taken in", || kernel.plugs.lock().is_empty()).await;
    assert!(!kernel.is_laid("new") && !kernel.says("10.244.0.3"));
    put_pod(&running.api, "new");
    let begin = Instant::now();
    until("its Pod is known", || kernel.is_laid("new")).await;
    assert!(begin.elapsed() < PROGRESS, "no policy is new, and that is known at once: {:?}", begin.elapsed());
    assert!(kernel.says("add element ingress4 { 10.244.0.3 : goto group/1 }"));

    kernel.plug("static", "10.244.0.4");
    until("a Pod that only its node knows", || kernel.is_laid("static")).await;
    kernel.plugs.lock().push(Err("s-new".into()));
    kernel.news.notify_one();
    until("what goes is taken away", || kernel.says("delete element ingress4 { 10.244.0.3 }")).await;
    // One that went without a word is found out.
    kernel.plugged.lock().retain(|it| it.uid != "u-static");
    until("the next look", || kernel.says("delete element ingress4 { 10.244.0.4 }")).await;
}

#[tokio::test(start_paused = true)]
async fn what_is_refused_is_explained_and_said_again_as_a_whole() {
    let api = FakeApi::new();
    put_policy(&api);
    put_pod(&api, "a");
    let kernel = FakeKernel { refusals: Mutex::new(2), ..FakeKernel::default() };
    kernel.plug("a", "10.244.0.2");
    let running = Running::begin(api, kernel);
    let kernel = &running.kernel;
    until("it is said", || running.waits() == ["PolicyRulesRefused"]).await;
    assert!(kernel.refused.lock().is_some() && !kernel.is_laid("a"));
    until("it is taken", || running.waits().is_empty() && kernel.is_laid("a")).await;
    assert!(kernel.refused.lock().is_none());

    let n_applied = kernel.applied.lock().len();
    *kernel.is_emptied.lock() = true;
    *kernel.gap.lock() = Some("packets pass by".into());
    until("it is made anew", || kernel.applied.lock()[n_applied..].iter().flatten().any(|it| it == "add table")).await;
    until("what passes by is said", || running.waits() == ["NotFiltered"]).await;
}
