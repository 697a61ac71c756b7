use std::time::Duration;

use std::sync::Arc;

use corten_meta::Time;
use serde_json::{Value, json};

use super::*;
use crate::fake::{FakeApi, Fault};

const PATH: &str = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/kube-controller-manager";

fn candidate(api: &Arc<FakeApi>, identity: &str) -> Candidate {
    let (begun, client) = (Instant::now(), api.client());
    let clock: Clock = Arc::new(move || Time::from_unix_seconds(1_000).after(begun.elapsed()));
    Candidate {
        client,
        clock,
        lease: Key::new("kube-system", "kube-controller-manager"),
        identity: identity.to_owned(),
        component: "kube-controller-manager".to_owned(),
        times: LeaseTimes::default(),
    }
}

fn holder(api: &FakeApi) -> String {
    let lease = api.object(PATH).expect("there is a lease");
    lease["spec"]["holderIdentity"].as_str().unwrap_or_default().to_owned()
}

/// The revision of the lease as it is stored.
fn stored(api: &FakeApi) -> u64 {
    let lease = api.object(PATH).expect("there is a lease");
    lease["metadata"]["resourceVersion"].as_str().and_then(|it| it.parse().ok()).expect("a revision")
}

#[tokio::test(start_paused = true)]
async fn one_leads_until_it_ends_and_the_next_begins_at_once() {
    let api = FakeApi::new();
    let (one, two) = (candidate(&api, "one"), candidate(&api, "two"));
    let mut term = one.elected().await;
    let revision = term.revision();
    assert_eq!((holder(&api), *revision.borrow()), ("one".to_owned(), stored(&api)));
    tokio::select! {
        () = term.keep() => panic!("nothing keeps it from renewing"),
        _ = two.elected() => panic!("one leads"),
        () = sleep(Duration::from_secs(120)) => {}
    }
    assert_eq!((holder(&api), *revision.borrow()), ("one".to_owned(), stored(&api)), "renewals are told of");
    let told = api.objects("/api/v1/namespaces/kube-system/events/");
    let of = |it: &Value| (it["reason"].clone(), it["message"].clone(), it["involvedObject"]["name"].clone());
    let expected = (json!("LeaderElection"), json!("one became leader"), json!("kube-controller-manager"));
    assert_eq!(told.iter().map(of).collect::<Vec<_>>(), [expected]);
    term.end();
    assert_eq!(*revision.borrow(), 0);
    term.release().await;
    let begun = Instant::now();
    two.elected().await;
    assert!(begun.elapsed() <= Duration::from_secs(2));
    assert_eq!(holder(&api), "two");
}

#[tokio::test(start_paused = true)]
async fn who_cannot_renew_ends_its_term_before_another_begins() {
    let api = FakeApi::new();
    let (one, two) = (candidate(&api, "one"), candidate(&api, "two"));
    let (begun, mut term) = (Instant::now(), one.elected().await);
    for _ in 0..8 {
        api.fault(Fault::Refused("PUT", 503, "ServiceUnavailable"));
    }
    let others = async {
        let asked = two.elected().await;
        (begun.elapsed(), asked)
    };
    let keeping = async {
        term.keep().await;
        (begun.elapsed(), *term.revision().borrow())
    };
    let ((ended, revision), (begun_again, _)) = tokio::join!(keeping, others);
    assert_eq!(revision, 0);
    assert!(ended <= Duration::from_secs(10), "{ended:?}");
    assert!(begun_again >= Duration::from_secs(15), "{begun_again:?}");
}

#[tokio::test(start_paused = true)]
async fn one_that_stood_still_leads_no_more_though_nobody_else_does() {
    let api = FakeApi::new();
    let mut term = candidate(&api, "one").elected().await;
    // As of a process that is stopped and goes on.
    sleep(Duration::from_secs(60)).await;
    term.keep().await;
    assert_eq!(*term.revision().borrow(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_lease_that_another_took_is_lost() {
    let api = FakeApi::new();
    let mut term = candidate(&api, "one").elected().await;
    let mut lease = api.object(PATH).expect("there is a lease");
    lease["spec"]["holderIdentity"] = json!("two");
    api.put(PATH, lease);
    term.keep().await;
    assert_eq!((holder(&api), *term.revision().borrow()), ("two".to_owned(), 0));
}
