//! How a deployment names the ReplicaSet of a template.

use corten_meta::{Key, ObjectMeta};

pub(super) use crate::pod_template::{HASH_LABEL, are_equal, hash};

/// The key of the ReplicaSet a deployment makes for a template.
pub(super) fn set_key(deployment: &ObjectMeta, hash: &str) -> Key {
    Key::new(&*deployment.namespace, format!("{}-{hash}", deployment.name))
}
