//! The node's part in growing volumes that its Pods have.

use std::{collections::BTreeMap, fs, path::Path};

use corten_kubelet::{CsiVolume, GrowableVolume, VolumeGrowth};
use corten_meta::Key;

use super::Mounter;
use crate::{Code, Driver, Fault, NodeExpand, StageVolume, records::Published};

impl Mounter {
    /// Volumes of the built-in driver are not among them: who makes those grows them.
    pub async fn growable(&self) -> Vec<GrowableVolume> {
        let mut found: BTreeMap<(String, String), GrowableVolume> = BTreeMap::new();
        for (Published { uid, record, .. }, _) in self.places().await {
            let facts = self.drivers().get(&record.driver_name).map(|it| it.facts());
            let has_part = facts.is_some_and(|it| it.node_expands && !it.is_built_in());
            if !has_part || record.claim_name.is_empty() {
                continue;
            }
            let id = (record.driver_name.clone(), record.volume_handle.clone());
            let volume = found.entry(id).or_insert_with(|| GrowableVolume {
                driver: record.driver_name,
                handle: record.volume_handle,
                claim: Key::new(record.pod_namespace.clone(), record.claim_name),
                pods: BTreeMap::new(),
            });
            volume.pods.insert(uid, Key::new(record.pod_namespace, record.pod_name));
        }
        found.into_values().collect()
    }

    /// Has a driver do its part before a Pod has the volume: some do it then alone. The Pod begins whatever comes of it; who looks
    /// on while it runs asks again, and tells. `staging`: where it is staged, of a driver that does so.
    pub(super) async fn grow_unused(
        &self,
        driver: &dyn Driver,
        told: &StageVolume,
        volume: &CsiVolume,
        (path, staging): (&Path, Option<&Path>),
    ) {
        let facts = driver.facts();
        let growth = volume.growth.as_ref().filter(|_| facts.node_expands && !facts.is_built_in());
        let Some(VolumeGrowth { bytes, secrets }) = growth.map(|it| &**it) else { return };
        let told = StageVolume { secrets: secrets.0.clone(), ..told.clone() };
        let staging = staging.map(Path::to_owned);
        let asked = NodeExpand { volume: told, path: path.to_owned(), staging, bytes: *bytes };
        if let Err(fault) = driver.node_expand(asked).await {
            tracing::debug!(%fault, volume = volume.handle, "a volume is not grown before its pod begins");
        }
    }

    /// Has a driver do its part, where a Pod has the volume.
    ///
    /// # Errors
    /// In the driver's words; or none has it here.
    pub async fn grow(&self, driver: &str, volume: StageVolume, bytes: u64) -> Result<(), Fault> {
        let missing = || Fault::new(Code::Unavailable, format!("driver {driver} is not registered on this node"));
        let found = self.drivers().get(driver).ok_or_else(missing)?;
        let turn = self.turns.of(driver, &volume.handle);
        let _turn = turn.lock().await;
        let staging = self.staged(driver, &volume.handle).await;
        let published = self.published(driver, &volume.handle).await;
        let there = self.there("kubernetes.io/csi", move || {
            // What could not be published is written down all the same.
            Ok(published.into_iter().find(|it| fs::symlink_metadata(it).is_ok()))
        });
        let Some(path) = there.await.ok().flatten().or_else(|| staging.clone()) else {
            return Err(Fault::new(Code::Unavailable, "no pod has the volume on this node"));
        };
        found.node_expand(NodeExpand { volume, path, staging, bytes }).await.map(drop)
    }
}
