//! Writes of custom resources while their definition is changed.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
    time::Duration,
};

use corten_access::Identity;
use corten_cacher::body::whole;
use http::Request;
use serde_json::{Value, json};

use super::{DEFINITIONS, ask, define, definition, read, server};
use crate::Server;

const CARS: &str = "/apis/example.com/v1/namespaces/default/cars";

async fn send(server: &Server, n: usize, media_type: &str, query: &str) -> (u16, Value) {
    let who = Identity::new("kubernetes-admin", &["system:masters", "system:authenticated"]);
    let request = Request::builder().method("PATCH").uri(format!("{CARS}/a{query}")).header("content-type", media_type);
    let car =
        json!({ "apiVersion": "example.com/v1", "kind": "Car", "metadata": { "name": "a" }, "spec": { "size": n } });
    let response = server.answer(request.body(whole(car.to_string())).expect("a request"), None, Some(who)).await;
    (response.status().as_u16(), read(response.into_body()).await)
}

/// Writers end with the test, however that does.
struct Ends(Arc<AtomicBool>);

impl Drop for Ends {
    fn drop(&mut self) {
        self.0.store(true, Relaxed);
    }
}

/// A write that began before the change sees what others write after it.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn writes_of_an_object_go_on_while_its_definition_is_changed() {
    let server = server::started().await;
    let name = define(&server, &definition("example.com", "cars", "Car")).await;
    let car = json!({ "apiVersion": "example.com/v1", "kind": "Car", "metadata": { "name": "a" } });
    assert_eq!(ask(&server, "POST", CARS, &car).await.0, 201);
    let has_ended = Arc::new(AtomicBool::new(false));
    let ends = Ends(has_ended.clone());
    let writers: Vec<_> = (0..2)
        .map(|writer| {
            let (server, has_ended) = (server.clone(), has_ended.clone());
            tokio::spawn(async move {
                let merge = ("application/merge-patch+json", String::new());
                let apply = ("application/apply-patch+yaml", format!("?fieldManager=w{writer}&force=true"));
                let (media_type, query) = if writer % 2 == 0 { merge } else { apply };
                let mut n = writer;
                while !has_ended.load(Relaxed) {
                    n += 2;
                    let sent =
                        tokio::time::timeout(Duration::from_secs(30), send(&server, n, media_type, &query)).await;
                    let (code, answer) = sent.expect("it is answered");
                    assert_eq!(code, 200, "{answer}");
                    tokio::task::yield_now().await;
                }
            })
        })
        .collect();
    let path = format!("{DEFINITIONS}/{name}");
    for round in 0..10 {
        let mut changed = read(ask(&server, "GET", &path, &Value::Null).await.1).await;
        changed["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["description"] = json!(format!("Round {round}."));
        let (code, answer) = ask(&server, "PUT", &path, &changed).await;
        // Its own conditions may have been written meanwhile.
        assert!(code == 200 || code == 409, "{}", read(answer).await);
        for _ in 0..20 {
            assert_eq!(send(&server, round, "application/merge-patch+json", "").await.0, 200);
        }
    }
    drop(ends);
    for writer in writers {
        writer.await.expect("each was answered in time");
    }
    server.stop().await;
}
