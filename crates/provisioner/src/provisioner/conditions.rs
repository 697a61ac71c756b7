//! Whether volumes are well, as the controllers of drivers say: asked at times, and told at the claims. What upstream's sidecar
//! csi-external-health-monitor-controller does.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use corten_api::core::v1::PersistentVolume;
use corten_meta::Time;
use corten_reconcile::EventType::{Normal, Warning};

use super::{Provisioner, about_claim, claim_of};
use crate::words::{DriverFacts, Effect};

/// As the sidecar's `--monitor-interval`.
const PERIOD: Duration = Duration::from_secs(60);

/// What is asked, and what was answered last.
#[derive(Debug, Default)]
pub(super) struct Conditions {
    pub(super) next: Option<Time>,
    /// Drivers that have not answered yet are not asked again.
    asked: BTreeSet<String>,
    /// PersistentVolumes that are not well.
    sick: BTreeSet<String>,
}

impl Provisioner {
    /// Asks each driver that this node acts for, where it is time.
    pub(super) fn ask_conditions(&mut self, now: Time, effects: &mut Vec<Effect>) {
        if !self.drivers.values().any(|it| it.tells_conditions) {
            self.conditions.next = None;
            return;
        }
        if self.conditions.next.is_some_and(|it| it > now) {
            return;
        }
        self.conditions.next = Some(now.after(PERIOD));
        for driver in self.drivers.values().filter(|it| it.tells_conditions) {
            let handles: BTreeSet<String> = self.claimed(driver).map(|it| it.0.to_owned()).collect();
            if !handles.is_empty() && self.conditions.asked.insert(driver.name.clone()) {
                effects.push(Effect::AskConditions { driver: driver.name.clone(), handles });
            }
        }
    }

    pub(super) fn conditions_told(
        &mut self,
        name: &str,
        told: Option<&BTreeMap<String, Option<String>>>,
        effects: &mut Vec<Effect>,
    ) {
        self.conditions.asked.remove(name);
        let (Some(told), Some(driver)) = (told, self.drivers.get(name)) else { return };
        let mut sick = std::mem::take(&mut self.conditions.sick);
        sick.retain(|it| self.volumes.contains_key(it));
        for (handle, volume) in self.claimed(driver) {
            let (Some(condition), Some(of)) = (told.get(handle), claim_of(volume)) else { continue };
            let Some(about) = self.claims.get(&of).map(|it| about_claim(it)) else { continue };
            let volume = volume.metadata.name.clone().unwrap_or_default();
            match condition {
                Some(why) => {
                    sick.insert(volume);
                    self.tell(name, &about, Warning, "VolumeConditionAbnormal", why.clone(), effects);
                }
                None if sick.remove(&volume) => {
                    let message = "The Volume returns to the healthy state".to_owned();
                    self.tell(name, &about, Normal, "VolumeConditionNormal", message, effects);
                }
                None => {}
            }
        }
        self.conditions.sick = sick;
    }

    /// The driver's volumes that are this node's to look after and that a claim has, with their handles.
    fn claimed<'p>(&'p self, driver: &'p DriverFacts) -> impl Iterator<Item = (&'p str, &'p PersistentVolume)> {
        let is_bound = |it: &PersistentVolume| {
            it.status.as_ref().and_then(|it| it.phase.as_deref()) == Some("Bound") && claim_of(it).is_some()
        };
        self.volumes.values().filter_map(move |volume| {
            let csi = volume.spec.as_ref()?.csi.as_ref().filter(|it| it.driver == driver.name)?;
            (is_bound(volume) && self.acting().is_of_volume(volume, driver))
                .then_some((csi.volume_handle.as_str(), &**volume))
        })
    }
}
