//! Objects that are being deleted and are held.

use corten_api::volumes::CLONING_FINALIZER;
use serde_json::{Value, json};

use super::case::{Advice, Case};
use crate::why::{
    command::kubectl,
    fields::{items, text},
};

pub(super) fn in_use(case: &Case<'_>) -> Advice {
    let user = case.wait.on.as_deref().unwrap_or_default();
    Advice::run(kubectl(case.namespace, &["describe", user]))
        .headline(format!("{user} uses it, and it goes when no pod does"))
        .who(format!("whoever runs {user}: it must end, or use something else"))
}

/// A volume that is deleted while a claim has it.
pub(super) fn bound(case: &Case<'_>) -> Advice {
    let of = |field: &str| text(case.object, &format!("/spec/claimRef/{field}"));
    let (name, namespace) = (of("name"), of("namespace"));
    let claim = format!("persistentvolumeclaim/{name}");
    Advice::run(kubectl(namespace, &["describe", &claim]))
        .headline(format!("{claim} in {namespace} is bound to it, and it goes when that does"))
        .who(format!(
            "whoever has {claim} in {namespace}: it works on as it is, and loses its volume when it is deleted"
        ))
        .hint("that it is deleted cannot be taken back")
}

/// An update is refused in a namespace that is not there: it is made again first.
pub(super) fn namespace(case: &Case<'_>) -> Advice {
    let name = case.namespace;
    Advice::run(kubectl("", &["create", "namespace", name]))
        .headline(format!("there is no namespace {name:?}, and updates are refused without it"))
        .hint("then its finalizers can be taken away; delete the namespace again when it is gone")
}

pub(super) fn finalizer(case: &Case<'_>) -> Advice {
    if case.wait.reason == "NamespaceContentRemaining" {
        let on = case.wait.on.clone().unwrap_or_default();
        let name = text(case.object, "/metadata/name");
        return Advice::run(format!("corten why {on} -n {name}")).headline(case.wait.message.clone());
    }
    let name = case.wait.message.split('"').nth(1).unwrap_or_default();
    let place = items(case.object, "/metadata/finalizers").iter().position(|it| *it == name);
    if let (CLONING_FINALIZER, Some(clone)) = (name, &case.wait.on) {
        return Advice::run(format!("corten why {clone} -n {}", case.namespace))
            .headline(format!("{clone} is to begin with what is on it, and has no volume yet"))
            .who(format!("whoever acts for {clone}: it goes when that has its volume, or is deleted"));
    }
    let advice = Advice::default().headline(format!("the finalizer {name:?} holds it"));
    match (case.wait.actor, place) {
        (corten_reconcile::Actor::External, Some(at)) => {
            let path = format!("/metadata/finalizers/{at}");
            let patch: Value = json!([{"op": "test", "path": path, "value": name}, {"op": "remove", "path": path}]);
            let patch = patch.to_string();
            let mut advice = advice
                .who(format!("the program that {name:?} belongs to: it cleans up, then takes its finalizer away"))
                .hint("only if that program is gone for good: the command lets the object go without its cleaning up");
            advice.next = kubectl(case.namespace, &["patch", &case.at.subject, "--type=json", "-p", &patch]);
            advice
        }
        _ => {
            let mut advice = advice;
            advice.next = kubectl(case.namespace, &["get", &case.at.subject, "-o", "jsonpath={.metadata.finalizers}"]);
            advice
        }
    }
}
