//! For whom a driver is asked to make a volume or a snapshot, where its CSIDriver has it told: `--extra-create-metadata` of upstream's
//! external-provisioner and csi-snapshotter.

use corten_api::core::v1::PersistentVolumeClaim;

use super::{Provisioner, key_of};
use crate::words::{Job, Request};

const CLAIM_NAME: &str = "csi.storage.k8s.io/pvc/name";
const CLAIM_NAMESPACE: &str = "csi.storage.k8s.io/pvc/namespace";
const VOLUME_NAME: &str = "csi.storage.k8s.io/pv/name";
const SNAPSHOT_NAME: &str = "csi.storage.k8s.io/volumesnapshot/name";
const SNAPSHOT_NAMESPACE: &str = "csi.storage.k8s.io/volumesnapshot/namespace";
const CONTENT_NAME: &str = "csi.storage.k8s.io/volumesnapshotcontent/name";

impl Provisioner {
    pub(super) fn with_metadata(&self, mut request: Request, claim: &PersistentVolumeClaim) -> Request {
        if self.wants_metadata(&request.driver) {
            let (key, volume) = (key_of(claim), request.name.clone());
            let told = [(CLAIM_NAME, key.name), (CLAIM_NAMESPACE, key.namespace), (VOLUME_NAME, volume)];
            request.parameters.extend(told.map(|(name, it)| (name.to_owned(), it)));
        }
        request
    }

    pub(super) fn with_snapshot_metadata(&self, mut job: Job) -> Job {
        if let Job::TakeSnapshot(taking) = &mut job
            && self.wants_metadata(&taking.driver)
            && let Some(content) = self.contents.get(&taking.content)
        {
            let of = &content.spec.volume_snapshot_ref;
            let told = [
                (SNAPSHOT_NAME, of.name.clone()),
                (SNAPSHOT_NAMESPACE, of.namespace.clone()),
                (CONTENT_NAME, taking.content.clone()),
            ];
            taking.parameters.extend(told.map(|(name, it)| (name.to_owned(), it)));
        }
        job
    }

    /// The built-in driver takes no parameters that it does not know.
    fn wants_metadata(&self, driver: &str) -> bool {
        self.csi_drivers.get(driver).is_some_and(|it| it.wants_metadata)
            && self.drivers.get(driver).is_some_and(|it| !it.is_built_in())
    }
}
