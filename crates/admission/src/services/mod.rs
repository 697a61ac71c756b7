//! Gives Services their addresses and node ports, none of them twice.
//!
//! What is given is written in the commit that stores the Service, on condition that nobody has it: a record for each
//! address and port, and an IPAddress for each address. So a crash leaves no Service without its records and no record
//! without its Service, and two servers over one store cannot give the same thing. What is known here in memory only keeps
//! writers of this server from asking for the same; of a shared store it follows what other servers give and take back.

mod draw;
mod records;

use std::net::IpAddr;

use corten_api::resources::{IP_ADDRESSES, SERVICES};
use corten_cacher::body::BoxFuture;
use corten_kinds::Kind;
use corten_kinds::service_allocation::{self, AllocationError, Holds};
use corten_meta::Status;
use corten_store::{Error, Operation, Store, Txn};
use serde_json::Value;

pub use draw::ranges;

use crate::{
    commit_hook::{CommitHook, Write, WritePart},
    plugin::Attributes,
    service_reservations::{Ranges, ServiceReservations},
};

/// Everything that is given.
///
/// # Errors
/// The store's.
pub async fn ranges_of(store: &dyn Store) -> Result<Ranges, Error> {
    Ok(Ranges::of(records::read(store).await?))
}

/// Gives Services what they need, and takes back what they leave.
pub(crate) struct Allocation;

impl CommitHook for Allocation {
    fn complete(
        &self,
        request: &Attributes<'_>,
        reservations: &ServiceReservations,
        service: &mut Value,
    ) -> Result<(), Status> {
        // Only a create and an update of the whole object change what a Service asks for.
        if request.kind.resource != SERVICES || request.subresource.is_some() {
            return Ok(());
        }
        allot(request, reservations, service)
    }

    fn allocates_for(&self, kind: &Kind) -> bool {
        kind.resource == SERVICES
    }

    fn concerns(&self, write: &Write<'_>) -> bool {
        self.allocates_for(write.request.kind)
    }

    fn begin<'a>(&'a self, write: &'a Write<'a>) -> BoxFuture<'a, Option<Box<dyn WritePart + 'a>>> {
        Box::pin(async { Change::of(write).map(|it| Box::new(it) as Box<dyn WritePart>) })
    }
}

fn allot(request: &Attributes<'_>, reservations: &ServiceReservations, service: &mut Value) -> Result<(), Status> {
    let name = service["metadata"]["name"].as_str().unwrap_or_default().to_owned();
    let cluster = request.cluster;
    let allocated = reservations.anew(&cluster.ranges, |claimed| {
        service_allocation::allocate(service, request.old, &mut draw::Draw::new(cluster, claimed))
    });
    allocated.map_err(|refused| match refused {
        AllocationError::Invalid(violations) => Status::invalid(&request.kind.resource, &name, &violations),
        AllocationError::Internal(message) => Status::internal(message),
    })
}

/// What one write of a Service takes and gives back.
struct Change {
    ranges: Ranges,
    gained: Holds,
    lost: Holds,
    along: Txn,
}

impl Change {
    /// `None` where nothing changes hands. From here on what was claimed stays taken until it is known not to be stored: the
    /// commit may happen even if nobody waits for its answer.
    fn of(write: &Write<'_>) -> Option<Self> {
        let (new, old) = (write.new, write.request.old);
        let holds = |it: Option<&Value>| it.map(Holds::of).unwrap_or_default();
        let (now, before) = (holds(new), holds(old));
        let (gained, lost) = (now.without(&before), before.without(&now));
        write.reservations.hand_over(&gained);
        if gained.is_empty() && lost.is_empty() {
            return None;
        }
        let cluster = write.request.cluster;
        let along = records::txn(cluster, &gained, &lost, new.or(old)?);
        Some(Self { ranges: cluster.ranges.clone(), gained, lost, along })
    }
}

impl WritePart for Change {
    fn add_to(&self, txn: &mut Txn) -> Result<(), Status> {
        txn.compares.extend(self.along.compares.iter().cloned());
        txn.operations.extend(self.along.operations.iter().cloned());
        Ok(())
    }

    fn committed(self: Box<Self>) {
        self.ranges.free(&self.lost);
    }

    /// The Service changed before, it may not be written, or another server has given away what was claimed here.
    fn refused<'s>(self: Box<Self>, store: &'s dyn Store) -> BoxFuture<'s, Result<(), Error>>
    where
        Self: 's,
    {
        Box::pin(async move {
            let elsewhere = records::standing(store, &self.gained).await?;
            self.ranges.free(&self.gained.without(&elsewhere));
            Ok(())
        })
    }
}

/// Puts another IPAddress in the place of one that is deleted while a Service has the address, as Kubernetes's controller of
/// IPAddresses does.
pub(crate) struct KeptIpAddress;

impl CommitHook for KeptIpAddress {
    fn concerns(&self, write: &Write<'_>) -> bool {
        write.new.is_none() && write.request.kind.resource == IP_ADDRESSES
    }

    fn begin<'a>(&'a self, write: &'a Write<'a>) -> BoxFuture<'a, Option<Box<dyn WritePart + 'a>>> {
        Box::pin(async { kept(write.request).map(|it| Box::new(RetainedAddress(it)) as Box<dyn WritePart>) })
    }
}

/// The record of an address that a Service still has.
struct RetainedAddress(Operation);

impl WritePart for RetainedAddress {
    fn add_to(&self, txn: &mut Txn) -> Result<(), Status> {
        let Operation::Put { key: kept, .. } = &self.0 else { return Ok(()) };
        txn.operations.retain(|it| !matches!(it, Operation::Delete { key } if key == kept));
        txn.operations.push(self.0.clone());
        Ok(())
    }
}

fn kept(request: &Attributes<'_>) -> Option<Operation> {
    let address: IpAddr = request.name.parse().ok()?;
    let parent = &request.old?["spec"]["parentRef"];
    let text = |field: &str| parent[field].as_str().unwrap_or_default();
    let services = request.cluster.caches().get(&SERVICES)?;
    let service = (text("resource") == "services").then(|| services.get(text("namespace"), text("name")))??.parse();
    Holds::of(&service).addresses.contains(&address).then(|| records::put(request.cluster, address, &service))
}
