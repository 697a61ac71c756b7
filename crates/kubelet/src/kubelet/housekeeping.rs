//! The node as a whole: what it is told of itself, and what it does without being told.

use std::collections::BTreeSet;

use corten_meta::Time;

use crate::{Effect, Kubelet, NodeNews, PodRef, pod::image_state::ImageState};

impl Kubelet {
    /// Takes in what the machine measured or found; names the pods that must be looked at.
    pub(crate) fn node_told(&mut self, news: NodeNews, now: Time, effects: &mut Vec<Effect>) -> Vec<String> {
        match news {
            NodeNews::Signals(signals) => {
                self.signals_seen(signals, now, effects);
                self.undecided()
            }
            NodeNews::PodsMeasured(result) => self.pods_measured(result, now, effects),
            NodeNews::Images(Ok(images)) => {
                let named = self.named_images();
                if self.garbage.listed(images, &named, &self.pressure, &self.config, now, effects) {
                    self.reclaimed(now, effects);
                }
                Vec::new()
            }
            NodeNews::Images(Err(_)) => {
                self.garbage.not_listed();
                self.reclaimed(now, effects);
                Vec::new()
            }
            NodeNews::ImagesRemoved { removed, failures } => {
                self.garbage.removed(&removed, &failures, &self.config, effects);
                self.reclaimed(now, effects);
                Vec::new()
            }
            NodeNews::Remains(found) => self.remains_found(found, now),
            NodeNews::Shutdown { is_imminent } => self.shutdown_told(is_imminent, now),
            NodeNews::Devices(news) => self.devices_told(*news),
            NodeNews::VolumesLeft(volumes) => {
                self.volumes_left = volumes;
                Vec::new()
            }
            NodeNews::ManagerStatesNoted => self.managers.noted(),
            NodeNews::StopsNoted => {
                self.stops_noted();
                Vec::new()
            }
        }
    }

    /// What is due, and when to come back.
    pub(crate) fn tend_node(&mut self, now: Time, effects: &mut Vec<Effect>) -> Option<Time> {
        self.note_cleanup(effects);
        let (touched, shutdown_wake) = self.drive_shutdown(now, effects);
        for uid in touched {
            self.sync_pod(&uid, now, effects);
        }
        let pressed = self.pressure.conditions(&self.config.eviction, now);
        self.node.set_state(pressed, self.shutdown.is_some());
        // Before it is known what is left of the disk there is nothing to go by.
        let can_collect = self.runtime_is_known && self.pods_are_known && self.pressure.seen.is_some();
        let garbage_wake = can_collect.then(|| self.garbage.tend(now, effects));
        shutdown_wake.into_iter().chain(garbage_wake).min()
    }

    /// Images that containers are about to be made of, or to mount.
    fn named_images(&self) -> BTreeSet<String> {
        let records = self.pods.values().flat_map(|it| it.container_records.values().chain(it.image_volumes.values()));
        let present = records.filter_map(|it| match &it.image {
            ImageState::Present(image) => Some(image.image_ref.clone()),
            _ => None,
        });
        present.collect()
    }

    /// Folders of nobody: a pod of that name is made known, as one that the API does not have, and ends as such.
    fn remains_found(&mut self, found: Vec<PodRef>, now: Time) -> Vec<String> {
        if !self.runtime_is_known || !self.pods_are_known || !self.manifests.are_known {
            return Vec::new();
        }
        let unknown: Vec<PodRef> = found.into_iter().filter(|it| !self.pods.contains_key(&it.uid)).collect();
        unknown.into_iter().map(|who| self.adopt_stranger(who, now)).collect()
    }
}
