//! What no loop's journal says of an object, and the object itself or its neighbours do: a row for each kind.

use crate::why::findings::found::Findings;

mod backends;
mod bindings;
mod certificates;
pub(super) mod claims;
pub(super) mod conditions;
pub(super) mod definitions;
mod deletion;
pub(super) mod device_claims;
pub(super) mod drivers;
pub(super) mod effects;
mod evictions;
pub(crate) mod found;
mod gangs;
pub(super) mod jobs;
mod nodes;
mod observed;
mod own_pods;
mod pods;
pub(super) mod policies;
pub(super) mod refusal;
pub(super) mod refusers;
pub(super) mod selectors;
pub(super) mod services;
pub(super) mod sick_volumes;
mod snapshots;
pub(super) mod traffic;
mod unheard;
pub(super) mod unnamed_webhooks;
mod workloads;

use corten_api::snapshots::{VOLUME_SNAPSHOT_CONTENTS, VOLUME_SNAPSHOTS};
use corten_kinds::Kind;
use serde_json::Value;

use super::reader::{Answer, Reader};

pub(super) use deletion::{manager_of, without_collector};

type Finder = for<'a> fn(&'a Reader<'_>, &'a Value, &'a mut Findings) -> Answer<'a, ()>;

/// Sorted by the kind's singular.
const FINDERS: &[(&str, Finder)] = &[
    ("apiservice", |reader, object, found| {
        Box::pin(async move {
            backends::api_service(reader, object, found).await;
            definitions::handed(reader, object, found).await;
        })
    }),
    ("certificatesigningrequest", |reader, object, found| {
        Box::pin(async move { certificates::request(object, reader.now, found) })
    }),
    ("clusterrolebinding", |reader, object, found| Box::pin(bindings::binding(reader, object, found))),
    ("cronjob", |reader, object, found| Box::pin(jobs::cron_job(reader, object, found))),
    ("customresourcedefinition", |reader, object, found| Box::pin(definitions::definition(reader, object, found))),
    ("daemonset", |reader, object, found| Box::pin(selectors::daemon_set(reader, object, found))),
    ("deployment", |_, object, found| Box::pin(async { workloads::scaled(object, found) })),
    ("deviceclass", |reader, object, found| Box::pin(device_claims::class(reader, object, found))),
    ("endpoints", |_, object, found| Box::pin(async { services::endpoints(object, found) })),
    ("endpointslice", |_, object, found| Box::pin(async { services::endpoint_slice(object, found) })),
    ("ingress", |reader, object, found| Box::pin(backends::ingress(reader, object, found))),
    ("job", |reader, object, found| Box::pin(jobs::job(reader, object, found))),
    ("mutatingadmissionpolicy", |reader, object, found| {
        Box::pin(policies::policy(reader, "mutatingadmissionpolicy", object, found))
    }),
    ("mutatingadmissionpolicybinding", |reader, object, found| {
        Box::pin(policies::binding(reader, "mutatingadmissionpolicy", object, found))
    }),
    ("mutatingwebhookconfiguration", |reader, object, found| {
        Box::pin(backends::webhooks(reader, "mutatingwebhookconfiguration", object, found))
    }),
    ("networkpolicy", |reader, object, found| Box::pin(selectors::network_policy(reader, object, found))),
    ("node", |reader, object, found| Box::pin(nodes::node(reader, object, found))),
    ("persistentvolume", |reader, object, found| {
        Box::pin(async move {
            claims::volume(object, found);
            drivers::unattached(reader, object, found).await;
        })
    }),
    ("persistentvolumeclaim", |reader, object, found| {
        Box::pin(async move {
            claims::claim(reader, object, found).await;
            sick_volumes::of(reader, object, found).await;
        })
    }),
    ("pod", |reader, object, found| Box::pin(pods::pod(reader, object, found))),
    ("poddisruptionbudget", |reader, object, found| Box::pin(selectors::budget(reader, object, found))),
    ("podgroup", |reader, object, found| Box::pin(gangs::group(reader, object, found))),
    ("replicaset", |_, object, found| Box::pin(async { workloads::scaled(object, found) })),
    ("resourceclaim", |reader, object, found| Box::pin(device_claims::claim(reader, object, found))),
    ("resourceclaimtemplate", |reader, object, found| Box::pin(device_claims::template(reader, object, found))),
    ("resourcequota", |reader, object, found| Box::pin(definitions::quota(reader, object, found))),
    ("rolebinding", |reader, object, found| Box::pin(bindings::binding(reader, object, found))),
    ("service", |reader, object, found| Box::pin(services::service(reader, object, found))),
    ("statefulset", |_, object, found| Box::pin(async { workloads::scaled(object, found) })),
    ("validatingadmissionpolicy", |reader, object, found| {
        Box::pin(policies::policy(reader, "validatingadmissionpolicy", object, found))
    }),
    ("validatingadmissionpolicybinding", |reader, object, found| {
        Box::pin(policies::binding(reader, "validatingadmissionpolicy", object, found))
    }),
    ("validatingwebhookconfiguration", |reader, object, found| {
        Box::pin(backends::webhooks(reader, "validatingwebhookconfiguration", object, found))
    }),
    ("volumeattachment", |reader, object, found| Box::pin(drivers::attachment(reader, object, found))),
    ("workload", |reader, object, found| Box::pin(gangs::workload(reader, object, found))),
];

/// Looks at an object with what is known of its kind.
pub(super) async fn of(reader: &Reader<'_>, kind: &Kind, object: &Value) -> Findings {
    let mut found = Findings::default();
    let is_leaving = object["metadata"]["deletionTimestamp"].is_string();
    deletion::leaving(reader, kind, object, &mut found).await;
    // What an object that is to go lacks matters no more; a Pod must still be ended.
    if is_leaving && kind.singular != "pod" {
        return found;
    }
    if let Some((_, finder)) = FINDERS.iter().find(|it| it.0 == kind.singular) {
        finder(reader, object, &mut found).await;
    }
    if kind.resource == VOLUME_SNAPSHOTS {
        snapshots::snapshot(reader, object, &mut found).await;
    }
    if kind.resource == VOLUME_SNAPSHOT_CONTENTS {
        snapshots::content(object, &mut found);
    }
    if !is_leaving {
        effects::missing(kind, object, &mut found);
        conditions::waits(kind, object, &mut found);
        traffic::filtered(reader, kind, object, &mut found).await;
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_names_a_kind_and_the_table_is_sorted() {
        assert!(FINDERS.is_sorted_by_key(|it| it.0));
        for (kind, _) in FINDERS {
            assert_eq!(corten_kinds::by_name(kind).map(|it| &*it.singular), Some(*kind));
        }
    }
}
