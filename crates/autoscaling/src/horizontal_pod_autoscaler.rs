//! Scales workloads by what is measured of them (`pkg/controller/podautoscaler`).
//!
//! What it scales may be of any kind, and metrics are others' to serve: both are fetched, look by look. A look begins every
//! fifteen seconds, and when a spec has changed.
//!
//! ```text
//! scale of the target -> metrics -> how many replicas each asks for -> what holds that back -> scale, status, events
//! ```

pub(crate) mod measured;
mod metrics;
mod pod;
mod recommendations;
mod replicas;
mod round;
mod spec;
#[cfg(test)]
mod tests;

use std::time::Duration;

use corten_api::resources;
use corten_meta::{Key, Time};
use corten_reconcile::{
    Controller, DEFINED, Plan, Verb, View, Wake, Watch, Write,
    served::{ApiService, Definition, groups},
};

use pod::AutoscaledPod;
use round::Round;
use spec::Autoscaler;

/// `--horizontal-pod-autoscaler-sync-period`.
const PERIOD: Duration = Duration::from_secs(15);

pub struct HorizontalPodAutoscalers;

impl Controller for HorizontalPodAutoscalers {
    fn name(&self) -> &'static str {
        "horizontal-pod-autoscaler"
    }

    fn account(&self) -> String {
        self.name().into()
    }

    fn component(&self) -> String {
        self.name().into()
    }

    fn watches(&self) -> Vec<Watch> {
        let is_any = |view: &View| view.list::<Autoscaler>().next().is_some();
        vec![
            Watch::new::<Autoscaler>(Wake::Itself).telling_changes_of::<Autoscaler>(),
            Watch::new::<AutoscaledPod>(Wake::Nobody).once(is_any).by_labels(),
            Watch::new::<Definition>(Wake::Nobody),
            Watch::new::<ApiService>(Wake::Nobody),
            groups(Wake::Nobody),
        ]
    }

    fn writes(&self) -> &'static [Write] {
        const {
            &[
                Write { verb: Verb::Patch, resource: resources::HORIZONTAL_POD_AUTOSCALERS, fields: &["status"] },
                // The scale of any kind.
                Write { verb: Verb::Patch, resource: DEFINED, fields: &["spec.replicas"] },
            ]
        }
    }

    fn reconcile(&self, view: &View, key: &Key, now: Time) -> Plan {
        let Some(scaler) = view.get::<Autoscaler>(key).filter(|it| !it.metadata.is_deleting()) else {
            return Plan::default();
        };
        let mut round = Round::new(view, scaler, key, now);
        // Another look at the scale and the metrics comes after what failed was told of.
        if let Some(failure) = view.failure(key).filter(|_| !view.has_fetched(key)) {
            round.tell_of(failure);
        } else if let Err(missing) = round.run() {
            return Plan { effects: missing, ..Plan::default() };
        }
        // Those of a namespace that are looked at within one second stay together, and are shown one answer.
        Plan { wake_at: Some(now.whole_seconds().after(PERIOD)), ..round.into_plan() }
    }
}
