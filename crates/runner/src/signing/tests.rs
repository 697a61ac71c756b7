use super::*;
use crate::fake::{FakeApi, Fault, clock};

/// Signs everything of its own but what is asked for by `nobody`.
struct FakeSigner;

impl Signer for FakeSigner {
    fn answers_to(&self, signer: &str) -> bool {
        signer.starts_with("kubernetes.io/")
    }

    fn sign(&self, request: &SigningRequest<'_>) -> Result<String, String> {
        if request.request == "nobody" { Err("no".into()) } else { Ok(format!("certificate of {}", request.request)) }
    }
}

const REQUESTS: &str = "/apis/certificates.k8s.io/v1/certificatesigningrequests";

fn request(name: &str, signer: &str, said: &[&str]) -> Value {
    let conditions: Vec<Value> = said.iter().map(|it| json!({ "type": it, "status": "True" })).collect();
    json!({
        "metadata": { "name": name },
        "spec": { "request": STANDARD.encode(name), "signerName": signer, "usages": ["client auth"] },
        "status": { "conditions": conditions },
    })
}

#[tokio::test(start_paused = true)]
async fn approved_requests_are_answered() {
    let api = FakeApi::new();
    const OURS: &str = "kubernetes.io/kube-apiserver-client";
    for (name, signer, said) in [
        ("jane", OURS, &["Approved"][..]),
        ("open", OURS, &[]),
        ("denied", OURS, &["Denied"]),
        ("nobody", OURS, &["Approved"]),
        ("foreign", "acme.com/signer", &["Approved"]),
    ] {
        api.put(&format!("{REQUESTS}/{name}"), request(name, signer, said));
    }
    // The first answer is refused, and given again.
    api.fault(Fault::Refused("PATCH", 500, "InternalError"));
    let (stop, mut stopped) = tokio::sync::watch::channel(false);
    let shutdown = async move {
        let _ = stopped.wait_for(|it| *it).await;
    };
    let running = tokio::spawn(run_signing(api.client(), Arc::new(FakeSigner), clock(), shutdown));
    let of = |name: &str| api.object(&format!("{REQUESTS}/{name}")).expect("it is there")["status"].clone();
    let is_done = || {
        !of("jane")["certificate"].is_null() && of("nobody")["conditions"].as_array().is_some_and(|it| it.len() == 2)
    };
    while !is_done() {
        tokio::time::advance(Duration::from_millis(10)).await;
        tokio::task::yield_now().await;
    }
    assert_eq!(of("jane")["certificate"], STANDARD.encode("certificate of jane"));
    let failed = &of("nobody")["conditions"][1];
    assert_eq!(
        (&failed["type"], &failed["reason"], &failed["message"]),
        (&json!("Failed"), &json!("SignerValidationFailure"), &json!("no"))
    );
    // A request that is approved later is answered then.
    api.put(&format!("{REQUESTS}/open"), request("open", OURS, &["Approved"]));
    while of("open")["certificate"].is_null() {
        tokio::time::advance(Duration::from_millis(10)).await;
        tokio::task::yield_now().await;
    }
    assert!(of("denied")["certificate"].is_null() && of("foreign")["certificate"].is_null());
    stop.send_replace(true);
    running.await.expect("the loop ends");
}
