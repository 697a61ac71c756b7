//! Makes the claims of pods that have generic ephemeral volumes (KEP-1698). They are the pod's, and go with it.

use corten_api::resources;
use corten_meta::{Key, ObjectMeta, Time};
use corten_reconcile::{Actor, Controller, Effect, EventType, Plan, Projection, Verb, View, Wait, Wake, Watch, Write};
use serde_json::{Value, json};

use super::projections::Claim;
use crate::{
    ownership::controller_reference,
    projections::{Pod, reference},
};

pub struct EphemeralVolumes;

impl Controller for EphemeralVolumes {
    fn name(&self) -> &'static str {
        "ephemeral-volume"
    }

    fn component(&self) -> String {
        "ephemeral_volume".into()
    }

    fn watches(&self) -> Vec<Watch> {
        vec![Watch::new::<Pod>(Wake::With(pod_with_own_claims)), Watch::new::<Claim>(Wake::With(claim_changed))]
    }

    fn writes(&self) -> &'static [Write] {
        const { &[Write { verb: Verb::Create, resource: resources::PERSISTENT_VOLUME_CLAIMS, fields: &[] }] }
    }

    fn reconcile(&self, view: &View, key: &Key, _now: Time) -> Plan {
        let mut plan = Plan::default();
        let pod = view.get::<Pod>(key).filter(|it| !it.metadata.is_deleting() && !it.is_finished());
        let Some(pod) = pod else { return plan };
        plan.effects.extend(failed(view, pod, &mut plan.waits));
        for (name, template) in pod.own_claims() {
            match view.get::<Claim>(&Key::new(&*key.namespace, &*name)) {
                None => plan.effects.push(create(pod, &name, template)),
                Some(claim) if is_of(claim, pod) => {}
                // Its data is somebody's (`VolumeIsForPod`): it is neither used nor replaced.
                Some(_) => {
                    let meta = &pod.metadata;
                    let what =
                        format!("{}/{name} was not created for pod {}/{}", meta.namespace, meta.namespace, meta.name);
                    plan.effects.push(event(pod, &name, &format!("PVC {what} (pod is not owner)")));
                    let message = format!("persistentvolumeclaim {name:?} was not created for the pod");
                    plan.waits
                        .push(Wait::new("ClaimOfAnother", message, Actor::Author).on("PersistentVolumeClaim", &name));
                }
            }
        }
        plan
    }
}

/// Says which claim the server did not take when it was last to be made.
fn failed(view: &View, pod: &Pod, waits: &mut Vec<Wait>) -> Option<Effect> {
    let failure = view.failure(&pod.metadata.key())?;
    let Effect::Create { object, .. } = &failure.effect else { return None };
    let name = object["metadata"]["name"].as_str().unwrap_or_default();
    let message = format!("create PVC {name}: {}", failure.message);
    waits.push(Wait::new("FailedCreate", message.clone(), Actor::Operator));
    Some(event(pod, name, &message))
}

/// In the words of `syncHandler`.
fn event(pod: &Pod, claim: &str, why: &str) -> Effect {
    let volume = claim.strip_prefix(&*format!("{}-", pod.metadata.name)).unwrap_or(claim);
    let (event_type, message) = (EventType::Warning, format!("ephemeral volume {volume}: {why}"));
    Effect::Event { about: reference(pod), event_type, reason: "FailedBinding", message }
}

fn pod_with_own_claims(view: &View, pod: &ObjectMeta) -> Vec<Key> {
    Pod::wakes(view, pod, |it| it.own_claims().next().is_some())
}

fn is_of(claim: &Claim, pod: &Pod) -> bool {
    claim.metadata.controller().is_some_and(|it| it.uid == pod.metadata.uid)
}

fn create(pod: &Pod, name: &str, template: &Value) -> Effect {
    let owner = controller_reference::<Pod>(&pod.metadata);
    let mut metadata = json!({ "name": name, "namespace": pod.metadata.namespace, "ownerReferences": [owner] });
    for field in ["labels", "annotations"] {
        if template["metadata"][field].is_object() {
            metadata[field] = template["metadata"][field].clone();
        }
    }
    let object = json!({
        "apiVersion": Claim::RESOURCE.api_version(),
        "kind": Claim::RESOURCE.kind,
        "metadata": metadata,
        "spec": template["spec"],
    });
    Effect::Create { resource: Claim::RESOURCE, object }
}

/// The pod that it was made for; of one that is nobody's and in the way, the pods that would have its name.
fn claim_changed(view: &View, claim: &ObjectMeta) -> Vec<Key> {
    if let Some(owner) = claim.controller() {
        return Vec::from_iter((owner.kind == "Pod").then(|| Key::new(&*claim.namespace, &*owner.name)));
    }
    let names = claim.name.match_indices('-').map(|(at, _)| Key::new(&*claim.namespace, &claim.name[..at]));
    names.filter(|it| view.get::<Pod>(it).is_some_and(|it| it.own_claims().next().is_some())).collect()
}
