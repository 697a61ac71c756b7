//! Answers "why is this not running?": reads an object, its events and the loops' journals, and follows what each
//! waits for down to whoever must act.
//!
//! [`reader`] reads, [`gather`] follows, [`findings`] and [`advice`] know the kinds and the causes, [`render`] prints.

mod account;
mod advice;
mod aggregated;
mod beyond;
mod certificates;
mod command;
mod custom;
pub(crate) mod duration;
mod etcd_members;
mod explain;
mod fields;
mod findings;
mod gather;
mod machine_part;
mod misdirected;
mod missing;
mod nearest;
mod node_journals;
mod outage;
mod pod_steps;
mod reach;
mod reader;
mod remedy;
mod render;
mod severity;
mod since;
mod survey;
mod suspects;
mod taints;
#[cfg(test)]
mod tests;
mod trust;
mod unreached;

pub(crate) use account::{Account, State};
pub(crate) use certificates::{Validity, of_user as certificate_of_user};
pub(crate) use custom::custom_kind;
pub(crate) use etcd_members::{
    concerns as etcd_concerns, needed_by as etcd_needed_by, quorum_lost as etcd_quorum_lost,
};
pub(crate) use explain::{Explanation, explain};
pub(crate) use missing::{missing, missing_namespace, unknown_kind, unreadable};
pub(crate) use node_journals::source;
pub(crate) use outage::{ClusterRecord, Outage, unanswered};
pub(crate) use reader::Reader;
pub(crate) use remedy::of as remedy;
pub(crate) use render::{PageStyle, render, render_outage, render_survey};
pub(crate) use survey::{Group, Survey, survey};
pub(crate) use unreached::{may_not_look, unknown_asker, unreached};
