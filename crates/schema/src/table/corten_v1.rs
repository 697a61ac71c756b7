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
