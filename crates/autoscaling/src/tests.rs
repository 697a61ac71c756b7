//! Both autoscalers against their text worlds.

use corten_reconcile::{Controller, fixture};

use crate::{HorizontalPodAutoscalers, VerticalPodAutoscalers};

fn check(controller: &dyn Controller, folder: &str) {
    fixture::check(controller, &format!("{}/testdata/{folder}", env!("CARGO_MANIFEST_DIR")));
}

#[test]
fn horizontal_pod_autoscaler() {
    check(&HorizontalPodAutoscalers, "horizontal_pod_autoscaler");
}

#[test]
fn vertical_pod_autoscaler() {
    check(&VerticalPodAutoscalers, "vertical_pod_autoscaler");
}
