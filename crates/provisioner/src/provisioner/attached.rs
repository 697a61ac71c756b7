//! Whether volumes are attached where their VolumeAttachments say so, as drivers list it: asked at times, and a driver that says otherwise is
//! asked to attach, or detach, once more. What upstream's external-attacher does for drivers with `LIST_VOLUMES_PUBLISHED_NODES`.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use corten_api::storage::v1::VolumeAttachment;
use corten_meta::Time;

use super::{Provisioner, Subject};
use crate::{
    attaching::{self, NODE_ID},
    words::{AttachedTo, DriverFacts, Effect},
};

/// As external-attacher's `--reconcile-sync`.
const PERIOD: Duration = Duration::from_secs(60);

#[derive(Debug, Default)]
pub(super) struct Attached {
    pub(super) next: Option<Time>,
    /// Of drivers that have not answered yet: attachments that they were asked about, each with its version. These are not asked again.
    asked: BTreeMap<String, BTreeMap<String, Option<String>>>,
    /// Attachments of which their drivers say otherwise.
    doubted: BTreeSet<String>,
}

impl Attached {
    pub(super) fn take_doubt(&mut self, attachment: &str) -> bool {
        self.doubted.remove(attachment)
    }
}

impl Provisioner {
    /// Asks each driver that this node acts for, where it is time.
    pub(super) fn ask_attached(&mut self, now: Time, effects: &mut Vec<Effect>) {
        if !self.drivers.values().any(|it| it.tells_attached) {
            self.attached.next = None;
            return;
        }
        if self.attached.next.is_some_and(|it| it > now) {
            return;
        }
        self.attached.next = Some(now.after(PERIOD));
        let mut asked = std::mem::take(&mut self.attached.asked);
        for driver in self.drivers.values().filter(|it| it.tells_attached && self.leads(it)) {
            let all: Vec<_> = self.attachments_of(driver).collect();
            if !all.is_empty() && !asked.contains_key(&driver.name) {
                let versions = all.iter().filter_map(|it| Some((it.0.metadata.name.clone()?, version(it.0)))).collect();
                asked.insert(driver.name.clone(), versions);
                let places = all.into_iter().map(|it| it.1).collect();
                effects.push(Effect::AskAttached { driver: driver.name.clone(), places });
            }
        }
        self.attached.asked = asked;
    }

    /// What has changed since the driver was asked is looked at the next time.
    pub(super) fn attached_told(&mut self, name: &str, told: Option<&AttachedTo>) -> Vec<Subject> {
        let asked = self.attached.asked.remove(name).unwrap_or_default();
        let (Some(told), Some(driver)) = (told, self.drivers.get(name)) else { return Vec::new() };
        let is_doubted = |(attachment, place): &(&VolumeAttachment, (String, String))| {
            let name = attachment.metadata.name.as_deref().unwrap_or_default();
            let is_same = asked.get(name).is_some_and(|it| *it == version(attachment));
            let is_in_flight = self.work.get(&Subject::Attachment(name.to_owned())).is_some_and(|it| it.in_flight);
            is_same && !is_in_flight && told.contains(place) != attaching::is_attached(attachment)
        };
        let doubted: Vec<String> =
            self.attachments_of(driver).filter(is_doubted).filter_map(|it| it.0.metadata.name.clone()).collect();
        let subjects: Vec<Subject> = doubted.iter().cloned().map(Subject::Attachment).collect();
        subjects.iter().for_each(|it| self.forget(it));
        self.attached.doubted.extend(doubted);
        subjects
    }

    /// Those that the driver has been asked for at least once, with the volume's handle and the node's name.
    fn attachments_of<'p>(
        &'p self,
        driver: &'p DriverFacts,
    ) -> impl Iterator<Item = (&'p VolumeAttachment, (String, String))> {
        self.attachments.values().filter(|it| it.spec.attacher == driver.name).filter_map(|it| {
            let csi = self.volume_of(it)?.spec.as_ref()?.csi.as_ref().filter(|csi| csi.driver == it.spec.attacher)?;
            let node_id = it.metadata.annotations.as_ref()?.get(NODE_ID)?;
            Some((&**it, (csi.volume_handle.clone(), node_id.clone())))
        })
    }
}

fn version(attachment: &VolumeAttachment) -> Option<String> {
    attachment.metadata.resource_version.clone()
}
