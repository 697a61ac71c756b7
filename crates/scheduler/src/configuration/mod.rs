//! A KubeSchedulerConfiguration of `kubescheduler.config.k8s.io/v1`, as it is written in a file. What cannot be kept to is refused,
//! and an unknown field, too.

mod election;
mod extenders;
mod plugin_arguments;
mod plugin_sets;
mod reader;

use std::{collections::BTreeSet, path::PathBuf, time::Duration};

use serde_json::Value;

use self::reader::{At, Reader};
use crate::{Config, Profile};

const API_VERSION: &str = "kubescheduler.config.k8s.io/v1";
const KIND: &str = "KubeSchedulerConfiguration";

/// How many nodes are looked at side by side: one after the other, here.
const PARALLELISM: &str = "parallelism";
const PROFILING: [&str; 2] = ["enableProfiling", "enableContentionProfiling"];
/// Of `clientConnection`, beside `kubeconfig`: connections are what they are.
const OF_CONNECTIONS: [&str; 4] = ["acceptContentTypes", "contentType", "qps", "burst"];
const REFUSED: &str = "cannot be set here";

const FIELDS: &[&str] = &[
    "apiVersion",
    "kind",
    "leaderElection",
    "percentageOfNodesToScore",
    "podInitialBackoffSeconds",
    "podMaxBackoffSeconds",
    "profiles",
    "parallelism",
    "clientConnection",
    "enableProfiling",
    "enableContentionProfiling",
    "extenders",
    "delayCacheUntilActive",
];

impl Config {
    /// Reads a configuration.
    ///
    /// # Errors
    /// Everything that is wrong with it.
    pub fn read(configuration: &Value) -> Result<Self, Vec<String>> {
        let mut reader = Reader::default();
        let config = configured(configuration, &mut reader);
        if reader.problems.is_empty() { Ok(config) } else { Err(reader.problems) }
    }
}

fn configured(value: &Value, reader: &mut Reader) -> Config {
    let root = reader.object(value, String::new(), FIELDS);
    let (api_version, kind) = (reader.text(&root, "apiVersion"), reader.text(&root, "kind"));
    if api_version != API_VERSION || kind != KIND {
        let what = format!("no kind {kind:?} is registered for version {api_version:?}, only {KIND} of {API_VERSION}");
        reader.problems.push(what);
    }
    if root.get(PARALLELISM).is_some() {
        reader.problem(PARALLELISM, REFUSED);
    }
    for field in PROFILING {
        if reader.truth(&root, field) {
            reader.problem(field, "must be false: there is nothing to profile with");
        }
    }
    let kubeconfig = kubeconfig(&root, reader);
    let leader_election = election::election(&root, reader);
    // What waits until it leads: nothing here.
    reader.truth(&root, "delayCacheUntilActive");
    let initial = reader.number(&root, "podInitialBackoffSeconds", 1, (1, i64::MAX));
    let most = reader.number(&root, "podMaxBackoffSeconds", 10, (1, i64::MAX));
    if most < initial {
        let what = format!("Invalid value: {most}: must be greater than or equal to PodInitialBackoffSeconds");
        reader.problem("podMaxBackoffSeconds", &what);
    }
    let percentage = reader.number(&root, "percentageOfNodesToScore", 0, (0, 100));
    let mut profiles = profiles(&root, percentage, reader);
    let (extenders, ignored) = extenders::extenders(&root, reader);
    profiles.iter_mut().for_each(|it| it.arguments.fit.ignored.extend(ignored.iter().cloned()));
    Config {
        profiles,
        extenders,
        kubeconfig,
        leader_election,
        backoff_initial: seconds(initial),
        backoff_max: seconds(most),
        ..Config::default()
    }
}

/// What says where the cluster is: for a scheduler that is a process of its own.
fn kubeconfig(root: &At<'_>, reader: &mut Reader) -> Option<PathBuf> {
    let at = reader.child(root, "clientConnection", &[&["kubeconfig"], &OF_CONNECTIONS[..]].concat());
    for field in OF_CONNECTIONS.iter().filter(|it| at.get(it).is_some()) {
        reader.problem(&at.path(field), REFUSED);
    }
    Some(reader.text(&at, "kubeconfig")).filter(|it| !it.is_empty()).map(PathBuf::from)
}

fn seconds(count: i64) -> Duration {
    Duration::from_secs(count.unsigned_abs())
}

fn profiles(root: &At<'_>, percentage: i64, reader: &mut Reader) -> Vec<Profile> {
    let fields = &["schedulerName", "percentageOfNodesToScore", "plugins", "pluginConfig"];
    let found = reader.children(root, "profiles", fields);
    let (mut profiles, mut names) = (Vec::new(), BTreeSet::new());
    for at in &found {
        let mut name = reader.text(at, "schedulerName").to_owned();
        if name.is_empty() && found.len() == 1 {
            name = Profile::default().name;
        }
        if name.is_empty() {
            reader.problem(&at.path("schedulerName"), "Required value");
        } else if !names.insert(name.clone()) {
            reader.problem(&at.path("schedulerName"), &format!("Duplicate value: {name:?}"));
        }
        let percentage = reader.number(at, "percentageOfNodesToScore", percentage, (0, 100));
        let mut profile = plugin_sets::profile(at, reader);
        profile.arguments = plugin_arguments::arguments(at, reader);
        profile.name = name;
        profile.percentage_of_nodes_to_score = usize::try_from(percentage).unwrap_or(0);
        profiles.push(profile);
    }
    if found.is_empty() {
        let percentage_of_nodes_to_score = usize::try_from(percentage).unwrap_or(0);
        profiles.push(Profile { percentage_of_nodes_to_score, ..Profile::default() });
    }
    profiles
}
