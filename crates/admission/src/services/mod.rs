//! Gives Services their addresses and node ports, none of them twice.
//!
//! What is given is written in the commit that stores the Service, on condition that nobody has it: a record for each
//! address and port, and an IPAddress for each address. So a crash leaves no Service without its records and no record
//! without its Service, and two servers over one store cannot give the same thing. What is known here in memory only keeps
//! writers of this server from asking for the same.

mod draw;
mod records;

use std::{net::IpAddr, sync::Arc};

use corten_api::resources::{IP_ADDRESSES, SERVICES};
use corten_kinds::{
    Kind,
    service_allocation::{self, Holds, Refused},
};
use corten_meta::Status;
use corten_store::{Error, Operation, Store, Txn};
use parking_lot::Mutex;
use serde_json::Value;

pub use draw::ranges;

use crate::cluster::Cluster;

/// What is taken: by Services that are stored, and by requests that would store one.
#[derive(Clone, Default)]
pub struct Ranges(Arc<Mutex<Holds>>);

impl Ranges {
    pub async fn read(store: &dyn Store) -> Result<Self, Error> {
        Ok(Self(Arc::new(Mutex::new(records::read(store).await?))))
    }

    fn free(&self, holds: &Holds) {
        let mut taken = self.0.lock();
        taken.addresses.retain(|it| !holds.addresses.contains(it));
        taken.ports.retain(|it| !holds.ports.contains(it));
    }
}

/// What is known of Services' addresses and ports.
#[derive(Clone, Copy)]
pub struct At<'a> {
    pub cluster: &'a Cluster,
    pub ranges: &'a Ranges,
}

/// What one request has taken and not stored yet. It goes back with the request.
#[derive(Default)]
pub struct Claims(Mutex<Option<Claimed>>);

struct Claimed {
    ranges: Ranges,
    holds: Holds,
}

impl Drop for Claimed {
    fn drop(&mut self) {
        self.ranges.free(&self.holds);
    }
}

/// Completes a Service that is to be stored with the addresses and ports it needs. Other kinds need none.
///
/// # Errors
/// 422 where it asks for what it cannot get, 500 where nothing is left.
pub fn allot(
    at: &At<'_>,
    claims: &Claims,
    kind: &Kind,
    service: &mut Value,
    old: Option<&Value>,
) -> Result<(), Status> {
    if kind.resource != SERVICES {
        return Ok(());
    }
    // What an earlier attempt of the same request took goes back first.
    let mut claims = claims.0.lock();
    *claims = None;
    let ranges = at.ranges.clone();
    let claimed = claims.insert(Claimed { ranges, holds: Holds::default() });
    let mut draw = draw::Draw::new(at.cluster, &claimed.ranges, &mut claimed.holds);
    let name = service["metadata"]["name"].as_str().unwrap_or_default().to_owned();
    service_allocation::allocate(service, old, &mut draw).map_err(|refused| match refused {
        Refused::Invalid(violations) => Status::invalid(&kind.resource, &name, &violations),
        Refused::Internal(message) => Status::internal(message),
    })
}

/// What takes the place of an IPAddress that is deleted while a Service has the address: as upstream, another one.
pub fn reborn(at: &At<'_>, kind: &Kind, name: &str) -> Option<Operation> {
    if kind.resource != IP_ADDRESSES {
        return None;
    }
    let address: IpAddr = name.parse().ok()?;
    let parent = at.cluster.cache(kind).get("", name)?.parse()["spec"]["parentRef"].take();
    let text = |field: &str| parent[field].as_str().unwrap_or_default();
    let services = at.cluster.caches().get(&SERVICES)?;
    let service = (text("resource") == "services").then(|| services.get(text("namespace"), text("name")))??.parse();
    Holds::of(&service).addresses.contains(&address).then(|| records::put(at.cluster, address, &service))
}

/// What one write of a Service takes and gives back.
pub struct Change {
    ranges: Ranges,
    gained: Holds,
    lost: Holds,
    pub along: Txn,
}

impl Change {
    /// `None` where nothing changes hands. From here on what was claimed stays taken until it is known not to be stored: the
    /// commit may happen even if nobody waits for its answer.
    pub fn of(at: &At<'_>, claims: &Claims, kind: &Kind, new: Option<&Value>, old: Option<&Value>) -> Option<Self> {
        if kind.resource != SERVICES {
            return None;
        }
        let claimed = claims.0.lock().take();
        let holds = |it: Option<&Value>| it.map(Holds::of).unwrap_or_default();
        let (now, before) = (holds(new), holds(old));
        let (gained, lost) = (now.without(&before), before.without(&now));
        if let Some(mut claimed) = claimed {
            let spare = claimed.holds.without(&gained);
            claimed.holds = spare;
        }
        if gained.is_empty() && lost.is_empty() {
            return None;
        }
        let along = records::txn(at.cluster, &gained, &lost, new.or(old)?);
        Some(Self { ranges: at.ranges.clone(), gained, lost, along })
    }

    pub fn committed(self) {
        self.ranges.free(&self.lost);
    }

    /// Nothing was written: the Service changed before, or another server has given away what was claimed here.
    pub async fn refused(self, store: &dyn Store) -> Result<(), Error> {
        let elsewhere = records::standing(store, &self.gained).await?;
        self.ranges.free(&self.gained.without(&elsewhere));
        Ok(())
    }
}
