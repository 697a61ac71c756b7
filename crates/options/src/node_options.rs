//! What the kubelet can be told, under upstream's names: who it is, when the node is short of something, which images go,
//! what is kept for the system, how long pods have when the machine ends. `corten node` reads them, `corten up` passes them
//! on.

use std::path::PathBuf;

use clap::{Arg, ArgMatches, Command, parser::ValueSource, value_parser};

/// One option: its name, what stands for its value, the default, and what it does.
type Row = (&'static str, &'static str, &'static str, &'static str);

const ROWS: &[Row] = &[
    (
        "eviction-hard",
        "SIGNAL<LIMIT,…",
        "imagefs.available<15%,imagefs.inodesFree<5%,memory.available<100Mi,nodefs.available<10%,nodefs.inodesFree<5%",
        "Below these limits pods are evicted at once. Signals: memory.available, nodefs.available, nodefs.inodesFree, imagefs.available, imagefs.inodesFree, pid.available; a signal that is not named has no limit",
    ),
    ("eviction-soft", "SIGNAL<LIMIT,…", "", "Below these limits pods are evicted when it lasts"),
    ("eviction-soft-grace-period", "SIGNAL=TIME,…", "", "How long it must last: memory.available=1m30s"),
    ("eviction-max-pod-grace-period", "SECONDS", "0", "The grace of a pod that is evicted for a soft limit"),
    (
        "eviction-minimum-reclaim",
        "SIGNAL=AMOUNT,…",
        "",
        "How much more than the limit must be there again before evicting ends",
    ),
    (
        "eviction-pressure-transition-period",
        "TIME",
        "5m0s",
        "How long the node's condition stays after the shortage is over",
    ),
    (
        "image-gc-high-threshold",
        "PERCENT",
        "85",
        "From this use of their disk on, unused images are removed; 100: never",
    ),
    ("image-gc-low-threshold", "PERCENT", "80", "Down to this use of their disk"),
    ("minimum-image-ttl-duration", "TIME", "2m0s", "No image that is younger is removed"),
    ("maximum-image-gc-age", "TIME", "0", "Images that were not used for longer are removed in any case; 0: never"),
    (
        "kube-reserved",
        "RESOURCE=QUANTITY,…",
        "",
        "Kept for Corten itself: cpu, memory, ephemeral-storage. Pods may have the rest, less what eviction-hard keeps free",
    ),
    ("system-reserved", "RESOURCE=QUANTITY,…", "", "Kept for the rest of the machine, in addition"),
    (
        "cpu-manager-policy",
        "none|static",
        "none",
        "static: containers of Guaranteed pods that ask for whole CPUs have them for themselves; needs some that are kept for the system",
    ),
    (
        "cpu-manager-policy-options",
        "NAME=VALUE,…",
        "",
        "Of the policy static: full-pcpus-only, strict-cpu-reservation, prefer-align-cpus-by-uncorecache",
    ),
    (
        "reserved-cpus",
        "LIST",
        "",
        "The CPUs that are kept for the system, as the kernel lists them (0,4-5), rather than as many as kube-reserved and system-reserved say",
    ),
    (
        "memory-manager-policy",
        "None|Static",
        "None",
        "Static: containers of Guaranteed pods have their memory and huge pages of certain NUMA nodes",
    ),
    (
        "reserved-memory",
        "NODE:memory=QUANTITY,…;…",
        "",
        "Where what is kept for the system is, for the policy Static: of each NUMA node memory and hugepages-SIZE. Its memory in all is that of kube-reserved, system-reserved and eviction-hard",
    ),
    (
        "topology-manager-policy",
        "none|best-effort|restricted|single-numa-node",
        "none",
        "Whether CPUs, memory and devices of a container must be near each other",
    ),
    (
        "topology-manager-scope",
        "container|pod",
        "container",
        "Of each container, or of all containers of a pod together",
    ),
    ("topology-manager-policy-options", "NAME=VALUE,…", "", "prefer-closest-numa-nodes, max-allowable-numa-nodes"),
    (
        "shutdown-grace-period",
        "TIME",
        "30s",
        "How long pods have together when the machine is about to end: see `corten down --drain`",
    ),
    ("shutdown-grace-period-critical-pods", "TIME", "10s", "Of that, for critical pods, which end last"),
    (
        "single-process-oom-kill",
        "true|false",
        "false",
        "Of a container that is out of memory only one process is killed, not all. With cgroup v1 that is always so",
    ),
    (
        "memory-swap-behavior",
        "NoSwap|LimitedSwap",
        "NoSwap",
        "What containers may use of the machine's swap, with cgroup v2. LimitedSwap: those of Burstable pods as great a part of it as they request of the memory",
    ),
    (
        "pods-on-shutdown",
        "keep|fail",
        "keep",
        "What becomes of pods when the machine ends. keep: containers stop in order, and start again after the boot; only pods that may never start again fail. fail: all fail, as with upstream's graceful node shutdown, so that other nodes take over at once",
    ),
    (
        "pod-network",
        "vxlan|wireguard|routes|cni",
        "vxlan",
        "How packets get to the pods of other nodes. vxlan: in UDP, port 8472, whatever network lies between. wireguard: the same, in UDP, port 51820, and encrypted, by a kernel that has WireGuard. routes: as they are, where all nodes are on one link that takes packets with pods' addresses. cni: as a CNI plug-in of another's does, which also plugs pods in. The same on every node",
    ),
    (
        "cni-config",
        "FOLDER",
        "",
        "With --pod-network=cni, where the plug-in's configuration is, or will be: the first file by name is taken [default: /etc/cni/net.d]",
    ),
    (
        "cni-plugins",
        "FOLDER",
        "",
        "With --pod-network=cni, where the programs are that it names, and `loopback` [default: /opt/cni/bin]",
    ),
    (
        "allowed-unsafe-sysctls",
        "NAME,…",
        "",
        "Kernel parameters that pods may set beyond the safe ones: names, or beginnings of names that end in `*`",
    ),
];

/// How it logs: every process that runs a server has these.
const LOG_ROWS: &[Row] = &[
    (
        "log-level",
        "LEVEL[,MODULE=LEVEL,…]",
        "",
        "What is logged: error, warn, info, debug or trace, for all or for a part (info,corten_runner=debug). PUT /debug/flags/v changes it while it runs [default: what CORTEN_LOG says, else info]",
    ),
    ("log-format", "text|json", "text", "How it is logged: a line of text, or a line of JSON each"),
];

/// Adds the options of what is logged, and how.
pub fn log_args(command: Command) -> Command {
    with_rows(command, LOG_ROWS, "Logs")
}

/// Adds the options.
pub fn args(command: Command) -> Command {
    let command = command
        .arg(
            Arg::new("node-name").long("node-name").value_name("NAME").help("The node's name [default: the host name]"),
        )
        .arg(
            Arg::new("kubelet-port")
                .long("kubelet-port")
                .value_name("PORT")
                .value_parser(value_parser!(u16).range(1..))
                .default_value("10250")
                .help("The port of the kubelet's API, for logs and exec"),
        )
        .arg(
            Arg::new("pod-manifest-path")
                .long("pod-manifest-path")
                .value_name("PATH")
                .value_parser(value_parser!(PathBuf))
                .help("The folder (or file) of static Pods' manifests [default: DATA-DIR/manifests]"),
        );
    log_args(with_rows(command, ROWS, "Resources of the node"))
}

fn with_rows(command: Command, rows: &'static [Row], heading: &'static str) -> Command {
    rows.iter().fold(command, |command, (name, value, default, help)| {
        let arg = Arg::new(*name).long(*name).value_name(*value).help(*help).help_heading(heading);
        command.arg(if default.is_empty() { arg } else { arg.default_value(*default) })
    })
}

/// Those that were given, as arguments.
pub fn given(matches: &ArgMatches) -> Vec<String> {
    let is_given = |name: &str| matches.value_source(name) == Some(ValueSource::CommandLine);
    let rows = ROWS.iter().chain(LOG_ROWS).filter(|it| is_given(it.0));
    rows.filter_map(|(name, ..)| Some(format!("--{name}={}", matches.get_one::<String>(name)?))).collect()
}
