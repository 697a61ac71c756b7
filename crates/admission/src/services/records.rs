//! How the store remembers what is given: a key for each address and port, and the IPAddresses that users see.

use std::net::IpAddr;

use bytes::Bytes;
use corten_api::resources::IP_ADDRESSES;
use corten_cacher::watch_cache::{OtherKeys, encode, prefix_of};
use corten_kinds::service_allocation::{Family, Holds};
use corten_store::{Compare, Entry, Error, Operation, Range, Store, Txn};
use serde_json::{Value, json};

use crate::{cluster::Cluster, service_reservations::Ranges};

const ADDRESSES: &str = "/registry/ranges/serviceips/";
const PORTS: &str = "/registry/ranges/servicenodeports/";

fn keys(holds: &Holds) -> impl Iterator<Item = Bytes> {
    let addresses = holds.addresses.iter().map(|it| format!("{ADDRESSES}{it}"));
    addresses.chain(holds.ports.iter().map(|it| format!("{PORTS}{it}"))).map(Bytes::from)
}

/// Everything that is given.
pub(super) async fn read(store: &dyn Store) -> Result<Holds, Error> {
    let mut holds = Holds::default();
    let addresses = store.range(Range::prefix(ADDRESSES), None, 0).await?;
    holds.addresses.extend(addresses.entries.iter().filter_map(|it| rest::<IpAddr>(&it.key, ADDRESSES)));
    let ports = store.range(Range::prefix(PORTS), None, 0).await?;
    holds.ports.extend(ports.entries.iter().filter_map(|it| rest::<u16>(&it.key, PORTS)));
    Ok(holds)
}

fn rest<T: std::str::FromStr>(key: &[u8], prefix: &str) -> Option<T> {
    std::str::from_utf8(key).ok()?.strip_prefix(prefix)?.parse().ok()
}

/// Of a store that other servers write to: what they give and take back is known here as soon as the caches hold it. What is
/// claimed meanwhile is compared in the commit.
impl OtherKeys for Ranges {
    fn changed(&self, key: &[u8], is_there: bool) {
        let mut holds = Holds::default();
        holds.addresses.extend(rest::<IpAddr>(key, ADDRESSES));
        holds.ports.extend(rest::<u16>(key, PORTS));
        if !is_there {
            return self.free(&holds);
        }
        let mut taken = self.lock();
        taken.addresses.extend(holds.addresses);
        taken.ports.extend(holds.ports);
    }

    fn read_again(&self, entries: &[Entry]) {
        let mut holds = Holds::default();
        holds.addresses.extend(entries.iter().filter_map(|it| rest::<IpAddr>(&it.key, ADDRESSES)));
        holds.ports.extend(entries.iter().filter_map(|it| rest::<u16>(&it.key, PORTS)));
        *self.lock() = holds;
    }
}

/// Which of these are given now.
pub(super) async fn standing(store: &dyn Store, holds: &Holds) -> Result<Holds, Error> {
    let mut standing = Holds::default();
    for key in keys(holds) {
        if store.get(&key).await?.is_some() {
            standing.addresses.extend(rest::<IpAddr>(&key, ADDRESSES));
            standing.ports.extend(rest::<u16>(&key, PORTS));
        }
    }
    Ok(standing)
}

/// What must hold and be written beside the Service.
pub(super) fn txn(cluster: &Cluster, gained: &Holds, lost: &Holds, service: &Value) -> Txn {
    let (namespace, name) = (&service["metadata"]["namespace"], &service["metadata"]["name"]);
    let record = json!({"service": {"namespace": namespace, "name": name, "uid": service["metadata"]["uid"]}});
    let record = Bytes::from(record.to_string());
    let mut txn = Txn::default();
    for key in keys(gained) {
        txn.compares.push(Compare { key: key.clone(), mod_revision: 0 });
        txn.operations.push(Operation::Put { key, value: record.clone() });
    }
    txn.operations.extend(keys(lost).map(|key| Operation::Delete { key }));
    let Some(cache) = cluster.caches().get(&IP_ADDRESSES) else { return txn };
    for address in &gained.addresses {
        let key = cache.store_key("", &address.to_string());
        txn.compares.push(Compare { key, mod_revision: 0 });
        txn.operations.push(put(cluster, *address, service));
    }
    for address in lost.addresses.iter().map(IpAddr::to_string) {
        // Somebody may have deleted it and made another.
        let is_ours = cache.get("", &address).is_some_and(|it| {
            let parent = &it.parse()["spec"]["parentRef"];
            parent["resource"] == "services" && parent["namespace"] == *namespace && parent["name"] == *name
        });
        if is_ours {
            txn.operations.push(Operation::Delete { key: cache.store_key("", &address) });
        }
    }
    txn
}

/// Writes an IPAddress.
pub(super) fn put(cluster: &Cluster, address: IpAddr, service: &Value) -> Operation {
    let key = prefix_of(&IP_ADDRESSES) + &address.to_string();
    Operation::Put { key: key.into(), value: encode(&IP_ADDRESSES, &object(cluster, address, service)) }
}

/// The IPAddress by which users see whose an address is.
fn object(cluster: &Cluster, address: IpAddr, service: &Value) -> Value {
    json!({
        "metadata": {
            "name": address.to_string(),
            "uid": cluster.new_uid(),
            "creationTimestamp": cluster.now().to_string(),
            "labels": {
                "ipaddress.kubernetes.io/ip-family": Family::of(address).as_str(),
                "ipaddress.kubernetes.io/managed-by": "ipallocator.k8s.io",
            },
        },
        "spec": {"parentRef": {
            "group": "",
            "resource": "services",
            "namespace": service["metadata"]["namespace"],
            "name": service["metadata"]["name"],
        }},
    })
}
