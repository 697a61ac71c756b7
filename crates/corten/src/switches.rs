//! Which loops run: `--controllers` in upstream's words and by its names, and `--no-scheduler`.

use anyhow::{Result, bail};
use corten_controllers::{CONTROLLERS, Settings};
use corten_meta::Resource;

/// Upstream's name, its older one, and ours; ours is empty where this program has no such controller.
type Row = (&'static str, &'static str, &'static str);

const SIGNING: &str = "certificate-signing";

const NAMES: &[Row] = &[
    ("bootstrap-signer-controller", "bootstrapsigner", ""),
    ("certificatesigningrequest-approving-controller", "csrapproving", "certificate"),
    ("certificatesigningrequest-cleaner-controller", "csrcleaner", "csrcleaner"),
    ("certificatesigningrequest-signing-controller", "csrsigning", SIGNING),
    ("cloud-node-lifecycle-controller", "cloud-node-lifecycle", ""),
    ("clusterrole-aggregation-controller", "clusterrole-aggregation", "clusterrole-aggregation"),
    ("cronjob-controller", "cronjob", "cronjob"),
    ("daemonset-controller", "daemonset", "daemon-set"),
    ("deployment-controller", "deployment", "deployment"),
    ("device-taint-eviction-controller", "", "device-taint-eviction"),
    ("disruption-controller", "disruption", "disruption"),
    ("endpoints-controller", "endpoint", "endpoint"),
    ("endpointslice-controller", "endpointslice", "endpointslice"),
    ("endpointslice-mirroring-controller", "endpointslicemirroring", "endpointslicemirroring"),
    ("ephemeral-volume-controller", "ephemeral-volume", "ephemeral-volume"),
    ("garbage-collector-controller", "garbagecollector", "garbage-collector"),
    ("horizontal-pod-autoscaler-controller", "horizontalpodautoscaling", "horizontal-pod-autoscaler"),
    ("job-controller", "job", "job"),
    (
        "kube-apiserver-serving-clustertrustbundle-publisher-controller",
        "",
        "kube-apiserver-serving-clustertrustbundle-publisher",
    ),
    ("legacy-serviceaccount-token-cleaner-controller", "legacy-service-account-token-cleaner", ""),
    ("namespace-controller", "namespace", "namespace"),
    ("node-ipam-controller", "nodeipam", "node-ipam"),
    ("node-lifecycle-controller", "nodelifecycle", "node"),
    ("node-route-controller", "route", ""),
    ("persistentvolume-attach-detach-controller", "attachdetach", "attachdetach"),
    ("persistentvolume-binder-controller", "persistentvolume-binder", "persistent-volume-binder"),
    ("persistentvolume-expander-controller", "persistentvolume-expander", ""),
    ("persistentvolume-protection-controller", "pv-protection", "pv-protection"),
    ("persistentvolumeclaim-protection-controller", "pvc-protection", "pvc-protection"),
    ("pod-garbage-collector-controller", "podgc", "pod-garbage-collector"),
    ("podcertificaterequest-cleaner-controller", "", "podcertificaterequestcleaner"),
    ("replicaset-controller", "replicaset", "replicaset"),
    ("replicationcontroller-controller", "replicationcontroller", "replication"),
    ("resourceclaim-controller", "resource-claim-controller", "resource-claim"),
    ("resourcequota-controller", "resourcequota", "resourcequota"),
    ("root-ca-certificate-publisher-controller", "root-ca-cert-publisher", "root-ca-certificate-publisher"),
    ("selinux-warning-controller", "", ""),
    ("service-cidr-controller", "", "service-cidrs"),
    ("service-lb-controller", "service", "service"),
    ("serviceaccount-controller", "serviceaccount", "service-account"),
    ("serviceaccount-token-controller", "serviceaccount-token", "serviceaccount-token"),
    ("statefulset-controller", "statefulset", "statefulset"),
    ("storage-version-migrator-controller", "", "storage-version-migrator"),
    ("storageversion-garbage-collector-controller", "storage-version-gc", ""),
    ("taint-eviction-controller", "", "taint-eviction"),
    ("token-cleaner-controller", "tokencleaner", "token-cleaner"),
    ("ttl-after-finished-controller", "ttl-after-finished", "ttl-after-finished"),
    ("ttl-controller", "ttl", "ttl"),
    ("validatingadmissionpolicy-status-controller", "", "validatingadmissionpolicy-status"),
    ("volumeattributesclass-protection-controller", "", "volumeattributesclass-protection"),
];

/// Loops that are a part of what upstream's controller does, and go on and off with the loop that has its name.
const PARTS: &[(&str, &str)] =
    &[("device-taint-rule-status", "device-taint-eviction"), ("resource-claim-release", "resource-claim")];

/// What of the control plane's loops is off.
#[derive(Clone)]
pub(crate) struct Switches {
    /// The rows of controllers that this program has and that are off.
    off: Vec<&'static Row>,
    pub(crate) scheduler: bool,
}

impl Switches {
    /// Reads `--controllers` (`IsControllerEnabled`): a name alone turns on, `-name` off, and `*` all that are not named.
    ///
    /// # Errors
    /// A name is unknown, or names a controller that this program does not have.
    pub(crate) fn of(controllers: &[&str], no_scheduler: bool) -> Result<Self> {
        for word in controllers.iter().filter(|it| **it != "*") {
            let name = word.strip_prefix('-').unwrap_or(word);
            match NAMES.iter().find(|it| is_called(it, name)) {
                None => bail!("{name:?} is not in the list of known controllers: {}", all()),
                // Off is what it is already.
                Some((_, _, "")) if *word == name => bail!("there is no {name} here, only: {}", all()),
                Some(_) => {}
            }
        }
        let is_off = |row: &&Row| !row.2.is_empty() && !is_on(controllers, row);
        Ok(Self { off: NAMES.iter().filter(is_off).collect(), scheduler: !no_scheduler })
    }

    /// Does the loop of this name run? One that upstream has elsewhere than in its controller manager always does.
    pub(crate) fn runs(&self, own: &str) -> bool {
        !self.off.iter().any(|it| it.2 == whole(own))
    }

    pub(crate) fn runs_signing(&self) -> bool {
        self.runs(SIGNING)
    }

    /// Upstream's names of what is off.
    pub(crate) fn off(&self) -> Vec<&'static str> {
        let scheduler = (!self.scheduler).then_some("scheduler");
        self.off.iter().map(|it| it.0).chain(scheduler).collect()
    }

    /// For each that is off, whose objects nobody here acts on.
    pub(crate) fn unattended(&self) -> Vec<(Resource, &'static str)> {
        let about = |row: &&&'static Row| {
            if row.2 == SIGNING {
                return Some(corten_api::resources::CERTIFICATE_SIGNING_REQUESTS);
            }
            CONTROLLERS.iter().map(|make| make(&Settings::default())).find(|it| it.name() == row.2)?.about()
        };
        let controllers = self.off.iter().filter_map(|it| Some((about(&it)?, it.0)));
        let scheduler = (!self.scheduler).then_some((corten_api::resources::PODS, "scheduler"));
        controllers.chain(scheduler).collect()
    }
}

/// The loop that is turned on and off where this one is.
fn whole(own: &str) -> &str {
    PARTS.iter().find(|it| it.0 == own).map_or(own, |it| it.1)
}

fn is_called(row: &Row, name: &str) -> bool {
    row.0 == name || (!row.1.is_empty() && row.1 == name)
}

fn is_on(controllers: &[&str], row: &Row) -> bool {
    for word in controllers {
        match word.strip_prefix('-') {
            Some(name) if is_called(row, name) => return false,
            None if is_called(row, word) => return true,
            _ => {}
        }
    }
    controllers.contains(&"*")
}

/// The names of what can be turned on.
fn all() -> String {
    NAMES.iter().filter(|it| !it.2.is_empty()).map(|it| it.0).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_controller_that_upstream_has_can_be_turned_off() {
        let unnamed: Vec<&str> = CONTROLLERS.iter().map(|make| make(&Settings::default()).name()).collect();
        let is_named = |own: &str| NAMES.iter().any(|row| row.2 == whole(own));
        let unnamed: Vec<&str> = unnamed.into_iter().filter(|it| !is_named(it)).collect();
        // Upstream's server ends events itself; its snapshot controller and its vertical autoscaler are programs of their own. Machines
        // join upstream's cluster by what others say of its network.
        let of_corten = [
            "cluster-network",
            "event-expiry",
            "leader-election",
            "lease-candidate-expiry",
            "vertical-pod-autoscaler",
            "volume-snapshot",
        ];
        assert_eq!(unnamed, of_corten);
        for row in NAMES.iter().filter(|it| !it.2.is_empty() && it.2 != SIGNING) {
            assert!(CONTROLLERS.iter().any(|make| make(&Settings::default()).name() == row.2), "{row:?}");
        }
        assert!(NAMES.is_sorted());
    }

    #[test]
    fn words_turn_controllers_on_and_off() {
        let all = NAMES.iter().filter(|it| !it.2.is_empty()).count();
        for (words, n_off, job, deployment) in [
            (&["*"][..], 0, true, true),
            (&["*", "-job"], 1, false, true),
            (&["*", "-job-controller", "-deployment"], 2, false, false),
            (&["-job", "*"], 1, false, true),
            (&["-job", "job", "*"], 1, false, true),
            (&["job"], all - 1, true, false),
            (&["*", "-podgc", "-route"], 1, true, true),
            (&[], all, false, false),
        ] {
            let switches = Switches::of(words, false).expect("known names");
            assert_eq!(switches.off().len(), n_off, "{words:?}");
            assert_eq!((switches.runs("job"), switches.runs("deployment")), (job, deployment), "{words:?}");
            assert!(switches.runs("event-expiry"), "{words:?}");
        }
        let switches = Switches::of(&["*", "-job"], true).expect("known names");
        assert_eq!(switches.off(), ["job-controller", "scheduler"]);
        let unattended: Vec<String> =
            switches.unattended().into_iter().map(|(resource, name)| format!("{} {name}", resource.plural)).collect();
        assert_eq!(unattended, ["jobs job-controller", "pods scheduler"]);
    }

    #[test]
    fn unknown_names_are_told() {
        for (word, said) in [
            (
                "jobs",
                "\"jobs\" is not in the list of known controllers: certificatesigningrequest-approving-controller, ",
            ),
            ("-jobs", "\"jobs\" is not in the list of known controllers: "),
            ("route", "there is no route here, only: "),
        ] {
            let error = Switches::of(&["*", word], false).err().map(|it| it.to_string()).unwrap_or_default();
            assert!(error.starts_with(said), "{error}");
        }
    }
}
