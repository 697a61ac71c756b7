//! What is to be done about attachments, of which a volume may have one alone.

use corten_api::{core::v1::PersistentVolume, storage::v1::VolumeAttachment, volumes::is_multi_attach_allowed};
use corten_meta::Time;

use super::{Provisioner, Subject};
use crate::{attaching, words::Job};

impl Provisioner {
    pub(super) fn job_of_attachment(&mut self, name: &str, now: Time) -> Option<Job> {
        let is_doubted = self.attached.take_doubt(name);
        let attachment = self.attachments.get(name)?;
        let driver = self.drivers.get(&attachment.spec.attacher).filter(|it| self.leads(it))?;
        let rival = if driver.attaches { self.rival(attachment) } else { None };
        attaching::job(attachment, self.volume_of(attachment), driver, (rival, is_doubted), now)
    }

    pub(super) fn volume_of(&self, attachment: &VolumeAttachment) -> Option<&PersistentVolume> {
        Some(&**self.volumes.get(attaching::volume_of(attachment)?)?)
    }

    /// The attachment to another node that goes before this one, of a volume that may be on one alone. Corten's own loop makes one;
    /// people and other programs make attachments, too.
    fn rival(&self, attachment: &VolumeAttachment) -> Option<&VolumeAttachment> {
        let spec = self.volume_of(attachment)?.spec.as_ref()?;
        if is_multi_attach_allowed(spec.access_modes.as_deref().unwrap_or_default()) {
            return None;
        }
        let handle = &spec.csi.as_ref()?.volume_handle;
        let is_same = |it: &VolumeAttachment| {
            let csi = self.volume_of(it).and_then(|it| it.spec.as_ref()?.csi.as_ref());
            it.spec.attacher == attachment.spec.attacher && csi.is_some_and(|it| it.volume_handle == *handle)
        };
        let own = self.precedence(attachment);
        let others = self.attachments.values().map(|it| &**it);
        let others = others.filter(|it| it.spec.node_name != attachment.spec.node_name && is_same(it));
        others.min_by_key(|it| self.precedence(it)).filter(|it| self.precedence(it) < own)
    }

    /// First what the driver has been asked for, then what is older.
    fn precedence<'a>(&self, attachment: &'a VolumeAttachment) -> (bool, impl Ord + 'a) {
        let meta = &attachment.metadata;
        let name = meta.name.as_deref().unwrap_or_default();
        let own = attaching::finalizer(&attachment.spec.attacher);
        let is_held = meta.finalizers.iter().flatten().any(|it| *it == own);
        let is_in_flight = self.work.get(&Subject::Attachment(name.to_owned())).is_some_and(|it| it.in_flight);
        (!is_held && !is_in_flight, (meta.creation_timestamp.as_ref().map(|it| it.0), name))
    }

    /// Its volume may be free to go, or to be attached elsewhere.
    pub(super) fn attachment_gone(&mut self, name: String) -> Vec<Subject> {
        let gone = self.attachments.remove(&name);
        self.forget(&Subject::Attachment(name));
        let Some(gone) = gone.as_deref() else { return Vec::new() };
        let Some(volume) = attaching::volume_of(gone) else { return Vec::new() };
        let waiting: Vec<Subject> =
            self.unattached_of_same_handle(gone).map(|it| Subject::Attachment(it.clone())).collect();
        waiting.iter().for_each(|it| self.forget(it));
        waiting.into_iter().chain([Subject::Volume(volume.to_owned())]).collect()
    }

    /// By name, those that the attachment may have kept waiting. Two PersistentVolumes may name one volume of the driver.
    fn unattached_of_same_handle<'a>(&'a self, gone: &'a VolumeAttachment) -> impl Iterator<Item = &'a String> {
        let handle = |it: &VolumeAttachment| {
            let csi = self.volume_of(it).and_then(|it| it.spec.as_ref()?.csi.as_ref());
            csi.map(|it| it.volume_handle.clone())
        };
        let (volume, handle_gone) = (attaching::volume_of(gone), handle(gone));
        let is_same = move |it: &VolumeAttachment| {
            attaching::volume_of(it) == volume || (handle_gone.is_some() && handle(it) == handle_gone)
        };
        let waits = move |it: &VolumeAttachment| {
            it.spec.attacher == gone.spec.attacher && !attaching::is_attached(it) && is_same(it)
        };
        self.attachments.iter().filter(move |it| waits(it.1)).map(|it| it.0)
    }
}
