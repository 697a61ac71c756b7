//! The types of `corten.dev/v1`.

use super::build::*;

pub(super) static DECISION: Type = Type {
    name: "dev.corten.v1.Decision",
    atomic: false,
    fields: &[
        field("at", Time),
        field("by", String).required(),
        field("effects", List(&String)),
        field("error", String),
        field("retries", Int32),
        field("steps", List(&Object(&STEP))),
        field("waits", List(&Object(&WAIT))),
    ],
    wire: &[],
};

pub(super) static JOURNAL: Type = Type {
    name: "dev.corten.v1.Journal",
    atomic: false,
    fields: &[
        field("apiVersion", String),
        field("decisions", List(&Object(&DECISION))).required(),
        field("kind", String),
        field("metadata", Object(&super::meta_v1::OBJECT_META)).required(),
    ],
    wire: &[],
};

pub(super) static STEP: Type = Type {
    name: "dev.corten.v1.Step",
    atomic: false,
    fields: &[
        field("finished", Time),
        field("log", List(&String)),
        field("message", String),
        field("name", String).required(),
        field("started", Time),
        field("state", String).required(),
        field("wait", Object(&WAIT)),
    ],
    wire: &[],
};

pub(super) static WAIT: Type = Type {
    name: "dev.corten.v1.Wait",
    atomic: false,
    fields: &[
        field("actor", String).required(),
        field("message", String).required(),
        field("on", String),
        field("reason", String).required(),
        field("since", Time),
    ],
    wire: &[],
};

pub(super) static VERTICAL_POD_AUTOSCALER: Type = Type {
    name: "dev.corten.v1.VerticalPodAutoscaler",
    atomic: false,
    fields: &[
        field("apiVersion", String),
        field("kind", String),
        field("metadata", Object(&super::meta_v1::OBJECT_META)),
        field("spec", Object(&VERTICAL_POD_AUTOSCALER_SPEC)).required(),
        field("status", Object(&VERTICAL_POD_AUTOSCALER_STATUS)),
    ],
    wire: &[],
};

pub(super) static VERTICAL_POD_AUTOSCALER_CONTAINER: Type = Type {
    name: "dev.corten.v1.VerticalPodAutoscalerContainer",
    atomic: false,
    fields: &[
        field("maxAllowed", Map(&Quantity)),
        field("minAllowed", Map(&Quantity)),
        field("name", String).required(),
    ],
    wire: &[],
};

pub(super) static VERTICAL_POD_AUTOSCALER_RECOMMENDATION: Type = Type {
    name: "dev.corten.v1.VerticalPodAutoscalerRecommendation",
    atomic: false,
    fields: &[
        field("container", String).required(),
        field("peak", Quantity).required(),
        field("peakTime", Time).required(),
        field("resource", String).required(),
        field("target", Quantity).required(),
    ],
    wire: &[],
};

pub(super) static VERTICAL_POD_AUTOSCALER_SPEC: Type = Type {
    name: "dev.corten.v1.VerticalPodAutoscalerSpec",
    atomic: false,
    fields: &[
        field("containers", List(&Object(&VERTICAL_POD_AUTOSCALER_CONTAINER))).merged(&Merge {
            apply: ByKeys(&["name"]),
            patch: ByKey("name"),
            retain_keys: false,
        }),
        field("headroomPercent", Int32),
        field("mode", String),
        field("targetRef", Object(&super::autoscaling_v2::CROSS_VERSION_OBJECT_REFERENCE)).required(),
    ],
    wire: &[],
};

pub(super) static VERTICAL_POD_AUTOSCALER_STATUS: Type = Type {
    name: "dev.corten.v1.VerticalPodAutoscalerStatus",
    atomic: false,
    fields: &[
        field("conditions", List(&Object(&super::meta_v1::CONDITION))).merged(&Merge {
            apply: ByKeys(&["type"]),
            patch: ByKey("type"),
            retain_keys: false,
        }),
        field("observedGeneration", Int64),
        field("pods", Int32),
        field("recommendations", List(&Object(&VERTICAL_POD_AUTOSCALER_RECOMMENDATION))).merged(&Merge {
            apply: ByKeys(&["container", "resource"]),
            patch: Replace,
            retain_keys: false,
        }),
    ],
    wire: &[],
};
