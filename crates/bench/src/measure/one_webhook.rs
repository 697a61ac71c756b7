//! What a webhook that matches adds to a write: one round trip to it.

use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use bytes::Bytes;
use corten_testbed::{Connection, ControlPlane, Data, Launcher, expect};
use hyper::{Method, StatusCode};
use serde_json::json;

use super::{
    super::{
        load::{Load, millis, quantile},
        objects::{self, CONFIG_MAPS},
        report::{Row, Unit},
        webhook::Webhook,
    },
    Scale,
    creates::creates,
};

const CONFIGURATIONS: &str = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations";
/// Beside the load on the same machine, and a millisecond away, as one on another machine may be.
const DISTANCES: [(Duration, &str); 2] = [(Duration::ZERO, ""), (Duration::from_millis(1), " and is 1 ms away")];
/// All is measured in turns, so that what a minute of the machine does to one it does to the others.
const TURNS: usize = 5;

pub(super) async fn measure(launcher: &Launcher, scale: Scale, rows: &mut Vec<Row>) -> Result<()> {
    let data = Data::new()?;
    let (server, _) = launcher.start(&data).await?;
    for (distance, said) in DISTANCES {
        rows.push(at(&server, scale, distance, said).await?);
    }
    server.stop()
}

async fn at(server: &ControlPlane, scale: Scale, distance: Duration, said: &str) -> Result<Row> {
    let webhook = Webhook::start(distance)?;
    let (mut without, mut with, mut round_trips) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..TURNS {
        without.push(median(&one_after_another(server, scale).await?));
        let before = webhook.times_asked();
        let load = asked_about(server, &webhook, scale).await?;
        let n_asked = webhook.times_asked() - before;
        // The cluster's own loops create some, too: a new namespace gets its authority.
        if n_asked < load.requests() {
            bail!("{} creates asked the webhook only {n_asked} times", load.requests());
        }
        with.push(median(&load));
        round_trips.push(asked_directly(server, &webhook, scale).await?);
    }
    let [without, with, round_trip] = [without, with, round_trips].map(middle);
    let note = format!(
        "p50; {} ms more than the {} ms without it, of which one round trip to it takes {} ms; median of {TURNS} turns",
        millis(with.saturating_sub(without)),
        millis(without),
        millis(round_trip),
    );
    let what = format!("create a ConfigMap, 1 connection, one webhook that matches{said}");
    Ok(Row::new(what, with.as_secs_f64() * 1e3, Unit::Milliseconds).note(note))
}

/// Creates that the webhook is asked about.
async fn asked_about(server: &ControlPlane, webhook: &Webhook, scale: Scale) -> Result<Load> {
    let rules =
        json!([{ "apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["configmaps"] }]);
    let configuration = json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration",
        "metadata": { "name": "bench" },
        "webhooks": [{
            "name": "bench.example.com", "rules": rules, "sideEffects": "None", "admissionReviewVersions": ["v1"],
            "clientConfig": webhook.client_config(),
        }],
    });
    let mut connection = server.connect().await?;
    connection.create(CONFIGURATIONS, configuration.to_string().into()).await?;
    let load = one_after_another(server, scale).await?;
    let mut connection = server.connect().await?;
    let path = format!("{CONFIGURATIONS}/bench");
    let (status, answer) = connection.send(Method::DELETE, &path, Bytes::new()).await?;
    expect(status, StatusCode::OK, &path, &answer)?;
    connection.send(Method::DELETE, CONFIG_MAPS, Bytes::new()).await?;
    Ok(load)
}

async fn one_after_another(server: &ControlPlane, scale: Scale) -> Result<Load> {
    let load = creates(server, 1, scale.time, CONFIG_MAPS, objects::config_map).await?;
    server.connect().await?.send(Method::DELETE, CONFIG_MAPS, Bytes::new()).await?;
    Ok(load)
}

/// What the server asks, asked by who measures, as seldom as the server asks it: after each create. A webhook that is asked again at once
/// is awake.
async fn asked_directly(server: &ControlPlane, webhook: &Webhook, scale: Scale) -> Result<Duration> {
    let (mut asking, mut creating) = (Connection::open(&webhook.address()?).await?, server.connect().await?);
    let question = webhook.last_question();
    let (begin, mut took) = (Instant::now(), Vec::new());
    while begin.elapsed() < scale.time {
        let name = format!("between-{}", took.len());
        creating.create(CONFIG_MAPS, objects::config_map(&name)).await?;
        let asked = Instant::now();
        let (status, answer) = asking.send(Method::POST, "/", question.clone()).await?;
        took.push(asked.elapsed());
        expect(status, StatusCode::OK, "the webhook", &answer)?;
    }
    creating.send(Method::DELETE, CONFIG_MAPS, Bytes::new()).await?;
    took.sort();
    Ok(quantile(&took, 0.5))
}

fn median(load: &Load) -> Duration {
    quantile(load.latencies(), 0.5)
}

fn middle(mut turns: Vec<Duration>) -> Duration {
    turns.sort();
    turns[turns.len() / 2]
}
