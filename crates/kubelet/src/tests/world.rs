//! A machine and an API server just good enough to play a trace against.

mod api;
mod certificates;
mod machine;

use std::{
    collections::{BTreeMap, VecDeque},
    sync::Arc,
    time::Duration,
};

use corten_api::core::v1::Pod;
use corten_meta::{Key, Time};
use serde_json::{Value, json};

use super::show;
use crate::{
    Amount, Config, ContainerUse, Cpu, DeviceNews, DiskUse, Effect, Event, HostEffect, Kubelet, LocalImage,
    ManagerStates, Manifest, NodeEffect, NodeFacts, NodeNews, NumaNode, Observed, ObservedContainer, ObservedSandbox,
    PluginDevice, PodRef, PodUse, RuntimeHandler, Signal, Signals, Source, SourceKind, TerminationNote, VolumeUse,
    check_managers,
};

pub(super) struct World {
    kubelet: Kubelet,
    now: Time,
    wake: Option<Time>,
    /// What the kubelet wants of the host and has no answer to yet.
    pending: Vec<HostEffect>,
    sandboxes: Vec<ObservedSandbox>,
    containers: Vec<ObservedContainer>,
    pods: BTreeMap<String, Value>,
    sources: BTreeMap<Source, BTreeMap<String, Arc<[u8]>>>,
    node: Option<Value>,
    /// Why no token is given, where none is; `old`: one is whose time is over.
    refusal: Option<String>,
    /// The requests for certificates that were made, and for whom.
    requests: BTreeMap<String, PodRef>,
    journal: BTreeMap<Key, corten_reconcile::Decision>,
    /// What lies in the folder of manifests, by file.
    manifests: BTreeMap<String, Value>,
    /// What lies in emptyDirs, by path.
    files: BTreeMap<String, String>,
    /// Claims, PersistentVolumes and what else is of storage, by kind and name.
    stored: BTreeMap<String, Value>,
    /// What is written on the disk of containers that are stopped for the machine's end.
    noted: Vec<String>,
    starts: Vec<String>,
    manager_states: ManagerStates,
    terminations: BTreeMap<String, TerminationNote>,
    /// While the API is away nothing is told of it or by it.
    is_api_away: bool,
    /// The next status patch meets a newer object.
    has_conflict: bool,
    n_made: u32,
    /// What plugins have, and what they gave.
    devices: DeviceNews,
    /// What drivers made of pods' claims, as it is on disk.
    prepared: BTreeMap<String, Vec<crate::PreparedClaim>>,
    version: u64,
    shown: Vec<String>,
    /// What the kubelet is to be told next: never amid the effects of what came before.
    told: VecDeque<Event>,
    is_telling: bool,
}

impl World {
    pub(super) fn new() -> Self {
        let mut world = Self {
            kubelet: Kubelet::new(Config::new("n1", "192.168.0.1")),
            now: "2026-01-01T00:00:00Z".parse().unwrap(),
            wake: None,
            pending: Vec::new(),
            sandboxes: Vec::new(),
            containers: Vec::new(),
            pods: BTreeMap::new(),
            sources: BTreeMap::new(),
            node: None,
            refusal: None,
            requests: BTreeMap::new(),
            journal: BTreeMap::new(),
            manifests: BTreeMap::new(),
            files: BTreeMap::new(),
            stored: BTreeMap::new(),
            noted: Vec::new(),
            starts: Vec::new(),
            manager_states: ManagerStates::default(),
            terminations: BTreeMap::new(),
            is_api_away: false,
            has_conflict: false,
            n_made: 0,
            devices: DeviceNews::default(),
            prepared: BTreeMap::new(),
            version: 1,
            shown: Vec::new(),
            told: VecDeque::new(),
            is_telling: false,
        };
        world.boot();
        world.shown.clear();
        world
    }

    /// A kubelet starts: it learns what the machine is and shows, and what the API wants.
    fn boot(&mut self) {
        self.step(Event::Facts(Box::new(NodeFacts {
            cpus: i64::try_from(self.kubelet.config().managers.machine.cpus.len()).unwrap().max(2),
            memory_bytes: 8 << 30,
            hugepages: BTreeMap::from([("2Mi".into(), 64 << 20)]),
            operating_system: "linux".into(),
            architecture: "amd64".into(),
            lacks: vec!["AppArmor", "Logind"],
            runtime_handlers: vec![
                RuntimeHandler::default(),
                RuntimeHandler { name: "crun".into(), user_namespaces: true, ..RuntimeHandler::default() },
            ],
            ..NodeFacts::default()
        })));
        if !self.is_api_away {
            self.tell_api();
        }
        self.snapshot();
        self.tell_devices();
        if self.kubelet.config().has_manifests {
            self.read_manifests();
        }
    }

    /// The machine's run ends, and another begins: nothing runs any more, and only the disk knows why.
    fn reboot(&mut self) {
        let stopped_with_machine = self.noted.iter().cloned().collect();
        let config = Config { stopped_with_machine, ..self.kubelet.config().clone() };
        (self.kubelet, self.wake) = (Kubelet::new(config), None);
        self.pending.clear();
        self.end_all();
        self.boot();
    }

    fn tell_devices(&mut self) {
        self.step(Event::OfNode(NodeNews::Devices(Box::new(self.devices.clone()))));
    }

    fn tell_api(&mut self) {
        for pod in self.pods.clone().into_values() {
            self.step(Event::Pod(serde_json::from_value(pod).unwrap()));
        }
        self.step(Event::PodsSynced);
        self.step(Event::ServicesSynced);
        self.step(Event::RuntimeClass { name: "fast".into(), handler: Some("crun".into()) });
        self.step(Event::RuntimeClassesSynced);
        self.step(Event::TrustBundlesSynced);
        if let Some(node) = &self.node {
            self.step(Event::Node(serde_json::from_value(node.clone()).unwrap()));
        }
    }

    fn read_manifests(&mut self) {
        let read = |(path, pod): (&String, &Value)| Manifest {
            path: path.clone(),
            pod: match pod.as_str() {
                Some(problem) => Err(problem.to_owned()),
                None => serde_json::from_value(pod.clone()).map(Box::new).map_err(|it| it.to_string()),
            },
        };
        let manifests = self.manifests.iter().map(read).collect();
        self.step(Event::Manifests(manifests));
    }

    pub(super) fn tell(&mut self, line: &str) -> Vec<String> {
        let (verb, rest) = line.split_once(' ').unwrap_or((line, ""));
        let (name, more) = rest.split_once(' ').unwrap_or((rest, ""));
        match verb {
            "pod" => self.create(name, &json!({ "spec": read(more) })),
            // The same with a status that it has from others.
            "object" => self.create(name, &read(more)),
            "update" => self.update(name, &serde_json::from_str(more).unwrap()),
            "delete" => {
                let grace: i64 = more.parse().unwrap();
                let at = self.now.after(Duration::from_secs(u64::try_from(grace).unwrap()));
                self.update(name, &json!({"metadata": {"deletionTimestamp": at, "deletionGracePeriodSeconds": grace}}));
            }
            "gone" => {
                let pod = self.pods.remove(name).unwrap();
                self.step(Event::PodGone(PodRef::of(&serde_json::from_value::<Pod>(pod).unwrap())));
            }
            // A kubelet with a folder of manifests; `api away` before it keeps the API from it.
            "static" => {
                let config = Config { has_manifests: true, ..self.kubelet.config().clone() };
                (self.kubelet, self.wake) = (Kubelet::new(config), None);
                self.boot();
            }
            "api" => {
                self.is_api_away = name == "away";
                if !self.is_api_away {
                    self.tell_api();
                }
            }
            "file" => {
                self.manifests.insert(name.into(), serde_json::from_str(more).unwrap());
                self.read_manifests();
            }
            "write" => {
                self.files.insert(name.into(), serde_json::from_str(more).unwrap());
            }
            "unlink" => {
                self.manifests.remove(name);
                self.read_manifests();
            }
            // `store claim/data {…}`, `store volume/pv1 {…}`, `store driver/NAME`, `store attachment/VOLUME`.
            "store" => {
                self.stored.insert(name.into(), serde_json::from_str(more).expect("JSON"));
            }
            "tokens" => self.refusal = Some(rest.to_owned()).filter(|it| it != "again"),
            "answer" => self.answer_request(name, more),
            "configmap" => self.configure(SourceKind::ConfigMap, name, more),
            "secret" => self.configure(SourceKind::Secret, name, more),
            "ok" => self.answer(rest, None, false),
            "all" => self.answer("", None, true),
            "fail" => {
                let (which, message) = rest.split_once(": ").unwrap();
                self.answer(which, Some(message), false);
            }
            "exit" => self.exit(name, more),
            "conflict" => self.has_conflict = true,
            "oust" => {
                self.sandboxes.iter_mut().filter(|it| it.pod.key.name == name).for_each(|it| it.ready = false);
                self.snapshot();
            }
            "snapshot" => self.snapshot(),
            "makes" => self.show_early(name, Observed::Created),
            "runs" => self.show_early(name, Observed::Running { started_at: Some(self.now) }),
            "restart" => {
                let config = Config { terminations: self.terminations.clone(), ..self.kubelet.config().clone() };
                (self.kubelet, self.wake) = (Kubelet::new(config), None);
                self.pending.clear();
                self.boot();
            }
            // A kubelet that takes no more pods than this.
            "max-pods" => {
                let config = Config { max_pods: rest.parse().unwrap(), ..self.kubelet.config().clone() };
                (self.kubelet, self.wake) = (Kubelet::new(config), None);
                self.boot();
            }
            "why" => {
                let decision = self.journal.get(&Key::new("default", name)).cloned().unwrap_or_default();
                self.shown.extend(decision.steps.iter().map(show::step));
            }
            // How many seconds after the beginning each step began and ended.
            "times" => {
                let decision = self.journal.get(&Key::new("default", name)).cloned().unwrap_or_default();
                self.shown.extend(decision.steps.iter().map(show::times));
            }
            "status" => {
                let status = self.pods[name]["status"].clone();
                let part = if more.is_empty() { status } else { status.pointer(more).cloned().unwrap_or_default() };
                self.shown.push(part.to_string());
            }
            "spec" => {
                let spec = self.pending.iter().find(|it| show::host(it).starts_with(rest)).unwrap();
                self.shown.extend(show::details(spec));
            }
            "node" => {
                self.step(Event::Node(None));
            }
            // What is left: `signals memory.available=50Mi/1000Mi nodefs.available=…`.
            "signals" => {
                let amounts = rest.split_whitespace().filter(|it| *it != "imagefs").map(amount).collect();
                let has_image_fs = rest.contains("imagefs ") || rest.ends_with("imagefs");
                self.step(Event::OfNode(NodeNews::Signals(Signals { amounts, has_image_fs })));
            }
            // What pods use: `measured a memory=5Mi layer=1Mi; b volume=2Mi`.
            "measured" => {
                let uses = rest.split(';').map(str::trim).filter(|it| !it.is_empty()).map(pod_use).collect();
                self.step(Event::OfNode(NodeNews::PodsMeasured(Ok(uses))));
            }
            "images" => {
                let images = rest.split_whitespace().map(local_image).collect();
                self.step(Event::OfNode(NodeNews::Images(Ok(images))));
            }
            "images-removed" => {
                let removed = rest.split_whitespace().map(str::to_owned).collect();
                self.step(Event::OfNode(NodeNews::ImagesRemoved { removed, failures: Vec::new() }));
            }
            "remains" => {
                let found =
                    rest.split_whitespace().map(|it| PodRef::new("default", it, &format!("uid-{it}"))).collect();
                self.step(Event::OfNode(NodeNews::Remains(found)));
            }
            "shutdown" => self.step(Event::OfNode(NodeNews::Shutdown { is_imminent: name != "cancelled" })),
            "stops-noted" => self.step(Event::OfNode(NodeNews::StopsNoted)),
            // A kubelet that fails pods when the machine ends.
            "fail-pods" => {
                let mut config = self.kubelet.config().clone();
                config.shutdown.fails_pods = true;
                (self.kubelet, self.wake) = (Kubelet::new(config), None);
                self.boot();
            }
            // A plugin's devices, `!` after one that is not well; `plugin NAME away` where it does not answer.
            "plugin" => {
                let resource = self.devices.resources.entry(name.to_owned()).or_default();
                resource.is_connected = more != "away";
                if resource.is_connected {
                    let device = |it: &str| {
                        let device = PluginDevice { is_healthy: !it.ends_with('!'), ..PluginDevice::default() };
                        (it.trim_end_matches('!').to_owned(), device)
                    };
                    resource.devices = more.split_whitespace().map(device).collect();
                }
                self.tell_devices();
            }
            // How many devices the Node is said to have, and how many of them can be given.
            "devices" => {
                let node = self.node.clone().unwrap_or_default();
                let of = |list: &str| {
                    let all = node["status"][list].as_object().into_iter().flatten().filter(|it| it.0.contains('/'));
                    all.map(|(name, count)| format!("{name}={count}")).collect::<Vec<_>>().join(" ")
                };
                self.shown.push(format!("capacity {} allocatable {}", of("capacity"), of("allocatable")));
            }
            // A kubelet whose containers may have CPUs for themselves, on a machine of so many.
            "cpus" => {
                let mut config = self.kubelet.config().clone();
                config.reserved_cpu_millis = 1000;
                config.managers.cpu.is_static = true;
                let cpus = 0..rest.parse().expect("a number");
                config.managers.machine.cpus = cpus.map(|it| (it, Cpu { core: it, ..Cpu::default() })).collect();
                config.managers.machine.numa_nodes = BTreeMap::from([(0, NumaNode::default())]);
                config.manager_states = std::mem::take(&mut self.manager_states);
                check_managers(&config).expect("managers that can begin");
                (self.kubelet, self.wake) = (Kubelet::new(config), None);
                self.boot();
            }
            // Volumes that are staged though no pod has them: `left kubernetes.io/csi/d.example^h1`.
            "left" => {
                let left = rest.split_whitespace().map(str::to_owned).collect();
                self.step(Event::OfNode(NodeNews::VolumesLeft(left)));
            }
            "volumes-in-use" => {
                let node = self.node.clone().unwrap_or_default();
                self.shown.push(node["status"]["volumesInUse"].to_string());
            }
            // What was counted of pods that began to run, since the last time.
            "starts" => self.shown.append(&mut self.starts),
            "states-noted" => self.step(Event::OfNode(NodeNews::ManagerStatesNoted)),
            "reboot" => self.reboot(),
            "eviction-hard" => {
                let mut config = self.kubelet.config().clone();
                config.eviction.thresholds = crate::hard_thresholds(rest).unwrap();
                (self.kubelet, self.wake) = (Kubelet::new(config), None);
                self.boot();
            }
            // The Node gets a label, and the kubelet does not hear of it yet.
            "unheard-label" => {
                let (label, value) = rest.split_once('=').unwrap();
                self.version += 1;
                let version = self.version.to_string();
                let patch = json!({"metadata": {"resourceVersion": version, "labels": {label: value}}});
                merge(self.node.as_mut().unwrap(), &patch);
            }
            // The Node gets a taint that evicts.
            "taint" => {
                let mut node = self.node.clone().unwrap();
                node["spec"]["taints"] = json!([{"key": name, "effect": "NoExecute"}]);
                self.set_node(node);
            }
            time => self.wait(time.strip_prefix('+').unwrap_or_else(|| panic!("no such line: {line}"))),
        }
        std::mem::take(&mut self.shown)
    }

    // ---- the API ----

    fn create(&mut self, name: &str, more: &Value) {
        let mut pod = json!({
            "metadata": {"name": name, "namespace": "default", "uid": format!("uid-{name}"), "generation": 1},
            "spec": {"nodeName": "n1"},
            "status": {"phase": "Pending"},
        });
        merge(&mut pod, more);
        self.store(name, pod);
    }

    /// A pod as it is.
    pub(super) fn take(&mut self, pod: Value) {
        let name = pod["metadata"]["name"].as_str().expect("a name").to_owned();
        self.store(&name, pod);
    }

    /// Whatever pod there is still is deleted with this grace, in seconds.
    pub(super) fn end(&mut self, grace: i64) {
        let at = self.now.after_seconds(grace);
        let metadata = json!({"deletionTimestamp": at, "deletionGracePeriodSeconds": grace});
        for name in self.pods.keys().cloned().collect::<Vec<_>>() {
            self.update(&name, &json!({"metadata": metadata}));
        }
    }

    fn update(&mut self, name: &str, patch: &Value) {
        let mut pod = self.pods[name].clone();
        merge(&mut pod, patch);
        self.store(name, pod);
    }

    fn store(&mut self, name: &str, mut pod: Value) {
        self.version += 1;
        pod["metadata"]["resourceVersion"] = self.version.to_string().into();
        self.pods.insert(name.into(), pod.clone());
        self.step(Event::Pod(serde_json::from_value(pod).unwrap()));
    }

    fn configure(&mut self, kind: SourceKind, name: &str, data: &str) {
        let source = Source { kind, key: Key::new("default", name) };
        let pairs = data.split_whitespace().filter_map(|it| it.split_once('='));
        self.sources.insert(source.clone(), pairs.map(|(k, v)| (k.to_owned(), v.as_bytes().into())).collect());
        let data = self.sources.get(&source).cloned();
        self.step(Event::Source { source, data });
    }

    fn set_node(&mut self, mut node: Value) {
        self.version += 1;
        node["metadata"]["uid"] = "uid-of-n1".into();
        node["metadata"]["resourceVersion"] = self.version.to_string().into();
        self.node = Some(node.clone());
        self.step(Event::NodeWritten(Ok(serde_json::from_value(node).unwrap())));
    }

    // ---- the kubelet ----

    /// Tells the kubelet one thing, and then whatever its effects lead to.
    fn step(&mut self, event: Event) {
        self.told.push_back(event);
        while !self.is_telling
            && let Some(event) = self.told.pop_front()
        {
            self.is_telling = true;
            self.carry_out(event);
            self.is_telling = false;
        }
    }

    fn carry_out(&mut self, event: Event) {
        for effect in self.kubelet.step(event, self.now) {
            match effect {
                Effect::Host(effect) => {
                    self.shown.push(show::host(&effect));
                    self.pending.push(effect);
                }
                // Every pod has one: whoever asks for them is shown them.
                Effect::Node(effect @ NodeEffect::CountPodStart { .. }) => self.starts.push(show::of_node(&effect)),
                Effect::Node(effect) => {
                    self.shown.push(show::of_node(&effect));
                    match effect {
                        NodeEffect::NoteStops { containers } => self.noted = containers,
                        NodeEffect::NoteManagerStates(states) => self.manager_states = states,
                        NodeEffect::NoteTermination { uid, note } => {
                            self.terminations.insert(uid, note);
                        }
                        _ => {}
                    }
                }
                Effect::Api(effect) => self.api(effect),
                Effect::Record { pod, decision } => {
                    self.journal.insert(pod, *decision);
                }
                Effect::Forget { pod } => {
                    self.journal.remove(&pod);
                    self.shown.push(format!("forget {}", pod.name));
                }
                Effect::WakeAt(at) => self.wake = Some(at),
            }
        }
    }

    /// Time passes; the alarm rings whenever it is due on the way.
    fn wait(&mut self, time: &str) {
        let (number, unit) = time.split_at(time.len() - 1);
        let number: u64 = number.parse().unwrap_or_else(|_| panic!("no such time: {time}"));
        let end = self.now.after(Duration::from_secs(if unit == "m" { number * 60 } else { number }));
        while let Some(wake) = self.wake.filter(|it| *it <= end) {
            self.wake = None;
            self.now = self.now.max(wake);
            self.step(Event::Tick);
        }
        self.now = end;
    }
}

/// RFC 7386.
fn merge(target: &mut Value, patch: &Value) {
    let Some(patch) = patch.as_object() else {
        *target = patch.clone();
        return;
    };
    if !target.is_object() {
        *target = json!({});
    }
    let target = target.as_object_mut().unwrap();
    for (name, value) in patch {
        if value.is_null() {
            target.remove(name);
        } else {
            merge(target.entry(name.clone()).or_insert(Value::Null), value);
        }
    }
}

fn bytes(text: &str) -> i64 {
    text.parse::<corten_meta::Quantity>().unwrap().value()
}

fn amount(text: &str) -> (Signal, Amount) {
    let (name, amounts) = text.split_once('=').unwrap();
    let (available, capacity) = amounts.split_once('/').unwrap();
    let signal = Signal::ALL.into_iter().find(|it| it.as_str() == name).unwrap();
    (signal, Amount { available: bytes(available), capacity: bytes(capacity) })
}

/// All of a container called `app` and a volume called `v`.
fn pod_use(text: &str) -> PodUse {
    let (name, parts) = text.split_once(' ').unwrap_or((text, ""));
    let of = |part: &str| {
        let found = parts.split_whitespace().find_map(|it| it.strip_prefix(part)?.strip_prefix('='));
        found.map_or(0, bytes)
    };
    let disk = |part: &str| DiskUse { bytes: of(part), inodes: of(&format!("{part}-inodes")) };
    PodUse {
        uid: format!("uid-{name}"),
        memory_bytes: of("memory"),
        processes: of("processes"),
        containers: vec![ContainerUse {
            name: "app".into(),
            memory_bytes: of("memory"),
            rootfs: Some(disk("layer")),
            logs: disk("logs"),
        }],
        volumes: vec![VolumeUse { name: "v".into(), taken: disk("volume"), is_ephemeral: true }],
        other: DiskUse::default(),
    }
}

/// `id:size:flags`, of which `u` says that it is used.
fn local_image(text: &str) -> LocalImage {
    let mut parts = text.split(':');
    let id = parts.next().unwrap_or_default().to_owned();
    let size_bytes = parts.next().map_or(0, bytes);
    LocalImage { id, size_bytes, is_pinned: false, is_used: parts.next() == Some("u") }
}

fn read(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|it| panic!("{text}: {it}"))
}
