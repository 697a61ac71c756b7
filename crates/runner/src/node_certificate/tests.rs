use base64::{Engine, engine::general_purpose::STANDARD};
use bytes::Bytes;
use corten_client::{Body, BoxFuture, Transport, TransportError};
use http::{Method, Request as SigningRequest, Response};
use http_body_util::{BodyExt, Full};
use parking_lot::Mutex;
use serde_json::{Value, json};

use super::*;

/// Signs every second time it is asked for the answer, and denies the third request.
#[derive(Default)]
struct Cluster(Mutex<(usize, usize, String)>);

impl Transport for Cluster {
    fn send(&self, request: SigningRequest<Bytes>) -> BoxFuture<'_, Result<Response<Body>, TransportError>> {
        let mut state = self.0.lock();
        let asked: Value = serde_json::from_slice(request.body()).unwrap_or_default();
        let answer = match (request.method(), request.uri().path()) {
            (&Method::GET, "/api/v1/nodes/n1") => {
                let address = |kind: &str, address: &str| json!({ "type": kind, "address": address });
                let addresses = match &*state.2 {
                    "" => Vec::new(),
                    own => vec![address("Hostname", "n1"), address("InternalIP", own)],
                };
                json!({ "metadata": { "name": "n1" }, "status": { "addresses": addresses } })
            }
            (&Method::POST, "/apis/certificates.k8s.io/v1/certificatesigningrequests") => {
                state.0 += 1;
                state.1 = 0;
                assert_eq!(asked["spec"]["signerName"], SIGNER);
                json!({ "metadata": { "name": format!("csr-{}", state.0) } })
            }
            _ => {
                state.1 += 1;
                let status = match state.0 {
                    3 => json!({ "conditions": [{ "type": "Denied", "message": "no" }] }),
                    _ if state.1 > 1 => json!({ "certificate": STANDARD.encode(format!("signed {}", state.0)) }),
                    _ => json!({}),
                };
                json!({ "metadata": { "name": "csr" }, "status": status })
            }
        };
        let body = Full::new(Bytes::from(answer.to_string())).map_err(|never| match never {}).boxed_unsync();
        Box::pin(async move { Ok(Response::new(body)) })
    }
}

/// Its certificates last a hundred seconds.
#[derive(Default)]
struct Keys(Mutex<(ServingNames, Option<ServingCertificate>, i64)>);

impl ServingKeys for Keys {
    fn current(&self) -> Option<ServingCertificate> {
        self.0.lock().1.clone()
    }

    fn request(&self, names: &ServingNames) -> Result<String, String> {
        self.0.lock().0 = names.clone();
        Ok("request".into())
    }

    fn install(&self, certificate: &str) -> Result<(), String> {
        assert!(certificate.starts_with("signed"));
        let mut keys = self.0.lock();
        let time = Time::from_unix_seconds;
        keys.1 = Some(ServingCertificate { from: time(keys.2), until: time(keys.2 + 100), names: keys.0.clone() });
        Ok(())
    }

    fn outdated(&self) -> BoxFuture<'_, ()> {
        Box::pin(std::future::pending())
    }
}

#[tokio::test(start_paused = true)]
async fn a_certificate_is_asked_for_and_replaced_in_time() {
    let (cluster, keys) = (Arc::new(Cluster::default()), Arc::new(Keys::default()));
    cluster.0.lock().2 = "10.0.0.5".into();
    let clock: Clock = {
        let keys = keys.clone();
        Arc::new(move || Time::from_unix_seconds(keys.0.lock().2))
    };
    let requester = ServingCertificateRequester {
        client: Client::new(cluster.clone()),
        node: "n1".into(),
        keys: keys.clone(),
        clock,
    };
    for (now, address, n_requests, works) in [
        (0, "10.0.0.5", 1, true),
        (79, "10.0.0.5", 1, true),
        (80, "10.0.0.5", 2, true),
        // Another name. It is denied at first.
        (81, "10.0.0.6", 3, false),
        (82, "10.0.0.6", 4, true),
        (83, "10.0.0.6", 4, true),
    ] {
        keys.0.lock().2 = now;
        cluster.0.lock().2 = address.into();
        assert_eq!(requester.step().await.is_ok(), works, "at {now}");
        assert_eq!(cluster.0.lock().0, n_requests, "at {now}");
    }
    let names = ServingNames { dns: vec!["n1".into()], addresses: vec!["10.0.0.6".into()] };
    assert_eq!(keys.current().map(|it| it.names), Some(names));
}

/// Until then nobody can ask its kubelet.
#[tokio::test(start_paused = true)]
async fn a_node_that_is_slow_to_say_where_it_is_has_a_certificate_soon_after() {
    let (cluster, keys) = (Arc::new(Cluster::default()), Arc::new(Keys::default()));
    let clock: Clock = Arc::new(|| Time::from_unix_seconds(0));
    let client = Client::new(cluster.clone());
    let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
    let stopped = async move { drop(stopped.await) };
    let journal = Arc::new(JournalBook::default());
    let told = (clock, journal.clone());
    let running = tokio::spawn(run_node_certificate(client, "n1".into(), keys.clone(), told, stopped));
    let n_errors = || {
        let tallies = journal.of_node().tallies();
        let renewals = tallies.iter().find(|it| it.metric.name == "kubelet_server_expiration_renew_errors");
        renewals.map(|it| it.rows()[0].n)
    };
    sleep(Duration::from_secs(20)).await;
    assert_eq!(keys.current(), None);
    assert_eq!(n_errors(), Some(0), "that it has no address yet is no failure");
    cluster.0.lock().2 = "10.0.0.5".into();
    sleep(Duration::from_secs(2)).await;
    assert!(keys.current().is_some());
    // Another name, twice; the second time it is denied at first.
    for address in ["10.0.0.6", "10.0.0.7"] {
        cluster.0.lock().2 = address.into();
        sleep(Duration::from_secs(100)).await;
        assert_eq!(keys.current().map(|it| it.names.addresses), Some(vec![address.to_owned()]));
    }
    assert_eq!(n_errors(), Some(1));
    drop(stop);
    running.await.expect("it ends");
}
