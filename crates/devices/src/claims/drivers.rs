//! The drivers of this node, and what they are asked.

use std::{
    collections::{BTreeMap, BTreeSet},
    io,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use corten_grpc::Client;
use corten_kubelet::{PodRef, PreparedClaim, PreparedDevice, ReservedClaim};
use corten_machine::Layout;
use parking_lot::Mutex;

use super::{
    messages::{Claim, Claims, PreparedClaims, UnpreparedClaims, Version},
    records::{Record, Records},
};
use crate::call::told;

/// As upstream's `PluginClientTimeout`.
const PATIENCE: Duration = Duration::from_secs(45);

/// Cheap to clone.
#[derive(Clone)]
pub struct ClaimDrivers {
    pub(super) data: PathBuf,
    records: Records,
    /// By their names, each with its sockets, the newest last: while a driver is replaced there are two of it.
    drivers: Arc<Mutex<BTreeMap<String, Vec<Instance>>>>,
    /// One at a time asks about a claim: what is taken back for one Pod may be what another one is about to have.
    turns: Arc<Mutex<BTreeMap<String, Arc<tokio::sync::Mutex<()>>>>>,
}

struct Instance {
    /// Where it registered.
    socket: PathBuf,
    driver: Driver,
}

#[derive(Clone)]
pub(super) struct Driver {
    pub(super) client: Client,
    pub(super) version: &'static Version,
}

impl ClaimDrivers {
    pub fn new(layout: &Layout) -> Self {
        let (drivers, turns) = (Arc::default(), Arc::default());
        Self { data: layout.data.clone(), records: Records::new(layout), drivers, turns }
    }

    pub(super) fn add(&self, name: &str, socket: &Path, driver: Driver) {
        self.drivers.lock().entry(name.to_owned()).or_default().push(Instance { socket: socket.to_owned(), driver });
    }

    pub(super) fn remove(&self, name: &str, socket: &Path) {
        if let Some(of_name) = self.drivers.lock().get_mut(name) {
            of_name.retain(|it| it.socket != socket);
        }
    }

    /// Has the claims of a Pod prepared, one after the other. What was prepared already, a driver answers as before.
    ///
    /// # Errors
    /// In upstream's words, for the Pod's event.
    pub async fn prepare(&self, pod: &PodRef, claims: Vec<ReservedClaim>) -> Result<Vec<PreparedClaim>, String> {
        let (namespace, name) = (pod.key.namespace.clone(), pod.key.name.clone());
        let mut record = Record { namespace, name, claims: claims.clone(), prepared: None };
        self.write(&pod.uid, record.clone()).await?;
        let mut prepared = Vec::new();
        for claim in claims {
            let mut devices = Vec::new();
            for driver in drivers_of(&claim) {
                devices.extend(self.prepare_by(&driver, &pod.key.namespace, &claim).await?);
            }
            prepared.push(PreparedClaim { in_pod: claim.in_pod, devices });
        }
        record.prepared = Some(prepared.clone());
        self.write(&pod.uid, record).await?;
        Ok(prepared)
    }

    async fn write(&self, uid: &str, record: Record) -> Result<(), String> {
        let (records, uid) = (self.records.clone(), uid.to_owned());
        let written = on_disk(move || records.write(&uid, &record)).await;
        written.map_err(|it| format!("cannot write down the claims of the pod: {it}"))
    }

    /// What was prepared for a Pod before, maybe by another run of the kubelet. `None`: nothing is known of that.
    pub async fn recall(&self, uid: &str) -> Option<Vec<PreparedClaim>> {
        self.record(uid).await.ok().flatten()?.prepared
    }

    /// The Pods whose claims drivers may have prepared.
    pub async fn pods(&self) -> Vec<PodRef> {
        let records = self.all().await;
        records.into_iter().map(|(uid, it)| PodRef::new(&it.namespace, &it.name, &uid)).collect()
    }

    /// What is written down, by the Pods' uids. A disk that cannot be read has nothing.
    pub(crate) async fn all(&self) -> Vec<(String, Record)> {
        let records = self.records.clone();
        on_disk(move || Ok(records.all())).await.unwrap_or_default()
    }

    async fn record(&self, uid: &str) -> io::Result<Option<Record>> {
        let (records, uid) = (self.records.clone(), uid.to_owned());
        on_disk(move || records.read(&uid)).await
    }

    async fn prepare_by(
        &self,
        name: &str,
        namespace: &str,
        claim: &ReservedClaim,
    ) -> Result<Vec<PreparedDevice>, String> {
        let driver = self.driver(name)?;
        let turn = self.turn(&claim.uid);
        let _turn = turn.lock().await;
        let question = question(namespace, claim);
        let answer = driver.client.call::<_, PreparedClaims>(driver.version.prepare, question, PATIENCE).await;
        let mut answer = answer.map_err(|it| format!("NodePrepareResources: {}", told(&it)))?;
        let of_claim = answer.claims.remove(&claim.uid);
        let of_claim = of_claim.ok_or_else(|| "NodePrepareResources skipped 1 ResourceClaims".to_owned())?;
        if !of_claim.error.is_empty() {
            let error = of_claim.error.chars().take(2048).collect::<String>();
            return Err(format!("NodePrepareResources failed for ResourceClaim {}: {error}", claim.claim));
        }
        let device = |it: super::messages::Device| PreparedDevice {
            requests: it.request_names,
            driver: name.to_owned(),
            pool: it.pool_name,
            device: it.device_name,
            cdi_devices: it.cdi_device_ids,
        };
        Ok(of_claim.devices.into_iter().map(device).collect())
    }

    /// Has taken back what was prepared for a Pod, but for what another one has as well. Nothing to take back is success.
    ///
    /// # Errors
    /// In upstream's words; the rest is still written down.
    pub async fn release(&self, uid: &str) -> Result<(), String> {
        let failed = |it: io::Error| format!("cannot read the claims of the pod: {it}");
        let Some(record) = self.record(uid).await.map_err(failed)? else { return Ok(()) };
        for claim in &record.claims {
            for driver in drivers_of(claim) {
                self.unprepare_by(&driver, uid, &record.namespace, claim).await?;
            }
        }
        let (records, named) = (self.records.clone(), uid.to_owned());
        on_disk(move || records.forget(&named)).await.map_err(failed)
    }

    async fn unprepare_by(&self, name: &str, uid: &str, namespace: &str, claim: &ReservedClaim) -> Result<(), String> {
        let turn = self.turn(&claim.uid);
        let _turn = turn.lock().await;
        let (records, pod, of) = (self.records.clone(), uid.to_owned(), claim.uid.clone());
        if on_disk(move || Ok(records.is_shared(&pod, &of))).await.unwrap_or(true) {
            return Ok(());
        }
        let driver = self.driver(name)?;
        let question = question(namespace, claim);
        let answer = driver.client.call::<_, UnpreparedClaims>(driver.version.unprepare, question, PATIENCE).await;
        let mut answer = answer.map_err(|it| format!("NodeUnprepareResources: {}", told(&it)))?;
        let of_claim = answer.claims.remove(&claim.uid);
        let of_claim = of_claim.ok_or_else(|| "NodeUnprepareResources skipped 1 ResourceClaims".to_owned())?;
        if of_claim.error.is_empty() {
            self.turns.lock().remove(&claim.uid);
            return Ok(());
        }
        let error = of_claim.error.chars().take(2048).collect::<String>();
        Err(format!("NodeUnprepareResources failed for ResourceClaim {}: {error}", claim.claim))
    }

    fn driver(&self, name: &str) -> Result<Driver, String> {
        let newest = self.drivers.lock().get(name).and_then(|it| it.last()).map(|it| it.driver.clone());
        newest.ok_or_else(|| format!("DRA driver {name} is not registered"))
    }

    fn turn(&self, claim: &str) -> Arc<tokio::sync::Mutex<()>> {
        self.turns.lock().entry(claim.to_owned()).or_default().clone()
    }
}

fn drivers_of(claim: &ReservedClaim) -> BTreeSet<String> {
    claim.results.iter().map(|it| it.driver.clone()).collect()
}

fn question(namespace: &str, claim: &ReservedClaim) -> Claims {
    let (namespace, uid, name) = (namespace.to_owned(), claim.uid.clone(), claim.claim.clone());
    Claims { claims: vec![Claim { namespace, uid, name }] }
}

async fn on_disk<T: Send + 'static>(work: impl FnOnce() -> io::Result<T> + Send + 'static) -> io::Result<T> {
    tokio::task::spawn_blocking(work).await.map_err(io::Error::other)?
}
