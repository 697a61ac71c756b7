//! Storage, devices and budgets of random clusters, as objects of the API.

use proptest::prelude::*;
use serde_json::{Value, json};

use super::{
    super::*,
    naive::{APPS, Budget, Claim, Devices, Node, Place, Pod, State, Storage, Volume, World},
    of,
};

fn place() -> impl Strategy<Value = Place> {
    prop_oneof![
        3 => Just(Place::Anywhere),
        2 => of(&["a", "b"]).prop_map(Place::Zone),
        1 => (0..6_usize).prop_map(Place::Node),
        2 => of(&["a", "b", "a__b"]).prop_map(Place::Labelled),
    ]
}

fn claim() -> impl Strategy<Value = Claim> {
    let state = prop_oneof![
        8 => place().prop_map(State::Bound),
        1 => Just(State::BoundToNothing),
        4 => Just(State::Made),
        3 => Just(State::Found),
        1 => Just(State::Immediate),
    ];
    (of(&["default", "default", "other"]), 1..6_i64, prop::bool::weighted(0.3), state)
        .prop_map(|(namespace, gibs, is_for_one_pod, state)| Claim { namespace, gibs, is_for_one_pod, state })
}

pub(super) fn storage() -> impl Strategy<Value = Storage> {
    let volume =
        (1..8_i64, place(), any::<bool>()).prop_map(|(gibs, place, is_of_driver)| Volume { gibs, place, is_of_driver });
    let left = prop::option::of((0..8_i64, 0..8_i64).prop_map(|it| [it.0, it.1]));
    let driver = (prop::option::weighted(0.3, of(&["a", "b"])), left, prop::bool::weighted(0.3));
    (prop::collection::vec(claim(), 0..6), prop::collection::vec(volume, 0..4), driver).prop_map(
        |(claims, free, (zone, left, is_driver_needed))| Storage { claims, free, zone, left, is_driver_needed },
    )
}

pub(super) fn budgets() -> impl Strategy<Value = Vec<Budget>> {
    let budget = (of(&["default", "default", "other"]), of(APPS), 0..3_i64)
        .prop_map(|(namespace, app, allowed)| Budget { namespace, app, allowed });
    prop::collection::vec(budget, 0..3)
}

fn volume(name: &str, gibs: i64, place: Place) -> Value {
    let term = |key: &str, value: String| {
        let expression = json!({ "key": key, "operator": "In", "values": [value] });
        json!({ "required": { "nodeSelectorTerms": [{ "matchExpressions": [expression] }] } })
    };
    let mut volume = json!({ "metadata": { "name": name, "uid": name }, "status": { "phase": "Available" },
        "spec": { "capacity": { "storage": format!("{gibs}Gi") }, "accessModes": ["ReadWriteOnce", "ReadWriteOncePod"],
            "csi": { "driver": "d", "volumeHandle": name } } });
    match place {
        Place::Anywhere => {}
        Place::Zone(zone) => volume["spec"]["nodeAffinity"] = term("zone", zone.into()),
        Place::Node(idx) => volume["spec"]["nodeAffinity"] = term("kubernetes.io/hostname", format!("n{idx}")),
        Place::Labelled(zones) => volume["metadata"]["labels"] = json!({ "topology.kubernetes.io/zone": zones }),
    }
    volume
}

impl Storage {
    pub(super) fn events(&self) -> Vec<Event> {
        let mut events = vec![seen::<CsiDriver>(
            &json!({ "metadata": { "name": "d" }, "spec": { "storageCapacity": self.left.is_some(),
                "preventPodSchedulingIfMissing": self.is_driver_needed } }),
        )];
        for (name, provisioner, mode) in [
            ("made", "d", "WaitForFirstConsumer"),
            ("found", "kubernetes.io/no-provisioner", "WaitForFirstConsumer"),
            ("now", "d", "Immediate"),
        ] {
            let mut class =
                json!({ "metadata": { "name": name }, "provisioner": provisioner, "volumeBindingMode": mode });
            if let Some(zone) = self.zone.filter(|_| name == "made") {
                let zone = json!({ "key": "zone", "values": [zone] });
                class["allowedTopologies"] = json!([{ "matchLabelExpressions": [zone] }]);
            }
            events.push(seen::<StorageClass>(&class));
        }
        for (zone, left) in ["a", "b"].into_iter().zip(self.left.into_iter().flatten()) {
            events.push(seen::<StorageCapacity>(&json!({ "metadata": { "name": zone, "namespace": "x" },
                "storageClassName": "made", "capacity": format!("{left}Gi"),
                "nodeTopology": { "matchLabels": { "zone": zone } } })));
        }
        for (at, it) in self.free.iter().enumerate() {
            let mut object = volume(&format!("free{at}"), it.gibs, it.place);
            object["spec"]["storageClassName"] = json!(if it.is_of_driver { "made" } else { "found" });
            events.push(seen::<crate::Volume>(&object));
        }
        self.claims.iter().enumerate().for_each(|(at, it)| events.extend(it.events(at)));
        events
    }
}

impl Claim {
    fn events(&self, at: usize) -> Vec<Event> {
        let (name, handle) = (format!("c{at}"), format!("v{at}"));
        let mode = if self.is_for_one_pod { "ReadWriteOncePod" } else { "ReadWriteOnce" };
        let class = match self.state {
            State::Found => "found",
            State::Immediate => "now",
            _ => "made",
        };
        let mut claim = json!({ "metadata": { "name": name, "namespace": self.namespace, "uid": name },
            "spec": { "storageClassName": class, "accessModes": [mode],
                "resources": { "requests": { "storage": format!("{}Gi", self.gibs) } } } });
        if matches!(self.state, State::Bound(_) | State::BoundToNothing) {
            claim["metadata"]["annotations"] = json!({ "pv.kubernetes.io/bind-completed": "yes" });
            claim["spec"]["volumeName"] = json!(handle);
            claim["status"] = json!({ "phase": "Bound" });
        }
        let mut events = vec![seen::<crate::Claim>(&claim)];
        if let State::Bound(place) = self.state {
            let mut bound = volume(&handle, self.gibs, place);
            bound["spec"]["storageClassName"] = json!("made");
            bound["spec"]["claimRef"] = json!({ "namespace": self.namespace, "name": name, "uid": name });
            events.push(seen::<crate::Volume>(&bound));
        }
        events
    }
}

impl Node {
    /// Its CSINode, and the devices that a driver tells of.
    pub(super) fn events(&self, idx: usize) -> Vec<Event> {
        let name = format!("n{idx}");
        let mut events = Vec::new();
        if let Some(limit) = self.volumes_max {
            let allocatable = limit.map_or(json!(null), |it| json!({ "count": it }));
            let driver = json!({ "name": "d", "nodeID": name, "allocatable": allocatable });
            events.push(seen::<CsiNode>(&json!({ "metadata": { "name": name }, "spec": { "drivers": [driver] } })));
        }
        if self.n_devices > 0 {
            let devices: Vec<Value> = (0..self.n_devices).map(|it| json!({ "name": format!("d{it}") })).collect();
            let pool = json!({ "name": name, "generation": 1, "resourceSliceCount": 1 });
            events.push(seen::<DeviceSlice>(
                &json!({ "metadata": { "name": format!("s{idx}"), "uid": format!("s{idx}") },
                "spec": { "driver": "gpu", "nodeName": name, "pool": pool, "devices": devices } }),
            ));
        }
        events
    }
}

impl World {
    /// The claims for devices: of pods that have a node these have theirs, as many as there are.
    pub(super) fn device_events(&self, pending: &Pod) -> Vec<Event> {
        let mut events = vec![seen::<DeviceClass>(&json!({ "metadata": { "name": "gpu" }, "spec": {} }))];
        let mut n_given = vec![0; self.nodes.len()];
        for pod in self.pods.iter().chain([pending]) {
            let metadata = json!({ "name": format!("rc-{}", pod.name), "namespace": pod.namespace, "uid": format!("rc-{}", pod.name) });
            let (count, node) = match pod.devices {
                Devices::None => continue,
                Devices::Own(count) => (count, pod.node),
                Devices::At(node) => (1, Some(node)),
            };
            let request = json!({ "name": "r", "exactly": { "deviceClassName": "gpu", "allocationMode": "ExactCount", "count": count } });
            let mut claim = json!({ "metadata": metadata, "spec": { "devices": { "requests": [request] } } });
            if let Some(node) = node {
                let given = |it: usize| json!({ "request": "r", "driver": "gpu", "pool": format!("n{node}"), "device": format!("d{it}") });
                let from = n_given[node];
                n_given[node] += count;
                let results: Vec<Value> = (from..from + count).map(given).collect();
                let name = json!({ "key": "metadata.name", "operator": "In", "values": [format!("n{node}")] });
                let user = if pod.node.is_some() { &*pod.name } else { "somebody" };
                claim["status"] = json!({ "allocation": { "devices": { "results": results },
                        "nodeSelector": { "nodeSelectorTerms": [{ "matchFields": [name] }] } },
                    "reservedFor": [{ "resource": "pods", "name": user, "uid": user }] });
            }
            events.push(seen::<DeviceClaim>(&claim));
        }
        events
    }

    pub(super) fn budget_events(&self) -> impl Iterator<Item = Event> {
        self.budgets.iter().enumerate().map(|(at, it)| {
            of_cluster::<DisruptionBudget>(&json!({
                "metadata": { "name": format!("b{at}"), "namespace": it.namespace },
                "spec": { "selector": { "matchLabels": { "app": it.app } } },
                "status": { "disruptionsAllowed": it.allowed } }))
        })
    }
}
