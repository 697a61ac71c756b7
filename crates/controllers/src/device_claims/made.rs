//! Makes a pod's claims from their templates, and tells the pod their names.

use corten_api::resources;
use corten_meta::{Key, ObjectMeta, Time};
use corten_reconcile::{Actor, Controller, Effect, EventType, Plan, Projection, Verb, View, Wait, Wake, Watch, Write};
use serde_json::{Value, json};

use super::projections::{Claim, POD_CLAIM, Template};
use crate::{
    names,
    ownership::controller_reference,
    projections::{Pod, PodClaimStatus, reference},
};

pub struct DeviceClaims;

impl Controller for DeviceClaims {
    fn name(&self) -> &'static str {
        "resource-claim"
    }

    fn component(&self) -> String {
        "resource_claim".into()
    }

    fn watches(&self) -> Vec<Watch> {
        vec![
            Watch::new::<Pod>(Wake::With(pod_with_claims)),
            Watch::new::<Claim>(Wake::With(owner)),
            Watch::new::<Template>(Wake::With(pods_of_template)),
        ]
    }

    fn writes(&self) -> &'static [Write] {
        const {
            &[
                Write { verb: Verb::Create, resource: resources::RESOURCE_CLAIMS, fields: &[] },
                Write { verb: Verb::Patch, resource: resources::PODS, fields: &["status.resourceClaimStatuses"] },
            ]
        }
    }

    fn reconcile(&self, view: &View, key: &Key, now: Time) -> Plan {
        let mut plan = Plan::default();
        let Some(pod) = view.get::<Pod>(key).filter(|it| it.is_active()) else { return plan };
        let mut told: Vec<Value> = Vec::new();
        for wanted in &pod.spec.resource_claims {
            let Some(template) = &wanted.resource_claim_template_name else { continue };
            let before = pod.status.resource_claim_statuses.iter().find(|it| it.name == wanted.name);
            if before.is_some_and(|it| it.resource_claim_name.is_none()) {
                told.push(json!({ "name": wanted.name }));
                continue;
            }
            match made_for(view, pod, &wanted.name) {
                Some(claim) => told.push(json!({ "name": wanted.name, "resourceClaimName": claim.metadata.name })),
                None => match view.get::<Template>(&Key::new(&*key.namespace, &**template)) {
                    Some(template) => plan.effects.push(create(view, pod, &wanted.name, template, now)),
                    None => missing(pod, &wanted.name, template, &mut plan),
                },
            }
        }
        let known = |it: &PodClaimStatus| match &it.resource_claim_name {
            Some(name) => json!({ "name": it.name, "resourceClaimName": name }),
            None => json!({ "name": it.name }),
        };
        let before: Vec<Value> = pod.status.resource_claim_statuses.iter().map(known).collect();
        if told != before && !told.is_empty() {
            let patch = json!({ "metadata": { "uid": pod.metadata.uid }, "status": { "resourceClaimStatuses": told } });
            let resource = Pod::RESOURCE;
            plan.effects.push(Effect::Patch { resource, key: key.clone(), subresource: Some("status"), patch });
        }
        plan
    }
}

/// The claim that was made for this claim of the pod.
fn made_for<'a>(view: &'a View, pod: &'a Pod, name: &'a str) -> Option<&'a Claim> {
    let is_it = |it: &&Claim| {
        let is_own = it.metadata.controller().is_some_and(|it| it.uid == pod.metadata.uid);
        is_own && it.metadata.annotations.get(POD_CLAIM).is_some_and(|it| it == name)
    };
    view.in_namespace::<Claim>(&pod.metadata.namespace).find(is_it)
}

fn create(view: &View, pod: &Pod, claim: &str, template: &Template, now: Time) -> Effect {
    let prefix = format!("{}-{claim}-", pod.metadata.name);
    let is_free = |it: &String| view.get::<Claim>(&Key::new(&*pod.metadata.namespace, &**it)).is_none();
    let name = names::fresh(&prefix, &format!("{}{claim}", pod.metadata.uid), now).find(is_free);
    let of_template = &template.spec["metadata"];
    let mut annotations = of_template["annotations"].clone();
    if !annotations.is_object() {
        annotations = json!({});
    }
    annotations[POD_CLAIM] = json!(claim);
    let mut metadata = json!({
        "name": name,
        "generateName": prefix,
        "namespace": pod.metadata.namespace,
        "annotations": annotations,
        "ownerReferences": [controller_reference::<Pod>(&pod.metadata)],
    });
    if of_template["labels"].is_object() {
        metadata["labels"] = of_template["labels"].clone();
    }
    let object = json!({
        "apiVersion": Claim::RESOURCE.api_version(),
        "kind": Claim::RESOURCE.kind,
        "metadata": metadata,
        "spec": template.spec["spec"],
    });
    Effect::Create { resource: Claim::RESOURCE, object }
}

fn missing(pod: &Pod, claim: &str, template: &str, plan: &mut Plan) {
    let message = format!("PodResourceClaim {claim}: resourceclaimtemplate.resource.k8s.io {template:?} not found");
    let about = reference(pod);
    let (event_type, reason) = (EventType::Warning, "FailedResourceClaimCreation");
    plan.effects.push(Effect::Event { about, event_type, reason, message: message.clone() });
    plan.waits.push(Wait::new(reason, message, Actor::Author).on("ResourceClaimTemplate", template));
}

fn owner(_view: &View, claim: &ObjectMeta) -> Vec<Key> {
    let owner = claim.controller().filter(|it| it.kind == "Pod");
    owner.map(|it| Key::new(&*claim.namespace, &*it.name)).into_iter().collect()
}

/// Pods that may have waited for the template.
/// Only such a pod is of interest to what is about claims for devices.
pub(super) fn pod_with_claims(view: &View, pod: &ObjectMeta) -> Vec<Key> {
    Pod::wakes(view, pod, |it| !it.spec.resource_claims.is_empty())
}

fn pods_of_template(view: &View, template: &ObjectMeta) -> Vec<Key> {
    let names_it = |it: &&Pod| {
        let mut claims = it.spec.resource_claims.iter();
        claims.any(|it| it.resource_claim_template_name.as_deref() == Some(&*template.name))
    };
    view.in_namespace::<Pod>(&template.namespace).filter(names_it).map(|it| it.metadata.key()).collect()
}
