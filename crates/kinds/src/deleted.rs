//! What a DELETE answers.

use corten_meta::Resource;

/// Some kinds answer a DELETE with what was deleted, the others with a Status (`ReturnDeletedObject` of upstream's stores).
pub fn returns_deleted_object(resource: &Resource) -> bool {
    match &*resource.group {
        "" => matches!(
            &*resource.plural,
            "persistentvolumeclaims"
                | "persistentvolumes"
                | "pods"
                | "podtemplates"
                | "resourcequotas"
                | "serviceaccounts"
                | "services"
        ),
        "resource.k8s.io" => true,
        "storage.k8s.io" => resource.plural != "csistoragecapacities",
        _ => false,
    }
}
