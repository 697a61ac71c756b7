//! RoleBindings and ClusterRoleBindings that give nobody anything: their role, or whom they name, is not there.

use corten_kinds::Kind;
use corten_meta::Key;
use corten_reconcile::{Actor, Wait};
use serde_json::Value;

use super::found::Findings;
use crate::why::{
    fields::{items, text},
    reader::Reader,
};

pub(super) async fn binding(reader: &Reader<'_>, object: &Value, found: &mut Findings) {
    let namespace = text(object, "/metadata/namespace");
    let (kind, name) = (text(object, "/roleRef/kind"), text(object, "/roleRef/name"));
    if let Some(kind) = named(kind)
        && is_missing(reader, kind, namespace, name).await
    {
        let message = format!("there is no {} {name:?}: it gives no rights", kind.singular);
        found.wait(Wait::new("RoleNotFound", message, Actor::Author));
    }
    for subject in items(object, "/subjects").iter().filter(|it| it["kind"] == "ServiceAccount") {
        let (name, namespace) = (text(subject, "/name"), text(subject, "/namespace"));
        let Some(account) = named("ServiceAccount") else { return };
        if is_missing(reader, account, namespace, name).await {
            let message = format!("there is no service account {name:?} in {namespace}: nobody has its rights");
            found.wait(Wait::new("SubjectNotFound", message, Actor::Author));
        }
    }
}

fn named(kind: &str) -> Option<&'static Kind> {
    corten_kinds::by_name(&kind.to_lowercase())
}

async fn is_missing(reader: &Reader<'_>, kind: &Kind, namespace: &str, name: &str) -> bool {
    let namespace = if kind.resource.namespaced { namespace } else { "" };
    !name.is_empty() && reader.is_missing(&kind.resource, &Key::new(namespace, name)).await
}
