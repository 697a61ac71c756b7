//! Old PodCertificateRequests are deleted: whoever asked has read the answer long ago, or asks again.

use std::time::Duration;

use corten_api::resources::POD_CERTIFICATE_REQUESTS_V1BETA1;
use corten_meta::{Key, ObjectMeta, Time};
use corten_reconcile::{Controller, Effect, Plan, Propagation, Verb, View, Wake, Watch, Write};
use serde::Deserialize;

use crate::projections::projection;

/// As upstream's `podcertificaterequest-cleaner-controller`.
const AGE_MAX: Duration = Duration::from_secs(30 * 60);

#[derive(Deserialize)]
struct PodCertificateRequest {
    metadata: ObjectMeta,
}
projection!(PodCertificateRequest, POD_CERTIFICATE_REQUESTS_V1BETA1);

/// Deletes requests half an hour after they were made.
pub struct PodCertificateCleaner;

impl Controller for PodCertificateCleaner {
    fn name(&self) -> &'static str {
        "podcertificaterequestcleaner"
    }

    fn watches(&self) -> Vec<Watch> {
        vec![Watch::new::<PodCertificateRequest>(Wake::Itself)]
    }

    fn writes(&self) -> &'static [Write] {
        const { &[Write { verb: Verb::Delete, resource: POD_CERTIFICATE_REQUESTS_V1BETA1, fields: &[] }] }
    }

    fn reconcile(&self, view: &View, key: &Key, now: Time) -> Plan {
        let request = view.get::<PodCertificateRequest>(key).filter(|it| !it.metadata.is_deleting());
        let made = request.and_then(|it| Some((it, it.metadata.creation_timestamp?)));
        let Some((request, made)) = made else { return Plan::default() };
        let end = made.after(AGE_MAX);
        if now < end {
            return Plan { wake_at: Some(end), ..Plan::default() };
        }
        let delete = Effect::Delete {
            resource: POD_CERTIFICATE_REQUESTS_V1BETA1,
            key: key.clone(),
            uid: request.metadata.uid.clone(),
            propagation: Propagation::Background,
            grace_seconds: None,
        };
        Plan { effects: vec![delete], ..Plan::default() }
    }
}
