//! What `kubectl get hpa` prints.

use corten_validation::read::{items, number, text};
use serde_json::{Value, json};

use crate::{
    Column,
    columns::{AGE, column, first_few},
};

pub(super) const COLUMNS: &[Column] = &[
    column("Reference", "What it scales.", |object, _| {
        let target = &object["spec"]["scaleTargetRef"];
        json!(format!("{}/{}", text(target, "/kind"), text(target, "/name")))
    }),
    column("Targets", "What is measured, and what it is to be.", |object, _| json!(targets(object))),
    column("MinPods", "The fewest Pods it leaves.", |object, _| {
        json!(object["spec"]["minReplicas"].as_i64().map_or("<unset>".to_owned(), |it| it.to_string()))
    }),
    column("MaxPods", "The most Pods it makes.", |object, _| json!(number(object, "/spec/maxReplicas"))),
    column("Replicas", "How many Pods there are.", |object, _| json!(number(object, "/status/currentReplicas"))),
    AGE,
];

const UNKNOWN: &str = "<unknown>";
/// How many metrics are shown.
const SHOWN: usize = 2;

fn targets(scaler: &Value) -> String {
    let specs = items(scaler, "/spec/metrics");
    if specs.is_empty() {
        return "<none>".into();
    }
    let statuses = items(scaler, "/status/currentMetrics");
    let all: Vec<String> =
        specs.iter().enumerate().map(|(at, spec)| metric(spec, statuses.get(at).unwrap_or(&Value::Null))).collect();
    first_few(&all, SHOWN, ", ")
}

fn metric(spec: &Value, status: &Value) -> String {
    let amount = |of: &Value, pointer: &str| of.pointer(pointer).and_then(Value::as_str).map(str::to_owned);
    let pair = |source: &str, field: &str| {
        let current = amount(status, &format!("/{source}/current/{field}")).unwrap_or_else(|| UNKNOWN.into());
        amount(spec, &format!("/{source}/target/{field}")).map(|target| format!("{current}/{target}"))
    };
    match text(spec, "/type") {
        "External" => average_or_value("external", &pair),
        "Object" => average_or_value("object", &pair),
        "Pods" => pair("pods", "averageValue").unwrap_or_default(),
        "Resource" => of_resource("resource", spec, status, &pair),
        "ContainerResource" => of_resource("containerResource", spec, status, &pair),
        _ => "<unknown type>".into(),
    }
}

fn average_or_value(source: &str, pair: &dyn Fn(&str, &str) -> Option<String>) -> String {
    let average = pair(source, "averageValue").map(|it| format!("{it} (avg)"));
    average.or_else(|| pair(source, "value")).unwrap_or_default()
}

fn of_resource(source: &str, spec: &Value, status: &Value, pair: &dyn Fn(&str, &str) -> Option<String>) -> String {
    let name = text(&spec[source], "/name");
    let values = pair(source, "averageValue").unwrap_or_else(|| {
        let percent = |of: &Value| of["averageUtilization"].as_i64().map(|it| format!("{it}%"));
        let current = percent(&status[source]["current"]).unwrap_or_else(|| UNKNOWN.into());
        let target = percent(&spec[source]["target"]).unwrap_or_else(|| "<auto>".into());
        format!("{current}/{target}")
    });
    format!("{name}: {values}")
}
