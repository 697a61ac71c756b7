//! Takes in what the folder of manifests holds.

use std::collections::BTreeMap;

use corten_api::core::v1::Pod;
use corten_meta::{ObjectReference, Time};
use corten_reconcile::EventType::Warning;

use crate::{
    ApiEffect, Effect, Manifest, PodRef,
    kubelet::Kubelet,
    pod::machine::PodMachine,
    static_pods::manifest::{SEEN, static_pod},
};

impl Kubelet {
    /// Takes in what the folder now holds. Files that are no pods do no harm: they are told, and the others count.
    pub(crate) fn read_manifests(
        &mut self,
        manifests: Vec<Manifest>,
        now: Time,
        effects: &mut Vec<Effect>,
    ) -> Vec<String> {
        let mut wanted: BTreeMap<_, (String, PodRef, Pod)> = BTreeMap::new();
        let mut problems = BTreeMap::new();
        for Manifest { path, pod } in manifests {
            match pod.and_then(|it| static_pod(*it, &path, &self.config)) {
                Err(problem) => {
                    problems.insert(path, problem);
                }
                Ok(pod) => {
                    let who = PodRef::of(&pod);
                    if let Some((other, ..)) = wanted.get(&who.key) {
                        problems.insert(path, format!("{} describes pod {} already", other, who.key));
                    } else {
                        wanted.insert(who.key.clone(), (path, who, pod));
                    }
                }
            }
        }
        self.tell_problems(problems, effects);
        let uids: BTreeMap<_, _> = wanted.iter().map(|(key, (_, who, _))| (key.clone(), who.uid.clone())).collect();
        for machine in self.pods.values_mut().filter(|it| it.is_static()) {
            machine.in_api = uids.get(&machine.who.key) == Some(&machine.who.uid);
        }
        for (_, who, mut pod) in wanted.into_values() {
            let known = self.pods.get_mut(&who.uid);
            if known.as_ref().is_some_and(|it| it.is_static()) {
                continue;
            }
            pod.metadata.annotations.get_or_insert_default().insert(SEEN.into(), now.to_string());
            let pod = pod.into();
            match known {
                // The runtime has shown it before the folder did.
                Some(machine) => (machine.pod, machine.in_api) = (pod, true),
                None => {
                    self.pods.insert(who.uid.clone(), PodMachine::new(who, pod, true, now));
                }
            }
        }
        (self.manifests.of, self.manifests.are_known) = (uids, true);
        self.attach_mirrors();
        self.follow(effects);
        self.all()
    }

    fn tell_problems(&mut self, problems: BTreeMap<String, String>, effects: &mut Vec<Effect>) {
        for (path, problem) in &problems {
            if self.manifests.problems.get(path) != Some(problem) {
                let name = self.config.node_name.clone();
                let about =
                    ObjectReference { kind: "Node".into(), uid: name.clone(), name, ..ObjectReference::default() };
                let message = format!("{path}: {problem}");
                let reason = "InvalidStaticPod";
                effects.push(Effect::Api(ApiEffect::Event { about, event_type: Warning, reason, message }));
            }
        }
        self.manifests.problems = problems;
    }
}
