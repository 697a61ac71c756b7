//! What projections of several minds have in common, and what is said of the objects that they show.

use corten_meta::{ObjectMeta, ObjectReference, OwnerReference, Time};
use serde::{Deserialize, Deserializer, Serialize};

use crate::Projection;

/// Makes a type with a field `metadata` a [`Projection`] of a resource.
#[macro_export]
macro_rules! projection {
    ($type:ident, $resource:expr) => {
        impl ::corten_meta::Named for $type {
            fn meta(&self) -> &::corten_meta::ObjectMeta {
                &self.metadata
            }
        }
        impl $crate::Projection for $type {
            const RESOURCE: ::corten_meta::Resource = $resource;
        }
    };
}

/// An object's metadata as far as its identity, owners and end go. Labels and annotations, most of most objects' metadata,
/// are left out.
pub fn bare<'de, D: Deserializer<'de>>(deserializer: D) -> Result<ObjectMeta, D::Error> {
    #[derive(Default, Deserialize)]
    #[serde(rename_all = "camelCase", default)]
    struct Fields {
        name: String,
        namespace: String,
        uid: String,
        resource_version: String,
        deletion_timestamp: Option<Time>,
        owner_references: Vec<OwnerReference>,
        finalizers: Vec<String>,
    }
    let fields = Fields::deserialize(deserializer)?;
    Ok(ObjectMeta {
        name: fields.name,
        namespace: fields.namespace,
        uid: fields.uid,
        resource_version: fields.resource_version,
        deletion_timestamp: fields.deletion_timestamp,
        owner_references: fields.owner_references,
        finalizers: fields.finalizers,
        ..ObjectMeta::default()
    })
}

/// The condition of all kinds that are few. Deployments use `lastUpdateTime`, jobs `lastProbeTime`, nodes
/// `lastHeartbeatTime`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Condition {
    pub r#type: String,
    pub status: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_probe_time: Option<Time>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_heartbeat_time: Option<Time>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_update_time: Option<Time>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_transition_time: Option<Time>,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub reason: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub message: String,
}

impl Condition {
    /// Sets the one of the type, which is put at the end where there is none. It has changed at `now` where its status has.
    pub fn set(conditions: &mut Vec<Self>, r#type: &str, status: &str, (reason, message): (&str, &str), now: Time) {
        let at = conditions.iter().position(|it| it.r#type == r#type).unwrap_or_else(|| {
            conditions.push(Self { r#type: r#type.into(), ..Self::default() });
            conditions.len() - 1
        });
        let condition = &mut conditions[at];
        if condition.status != status {
            condition.last_transition_time = Some(now);
        }
        (condition.status, condition.reason, condition.message) = (status.into(), reason.into(), message.into());
    }
}

/// What an event about an object points at.
pub fn reference<T: Projection>(object: &T) -> ObjectReference {
    let meta = object.meta();
    ObjectReference {
        kind: T::RESOURCE.kind.to_string(),
        api_version: T::RESOURCE.api_version(),
        namespace: meta.namespace.clone(),
        name: meta.name.clone(),
        uid: meta.uid.clone(),
        resource_version: meta.resource_version.clone(),
        ..ObjectReference::default()
    }
}

pub fn is_zero(number: &i64) -> bool {
    *number == 0
}

/// A list that stands as `null` is empty.
pub fn or_default<'de, D: Deserializer<'de>, T: Default + Deserialize<'de>>(deserializer: D) -> Result<T, D::Error> {
    Ok(Option::deserialize(deserializer)?.unwrap_or_default())
}
