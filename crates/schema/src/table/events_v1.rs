//! The types of `io.k8s.api.events.v1`. Written by `cargo xtask codegen`; not to be edited.

use super::build::*;

pub(super) static EVENT: Type = Type {
    name: "io.k8s.api.events.v1.Event",
    atomic: false,
    fields: &[
        field("action", String).omitted().at(&[6]).always(),
        field("apiVersion", String),
        field("deprecatedCount", Int32).omitted().at(&[15]).always(),
        field("deprecatedFirstTimestamp", Time).at(&[13]).always(),
        field("deprecatedLastTimestamp", Time).at(&[14]).always(),
        field("deprecatedSource", Object(&super::core_v1::EVENT_SOURCE)).zero().at(&[12]).always(),
        field("eventTime", MicroTime).at(&[2]).always(),
        field("kind", String),
        field("metadata", Object(&super::meta_v1::OBJECT_META)).zero().required().at(&[1]).always(),
        field("note", String).omitted().at(&[10]).always(),
        field("reason", String).omitted().at(&[7]).always(),
        field("regarding", Object(&super::core_v1::OBJECT_REFERENCE)).zero().at(&[8]).always(),
        field("related", Object(&super::core_v1::OBJECT_REFERENCE)).at(&[9]),
        field("reportingController", String).omitted().at(&[4]).always(),
        field("reportingInstance", String).omitted().at(&[5]).always(),
        field("series", Object(&super::events_v1::EVENT_SERIES)).at(&[3]),
        field("type", String).omitted().at(&[11]).always(),
    ],
    wire: &[8, 6, 15, 13, 14, 0, 10, 11, 12, 9, 16, 5, 3, 4, 2],
};

pub(super) static EVENT_SERIES: Type = Type {
    name: "io.k8s.api.events.v1.EventSeries",
    atomic: false,
    fields: &[
        field("count", Int32).zero().required().at(&[1]).always(),
        field("lastObservedTime", MicroTime).required().at(&[2]).always(),
    ],
    wire: &[0, 1],
};
