//! How severe a cause is: what is lost is worse than what is down, and that is worse than what has not begun.

use corten_kinds::Kind;
use serde::Serialize;
use serde_json::Value;

use super::{
    account::{Account, Root, State},
    fields::{condition, items, text},
    reach::Reach,
};

/// The most severe first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub(crate) enum Severity {
    /// What somebody stored is lost, or may be.
    Data,
    /// A node or a part of the control plane does not do its work, or writes of others are refused.
    Down,
    /// What runs, or did, is not well.
    Failing,
    /// What has never run has not come to that yet.
    NotBegun,
    /// What is to go has not gone yet.
    Leaving,
}

const DATA: [&str; 5] = ["ClaimLost", "ClaimMisbound", "ContentUnreadable", "KeyStillUsed", "VolumeConditionAbnormal"];
/// Nothing at all runs.
const DOWN: [&str; 1] = ["NoNodes"];
/// Reasons of those that somebody wants to be so, or that keep nothing up that runs.
const NOT_DOWN: [&str; 3] = ["Cordoned", "EvictionRefused", "VersionSkew"];

/// Of a cause, by what it is and what waits for it.
pub(super) fn of(account: &Account, root: Option<&Root<'_>>, reach: Reach) -> Severity {
    let reason = root.map_or("", |it| &*it.wait.reason);
    if DATA.contains(&reason) {
        return Severity::Data;
    }
    if account.state == State::Terminating || reason == "VolumeReleased" {
        return Severity::Leaving;
    }
    if DOWN.contains(&reason) || reach <= Reach::Node && !NOT_DOWN.contains(&reason) {
        return Severity::Down;
    }
    let path = root.map_or_else(|| vec![account], |it| it.path.clone());
    let has_not_begun = |it: &&Account| {
        let kind = it.subject.split_once('/').map_or("", |it| it.0);
        matches!(kind, "pod" | "persistentvolumeclaim") && status(kind, &it.object) == Severity::NotBegun
    };
    if account.state == State::Progressing || path.iter().any(has_not_begun) {
        return Severity::NotBegun;
    }
    Severity::Failing
}

/// Of an object that looks unwell, by what its status says: it is explained in that order.
pub(super) fn seen(kind: &Kind, object: &Value) -> Severity {
    if object["metadata"]["deletionTimestamp"].is_string() {
        return Severity::Leaving;
    }
    status(&kind.singular, object)
}

fn status(kind: &str, object: &Value) -> Severity {
    let phase = text(object, "/status/phase");
    match kind {
        "persistentvolumeclaim" if phase == "Lost" => Severity::Data,
        "persistentvolumeclaim" if phase == "Bound" => Severity::Failing,
        "node" if condition(object, "Ready").is_none_or(|it| it["status"] != "True") => Severity::Down,
        "apiservice" => Severity::Down,
        "pod" if phase == "Failed" || has_run(object) => Severity::Failing,
        "pod" | "persistentvolumeclaim" | "resourceclaim" | "podgroup" | "certificatesigningrequest" => {
            Severity::NotBegun
        }
        // Of these each is looked at, however it is.
        "ingress" => Severity::NotBegun,
        _ if kind.ends_with("policy") || kind.ends_with("policybinding") || kind.ends_with("configuration") => {
            Severity::NotBegun
        }
        _ => Severity::Failing,
    }
}

fn has_run(pod: &Value) -> bool {
    let ran = |it: &Value| it["running"].is_object() || it["terminated"].is_object();
    items(pod, "/status/containerStatuses").iter().any(|it| ran(&it["state"]) || ran(&it["lastState"]))
}
