//! What the API server does with what the kubelet asks of it.

use std::time::Duration;

use serde_json::{Value, json};

use super::{World, merge, show};
use crate::{ApiEffect, ApiFailure, Event, Secrets, Token, VolumeName, VolumeRead};

impl World {
    pub(super) fn api(&mut self, effect: ApiEffect) {
        match effect {
            ApiEffect::PatchPodStatus { pod, .. } if std::mem::take(&mut self.has_conflict) => {
                self.shown.push(format!("status {} refused: conflict", pod.key.name));
                self.step(Event::StatusPatched { pod, result: Err(ApiFailure::Conflict) });
            }
            ApiEffect::PatchPodStatus { pod, patch } => {
                let name = pod.key.name.clone();
                let mut stored = self.pods[&name].clone();
                assert_eq!(patch["metadata"]["resourceVersion"], stored["metadata"]["resourceVersion"]);
                merge(&mut stored["status"], &patch["status"]);
                self.version += 1;
                stored["metadata"]["resourceVersion"] = self.version.to_string().into();
                self.pods.insert(name, stored.clone());
                self.shown.push(show::status(&stored));
                let result = Ok(serde_json::from_value(stored).unwrap());
                self.step(Event::StatusPatched { pod, result });
            }
            ApiEffect::DeletePod { pod } => {
                self.shown.push(format!("delete {}", pod.key.name));
                self.pods.remove(&pod.key.name);
                self.step(Event::PodDeleted { pod: pod.clone(), result: Ok(()) });
                self.step(Event::PodGone(pod));
            }
            ApiEffect::CreateMirror { key, pod } => {
                self.n_made += 1;
                let mut pod = serde_json::to_value(pod).unwrap();
                pod["metadata"]["uid"] = format!("api-{}", self.n_made).into();
                pod["status"] = json!({"phase": "Pending"});
                let owner = &pod["metadata"]["ownerReferences"][0];
                self.shown.push(format!("mirror {} of {} {}", key.name, owner["kind"], owner["uid"]));
                self.version += 1;
                pod["metadata"]["resourceVersion"] = self.version.to_string().into();
                self.pods.insert(key.name.clone(), pod.clone());
                let result = Ok(serde_json::from_value(pod).unwrap());
                self.step(Event::MirrorCreated { key, result });
            }
            ApiEffect::Event { about, event_type, reason, message } => {
                let field = about.field_path.split('{').nth(1).map(|it| format!("/{}", it.trim_end_matches('}')));
                let (kind, name) = (event_type.as_str(), about.name);
                self.shown.push(format!("event {kind} {reason} {name}{}: {message}", field.unwrap_or_default()));
            }
            ApiEffect::Follow(source) => {
                self.shown.push(format!("follow {:?} {}", source.kind, source.key.name));
                let data = self.sources.get(&source).cloned();
                self.step(Event::Source { source, data });
            }
            ApiEffect::Unfollow(source) => self.shown.push(format!("unfollow {:?} {}", source.kind, source.key.name)),
            ApiEffect::RequestToken { pod, account, wish } => {
                self.shown.push(format!("token {} {account} {:?} {}s", pod.key.name, wish.audience, wish.seconds));
                let result = match self.refusal.as_deref() {
                    Some(reason) if reason != "old" => Err(ApiFailure::Other(reason.to_owned())),
                    is_old => {
                        self.n_made += 1;
                        let seconds = if is_old.is_some() { 0 } else { wish.seconds.unsigned_abs() };
                        let expires = self.now.after(Duration::from_secs(seconds));
                        Ok(Token { token: format!("t{}", self.n_made), expires })
                    }
                };
                self.step(Event::Token { pod, wish, result });
            }
            ApiEffect::RequestCertificate { pod, account, place, wish } => {
                self.request_certificate(pod, &account, place, &wish);
            }
            ApiEffect::ReadDeviceClaims { pod, claims } => {
                let one = |it: crate::ClaimName| {
                    let found = self.stored.get(&format!("deviceclaim/{}", it.claim));
                    let found = found.ok_or_else(|| format!("ResourceClaim {} not found", it.claim))?;
                    let results = serde_json::from_value(found.clone()).expect("devices");
                    let uid = format!("uid-{}", it.claim);
                    Ok(crate::ReservedClaim { in_pod: it.in_pod, claim: it.claim, uid, results, users: Vec::new() })
                };
                let result = claims.into_iter().map(one).collect();
                self.step(Event::DeviceClaimsRead { pod, result });
            }
            ApiEffect::ReadVolume { pod, volume, name } => {
                let result = self.read_volume(&name);
                self.step(Event::VolumeRead { pod, volume, result });
            }
            ApiEffect::CreateNode { node } => {
                self.shown.push(format!("create node {}", show::node(&node)));
                self.set_node(node);
            }
            ApiEffect::PatchNode { status, patch, .. } => {
                let mut node = self.node.clone().unwrap();
                merge(&mut node, &patch);
                self.shown.push(format!("patch node{} {}", if status { " status" } else { "" }, show::node(&node)));
                self.set_node(node);
            }
            ApiEffect::ReadNode { pod, .. } => {
                self.shown.push(format!("read node for {}", pod.key.name));
                let result = Ok(serde_json::from_value(self.node.clone().unwrap()).unwrap());
                self.step(Event::NodeRead { pod, result });
            }
            ApiEffect::RenewLease { patch, .. } => {
                self.shown.push(format!("lease {}", patch["spec"]["renewTime"].as_str().unwrap()));
                self.step(Event::LeaseRenewed(Ok(())));
            }
        }
    }

    fn read_volume(&self, name: &VolumeName) -> Result<Box<VolumeRead>, String> {
        fn of<T: serde::de::DeserializeOwned>(stored: Option<&Value>) -> Option<T> {
            stored.map(|it| serde_json::from_value(it.clone()).expect("an object of its kind"))
        }
        let stored = |kind: &str, name: &str| self.stored.get(&format!("{kind}/{name}"));
        let driver = |name: &str| of(stored("driver", name));
        // What a Secret says is stored as it is: `store secret/key {"token":"a"}`.
        let secrets = |name: Option<&str>| match name {
            Some(name) => {
                let found = stored("secret", name).ok_or_else(|| format!("failed to find the secret {name}"))?;
                Ok::<_, String>(Secrets(serde_json::from_value(found.clone()).expect("texts by name")))
            }
            None => Ok(Secrets::default()),
        };
        let VolumeName::Claim(claim) = name else {
            let VolumeName::Driver { name, secret } = name else { unreachable!("of two names") };
            let publish_secrets = secrets(secret.as_deref())?;
            return Ok(Box::new(VolumeRead { driver: driver(name), publish_secrets, ..VolumeRead::default() }));
        };
        let Some(claim) = stored("claim", claim) else {
            return Err(format!("failed to fetch PVC from API server: persistentvolumeclaims {claim:?} not found"));
        };
        let volume = claim["spec"]["volumeName"].as_str().unwrap_or_default();
        let found = stored("volume", volume);
        let named = found.and_then(|it| it["spec"]["csi"]["driver"].as_str()).unwrap_or_default();
        Ok(Box::new(VolumeRead {
            claim: of(Some(claim)),
            volume: of(found),
            driver: driver(named),
            attachment: of(stored("attachment", volume)),
            publish_secrets: secrets(found.and_then(|it| it["spec"]["csi"]["nodePublishSecretRef"]["name"].as_str()))?,
            ..VolumeRead::default()
        }))
    }
}
