//! What admission by others costs a write: webhooks and policies that match nothing, and one policy that matches.

use std::time::Duration;

use anyhow::{Result, bail};
use bytes::Bytes;
use corten_testbed::{Connection, Data, Launcher};
use hyper::Method;
use serde_json::{Value, json};

use super::{
    super::{
        objects::{self, CONFIG_MAPS},
        report::{Row, Unit},
        webhook::Webhook,
    },
    Scale,
    creates::creates,
};

const GROUP: &str = "/apis/admissionregistration.k8s.io/v1";
const CONNECTIONS: usize = 16;
/// The states are measured in turns, so that what a minute of the machine does to one it does to the others.
const TURNS: usize = 5;

/// What is configured while it is measured.
struct State {
    name: &'static str,
    objects: fn(&Webhook) -> Vec<(&'static str, Value)>,
}

const STATES: [State; 3] = [
    State { name: "without webhooks and policies", objects: |_| Vec::new() },
    State { name: "2 webhooks, 10 policies that match nothing", objects: others },
    State { name: "one policy that matches", objects: |_| one_that_matches() },
];

pub(super) async fn measure(launcher: &Launcher, scale: Scale, rows: &mut Vec<Row>) -> Result<()> {
    let data = Data::new()?;
    let (server, _) = launcher.start(&data).await?;
    let webhook = Webhook::start(Duration::ZERO)?;
    let mut connection = server.connect().await?;
    let mut per_second = STATES.map(|_| Vec::new());
    let mut microseconds = STATES.map(|_| Vec::new());
    for _ in 0..TURNS {
        for (at, state) in STATES.iter().enumerate() {
            let objects = (state.objects)(&webhook);
            for (plural, object) in &objects {
                connection.create(&format!("{GROUP}/{plural}"), object.to_string().into()).await?;
            }
            let cpu = server.cpu()?;
            let load = creates(&server, CONNECTIONS, scale.time, CONFIG_MAPS, objects::config_map).await?;
            let spent = server.cpu()? - cpu;
            per_second[at].push(load.per_second);
            microseconds[at].push(spent.as_secs_f64() * 1e6 / (load.requests() as f64));
            for (plural, object) in &objects {
                let name = object["metadata"]["name"].as_str().unwrap_or_default();
                connection.send(Method::DELETE, &format!("{GROUP}/{plural}/{name}"), Bytes::new()).await?;
            }
            empty(&mut connection).await?;
        }
    }
    if webhook.times_asked() > 0 {
        bail!("a webhook that matches nothing was asked");
    }
    let per_second = per_second.map(median);
    let microseconds = microseconds.map(median);
    for (at, state) in STATES.iter().enumerate() {
        let what = format!("create ConfigMaps, {CONNECTIONS} connections, {}", state.name);
        let mut note =
            format!("median of {TURNS} turns, {:.1} µs of the server's processor time each", microseconds[at]);
        if at > 0 {
            let (more, longer) = (per_second[at] / per_second[0] - 1.0, microseconds[at] - microseconds[0]);
            let (percent, microseconds) = (more.abs() * 100.0, longer.abs());
            let which = if more < 0.0 { "fewer" } else { "more" };
            let how = if longer < 0.0 { "less" } else { "more" };
            note += &format!("; {percent:.1} % {which} than without, {microseconds:.1} µs {how}");
        }
        rows.push(Row::new(what, per_second[at], Unit::PerSecond).note(note));
    }
    server.stop()
}

async fn empty(connection: &mut Connection) -> Result<()> {
    connection.send(Method::DELETE, CONFIG_MAPS, Bytes::new()).await?;
    Ok(())
}

fn median(mut numbers: Vec<f64>) -> f64 {
    numbers.sort_by(f64::total_cmp);
    numbers[numbers.len() / 2]
}

/// As they stand in most clusters: about other kinds.
fn others(webhook: &Webhook) -> Vec<(&'static str, Value)> {
    let rules = json!([{ "apiGroups": ["apps"], "apiVersions": ["*"], "operations": ["*"], "resources": ["*"] }]);
    let mut objects: Vec<_> = [
        ("mutatingwebhookconfigurations", "MutatingWebhookConfiguration"),
        ("validatingwebhookconfigurations", "ValidatingWebhookConfiguration"),
    ]
    .map(|(plural, kind)| {
        let entry = json!({
            "name": "bench.example.com", "rules": rules, "sideEffects": "None", "admissionReviewVersions": ["v1"],
            "clientConfig": webhook.client_config(),
        });
        let object = json!({
            "apiVersion": "admissionregistration.k8s.io/v1", "kind": kind, "metadata": { "name": "bench" }, "webhooks": [entry],
        });
        (plural, object)
    })
    .into();
    for idx in 0..10 {
        objects.extend(policy(&format!("bench-{idx}"), &rules));
    }
    objects
}

fn one_that_matches() -> Vec<(&'static str, Value)> {
    let rules =
        json!([{ "apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["configmaps"] }]);
    policy("bench", &rules).into()
}

fn policy(name: &str, rules: &Value) -> [(&'static str, Value); 2] {
    let policy = json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicy", "metadata": { "name": name },
        "spec": {
            "matchConstraints": { "resourceRules": rules },
            "validations": [{ "expression": "object.metadata.name.size() < 100 && !('forbidden' in object.metadata.?labels.orValue({}))" }],
        },
    });
    let binding = json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicyBinding", "metadata": { "name": name },
        "spec": { "policyName": name, "validationActions": ["Deny"] },
    });
    [("validatingadmissionpolicies", policy), ("validatingadmissionpolicybindings", binding)]
}
