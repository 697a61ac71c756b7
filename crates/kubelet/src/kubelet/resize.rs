//! Grants what a pod asks for beyond what it has (`pods/resize`), where the node has room.

use corten_api::core::v1::Pod;
use corten_meta::Time;
use corten_reconcile::EventType::Warning;

use crate::{
    Effect,
    kubelet::Kubelet,
    node::admission::check_room,
    pod::resize::{DEFERRED, with_resources},
    spec::{requests::requests, resources},
};

impl Kubelet {
    /// Grants what a pod asks for beyond what it has, where the node has room; when to ask again.
    pub(crate) fn consider_resize(&mut self, uid: &str, now: Time, effects: &mut Vec<Effect>) -> Option<Time> {
        let machine = self.pods.get(uid)?;
        if machine.resize.desired.is_empty() || machine.ending.is_some() || !machine.is_admitted() {
            return None;
        }
        let wanted = with_resources(&machine.pod, |name| machine.resize.desired.get(name).cloned());
        let verdict = self.is_there_room(uid, &wanted)?;
        let mut wake = None;
        self.with(uid, now, effects, |machine, cx| match verdict {
            Ok(()) => {
                let before = resources::of_pod(&machine.pod);
                machine.resize.cgroup.get_or_insert(before);
                machine.pod = wanted;
                machine.resize.desired.clear();
                (machine.resize.pending, machine.resize.told) = (None, None);
                if machine.container_records.values().any(|it| it.running().is_some()) {
                    machine.resize.progress = None;
                    machine.begin_progress(cx);
                }
            }
            Err((reason, message)) => {
                let generation = wanted.metadata.generation.unwrap_or(0);
                if machine.resize.told != Some((generation, reason)) {
                    machine.resize.told = Some((generation, reason));
                    let event = if reason == "Deferred" { "ResizeDeferred" } else { "ResizeInfeasible" };
                    let text = format!("Pod resize {reason}: {}", machine.allocation(&wanted, Some(&message)));
                    cx.event(&machine.who, "", Warning, event, text);
                }
                machine.resize.pending = Some((reason, message));
                wake = (reason == "Deferred").then(|| now.after(DEFERRED));
            }
        });
        wake
    }

    fn is_there_room(&self, uid: &str, wanted: &Pod) -> Option<Result<(), (&'static str, String)>> {
        if let Some(problem) = self.managers.resize_problem(wanted) {
            return Some(Err(("Infeasible", problem.to_owned())));
        }
        let info = self.node.admission_info(&self.config, false)?;
        let asked = requests(wanted);
        for name in ["memory", "cpu"] {
            let requested = asked.get(name).copied().unwrap_or(0);
            let capacity = info.allocatable.get(name).copied().unwrap_or(0);
            if requested > capacity {
                let message = format!("{name}, requested: {requested}, capacity: {capacity}");
                return Some(Err(("Infeasible", format!("Node didn't have enough capacity: {message}"))));
            }
        }
        let others = self.pods.iter().filter(|(other, it)| *other != uid && it.holds_room());
        let taken: Vec<&Pod> = others.map(|(_, it)| &*it.pod).collect();
        Some(check_room(wanted, &info, &taken).map_err(|it| ("Deferred", it.message)))
    }
}
