//! Extenders: servers that somebody else runs, which filter and score nodes, choose victims and bind beside the plugins.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use corten_meta::Key;

use crate::PodInfo;

/// Scores of extenders go from 0 to 10, those of plugins to 100 (`MaxExtenderPriority`).
pub(crate) const EXTENDER_SCORE_SCALE: i64 = 10;

/// One of `extenders` of a KubeSchedulerConfiguration. A verb that is empty is not asked.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Extender {
    /// What a verb is put behind.
    pub url_prefix: String,
    pub filter_verb: String,
    pub prioritize_verb: String,
    pub preempt_verb: String,
    pub bind_verb: String,
    /// What its scores are multiplied by.
    pub weight: i64,
    /// Without an authority to know it by, whoever answers will do.
    pub enable_https: bool,
    pub tls: ExtenderTls,
    pub timeout: Duration,
    /// It knows the nodes and is told their names only.
    pub node_cache_capable: bool,
    /// It is asked about pods that ask for one of these. Empty: about all.
    pub managed_resources: BTreeSet<String>,
    /// A pod is scheduled without it where it does not answer.
    pub ignorable: bool,
}

/// `tlsConfig` of an extender.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ExtenderTls {
    pub insecure: bool,
    pub server_name: String,
    pub certificate: Pem,
    pub key: Pem,
    pub ca: Pem,
}

/// Certificates or a key.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Pem {
    #[default]
    None,
    File(String),
    /// In base64.
    Data(String),
}

impl Extender {
    /// `IsInterested`.
    pub(crate) fn is_interested(&self, pod: &PodInfo) -> bool {
        let is_managed = |it: &String| self.managed_resources.contains(it);
        self.managed_resources.is_empty() || pod.requested.extended.keys().any(is_managed)
    }
}

/// What extenders are asked about a pod. The answer carries the same number.
#[derive(Clone, Debug, PartialEq)]
pub struct Consultation {
    pub pod: Key,
    pub uid: String,
    pub id: u64,
    pub question: Question,
}

/// Extenders are named by their places in the configuration.
#[derive(Clone, Debug, PartialEq)]
pub enum Question {
    /// Which of these nodes may run it, asked of one extender after the other, and how well does each suit it?
    Nodes { nodes: Vec<String>, filters: Vec<usize>, scorers: Vec<usize> },
    /// Which of these nodes may others be evicted from, and who must go?
    Victims { candidates: Vec<NodeVictims>, extenders: Vec<usize> },
}

/// Pods that would leave a node, by their uids.
#[derive(Clone, Debug, PartialEq)]
pub struct NodeVictims {
    pub node: String,
    pub victims: Vec<(Key, String)>,
    pub n_violations: usize,
}

/// What extenders answered.
#[derive(Clone, Debug, PartialEq)]
pub enum Advice {
    Nodes(NodeAdvice),
    Victims(Vec<NodeVictims>),
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct NodeAdvice {
    /// Those that all extenders let through.
    pub nodes: Vec<String>,
    /// Who turned a node down, and why.
    pub refused: BTreeMap<String, NodeRefusal>,
    /// The sum of the weighted scores of each node.
    pub scores: BTreeMap<String, i64>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct NodeRefusal {
    pub extender: usize,
    pub reason: String,
}

/// Why there is no answer.
#[derive(Clone, Debug, PartialEq)]
pub struct ExtenderFailure {
    pub extender: usize,
    pub message: String,
}
