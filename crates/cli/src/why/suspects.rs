//! Which objects look unwell, by what one list says of each: nothing is asked about any by itself.

use std::collections::{BTreeMap, BTreeSet};

use corten_api::resources::{CUSTOM_RESOURCE_DEFINITIONS, ENDPOINT_SLICES, NAMESPACES, NODES};
use corten_client::Error;
use corten_kinds::{Kind, Subresource};
use corten_meta::{Key, Time};
use corten_reconcile::Journal;
use serde_json::{Value, json};

use super::{
    custom,
    fields::{condition, items, key_of, text},
    findings::{claims, conditions, definitions, effects, jobs, selectors, services, sick_volumes, traffic},
    reader::Reader,
    severity::{self, Severity},
};

/// With how grave it seems.
pub(super) type Suspect = (&'static Kind, Value, Severity);

/// What a survey looks at.
#[derive(Default)]
pub(super) struct Suspects {
    pub(super) unwell: Vec<Suspect>,
    /// The others, where one kind was asked for: they are looked at, too.
    pub(super) well: Vec<Suspect>,
    /// What is worth knowing, and nothing waits for.
    pub(super) remarks: Vec<String>,
    /// Kinds that the server cannot list, and what it says instead.
    pub(super) unlisted: Vec<(&'static Kind, String)>,
}

/// In the order they are explained, of those that are as grave: what leads to others before them.
const NAMESPACED: [&str; 9] = [
    "deployment",
    "statefulset",
    "daemonset",
    "job",
    "replicaset",
    "replicationcontroller",
    "pod",
    "persistentvolumeclaim",
    "service",
];
const CLUSTER: [&str; 3] = ["node", "namespace", "certificatesigningrequest"];
/// Told of by others, or too many to be told of.
const NOT_LOOKED_AT: [&str; 3] = ["event", "lease", "podtemplate"];

/// Looks at one kind, or at all; an empty namespace is the whole cluster.
///
/// # Errors
/// Nothing could be looked at: of what nobody saw nobody can say that it is fine.
pub(super) async fn of(
    reader: &Reader<'_>,
    namespace: &str,
    only: Option<&'static Kind>,
    journals: &[(&'static Kind, Key, Journal)],
) -> Result<Suspects, Error> {
    let main = || CLUSTER.iter().chain(&NAMESPACED).filter_map(|it| corten_kinds::by_name(it));
    let mut seen = Search {
        filtered: filtered(journals),
        failing: failing(journals),
        sick: sick_volumes::those_in(reader, namespace).await,
        ..Search::new(reader, namespace)
    };
    if let Some(kind) = only {
        seen.look_at(kind, true).await?;
        return seen.ended();
    }
    for kind in main() {
        seen.look_at(kind, false).await?;
    }
    let is_main = |kind: &Kind| main().any(|it| it.resource == kind.resource);
    let is_any_seen = seen.is_any_seen;
    for kind in corten_kinds::KINDS.iter().filter(|it| it.is_stored() && !is_main(it)) {
        if !NOT_LOOKED_AT.contains(&&*kind.singular) {
            seen.look_at(kind, false).await?;
        }
    }
    // Who sees nothing of what usually gets stuck has not seen that all is fine.
    seen.is_any_seen = is_any_seen;
    for kind in custom::kinds(reader).await {
        seen.look_at(kind, false).await?;
    }
    seen.ended()
}

/// The nodes whose machine drops what Pods send.
fn filtered(journals: &[(&'static Kind, Key, Journal)]) -> BTreeSet<String> {
    let says = |it: &Journal| it.decisions.iter().flat_map(|it| &it.waits).any(traffic::bears_on_packets);
    let nodes = journals.iter().filter(|it| it.0.resource == NODES && says(&it.2));
    nodes.map(|it| it.1.name.clone()).collect()
}

/// The definitions whose objects nobody can convert, and what is said of each.
fn failing(journals: &[(&'static Kind, Key, Journal)]) -> BTreeMap<String, String> {
    let of_definitions = journals.iter().filter(|it| it.0.resource == CUSTOM_RESOURCE_DEFINITIONS);
    let said = of_definitions.filter_map(|(_, key, journal)| {
        let mut waits = journal.decisions.iter().flat_map(|it| &it.waits);
        let wait = waits.find(|it| it.reason == "ConversionWebhookFailing")?;
        Some((key.name.clone(), wait.message.clone()))
    });
    said.collect()
}

struct Search<'a> {
    reader: &'a Reader<'a>,
    namespace: &'a str,
    filtered: BTreeSet<String>,
    /// What has a volume that is not well, by kind and key.
    sick: BTreeSet<(String, Key)>,
    /// Why the objects of a definition cannot be shown, by its name: their metadata can, and looks well.
    failing: BTreeMap<String, String>,
    found: Suspects,
    is_any_seen: bool,
    refusal: Option<Error>,
}

impl<'a> Search<'a> {
    fn new(reader: &'a Reader<'_>, namespace: &'a str) -> Self {
        Self {
            reader,
            namespace,
            filtered: BTreeSet::new(),
            sick: BTreeSet::new(),
            failing: BTreeMap::new(),
            found: Suspects::default(),
            is_any_seen: false,
            refusal: None,
        }
    }

    fn ended(self) -> Result<Suspects, Error> {
        match self.refusal {
            Some(error) if !self.is_any_seen => Err(error),
            _ => Ok(self.found),
        }
    }

    async fn look_at(&mut self, kind: &'static Kind, is_asked_for: bool) -> Result<(), Error> {
        let is_cluster = !kind.resource.namespaced;
        // Of what belongs to no namespace only nodes and the namespace itself bear on one.
        let bears = matches!(&*kind.singular, "node" | "namespace");
        if is_cluster && !self.namespace.is_empty() && !is_asked_for && !bears {
            return Ok(());
        }
        let reader = self.reader;
        let ready = match &*kind.singular {
            "service" => self.services_ready().await,
            _ => BTreeSet::new(),
        };
        let (filtered, sick, found) = (&self.filtered, &self.sick, &mut self.found);
        let mut n_objects = 0;
        let look = |object: Value| {
            n_objects += 1;
            found.remarks.extend(remark(kind, &object));
            // Of all kinds the node itself tells it, and once is enough.
            let is_filtered = is_asked_for && traffic::is_filtered(kind, &object, filtered);
            let is_sick = !sick.is_empty() && sick.contains(&(kind.resource.kind.to_string(), key_of(&object)));
            if is_suspect(kind, &object, &ready, reader.now) || is_filtered || is_sick {
                let severity = if is_sick { Severity::Data } else { severity::seen(kind, &object) };
                found.unwell.push((kind, without_content(&object), severity));
            } else if is_asked_for {
                found.well.push((kind, without_content(&object), Severity::Leaving));
            }
        };
        if kind.resource == NAMESPACES && !self.namespace.is_empty() && !is_asked_for {
            let own = reader.get(&NAMESPACES, &Key::cluster(self.namespace)).await;
            own.map(|it| (*it).clone()).into_iter().for_each(look);
        } else {
            // Where nothing in an object but its metadata tells how it is, nothing else is read.
            let place = if kind.resource.namespaced { self.namespace } else { "" };
            reader.each(&kind.resource, place, !kind.has(Subresource::Status), look).await;
            match reader.unlisted(&kind.resource) {
                // Whom it does not know it will not tell anything.
                Some(error) if error.status().is_some_and(|it| it.code == 401) => return Err(error),
                Some(error) => self.refusal = self.refusal.take().or(Some(error)),
                None => self.is_any_seen = true,
            }
        }
        if let Some(Error::Status(status)) = reader.unlisted(&kind.resource).filter(|_| kind.is_custom())
            && status.code >= 500
        {
            self.found.unlisted.push((kind, status.message));
        }
        let failing = self.failing.get(&kind.resource.qualified()).filter(|_| n_objects > 0);
        if let Some(said) = failing.filter(|_| !self.found.unlisted.iter().any(|it| it.0.resource == kind.resource)) {
            self.found.unlisted.push((kind, said.clone()));
        }
        Ok(())
    }

    async fn services_ready(&self) -> BTreeSet<Key> {
        let mut ready = BTreeSet::new();
        self.reader.each(&ENDPOINT_SLICES, self.namespace, false, |it| ready.extend(services::ready(&[it]))).await;
        ready
    }
}

/// Who explains it reads it again: there may be very many.
fn without_content(object: &Value) -> Value {
    let metadata = |name: &str| object["metadata"][name].clone();
    json!({"metadata": {
        "name": metadata("name"), "namespace": metadata("namespace"), "ownerReferences": metadata("ownerReferences"),
    }})
}

fn remark(kind: &Kind, object: &Value) -> Option<String> {
    let is_counted = object["status"]["observedGeneration"].is_i64() && object["status"]["expectedPods"] == 0;
    let is_leaving = object["metadata"]["deletionTimestamp"].is_string();
    if kind.singular != "poddisruptionbudget" || !is_counted || is_leaving {
        return None;
    }
    let key = key_of(object);
    Some(format!("poddisruptionbudget/{} in {} matches no pod, and protects nothing", key.name, key.namespace))
}

fn is_suspect(kind: &Kind, object: &Value, ready: &BTreeSet<Key>, now: Time) -> bool {
    let is_leaving = object["metadata"]["deletionTimestamp"].is_string();
    is_leaving
        || effects::has_none(kind)
        || conditions::bad(kind, object).next().is_some()
        || does_not_get_on(kind, object, ready, now)
}

/// Has it less than its spec wants?
fn does_not_get_on(kind: &Kind, object: &Value, ready: &BTreeSet<Key>, now: Time) -> bool {
    let number = |pointer: &str| object.pointer(pointer).and_then(Value::as_i64).unwrap_or(0);
    let is_true = |name: &str| condition(object, name).is_some_and(|it| it["status"] == "True");
    let wanted = object["spec"]["replicas"].as_i64().unwrap_or(1);
    match &*kind.singular {
        "pod" => match text(object, "/status/phase") {
            "Succeeded" => false,
            "Running" => !is_true("Ready"),
            _ => true,
        },
        "deployment" => {
            let late = condition(object, "Progressing").is_some_and(|it| it["status"] == "False");
            late || number("/status/availableReplicas") < wanted || number("/status/updatedReplicas") < wanted
        }
        "statefulset" | "replicaset" | "replicationcontroller" => number("/status/readyReplicas") < wanted,
        "daemonset" => {
            selectors::is_nowhere(object) || number("/status/numberReady") < number("/status/desiredNumberScheduled")
        }
        "job" => {
            is_true("Failed")
                || (!is_true("Complete")
                    && (number("/status/failed") > 0 || number("/status/ready") < number("/status/active").max(1))
                    && object["spec"]["suspend"] != true)
        }
        "podgroup" => object["spec"]["schedulingPolicy"]["gang"].is_object() && !is_true("PodGroupInitiallyScheduled"),
        "cronjob" => jobs::missed_at(now, object).is_some(),
        // Who serves it may be there or not: that is read from more than the object itself.
        "ingress"
        | "mutatingadmissionpolicy"
        | "mutatingadmissionpolicybinding"
        | "mutatingwebhookconfiguration"
        | "validatingadmissionpolicy"
        | "validatingadmissionpolicybinding"
        | "validatingwebhookconfiguration" => true,
        "resourceclaim" => !object["status"]["allocation"].is_object(),
        "customresourcedefinition" => definitions::serves_nothing(object),
        "resourcequota" => definitions::counts_others(object),
        "persistentvolumeclaim" => text(object, "/status/phase") != "Bound" || claims::is_unlike_asked(object),
        "node" => !is_true("Ready") || object["spec"]["unschedulable"] == true,
        // Who denied one has done what was to be done.
        "certificatesigningrequest" => text(object, "/status/certificate").is_empty() && !is_true("Denied"),
        "service" => is_service_suspect(object, ready),
        _ => false,
    }
}

fn is_service_suspect(service: &Value, ready: &BTreeSet<Key>) -> bool {
    let is_pending =
        service["spec"]["type"] == "LoadBalancer" && items(service, "/status/loadBalancer/ingress").is_empty();
    let has_selector = service["spec"]["selector"].as_object().is_some_and(|it| !it.is_empty());
    let is_name = service["spec"]["type"] == "ExternalName";
    is_pending || (has_selector && !is_name && !ready.contains(&key_of(service)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_of_the_lists_is_one() {
        for kind in NAMESPACED.iter().chain(&CLUSTER).chain(&NOT_LOOKED_AT) {
            assert_eq!(corten_kinds::by_name(kind).map(|it| &*it.singular), Some(*kind));
        }
    }
}
