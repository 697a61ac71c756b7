//! `/metrics/cadvisor`: the main series of cAdvisor, for the machine, the cgroups above Pods, Pods, and containers.

use corten_machine::cgroups::Usage;

use super::{
    Measured,
    exposition::{Sample, Text, number, seconds},
    network::Interface,
};
use crate::node_facts;

/// One cgroup and what it is.
struct Row<'a> {
    id: String,
    container: &'a str,
    image: &'a str,
    name: &'a str,
    namespace: &'a str,
    pod: &'a str,
    usage: Usage,
    started: i64,
    processes: Option<u64>,
    network: &'a [Interface],
}

impl Row<'_> {
    fn labels<'r>(&'r self, more: &[(&'r str, &'r str)]) -> Vec<(&'r str, &'r str)> {
        let own = [
            ("container", self.container),
            ("id", &*self.id),
            ("image", self.image),
            ("name", self.name),
            ("namespace", self.namespace),
            ("pod", self.pod),
        ];
        let mut labels = [&own[..], more].concat();
        labels.sort_unstable();
        labels
    }
}

type Read = fn(&Usage) -> Option<f64>;
type Metric = (&'static str, &'static str, &'static str, &'static [(&'static str, &'static str)], Read);

const COUNTER: &str = "counter";
const GAUGE: &str = "gauge";

const METRICS: &[Metric] = &[
    (
        "container_cpu_usage_seconds_total",
        COUNTER,
        "Cumulative cpu time consumed in seconds.",
        &[("cpu", "total")],
        |it| Some(seconds(it.cpu_nanos)),
    ),
    ("container_cpu_user_seconds_total", COUNTER, "Cumulative user cpu time consumed in seconds.", &[], |it| {
        Some(seconds(it.cpu_user_nanos))
    }),
    ("container_cpu_system_seconds_total", COUNTER, "Cumulative system cpu time consumed in seconds.", &[], |it| {
        Some(seconds(it.cpu_system_nanos))
    }),
    ("container_cpu_cfs_periods_total", COUNTER, "Number of elapsed enforcement period intervals.", &[], |it| {
        it.cpu_quota_micros.map(|_| number(it.cpu_periods))
    }),
    ("container_cpu_cfs_throttled_periods_total", COUNTER, "Number of throttled period intervals.", &[], |it| {
        it.cpu_quota_micros.map(|_| number(it.cpu_throttled_periods))
    }),
    (
        "container_cpu_cfs_throttled_seconds_total",
        COUNTER,
        "Total time duration the container has been throttled.",
        &[],
        |it| it.cpu_quota_micros.map(|_| seconds(it.cpu_throttled_nanos)),
    ),
    (
        "container_memory_usage_bytes",
        GAUGE,
        "Current memory usage in bytes, including all memory regardless of when it was accessed",
        &[],
        |it| Some(number(it.memory_bytes)),
    ),
    ("container_memory_working_set_bytes", GAUGE, "Current working set in bytes.", &[], |it| {
        Some(number(it.working_set_bytes))
    }),
    ("container_memory_rss", GAUGE, "Size of RSS in bytes.", &[], |it| Some(number(it.rss_bytes))),
    ("container_memory_cache", GAUGE, "Number of bytes of page cache memory.", &[], |it| Some(number(it.cache_bytes))),
    ("container_memory_mapped_file", GAUGE, "Size of memory mapped files in bytes.", &[], |it| {
        Some(number(it.mapped_bytes))
    }),
    ("container_memory_swap", GAUGE, "Container swap usage in bytes.", &[], |it| Some(number(it.swap_bytes))),
    ("container_memory_max_usage_bytes", GAUGE, "Maximum memory usage recorded in bytes", &[], |it| {
        Some(number(it.memory_bytes_max))
    }),
    ("container_memory_failcnt", COUNTER, "Number of memory usage hits limits", &[], |it| {
        Some(number(it.memory_failures))
    }),
    (
        "container_memory_failures_total",
        COUNTER,
        "Cumulative count of memory allocation failures.",
        &[("failure_type", "pgfault"), ("scope", "hierarchy")],
        |it| Some(number(it.page_faults)),
    ),
    ("container_memory_failures_total", COUNTER, "", &[("failure_type", "pgmajfault"), ("scope", "hierarchy")], |it| {
        Some(number(it.major_page_faults))
    }),
    ("container_oom_events_total", COUNTER, "Count of out of memory events observed for the container", &[], |it| {
        Some(number(it.oom_kills))
    }),
    ("container_threads", GAUGE, "Number of threads running inside the container", &[], |it| Some(number(it.tasks))),
    (
        "container_pressure_cpu_stalled_seconds_total",
        COUNTER,
        "Total time duration no tasks in the container could make progress due to CPU congestion.",
        &[],
        |it| it.cpu_pressure.map(|it| seconds(it.full.total_micros.saturating_mul(1000))),
    ),
    (
        "container_pressure_cpu_waiting_seconds_total",
        COUNTER,
        "Total time duration tasks in the container have waited due to CPU congestion.",
        &[],
        |it| it.cpu_pressure.map(|it| seconds(it.some.total_micros.saturating_mul(1000))),
    ),
    (
        "container_pressure_memory_stalled_seconds_total",
        COUNTER,
        "Total time duration no tasks in the container could make progress due to memory congestion.",
        &[],
        |it| it.memory_pressure.map(|it| seconds(it.full.total_micros.saturating_mul(1000))),
    ),
    (
        "container_pressure_memory_waiting_seconds_total",
        COUNTER,
        "Total time duration tasks in the container have waited due to memory congestion.",
        &[],
        |it| it.memory_pressure.map(|it| seconds(it.some.total_micros.saturating_mul(1000))),
    ),
    (
        "container_pressure_io_stalled_seconds_total",
        COUNTER,
        "Total time duration no tasks in the container could make progress due to IO congestion.",
        &[],
        |it| it.io_pressure.map(|it| seconds(it.full.total_micros.saturating_mul(1000))),
    ),
    (
        "container_pressure_io_waiting_seconds_total",
        COUNTER,
        "Total time duration tasks in the container have waited due to IO congestion.",
        &[],
        |it| it.io_pressure.map(|it| seconds(it.some.total_micros.saturating_mul(1000))),
    ),
    ("container_spec_memory_limit_bytes", GAUGE, "Memory limit for the container.", &[], |it| {
        Some(number(it.memory_limit_bytes.unwrap_or(0)))
    }),
    ("container_spec_cpu_shares", GAUGE, "CPU share of the container.", &[], |it| Some(number(it.cpu_shares))),
    ("container_spec_cpu_quota", GAUGE, "CPU quota of the container.", &[], |it| it.cpu_quota_micros.map(number)),
    ("container_spec_cpu_period", GAUGE, "CPU period of the container.", &[], |it| Some(number(it.cpu_period_micros))),
];

type Count = fn(&Interface) -> u64;

const TRAFFIC: &[(&str, &str, Count)] = &[
    ("receive_bytes", "Cumulative count of bytes received", |it| it.received.bytes),
    ("receive_packets", "Cumulative count of packets received", |it| it.received.packets),
    ("receive_errors", "Cumulative count of errors encountered while receiving", |it| it.received.errors),
    ("receive_packets_dropped", "Cumulative count of packets dropped while receiving", |it| it.received.dropped),
    ("transmit_bytes", "Cumulative count of bytes transmitted", |it| it.sent.bytes),
    ("transmit_packets", "Cumulative count of packets transmitted", |it| it.sent.packets),
    ("transmit_errors", "Cumulative count of errors encountered while transmitting", |it| it.sent.errors),
    ("transmit_packets_dropped", "Cumulative count of packets dropped while transmitting", |it| it.sent.dropped),
];

/// `None`: it could not be measured.
pub(crate) fn text(measured: Option<&Measured>) -> String {
    let mut text = Text::default();
    if let Some(measured) = measured {
        of_cgroups(&mut text, measured, &rows(measured));
    }
    let error = if measured.is_some() { 0.0 } else { 1.0 };
    let help = "1 if there was an error while getting container metrics, 0 otherwise";
    text.metric("container_scrape_error", GAUGE, help, [Sample::new(&[], error)]);
    let memory = number(node_facts::memory_total());
    text.metric(
        "machine_memory_bytes",
        GAUGE,
        "Amount of memory installed on the machine.",
        [Sample::new(&[], memory)],
    );
    let cores = f64::from(node_facts::cpus());
    text.metric("machine_cpu_cores", GAUGE, "Number of logical CPU cores.", [Sample::new(&[], cores)]);
    text.into_string()
}

fn of_cgroups(text: &mut Text, measured: &Measured, rows: &[Row<'_>]) {
    let at = measured.time.as_millisecond();
    for group in METRICS.chunk_by(|a, b| a.0 == b.0) {
        let (name, kind, help, ..) = group[0];
        let samples = rows.iter().flat_map(|row| {
            group.iter().filter_map(move |(_, _, _, labels, read)| {
                Some(Sample { labels: row.labels(labels), value: read(&row.usage)?, unix_millis: Some(at) })
            })
        });
        text.metric(name, kind, help, samples);
    }
    for (name, help, count) in TRAFFIC {
        let samples = rows.iter().flat_map(|row| {
            row.network.iter().map(move |it| Sample {
                labels: row.labels(&[("interface", &it.name)]),
                value: number(count(it)),
                unix_millis: Some(at),
            })
        });
        text.metric(&format!("container_network_{name}_total"), COUNTER, help, samples);
    }
    let whole = |row: &Row<'_>, value: f64| {
        let labels = row.labels(&[]).into_iter().map(|(a, b)| (a.to_owned(), b.to_owned())).collect::<Vec<_>>();
        (labels, value)
    };
    let processes: Vec<_> = rows.iter().filter_map(|it| Some(whole(it, number(it.processes?)))).collect();
    let started: Vec<_> = rows
        .iter()
        .filter(|it| it.started > 0)
        .map(|it| whole(it, number(u64::try_from(it.started).unwrap_or(0))))
        .collect();
    let seen: Vec<_> =
        rows.iter().map(|it| whole(it, number(u64::try_from(measured.time.as_second()).unwrap_or(0)))).collect();
    for (name, help, found) in [
        ("container_processes", "Number of processes running inside the container.", &processes),
        ("container_start_time_seconds", "Start time of the container since unix epoch in seconds.", &started),
        ("container_last_seen", "Last time a container was seen by the exporter", &seen),
    ] {
        let samples = found.iter().map(|(labels, value)| Sample {
            labels: labels.iter().map(|(a, b)| (&**a, &**b)).collect(),
            value: *value,
            unix_millis: Some(at),
        });
        text.metric(name, GAUGE, help, samples);
    }
}

fn rows(measured: &Measured) -> Vec<Row<'_>> {
    let bare = |id: String, usage: Usage| Row {
        id,
        container: "",
        image: "",
        name: "",
        namespace: "",
        pod: "",
        usage,
        started: 0,
        processes: None,
        network: &[],
    };
    let mut rows = vec![Row { network: &measured.network, ..bare("/".into(), measured.node) }];
    if let Some((usage, _)) = measured.pods_usage {
        rows.push(bare(format!("/{}", measured.pods_cgroup), usage));
    }
    for pod in &measured.pods {
        let (namespace, name) = (&*pod.owner.namespace, &*pod.owner.name);
        let started = pod.started.as_second();
        let id = format!("/{}", pod.cgroup);
        let processes = Some(pod.processes);
        rows.push(Row { namespace, pod: name, started, processes, ..bare(id, pod.usage) });
        if let Some(usage) = pod.sandbox_usage {
            rows.push(Row {
                image: &pod.sandbox_image,
                name: &pod.sandbox,
                namespace,
                pod: name,
                started,
                processes: Some(1),
                network: &pod.network,
                ..bare(format!("/{}", pod.sandbox_cgroup), usage)
            });
        }
        for it in &pod.containers {
            rows.push(Row {
                container: &it.name,
                image: &it.image,
                name: &it.id,
                namespace,
                pod: name,
                started: it.started.as_second(),
                processes: Some(it.processes),
                ..bare(format!("/{}", it.cgroup), it.usage)
            });
        }
    }
    rows
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stats::network::Traffic;

    #[test]
    fn a_rows_labels_are_sorted_and_whole() {
        let measured = Measured {
            time: jiff::Timestamp::from_second(1_700_000_000).expect("a time"),
            node: Usage { cpu_nanos: 1_500_000_000, ..Usage::default() },
            nanocores: None,
            network: vec![Interface {
                name: "eth0".into(),
                received: Traffic { bytes: 7, ..Traffic::default() },
                sent: Traffic::default(),
            }],
            default_interface: None,
            pods_cgroup: String::new(),
            pods_usage: None,
            runtime_usage: None,
            pods: Vec::new(),
        };
        let text = text(Some(&measured));
        for line in [
            r#"container_cpu_usage_seconds_total{container="",cpu="total",id="/",image="",name="",namespace="",pod=""} 1.5 1700000000000"#,
            r#"container_network_receive_bytes_total{container="",id="/",image="",interface="eth0",name="",namespace="",pod=""} 7 1700000000000"#,
            "container_scrape_error 0",
        ] {
            assert!(text.lines().any(|it| it == line), "{line}\n{text}");
        }
    }
}
