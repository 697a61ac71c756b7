//! Pods as a client makes them, and when a watcher hears that they run.

use std::{
    collections::BTreeMap,
    time::{Duration, Instant},
};

use anyhow::{Context, Result, bail};
use bytes::Bytes;
use corten_testbed::{Connection, RealNode, text_field};
use http_body_util::BodyExt;
use hyper::{Method, StatusCode, body::Incoming};
use serde_json::{Value, json};
use tokio::{sync::mpsc, task::JoinHandle};

pub(super) const IMAGE: &str = "busybox:1.35";
/// The same in the floor and in the Pods: it does nothing, and ends when told to.
pub(super) const COMMAND: [&str; 2] = ["sleep", "100000"];
const PATH: &str = "/api/v1/namespaces/default/pods";
const PATIENCE: Duration = Duration::from_secs(120);

/// Makes Pods, and hears of them by a watch as any client would.
pub(super) struct Pods {
    connection: Connection,
    news: mpsc::Receiver<PodChange>,
    listener: JoinHandle<Result<()>>,
    n_made: usize,
}

struct PodChange {
    at: Instant,
    name: String,
    is_gone: bool,
    phase: String,
}

impl Drop for Pods {
    fn drop(&mut self) {
        self.listener.abort();
    }
}

impl Pods {
    pub(super) async fn begin(node: &RealNode) -> Result<Self> {
        let mut connection = node.connect().await?;
        let list = connection.get(PATH).await?;
        let path = format!("{PATH}?watch=true&resourceVersion={}", text_field(&list, "resourceVersion")?);
        let mut watch = node.connect().await?;
        let (status, body) = watch.begin(Method::GET, &path, Bytes::new()).await?;
        if status != StatusCode::OK {
            bail!("the watch was answered with {status}");
        }
        let (sender, news) = mpsc::channel(10_000);
        let listener = tokio::spawn(async move {
            let _connection = watch;
            listen(body, sender).await
        });
        Ok(Self { connection, news, listener, n_made: 0 })
    }

    /// Makes `n` Pods, one request after the other without waiting for any to run. From before the first is made until
    /// each was heard to run, in the order in which they did; and their names.
    pub(super) async fn start(&mut self, n: usize) -> Result<(Vec<Duration>, Vec<String>)> {
        let names: Vec<String> = (0..n).map(|it| format!("bench-{}", self.n_made + it)).collect();
        self.n_made += n;
        let begin = Instant::now();
        for name in &names {
            self.connection.create(PATH, pod(name, &json!({"containers": [container("main", &COMMAND)]}))).await?;
        }
        let mut ran = BTreeMap::new();
        while ran.len() < n {
            let news = self.next().await.context("waiting for Pods to run")?;
            if news.phase == "Running" && names.contains(&news.name) {
                ran.entry(news.name).or_insert(news.at);
            }
        }
        let mut times: Vec<Duration> = ran.into_values().map(|it| it - begin).collect();
        times.sort();
        Ok((times, names))
    }

    /// Makes a Pod. From before that until it was heard to be in that phase; and its name.
    pub(super) async fn until(&mut self, phase: &str, spec: &Value) -> Result<(Duration, String)> {
        let name = format!("bench-{}", self.n_made);
        self.n_made += 1;
        let begin = Instant::now();
        self.connection.create(PATH, pod(&name, spec)).await?;
        loop {
            let news = self.next().await.with_context(|| format!("waiting for a Pod to be {phase}"))?;
            if news.name == name && news.phase == phase {
                return Ok((news.at - begin, name));
            }
        }
    }

    /// Makes something that Pods need.
    pub(super) async fn make(&mut self, path: &str, object: &Value) -> Result<()> {
        self.connection.create(path, object.to_string().into()).await.map(drop)
    }

    /// Takes away what Pods needed.
    pub(super) async fn unmake(&mut self, path: &str) -> Result<()> {
        let (status, answer) = self.connection.send(Method::DELETE, path, Bytes::new()).await?;
        corten_testbed::expect(status, StatusCode::OK, path, &answer)
    }

    pub(super) async fn get(&mut self, path: &str) -> Result<Value> {
        serde_json::from_slice(&self.connection.get(path).await?).with_context(|| format!("reading {path}"))
    }

    /// Takes Pods away and waits until they are gone.
    pub(super) async fn delete(&mut self, names: &[String]) -> Result<()> {
        for name in names {
            let body = Bytes::from_static(br#"{"gracePeriodSeconds":1}"#);
            let (status, answer) = self.connection.send(Method::DELETE, &format!("{PATH}/{name}"), body).await?;
            corten_testbed::expect(status, StatusCode::OK, name, &answer)?;
        }
        let mut n_left = names.len();
        while n_left > 0 {
            let news = self.next().await.context("waiting for Pods to be gone")?;
            n_left -= usize::from(news.is_gone);
        }
        Ok(())
    }

    async fn next(&mut self) -> Result<PodChange> {
        tokio::time::timeout(PATIENCE, self.news.recv())
            .await
            .context("nothing more was heard")?
            .context("the watch ended")
    }
}

async fn listen(mut body: Incoming, news: mpsc::Sender<PodChange>) -> Result<()> {
    let mut rest = Vec::new();
    while let Some(frame) = body.frame().await {
        let Ok(data) = frame?.into_data() else { continue };
        let at = Instant::now();
        rest.extend_from_slice(&data);
        while let Some(end) = rest.iter().position(|it| *it == b'\n') {
            let line: Vec<u8> = rest.drain(..=end).collect();
            let event: serde_json::Value = serde_json::from_slice(&line).context("reading an event")?;
            let object = &event["object"];
            news.send(PodChange {
                at,
                name: object["metadata"]["name"].as_str().unwrap_or_default().to_owned(),
                is_gone: event["type"] == "DELETED",
                phase: object["status"]["phase"].as_str().unwrap_or_default().to_owned(),
            })
            .await?;
        }
    }
    Ok(())
}

/// A container of a Pod's spec.
pub(super) fn container(name: &str, command: &[&str]) -> Value {
    json!({"name": name, "image": IMAGE, "imagePullPolicy": "IfNotPresent", "command": command})
}

/// With all that a Pod gets by default: a token, the cluster's certificate, its own /etc/hosts.
fn pod(name: &str, spec: &Value) -> Bytes {
    let metadata = json!({"name": name, "namespace": "default"});
    json!({"kind": "Pod", "apiVersion": "v1", "metadata": metadata, "spec": spec}).to_string().into()
}
