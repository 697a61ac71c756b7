//! `/metrics/resource`: CPU and memory of node, Pods and containers, named as by the kubelet's resource metrics.

use corten_machine::cgroups::Usage;

use super::{
    Measured,
    exposition::{Sample, Text, number, seconds},
};

type Read = fn(&Usage) -> f64;

/// What is told of a node, a Pod and a container alike: the end of its name, its type, words, and where it is read.
const QUANTITIES: [(&str, &str, &str, Read); 3] = [
    ("cpu_usage_seconds_total", "counter", "[STABLE] Cumulative cpu time consumed by the {} in core-seconds", |it| {
        seconds(it.cpu_nanos)
    }),
    ("memory_working_set_bytes", "gauge", "[STABLE] Current working set of the {} in bytes", |it| {
        number(it.working_set_bytes)
    }),
    (
        "swap_usage_bytes",
        "gauge",
        "[ALPHA] Current amount of the {} swap usage in bytes. Reported only on non-windows systems",
        |it| number(it.swap_bytes),
    ),
];

/// `None`: it could not be measured.
pub(crate) fn text(measured: Option<&Measured>) -> String {
    let mut text = Text::default();
    if let Some(measured) = measured {
        of_containers(&mut text, measured);
        of_node_and_pods(&mut text, measured);
    }
    let error = if measured.is_some() { 0.0 } else { 1.0 };
    for (name, help) in [
        ("resource_scrape_error", "[STABLE] 1 if there was an error while getting container metrics, 0 otherwise"),
        (
            "scrape_error",
            "[ALPHA] (Deprecated since 1.29.0) 1 if there was an error while getting container metrics, 0 otherwise",
        ),
    ] {
        text.metric(name, "gauge", help, [Sample::new(&[], error)]);
    }
    text.into_string()
}

fn of_containers(text: &mut Text, measured: &Measured) {
    let at = measured.time.as_millisecond();
    let all = || {
        measured.pods.iter().flat_map(|pod| {
            let (owner, containers) = (&pod.owner, &pod.containers);
            containers.iter().map(move |it| {
                let labels = [("container", &*it.name), ("namespace", &*owner.namespace), ("pod", &*owner.name)];
                (labels, it)
            })
        })
    };
    for (name, kind, help, read) in QUANTITIES {
        let samples = all().map(|(labels, it)| Sample::new(&labels, read(&it.usage)).at(at));
        text.metric(&format!("container_{name}"), kind, &help.replace("{}", "container"), samples);
    }
    let help = "[STABLE] Start time of the container since unix epoch in seconds";
    let started = |nanos: i128| seconds(u64::try_from(nanos).unwrap_or(0));
    let samples = all().map(|(labels, it)| Sample::new(&labels, started(it.started.as_nanosecond())));
    text.metric("container_start_time_seconds", "gauge", help, samples);
}

fn of_node_and_pods(text: &mut Text, measured: &Measured) {
    let at = measured.time.as_millisecond();
    for (name, kind, help, read) in QUANTITIES {
        let help = |of: &str| match name {
            "swap_usage_bytes" if of == "node" => {
                "[ALPHA] Current swap usage of the node in bytes. Reported only on non-windows systems".to_owned()
            }
            _ => help.replace("{}", of),
        };
        text.metric(&format!("node_{name}"), kind, &help("node"), [Sample::new(&[], read(&measured.node)).at(at)]);
        let samples = measured.pods.iter().map(|it| {
            let labels = [("namespace", &*it.owner.namespace), ("pod", &*it.owner.name)];
            Sample::new(&labels, read(&it.usage)).at(at)
        });
        text.metric(&format!("pod_{name}"), kind, &help("pod"), samples);
    }
}
