//! What is to be done about a claim: a volume made, grown or changed.

use corten_api::{
    core::v1::{PersistentVolume, PersistentVolumeClaim},
    storage::v1::StorageClass,
    volumes::CONTROLLER_NODES,
};
use corten_meta::{Key, Time};
use corten_reconcile::EventType::{Normal, Warning};

use super::{ELECTED_WITHIN, Provisioner, Subject, about_claim, not_provisioned};
use crate::{
    acting::{self, Actor},
    cloning, expansion, leases,
    modification::{self, ModifyDecision},
    names, places, provision,
    sources::NoSource,
    words::{Config, DriverFacts, Effect, Job, Request, Topology},
};

/// Of nodes, in a message.
const NAMES_MAX: usize = 5;

impl Provisioner {
    pub(super) fn job_of_claim(&mut self, key: &Key, now: Time, effects: &mut Vec<Effect>) -> Option<Job> {
        let claim = self.claims.get(key)?.clone();
        let spec = claim.spec.as_ref()?;
        if let Some(released) =
            cloning::release(key, &self.claims, self.abandoned_claims()).filter(|_| self.may_release(&claim))
        {
            return Some(Job::WriteFinalizers(released));
        }
        if let Some(volume) = spec.volume_name.as_deref().filter(|it| !it.is_empty()) {
            let volume = self.volumes.get(volume)?;
            let driver = self.drivers.get(&volume.spec.as_ref()?.csi.as_ref()?.driver)?;
            if !self.acting().is_of_volume(volume, driver) {
                return None;
            }
            let refused = self.refused_growths.get(key).copied();
            let growth = expansion::job(&claim, volume, driver, refused, now);
            if let Some(Job::Expand(it)) = growth.as_ref() {
                let message = format!("External resizer is resizing volume {}", it.volume);
                self.tell(&it.driver, &about_claim(&claim), Normal, "Resizing", message, effects);
            }
            return growth.or_else(|| self.modification(key, &claim, volume, driver, now, effects));
        }
        let class = self.classes.get(spec.storage_class_name.as_deref()?)?.clone();
        let driver = self.drivers.get(&class.provisioner).filter(|it| it.provisions)?.clone();
        if !provision::is_wanted(&claim, &class) {
            return None;
        }
        // Made already: the binder has it from here.
        if self.volumes.contains_key(&names::volume_name(&claim)) {
            return None;
        }
        // It is to be told of all places.
        if self.waits_for_nodes(&driver) {
            return None;
        }
        let acting = self.acting();
        match acting.of_claim(&claim, self.place_of_source(&claim, &driver), &driver) {
            Ok(actor) if acting.is(&actor, &driver) => self.provision(key, &claim, &class, &driver, now, effects),
            // Who acts for the driver looks after those that nobody acts for.
            Ok(Actor::Place(place)) if self.leads(&driver) => {
                self.of_other_place(key, &claim, (&class, &driver), &place, now, effects)
            }
            Err(why) if self.leads(&driver) => {
                self.cannot_provision(key, &claim, (&class, &driver), &why, now, effects)
            }
            Ok(_) | Err(_) => None,
        }
    }

    /// Where things of the driver are is not known yet.
    pub(super) fn waits_for_nodes(&self, driver: &DriverFacts) -> bool {
        !driver.is_built_in() && !driver.topology.is_empty() && !self.knows_nodes
    }

    /// The claim's volume is another place's to make, where somebody acts there. Where nobody does, and the place is that of what it begins
    /// with, the driver is asked here: it may have one controller for all places, and says so where it has not.
    fn of_other_place(
        &mut self,
        key: &Key,
        claim: &PersistentVolumeClaim,
        (class, driver): (&StorageClass, &DriverFacts),
        place: &Topology,
        now: Time,
        effects: &mut Vec<Effect>,
    ) -> Option<Job> {
        let (lease, subject) = (leases::of_place(&driver.name, place), Subject::Claim(key.clone()));
        if self.vacant.remove(key).as_ref() == Some(&lease) {
            let Some(node) = provision::annotation(claim, provision::SELECTED_NODE) else {
                return self.provision(key, claim, class, driver, now, effects);
            };
            let (name, place, named) = (&driver.name, acting::shown(place), self.unknown_nodes(&driver.name));
            let why = format!(
                "no node acts for {name} in the place of node {node} ({place}): of joined nodes those may that \
                 csidriver/{name} names in its annotation {CONTROLLER_NODES}{named}"
            );
            return self.cannot_provision(key, claim, (class, driver), &why, now, effects);
        }
        if self.work.get(&subject).is_none_or(|it| it.failures == 0) {
            self.failed(&subject, now);
            self.put_off(&subject, ELECTED_WITHIN, now);
            return None;
        }
        Some(Job::LookAtLease { claim: key.clone(), lease, now })
    }

    /// Of the nodes that may act for the driver, those that are not there.
    fn unknown_nodes(&self, driver: &str) -> String {
        let named = self.csi_drivers.get(driver).map_or("", |it| &it.controller_nodes);
        let names = named.split(',').map(str::trim).filter(|it| !it.is_empty() && *it != "*");
        let unknown: Vec<&str> = names.filter(|it| !self.nodes.contains_key(*it)).take(NAMES_MAX).collect();
        if unknown.is_empty() { String::new() } else { format!("; there is no node {}", unknown.join(", ")) }
    }

    /// Says why, and tries again after a pause.
    fn cannot_provision(
        &mut self,
        key: &Key,
        claim: &PersistentVolumeClaim,
        (class, driver): (&StorageClass, &DriverFacts),
        why: &str,
        now: Time,
        effects: &mut Vec<Effect>,
    ) -> Option<Job> {
        let message = not_provisioned(class, why);
        self.tell(&driver.name, &about_claim(claim), Warning, "ProvisioningFailed", message, effects);
        self.failed(&Subject::Claim(key.clone()), now);
        None
    }

    /// Is this node the one that acts for the driver of the claim? That is its volume's, or, where that is gone, its provisioner.
    fn may_release(&self, claim: &PersistentVolumeClaim) -> bool {
        let acting = |name: &str| self.drivers.get(name).filter(|it| it.provisions && !it.is_built_in());
        let volume = claim.spec.as_ref().and_then(|it| self.volumes.get(it.volume_name.as_deref()?));
        match volume.and_then(|it| Some((it, it.spec.as_ref()?.csi.as_ref()?))) {
            Some((volume, csi)) => acting(&csi.driver).is_some_and(|it| self.acting().is_of_volume(volume, it)),
            None => provision::provisioner_of(claim).and_then(acting).is_some_and(|it| self.leads(it)),
        }
    }

    fn provision(
        &mut self,
        key: &Key,
        claim: &PersistentVolumeClaim,
        class: &StorageClass,
        driver: &DriverFacts,
        now: Time,
        effects: &mut Vec<Effect>,
    ) -> Option<Job> {
        let is_selected = provision::annotation(claim, provision::SELECTED_NODE).is_some();
        let request = self.request(claim, class, driver);
        match &request {
            // All nodes see it, and all would make it: as external-provisioner where it runs on each (`becomeOwner`).
            Ok(_) if driver.is_built_in() && !is_selected => {
                let version = claim.metadata.resource_version.clone().unwrap_or_default();
                return Some(Job::Select { claim: key.clone(), version, node: self.config.node_name.clone() });
            }
            // It is somebody else's to make.
            Err(NoSource::OfPopulator) => {}
            Err(NoSource::Elsewhere { .. }) if !is_selected => {}
            Ok(_) | Err(_) => {
                let message =
                    format!("External provisioner is provisioning volume for claim \"{}/{}\"", key.namespace, key.name);
                self.tell(&driver.name, &about_claim(claim), Normal, "Provisioning", message, effects);
            }
        }
        match request {
            Ok(request) => {
                let others = self.handles(driver, &request.name);
                let identity = (!driver.is_built_in()).then(|| self.identity(driver));
                let request = Box::new(self.with_metadata(Request { identity, ..request }, claim));
                let source = (!driver.is_built_in()).then(|| cloning::hold(claim, &self.claims)).flatten();
                let (claim, class) = (Box::new(claim.clone()), Box::new(class.clone()));
                Some(Job::Provision { claim, class, request, others, source })
            }
            Err(why) => self.without_source(key, claim, (class, driver), why, now, effects),
        }
    }

    fn request(
        &self,
        claim: &PersistentVolumeClaim,
        class: &StorageClass,
        driver: &DriverFacts,
    ) -> Result<Request, NoSource> {
        let source = self.source(claim, driver)?;
        // What a sidecar does for the driver is not its lack.
        let own = self.registered.get(&driver.name).unwrap_or(driver);
        let attributes = provision::attributes(claim, own, &self.attributes_classes);
        let places = places::of(claim, class, driver, self.acting())?;
        Ok(provision::request(claim, class, driver, places, source, attributes?)?)
    }

    /// As external-provisioner where it runs on each node.
    fn identity(&self, driver: &DriverFacts) -> String {
        let Config { node_name, identity } = &self.config;
        format!("{identity}-{}-{node_name}", driver.name)
    }

    /// A change of the volume's attributes that is to be made, or goes on.
    fn modification(
        &self,
        key: &Key,
        claim: &PersistentVolumeClaim,
        volume: &PersistentVolume,
        driver: &DriverFacts,
        now: Time,
        effects: &mut Vec<Effect>,
    ) -> Option<Job> {
        let target = claim.status.as_ref().and_then(|it| it.modify_volume_status.as_ref());
        let target = target.and_then(|it| it.target_volume_attributes_class_name.as_ref());
        let is_over = target.is_some() && self.refused_changes.get(key) == target;
        match modification::wanted(claim, volume, driver, &self.attributes_classes, is_over, now)? {
            ModifyDecision::Job(job, told) => {
                if let Some(message) = told {
                    self.tell(&driver.name, &about_claim(claim), Normal, "VolumeModify", message, effects);
                }
                Some(*job)
            }
            ModifyDecision::Missing(why, write) => {
                // Told once: what is missing is waited for.
                let write = write?;
                self.tell(&driver.name, &about_claim(claim), Warning, "VolumeModifyFailed", why, effects);
                Some(*write)
            }
        }
    }
}
