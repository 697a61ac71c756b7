//! DefaultStorageClass and DefaultIngressClass: who names no class gets the cluster's default one, the newest of several.

use std::cmp::Reverse;

use corten_api::resources::{INGRESS_CLASSES, INGRESSES, PERSISTENT_VOLUME_CLAIMS, STORAGE_CLASSES};
use corten_cacher::body::BoxFuture;
use corten_meta::{Resource, Status};
use serde_json::Value;

use super::{Admission, Attributes};

pub(crate) struct DefaultStorageClass;
pub(crate) struct DefaultIngressClass;

const STORAGE_MARKS: &[&str] =
    &["storageclass.kubernetes.io/is-default-class", "storageclass.beta.kubernetes.io/is-default-class"];
const INGRESS_MARKS: &[&str] = &["ingressclass.kubernetes.io/is-default-class"];

impl Admission for DefaultStorageClass {
    fn name(&self) -> &'static str {
        "DefaultStorageClass"
    }

    fn admit<'a>(&'a self, request: &'a Attributes<'a>, claim: &'a mut Value) -> BoxFuture<'a, Result<(), Status>> {
        Box::pin(async move {
            // The empty class is a choice, too: a volume without one.
            let chosen = !claim["spec"]["storageClassName"].is_null()
                || !claim["metadata"]["annotations"]["volume.beta.kubernetes.io/storage-class"].is_null();
            if request.creates(&PERSISTENT_VOLUME_CLAIMS)
                && !chosen
                && let Some(name) = default_class(request, &STORAGE_CLASSES, STORAGE_MARKS)
            {
                claim["spec"]["storageClassName"] = name.into();
            }
            Ok(())
        })
    }
}

impl Admission for DefaultIngressClass {
    fn name(&self) -> &'static str {
        "DefaultIngressClass"
    }

    fn admit<'a>(&'a self, request: &'a Attributes<'a>, ingress: &'a mut Value) -> BoxFuture<'a, Result<(), Status>> {
        Box::pin(async move {
            let chosen = !ingress["spec"]["ingressClassName"].is_null()
                || !ingress["metadata"]["annotations"]["kubernetes.io/ingress.class"].is_null();
            if request.creates(&INGRESSES)
                && !chosen
                && let Some(name) = default_class(request, &INGRESS_CLASSES, INGRESS_MARKS)
            {
                ingress["spec"]["ingressClassName"] = name.into();
            }
            Ok(())
        })
    }
}

fn default_class(request: &Attributes<'_>, classes: &Resource, marks: &[&str]) -> Option<String> {
    let cache = request.cluster.caches().get(classes).expect("classes are a row of the table");
    let snapshot = cache.snapshot();
    let marked = snapshot.iter().map(|it| it.parse()).filter(|class| {
        let annotations = &class["metadata"]["annotations"];
        marks.iter().any(|it| annotations[*it] == "true")
    });
    let text = |class: &Value, field: &str| class["metadata"][field].as_str().unwrap_or_default().to_owned();
    let newest = marked.min_by_key(|it| (Reverse(text(it, "creationTimestamp")), text(it, "name")));
    newest.map(|it| text(&it, "name"))
}
