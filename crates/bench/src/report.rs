//! The results as a table, as JSON, and as a page.

use serde::Serialize;
use serde_json::{Value, json};

use super::{machine::Machine, subject::Subject};

/// One thing that was measured.
#[derive(Serialize)]
pub(super) struct Row {
    pub(super) what: String,
    pub(super) value: f64,
    pub(super) unit: Unit,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(super) note: String,
    /// What Kubernetes 1.36 with etcd 3.5 needs for the same.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) kubernetes: Option<f64>,
}

#[derive(Clone, Copy, Serialize)]
pub(super) enum Unit {
    #[serde(rename = "/s")]
    PerSecond,
    #[serde(rename = "MB/s")]
    MegabytesPerSecond,
    #[serde(rename = "s")]
    Seconds,
    #[serde(rename = "ms")]
    Milliseconds,
    #[serde(rename = "MB")]
    Megabytes,
}

impl Unit {
    fn name(self) -> &'static str {
        match self {
            Self::PerSecond => "/s",
            Self::MegabytesPerSecond => "MB/s",
            Self::Seconds => "s",
            Self::Milliseconds => "ms",
            Self::Megabytes => "MB",
        }
    }

    fn more_is_better(self) -> bool {
        matches!(self, Self::PerSecond | Self::MegabytesPerSecond)
    }
}

impl Row {
    pub(super) fn new(what: impl Into<String>, value: f64, unit: Unit) -> Self {
        Self { what: what.into(), value, unit, note: String::new(), kubernetes: None }
    }

    pub(super) fn note(mut self, note: impl Into<String>) -> Self {
        self.note = note.into();
        self
    }

    pub(super) fn kubernetes(mut self, value: f64) -> Self {
        self.kubernetes = Some(value);
        self
    }

    /// How many times better this is.
    fn ratio(&self) -> Option<f64> {
        let reference = self.kubernetes?;
        Some(if self.unit.more_is_better() { self.value / reference } else { reference / self.value })
    }

    fn cells(&self) -> [String; 5] {
        let amount = |value: f64| format!("{} {}", digits(value), self.unit.name());
        [
            self.what.clone(),
            amount(self.value),
            self.kubernetes.map_or("-".into(), amount),
            self.ratio().map_or("-".into(), |it| format!("{it:.1}x")),
            self.note.clone(),
        ]
    }
}

/// Title, command, and how it was measured.
const CONTROL_PLANE: (&str, &str, &str) = (
    "Benchmarks",
    "cargo xtask bench --write docs/benchmarks.md",
    "The server is `corten server`, the control plane alone, built with the profile `dist`, with durable writes. The load comes from \
     the same machine over TLS and HTTP/1.1, and takes its share of the cores. The column Kubernetes is kube-apiserver 1.36 \
     with etcd 3.5 (memory: the whole control plane), measured on a machine of 2 cores too; it stays empty where nothing \
     comparable was measured. The first rows are the machine's own: where they are worse, so is all that follows. \
     What one create of a Pod takes in instructions, and where: hot-paths.md.",
);
const NODE: (&str, &str, &str) = (
    "Benchmarks of the node",
    "cargo xtask bench node --write docs/benchmarks-node.md",
    "`corten node`, the whole cluster in one process, built with the profile `dist`, with real containers. `The runtime by itself` is \
     the same containerd asked by three plain calls (RunPodSandbox, CreateContainer, StartContainer) for the same image in \
     the same network, by turns with Corten and while Corten stands still. They are asked for the least that makes a container \
     run, and for all that every kubelet asks for the shortest Pod (a seccomp filter, a log, resolv.conf, three mounts, hidden \
     paths). A Pod has still more to it (its cgroup, a token, the API's durable writes) and is timed from before its create until \
     a watcher is told that it runs. The column Kubernetes is kubelet 1.36 with a whole control plane on a machine of 2 cores \
     (memory: kubelet and kube-proxy alone); it stays empty where nothing comparable was measured.",
);

const STORAGE: (&str, &str, &str) = (
    "Benchmarks of storage",
    "cargo xtask bench storage --write docs/benchmarks-storage.md",
    "`corten node`, the whole cluster in one process, built with the profile `dist`, with volumes of the built-in driver (a file with ext4 in \
     it). A claim and its Pod are timed from before the claim's create until a watcher is told that the Pod runs, by turns with \
     the same Pod with an `emptyDir`. Claims and clones are measured on a node whose data is on an XFS of its own, in a file: it \
     shares blocks.",
);

const NETWORK: (&str, &str, &str) = (
    "Benchmarks of the network",
    "cargo xtask bench network --write docs/benchmarks-network.md",
    "The code that nodes run, in network namespaces of one machine. Of the policies one node with 250 of the Pods is played, each of \
     which some policies choose. A change is timed from the moment that the mind is told of it until the kernel has acknowledged what \
     follows from it; `from the API on` from before the request to a `corten server`, whose watches the node's loop follows as on \
     a machine that has joined. 50 ms are promised. The tunnel by hand is a VXLAN device of the same MTU and a route, between two \
     machines whose Pods are on bridges, too, without any packet rule or tracked connection.",
);

const HEADS: [&str; 5] = ["measured", "Corten", "Kubernetes", "better", "detail"];

/// Three digits say all that such a measurement knows.
fn digits(value: f64) -> String {
    match value {
        100.0.. => format!("{value:.0}"),
        10.0.. => format!("{value:.1}"),
        1.0.. => format!("{value:.2}"),
        _ => format!("{value:.3}"),
    }
}

pub(super) struct Report {
    pub(super) machine: Machine,
    pub(super) quick: bool,
    pub(super) subject: Subject,
    pub(super) rows: Vec<Row>,
}

impl Report {
    pub(super) fn table(&self) -> String {
        let rows: Vec<_> = std::iter::once(HEADS.map(String::from)).chain(self.rows.iter().map(Row::cells)).collect();
        let width = |column: usize| rows.iter().map(|it| it[column].chars().count()).max().unwrap_or(0);
        let widths = [width(0), width(1), width(2), width(3)];
        let line = |cells: &[String; 5]| {
            let [what, value, reference, ratio, note] = cells;
            let [a, b, c, d] = widths;
            format!("{what:a$}  {value:>b$}  {reference:>c$}  {ratio:>d$}  {note}").trim_end().to_owned()
        };
        rows.iter().map(line).collect::<Vec<_>>().join("\n")
    }

    pub(super) fn json(&self) -> Value {
        json!({"machine": self.machine, "quick": self.quick, "rows": self.rows})
    }

    pub(super) fn page(&self) -> String {
        let Machine { processor, cores, memory_gib, kernel, file_system, when } = &self.machine;
        let size = if self.quick { "\n\nThis was a small run (`--quick`): an indication, not a result." } else { "" };
        let rows: Vec<_> = self.rows.iter().map(|it| format!("| {} |", it.cells().join(" | "))).collect();
        let (title, command, how) = match self.subject {
            Subject::ControlPlane => CONTROL_PLANE,
            Subject::Node => NODE,
            Subject::Storage => STORAGE,
            Subject::Network => NETWORK,
        };
        format!(
            "# {title}\n\n\
             The table is written by `{command}`; what stands below it stays, and says when and how it was measured.\n\n\
             Machine: {cores} cores ({processor}), {memory_gib} GiB, {kernel}, data on {file_system}; {when}.{size}\n\n\
             {how}\n\n\
             | {} |\n|---|---:|---:|---:|---|\n{}\n",
            HEADS.join(" | "),
            rows.join("\n"),
        )
    }
}

/// What a page has below a heading of its own: other commands have measured it, and it stays.
pub(super) fn measured_otherwise(page: &str) -> &str {
    page.find("\n## ").map_or("", |it| &page[it..])
}
