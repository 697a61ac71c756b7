//! Gives the containers of a workload's Pods what they are seen to use: a recommendation from the highest use that is not long past,
//! with headroom, and a resize in place of the Pods that have another request.
//!
//! ```text
//! scale of the target -> its Pods -> what each container uses -> peaks, which fade -> targets within bounds -> resize, status
//! ```

mod memory;
mod node;
mod peak;
mod pod;
mod round;
mod spec;

use std::time::Duration;

use corten_api::resources;
use corten_meta::{Key, Time};
use corten_reconcile::{
    Controller, Effect, Plan, Verb, View, Wake, Watch, Write,
    served::{ApiService, Definition, groups},
};

use node::MeasuredNode;
use pod::ResizedPod;
use round::Round;
use spec::Autoscaler;

/// Kubelets measure about as often.
const PERIOD: Duration = Duration::from_secs(15);

pub struct VerticalPodAutoscalers;

impl Controller for VerticalPodAutoscalers {
    fn name(&self) -> &'static str {
        "vertical-pod-autoscaler"
    }

    fn watches(&self) -> Vec<Watch> {
        let is_any = |view: &View| view.list::<Autoscaler>().next().is_some();
        vec![
            Watch::new::<Autoscaler>(Wake::Itself).telling_changes_of::<Autoscaler>(),
            Watch::new::<ResizedPod>(Wake::Nobody).once(is_any),
            Watch::new::<MeasuredNode>(Wake::Nobody).once(is_any),
            Watch::new::<Definition>(Wake::Nobody),
            Watch::new::<ApiService>(Wake::Nobody),
            groups(Wake::Nobody),
        ]
    }

    fn writes(&self) -> &'static [Write] {
        const {
            &[
                Write { verb: Verb::Patch, resource: resources::VERTICAL_POD_AUTOSCALERS, fields: &["status"] },
                Write { verb: Verb::Patch, resource: resources::PODS, fields: &["spec.containers"] },
            ]
        }
    }

    fn reconcile(&self, view: &View, key: &Key, now: Time) -> Plan {
        let Some(scaler) = view.get::<Autoscaler>(key).filter(|it| !it.metadata.is_deleting()) else {
            return Plan::default();
        };
        let mut round = Round::new(view, scaler, key, now);
        // Another look comes after what failed was told of.
        if let Some(failure) = view.failure(key).filter(|_| !view.has_fetched(key)) {
            round.tell_of(failure);
        } else if let Err(missing) = round.run() {
            return Plan { effects: vec![Effect::Fetch(missing)], ..Plan::default() };
        }
        Plan { wake_at: Some(now.after(PERIOD)), ..round.into_plan() }
    }
}
