//! What of claims, volumes, Pods and nodes decides whether something is to be moved.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    task::{Context, Poll},
};

use corten_api::{
    core::v1::{PersistentVolume, PersistentVolumeClaim, Pod},
    resources::{CSI_NODES, PERSISTENT_VOLUME_CLAIMS, PERSISTENT_VOLUMES, PODS},
    storage::v1::CSINode,
};
use corten_client::{Client, Identity, Informer, InformerEvent, InformerParams, decode, decode_projection};
use corten_meta::{Key, ObjectMeta, Resource};
use corten_provisioner::moves;
use parking_lot::Mutex;
use serde::Deserialize;

use super::{About, Subject};

pub(super) struct MoveInformers {
    claims: Informer<ObservedClaim>,
    volumes: Informer<ObservedVolume>,
    /// Watched from the first wish on, or what is left of a move: nearly no cluster ever has one, and all have many Pods.
    pods: Option<Informer<BTreeSet<Key>>>,
    viewer: Client,
    nodes: Informer<(String, bool)>,
    synced: [bool; 4],
    /// Those with a wish.
    wished: BTreeMap<Key, ObservedClaim>,
    known: BTreeMap<String, ObservedVolume>,
    pub(super) used: Used,
    with_driver: BTreeSet<String>,
}

/// Of each Pod on a node that has not ended its claims.
pub(super) type Used = Arc<Mutex<BTreeMap<Key, BTreeSet<Key>>>>;

/// The Pod that uses a claim.
pub(super) fn pod_of(used: &Used, claim: &Key) -> Option<String> {
    used.lock().iter().find(|it| it.1.contains(claim)).map(|it| it.0.name.clone())
}

#[derive(Clone, Debug, Default)]
struct ObservedClaim {
    is_wished: bool,
    volume: String,
}

#[derive(Clone, Debug, Default)]
struct ObservedVolume {
    is_marked: bool,
    claim: Option<Key>,
}

#[derive(Deserialize)]
struct OnlyMeta {
    metadata: ObjectMeta,
}

fn informer<T: 'static>(
    client: &Client,
    resource: Resource,
    read: impl Fn(&[u8], &ObjectMeta) -> Result<T, corten_client::Error> + Send + Sync + 'static,
) -> Informer<T> {
    Informer::decoding(client.clone(), InformerParams::all(resource), move |bytes| {
        let meta = decode_projection::<OnlyMeta>(&bytes)?.metadata;
        Ok((Identity::of(&meta), read(&bytes, &meta)?))
    })
}

fn observed_claim(bytes: &[u8], _: &ObjectMeta) -> Result<ObservedClaim, corten_client::Error> {
    let claim: PersistentVolumeClaim = decode(bytes)?;
    let is_wished = moves::wish(&claim).is_some();
    Ok(ObservedClaim { is_wished, volume: claim.spec.and_then(|it| it.volume_name).unwrap_or_default() })
}

fn observed_volume(bytes: &[u8], _: &ObjectMeta) -> Result<ObservedVolume, corten_client::Error> {
    let volume: PersistentVolume = decode(bytes)?;
    let is_marked = moves::is_marked(&volume);
    let claim = volume.spec.and_then(|it| it.claim_ref);
    Ok(ObservedVolume {
        is_marked,
        claim: claim.map(|it| Key::new(it.namespace.unwrap_or_default(), it.name.unwrap_or_default())),
    })
}

/// The claims of a Pod that is on a node and has not ended.
fn claims_of(bytes: &[u8], meta: &ObjectMeta) -> Result<BTreeSet<Key>, corten_client::Error> {
    let pod: Pod = decode(bytes)?;
    let phase = pod.status.and_then(|it| it.phase).unwrap_or_default();
    let spec = pod.spec.unwrap_or_default();
    if matches!(&*phase, "Succeeded" | "Failed") || spec.node_name.unwrap_or_default().is_empty() {
        return Ok(BTreeSet::new());
    }
    let claim = |it: corten_api::core::v1::Volume| match (it.persistent_volume_claim, it.ephemeral) {
        (Some(claim), _) => Some(claim.claim_name),
        (None, Some(_)) => Some(format!("{}-{}", meta.name, it.name)),
        (None, None) => None,
    };
    let claims = spec.volumes.into_iter().flatten().filter_map(claim);
    Ok(claims.map(|it| Key::new(meta.namespace.as_str(), it)).collect())
}

impl MoveInformers {
    pub(super) fn new(client: &Client, viewer: &Client, driver: &'static str) -> Self {
        Self {
            claims: informer(client, PERSISTENT_VOLUME_CLAIMS, observed_claim),
            volumes: informer(client, PERSISTENT_VOLUMES, observed_volume),
            pods: None,
            viewer: viewer.clone(),
            nodes: informer(viewer, CSI_NODES, move |bytes, meta| {
                let node: CSINode = decode(bytes)?;
                Ok((meta.name.clone(), node.spec.drivers.iter().any(|it| it.name == driver)))
            }),
            synced: [false; 4],
            wished: BTreeMap::new(),
            known: BTreeMap::new(),
            used: Used::default(),
            with_driver: BTreeSet::new(),
        }
    }

    /// Before that what is not known may be there.
    pub(super) fn is_whole(&self) -> bool {
        self.synced == [true; 4]
    }

    /// What is to be looked at.
    pub(super) fn poll(&mut self, context: &mut Context<'_>) -> BTreeSet<Subject> {
        let was_whole = self.is_whole();
        let mut subjects = self.poll_objects(context);
        let mut is_all = false;
        while let Poll::Ready(event) = self.nodes.poll_event(context) {
            match event {
                InformerEvent::Applied((node, true), _) => is_all |= self.with_driver.insert(node),
                InformerEvent::Applied((node, false), _) => is_all |= self.with_driver.remove(&node),
                InformerEvent::Deleted(meta) => is_all |= self.with_driver.remove(&meta.name),
                InformerEvent::Synced(_) => self.synced[3] = true,
            }
        }
        if is_all || was_whole != self.is_whole() {
            subjects.extend(self.wished.iter().map(|(key, it)| subject_of(key, it)));
            let marked = self.known.iter().filter(|it| it.1.is_marked);
            subjects.extend(marked.map(|it| Subject::Volume(it.0.clone())));
        }
        subjects
    }

    fn poll_objects(&mut self, context: &mut Context<'_>) -> BTreeSet<Subject> {
        let mut subjects = BTreeSet::new();
        while let Poll::Ready(event) = self.claims.poll_event(context) {
            match event {
                InformerEvent::Applied(claim, identity) if claim.is_wished => {
                    self.watch_pods();
                    subjects.insert(subject_of(&identity.key, &claim));
                    self.wished.insert(identity.key, claim);
                }
                InformerEvent::Applied(_, Identity { key, .. }) => subjects.extend(self.no_longer_wished(key)),
                InformerEvent::Deleted(meta) => subjects.extend(self.no_longer_wished(meta.key())),
                InformerEvent::Synced(_) => self.synced[0] = true,
            }
        }
        while let Poll::Ready(event) = self.volumes.poll_event(context) {
            match event {
                InformerEvent::Applied(volume, identity) => {
                    if volume.is_marked {
                        self.watch_pods();
                    }
                    let name = identity.key.name;
                    if volume.is_marked || self.wished.values().any(|it| it.volume == name) {
                        subjects.insert(Subject::Volume(name.clone()));
                    }
                    self.known.insert(name, volume);
                }
                InformerEvent::Deleted(meta) => drop(self.known.remove(&meta.name)),
                InformerEvent::Synced(_) => self.synced[1] = true,
            }
        }
        subjects.extend(self.poll_pods(context));
        subjects
    }

    fn watch_pods(&mut self) {
        self.pods.get_or_insert_with(|| informer(&self.viewer, PODS, claims_of));
    }

    fn poll_pods(&mut self, context: &mut Context<'_>) -> BTreeSet<Subject> {
        let mut subjects = BTreeSet::new();
        let Some(pods) = &mut self.pods else { return subjects };
        while let Poll::Ready(event) = pods.poll_event(context) {
            let changed = match event {
                InformerEvent::Applied(claims, identity) if !claims.is_empty() => {
                    self.used.lock().insert(identity.key, claims.clone());
                    claims
                }
                InformerEvent::Applied(_, Identity { key, .. }) => self.used.lock().remove(&key).unwrap_or_default(),
                InformerEvent::Deleted(meta) => self.used.lock().remove(&meta.key()).unwrap_or_default(),
                InformerEvent::Synced(_) => {
                    self.synced[2] = true;
                    BTreeSet::new()
                }
            };
            subjects.extend(changed.iter().filter_map(|it| Some(subject_of(it, self.wished.get(it)?))));
        }
        subjects
    }

    /// Of a claim without a wish only what is left of a move is of interest.
    fn no_longer_wished(&mut self, key: Key) -> BTreeSet<Subject> {
        let had = self.wished.remove(&key).map(|it| subject_of(&key, &it));
        let left = self.known.iter().filter(|it| it.1.is_marked && it.1.claim.as_ref() == Some(&key));
        left.map(|it| Subject::Volume(it.0.clone())).chain(had).collect()
    }

    pub(super) fn about(&self, subject: &Subject) -> About {
        let nodes = self.with_driver.clone();
        let name = match subject {
            Subject::Claim(key) => return About { claim: Some(key.clone()), nodes, ..About::default() },
            Subject::Volume(name) => name,
        };
        let claim = self.known.get(name).and_then(|it| it.claim.clone());
        let naming = self.wished.iter().filter(|it| it.1.volume == *name).map(|it| it.0);
        let strangers = naming.filter(|it| claim.as_ref() != Some(it)).cloned().collect();
        let pod = claim.as_ref().and_then(|it| pod_of(&self.used, it));
        About { claim, volume: Some(name.clone()), strangers, pod, nodes }
    }
}

fn subject_of(key: &Key, claim: &ObservedClaim) -> Subject {
    match claim.volume.is_empty() {
        true => Subject::Claim(key.clone()),
        false => Subject::Volume(claim.volume.clone()),
    }
}
