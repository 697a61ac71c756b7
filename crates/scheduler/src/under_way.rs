//! Which Pods extenders are being asked about.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use corten_meta::Key;

use crate::{
    event::Effect,
    extender::{Consultation, Question},
    observer::Moment,
    pod_info::PodInfo,
};

/// So many pods are asked about at a time; more wait for their turn, in order.
const UNDER_WAY_MAX: usize = 16;

#[derive(Default)]
pub(crate) struct Consultations {
    pub(crate) under_way: BTreeMap<Key, UnderWay>,
    /// Pods that wait for their turn.
    pub(crate) held: VecDeque<Key>,
    n_begun: u64,
}

pub(crate) struct UnderWay {
    pub(crate) id: u64,
    /// The nodes that were asked about; empty where it is about victims.
    pub(crate) nodes: BTreeSet<String>,
    /// When that began for which they are asked.
    pub(crate) begun: Moment,
}

impl Consultations {
    pub(crate) fn is_full(&self) -> bool {
        self.under_way.len() >= UNDER_WAY_MAX
    }

    /// What is answered about the pod from now on is of no use. Says whether anything was asked.
    pub(crate) fn forget(&mut self, pod: &Key) -> bool {
        self.under_way.remove(pod).is_some()
    }

    pub(crate) fn begin(&mut self, info: &PodInfo, question: Question, begun: Moment) -> Effect {
        self.n_begun += 1;
        let id = self.n_begun;
        let nodes = match &question {
            Question::Nodes { nodes, .. } => nodes.iter().cloned().collect(),
            Question::Victims { .. } => BTreeSet::new(),
        };
        self.under_way.insert(info.key.clone(), UnderWay { id, nodes, begun });
        Effect::Consult(Box::new(Consultation { pod: info.key.clone(), uid: info.uid.clone(), id, question }))
    }
}
