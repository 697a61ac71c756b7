//! Servers of one store are of releases that understand each other: one that is too far from those that run does not start, before it
//! has read or written anything of theirs.

use std::{
    collections::BTreeSet,
    net::{IpAddr, SocketAddr},
};

use anyhow::{Context, Result};
use corten_api::{
    api_servers::{ADVERTISED, RELEASE},
    version::{VERSION, servers_skew},
};
use corten_cli::Failure;
use corten_etcd::EtcdStore;
use corten_store::{Range, Store};
use serde_json::Value;

use crate::server_presence::{ADDRESSES, address_of};

/// Where their identities are.
const LEASES: &str = "/registry/leases/kube-system/apiserver-";

/// `store` is what is kept in `etcd`, in JSON.
///
/// # Errors
/// A server that runs is of another release than this one can work with, or the store cannot be read.
pub(crate) async fn refuse_distant(etcd: &EtcdStore, store: &dyn Store, own: Option<SocketAddr>) -> Result<()> {
    let reading = "reading which API servers there are";
    let addresses = etcd.range(Range::prefix(ADDRESSES), None, 0).await.context(reading)?;
    let mut running: BTreeSet<IpAddr> = addresses.entries.iter().filter_map(|it| address_of(&it.key)).collect();
    if let Some(own) = own {
        running.remove(&own.ip());
    }
    if running.is_empty() {
        return Ok(());
    }
    let leases = store.range(Range::prefix(LEASES), None, 0).await.context(reading)?;
    let leases = leases.entries.iter().filter_map(|it| serde_json::from_slice(&it.value).ok());
    let Some(distant) = distant(VERSION, &running, leases) else { return Ok(()) };
    let mut failure = Failure::new(distant);
    failure.details.push(
        "upgrade one minor release at a time: all servers to the next one, then all to the one after it. The program of before starts here"
            .to_owned(),
    );
    Err(failure
        .next("kubectl get leases -n kube-system -l apiserver.kubernetes.io/identity=kube-apiserver -o yaml")
        .into())
}

/// Why a server of this release does not fit to those at the addresses, by what their leases say.
fn distant(own: &str, running: &BTreeSet<IpAddr>, leases: impl Iterator<Item = Value>) -> Option<String> {
    let annotation = |lease: &Value, name: &str| lease["metadata"]["annotations"][name].as_str().map(str::to_owned);
    let releases = leases.filter_map(|it| {
        let address: IpAddr = annotation(&it, ADVERTISED)?.parse().ok()?;
        running.contains(&address).then(|| annotation(&it, RELEASE))?.map(|it| (address, it))
    });
    releases.filter_map(|(address, it)| Some(format!("{}, at {address}", servers_skew(own, &it)?))).next()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_servers_that_run_count() {
        let lease = |address: &str, release: &str| json!({ "metadata": { "annotations": { ADVERTISED: address, RELEASE: release } } });
        let running = BTreeSet::from(["10.0.0.2".parse().expect("an address")]);
        let of = |leases: &[Value]| distant("v1.38.0", &running, leases.iter().cloned());
        assert_eq!(of(&[]), None);
        assert_eq!(of(&[lease("10.0.0.2", "v1.37.4"), lease("10.0.0.3", "v1.30.0")]), None, "that one is gone");
        assert_eq!(
            of(&[json!({ "metadata": { "annotations": { ADVERTISED: "10.0.0.2" } } })]),
            None,
            "it does not say"
        );
        let said = of(&[lease("10.0.0.2", "v1.36.0")]).expect("two releases apart");
        assert_eq!(
            said,
            "this server is v1.38.0, and another one, which runs, is v1.36.0: more than 1 minor release apart, at 10.0.0.2"
        );
    }
}
