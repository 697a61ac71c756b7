//! Groups of the Kubernetes project are not for everybody: who defines kinds in one says by what leave (KEP-1111;
//! `pkg/apihelpers` of apiextensions-apiserver).

use corten_meta::Violation;
use serde_json::Value;

use super::status::Condition;

const ANNOTATION: &str = "api-approved.kubernetes.io";
const SEE: &str = "see https://github.com/kubernetes/enhancements/pull/1111";

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    Missing,
    Invalid,
    Bypassed,
    Approved,
}

/// What is said of the leave; empty where nothing is.
pub fn approved_by(definition: &Value) -> &str {
    definition["metadata"]["annotations"][ANNOTATION].as_str().unwrap_or_default()
}

fn state(definition: &Value) -> State {
    match approved_by(definition) {
        "" => State::Missing,
        text if text.starts_with("unapproved") => State::Bypassed,
        text if is_url(text) => State::Approved,
        _ => State::Invalid,
    }
}

fn is_url(text: &str) -> bool {
    let Some((scheme, rest)) = text.split_once("://") else { return false };
    let is_scheme = scheme.starts_with(|it: char| it.is_ascii_alphabetic())
        && scheme.chars().all(|it| it.is_ascii_alphanumeric() || "+-.".contains(it));
    is_scheme && !rest.starts_with(['/', '?', '#']) && !rest.is_empty() && corten_cel::is_uri(text)
}

fn is_protected(definition: &Value) -> bool {
    let group = definition["spec"]["group"].as_str().unwrap_or_default();
    let within = |domain: &str| group.strip_suffix(domain).is_some_and(|it| it.is_empty() || it.ends_with('.'));
    within("k8s.io") || within("kubernetes.io")
}

/// A definition without a valid leave is refused; one that is stored so may go on.
pub(crate) fn violation(new: &Value, old: Option<&Value>) -> Option<Violation> {
    let now = state(new);
    if !is_protected(new) || old.is_some_and(|it| state(it) == now) {
        return None;
    }
    let path = format!("metadata.annotations[{ANNOTATION}]");
    match now {
        State::Missing => Some(Violation::required(path, &message(new, now))),
        State::Invalid => Some(Violation::invalid(path, format_args!("{:?}", approved_by(new)), &message(new, now))),
        State::Bypassed | State::Approved => None,
    }
}

fn message(definition: &Value, state: State) -> String {
    let text = approved_by(definition);
    match state {
        State::Missing => format!("protected groups must have approval annotation {ANNOTATION:?}, {SEE}"),
        State::Invalid => format!(
            "protected groups must have approval annotation {ANNOTATION:?} with either a URL or a reason starting with \"unapproved\", {SEE}"
        ),
        State::Bypassed => format!("not approved: {text:?}"),
        State::Approved => format!("approved in {text}"),
    }
}

/// What the status says of it; `None` of groups that anybody may have.
pub(super) fn condition(definition: &Value) -> Option<Condition> {
    let state = state(definition);
    is_protected(definition).then(|| Condition {
        kind: "KubernetesAPIApprovalPolicyConformant",
        is_true: state == State::Approved,
        reason: match state {
            State::Missing => "MissingAnnotation",
            State::Invalid => "InvalidAnnotation",
            State::Bypassed => "UnapprovedAnnotation",
            State::Approved => "ApprovedAnnotation",
        },
        message: message(definition, state),
    })
}
