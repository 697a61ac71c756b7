//! Which API servers there are: each says so in the store, takes out of the Service `kubernetes` those that no longer do, and goes
//! with a word.
//!
//! As upstream: an identity in a Lease of `kube-system`, and where several share an etcd an address at `/registry/masterleases/`, which
//! etcd forgets when it is not written again (the lease endpoint reconciler). kube-apiserver takes part in the same way.

use std::{
    collections::BTreeSet,
    net::{IpAddr, SocketAddr},
    path::PathBuf,
    sync::Arc,
    time::Duration,
};

use anyhow::{Context, Result};
use aws_lc_rs::digest::{SHA256, digest};
use bytes::Bytes;
use corten_access::Identity;
use corten_admission::Machine;
use corten_api::{
    api_servers::{ADVERTISED, IDENTITY_LABEL, NODE, RELEASE},
    resources::{ENDPOINT_SLICES, ENDPOINTS, LEASES},
    version::VERSION,
};
use corten_cli::etcd_member::{EtcdHealth, MEMBERS};
use corten_client::{Client, DeleteParams, ListParams, PatchType};
use corten_etcd::EtcdStore;
use corten_meta::{Key, MicroTime, Resource, Time};
use corten_store::{Range, Store};
use serde_json::{Value, json};
use tokio::time::MissedTickBehavior;

use crate::process::Clock;

/// Upstream's `IdentityLeaseRenewIntervalPeriod`; as often the address is written.
const RENEW: Duration = Duration::from_secs(10);
/// Upstream's `IdentityLeaseDurationSeconds`.
const IDENTITY_SECONDS: u32 = 3600;
/// Upstream's `DefaultEndpointReconcilerTTL`.
const ADDRESS_SECONDS: u32 = 15;
/// Upstream's `IdentityLeaseGCPeriod`, in renewals.
const CLEAN_EVERY: u32 = 360;
const LEAVE_DEADLINE: Duration = Duration::from_secs(5);
pub(crate) const ADDRESSES: &str = "/registry/masterleases/";
const COMPONENT: &str = "kube-apiserver";

/// This server, among all of its cluster.
pub(crate) struct ServerPresence {
    client: Client,
    /// The store that several servers share, where there is one.
    etcd: Option<Arc<EtcdStore>>,
    /// Where others reach this server; `None` where none can.
    advertise: Option<SocketAddr>,
    machine: Machine,
    /// The data folder, where Corten runs the etcd.
    ha: Option<PathBuf>,
    holder: String,
    clock: Clock,
}

/// The user of the loopback client (`AuthorizeClientBearerToken` of apiserver).
pub(crate) fn identity() -> Identity {
    Identity::new("system:apiserver", &["system:masters", "system:authenticated"])
}

impl ServerPresence {
    pub(crate) fn new(
        client: Client,
        etcd: Option<Arc<EtcdStore>>,
        advertise: Option<SocketAddr>,
        (machine, uid): (Machine, &str),
        ha: Option<PathBuf>,
        clock: Clock,
    ) -> Self {
        let holder = format!("{}_{uid}", identity_of(&called(&machine)));
        Self { client, etcd, advertise, machine, ha, holder, clock }
    }

    /// Says that the server is there until `stopping`, then that it is not.
    pub(crate) async fn keep(self, stopping: impl Future<Output = ()> + Send) {
        tokio::select! {
            biased;
            () = stopping => {}
            // What the API refuses, or answers late, takes no server out of the Service: the address lasts but a few seconds.
            _ = async { tokio::join!(self.keep_address(), self.keep_identity()) } => {}
        }
        match tokio::time::timeout(LEAVE_DEADLINE, self.leave()).await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => {
                tracing::warn!(error = format!("{error:#}"), "what this server said of itself stays a while")
            }
            Err(_) => tracing::warn!("what this server said of itself stays a while: the store does not answer"),
        }
    }

    async fn keep_address(&self) {
        let (Some(own), Some(etcd)) = (self.advertise, &self.etcd) else { return };
        let mut beats = tokio::time::interval(RENEW);
        loop {
            beats.tick().await;
            let written = etcd.put_for(ADDRESS_SECONDS, address_key(own), record(own)).await;
            warn(written.map(drop).context("writing this server's address"));
        }
    }

    async fn keep_identity(&self) {
        let mut beats = tokio::time::interval(RENEW);
        beats.set_missed_tick_behavior(MissedTickBehavior::Delay);
        for n in 0_u32.. {
            beats.tick().await;
            warn(self.renew().await.context("writing the server's identity"));
            warn(self.point_service(true).await.context("writing where the API is served"));
            if n.is_multiple_of(CLEAN_EVERY) {
                warn(self.clean().await.context("taking the identities of servers away that are gone"));
            }
        }
    }

    fn lease(&self) -> Key {
        Key::new("kube-system", identity_of(&called(&self.machine)))
    }

    async fn renew(&self) -> Result<()> {
        let now = (self.clock)();
        let spec = json!({
            "holderIdentity": self.holder, "leaseDurationSeconds": IDENTITY_SECONDS, "renewTime": now.micro(),
        });
        let labels = json!({ IDENTITY_LABEL: COMPONENT, "kubernetes.io/hostname": self.machine.host_name });
        // What is not so any more is taken away.
        let annotations = json!({
            ADVERTISED: self.advertise.map(|it| it.ip().to_string()), NODE: self.machine.node, MEMBERS: self.members(),
            RELEASE: VERSION,
        });
        let lease = json!({ "metadata": { "labels": labels, "annotations": annotations }, "spec": spec });
        match self.client.patch(&LEASES, &self.lease(), "", &PatchType::Merge, &lease).await {
            Err(error) if error.is_not_found() => {
                let mut lease = lease;
                (lease["apiVersion"], lease["kind"]) = (json!(LEASES.api_version()), json!(LEASES.kind));
                lease["metadata"]["name"] = json!(self.lease().name);
                if let Some(annotations) = lease["metadata"]["annotations"].as_object_mut() {
                    annotations.retain(|_, it| !it.is_null());
                }
                self.client.create(&LEASES, "kube-system", &lease).await?;
            }
            written => drop(written?),
        }
        Ok(())
    }

    /// Who runs the etcd, so that who takes a machine out from elsewhere knows whether it has a member.
    fn members(&self) -> Option<String> {
        let health = EtcdHealth::load(self.ha.as_deref()?)?;
        let names: Vec<&str> = health.members.iter().map(|it| &*it.name).collect();
        Some(names.join(","))
    }

    /// Has the Service lead to all servers that are there.
    async fn point_service(&self, is_there: bool) -> Result<()> {
        let Some(own) = self.advertise else { return Ok(()) };
        let mut living = BTreeSet::from([own.ip()]);
        if let Some(etcd) = &self.etcd {
            if !is_there {
                etcd.take_back(address_key(own)).await?;
                living.clear();
            }
            let page = etcd.range(Range::prefix(ADDRESSES), None, 0).await?;
            living.extend(page.entries.iter().filter_map(|it| address_of(&it.key)));
        }
        // The last to go leaves its address: nobody is there to ask for it.
        if living.is_empty() {
            return Ok(());
        }
        for (resource, wanted) in
            [(ENDPOINTS, endpoints(&living, own.port())), (ENDPOINT_SLICES, slice(&living, own.port()))]
        {
            self.put(&resource, wanted).await?;
        }
        Ok(())
    }

    async fn put(&self, resource: &Resource, mut wanted: Value) -> Result<()> {
        let key = Key::new("default", "kubernetes");
        (wanted["apiVersion"], wanted["kind"]) = (json!(resource.api_version()), json!(resource.kind));
        let stored: Value = match self.client.get_as(resource, &key).await {
            Err(error) if error.is_not_found() => {
                self.client.create(resource, &key.namespace, &wanted).await?;
                return Ok(());
            }
            stored => stored?,
        };
        if says_the_same(&stored, &wanted) {
            return Ok(());
        }
        if stored["addressType"] != wanted["addressType"] {
            self.client.delete(resource, &key, &DeleteParams::default()).await?;
            self.client.create(resource, &key.namespace, &wanted).await?;
            return Ok(());
        }
        let mut object = stored;
        for field in ["subsets", "endpoints", "ports"] {
            if !wanted[field].is_null() {
                object[field] = wanted[field].take();
            }
        }
        for (name, value) in wanted["metadata"]["labels"].as_object().into_iter().flatten() {
            object["metadata"]["labels"][name] = value.clone();
        }
        self.client.replace(resource, &key, "", &object).await?;
        Ok(())
    }

    /// Takes the identities of servers away that have said nothing for as long as they last.
    async fn clean(&self) -> Result<()> {
        let of_servers = ListParams {
            namespace: "kube-system".into(),
            label_selector: format!("{IDENTITY_LABEL}={COMPONENT}"),
            ..ListParams::default()
        };
        let leases: Vec<Value> = self.client.list_as(&LEASES, &of_servers).await?;
        let now = (self.clock)();
        for lease in leases.iter().filter(|it| is_over(it, now)) {
            let key = Key::new("kube-system", lease["metadata"]["name"].as_str().unwrap_or_default());
            let uid = lease["metadata"]["uid"].as_str().map(str::to_owned);
            let resource_version = lease["metadata"]["resourceVersion"].as_str().map(str::to_owned);
            let params = DeleteParams { uid, resource_version, ..DeleteParams::default() };
            match self.client.delete(&LEASES, &key, &params).await {
                Err(error) if !error.is_not_found() && !error.is_conflict() => return Err(error.into()),
                _ => {}
            }
        }
        Ok(())
    }

    /// The Lease stays, as upstream's does: a server that only restarts keeps its address.
    async fn leave(&self) -> Result<()> {
        self.point_service(false).await
    }
}

fn warn(ended: Result<()>) {
    if let Err(error) = ended {
        tracing::warn!(error = format!("{error:#}"), "other API servers may take this one to be gone");
    }
}

fn address_key(own: SocketAddr) -> Bytes {
    format!("{ADDRESSES}{}", own.ip()).into()
}

/// What tells the server from all others. Machines that were copied have one host name; nodes have each their own.
fn called(machine: &Machine) -> String {
    match &machine.node {
        Some(node) if *node != machine.host_name => format!("{}/{node}", machine.host_name),
        _ => machine.host_name.clone(),
    }
}

/// Upstream's name of a server: its host's, of which the API takes the hash.
fn identity_of(host_name: &str) -> String {
    const DIGITS: &[u8; 32] = b"abcdefghijklmnopqrstuvwxyz234567";
    let hash = digest(&SHA256, host_name.as_bytes());
    let bits: Vec<bool> =
        hash.as_ref()[..16].iter().flat_map(|byte| (0..8).rev().map(move |at| byte >> at & 1 == 1)).collect();
    let digit = |five: &[bool]| {
        let value = (0..5).fold(0, |value, at| value << 1 | usize::from(five.get(at).copied().unwrap_or_default()));
        char::from(DIGITS[value])
    };
    format!("apiserver-{}", bits.chunks(5).map(digit).collect::<String>())
}

/// What upstream's reconciler keeps at an address: Endpoints without a name.
fn record(address: SocketAddr) -> Bytes {
    let endpoints = json!({
        "apiVersion": "v1", "kind": "Endpoints", "metadata": {},
        "subsets": [{ "addresses": [{ "ip": address.ip().to_string() }] }],
    });
    corten_stored_form::to_stored(b"/registry/services/endpoints/default/kubernetes", &endpoints.to_string().into())
}

pub(crate) fn address_of(key: &[u8]) -> Option<IpAddr> {
    std::str::from_utf8(key).ok()?.strip_prefix(ADDRESSES)?.parse().ok()
}

fn endpoints(addresses: &BTreeSet<IpAddr>, port: u16) -> Value {
    let addresses: Vec<Value> = addresses.iter().map(|it| json!({ "ip": it.to_string() })).collect();
    json!({
        "metadata": {
            "name": "kubernetes", "namespace": "default", "labels": { "endpointslice.kubernetes.io/skip-mirror": "true" },
        },
        "subsets": [{ "addresses": addresses, "ports": [{ "name": "https", "port": port, "protocol": "TCP" }] }],
    })
}

/// A slice has one family: IPv4 where one server has it.
fn slice(addresses: &BTreeSet<IpAddr>, port: u16) -> Value {
    let is_ipv4 = addresses.iter().any(IpAddr::is_ipv4);
    let of_family = addresses.iter().filter(|it| it.is_ipv4() == is_ipv4);
    let endpoint = |it: &IpAddr| json!({ "addresses": [it.to_string()], "conditions": { "ready": true } });
    json!({
        "metadata": { "name": "kubernetes", "namespace": "default", "labels": { "kubernetes.io/service-name": "kubernetes" } },
        "addressType": if is_ipv4 { "IPv4" } else { "IPv6" },
        "endpoints": of_family.map(endpoint).collect::<Vec<_>>(),
        "ports": [{ "name": "https", "port": port, "protocol": "TCP" }],
    })
}

/// In whatever order: kube-apiserver has another.
fn says_the_same(stored: &Value, wanted: &Value) -> bool {
    let said = |it: &Value| {
        let subsets = it["subsets"].as_array().into_iter().flatten();
        let of_subset = |it: &Value| (texts(&it["addresses"], "ip"), it["ports"].clone());
        let ready = it["endpoints"].as_array().into_iter().flatten().filter(|it| it["conditions"]["ready"] == true);
        let of_slice: BTreeSet<String> = ready.map(|it| it["addresses"][0].to_string()).collect();
        (subsets.map(of_subset).collect::<Vec<_>>(), of_slice, it["ports"].clone(), it["addressType"].clone())
    };
    let has_label = |(name, value): (&String, &Value)| stored["metadata"]["labels"][name] == *value;
    said(stored) == said(wanted) && wanted["metadata"]["labels"].as_object().into_iter().flatten().all(has_label)
}

fn texts(list: &Value, field: &str) -> BTreeSet<String> {
    list.as_array().into_iter().flatten().map(|it| it[field].to_string()).collect()
}

fn is_over(lease: &Value, now: Time) -> bool {
    let renewed: Option<MicroTime> = serde_json::from_value(lease["spec"]["renewTime"].clone()).ok();
    let seconds = lease["spec"]["leaseDurationSeconds"].as_u64().unwrap_or_default();
    renewed.is_none_or(|it| Time(it.0).after(Duration::from_secs(seconds)) < now)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_is_called_as_upstream_calls_it() {
        // Of an empty text: e3b0c44298fc1c149afbf4c8996fb924….
        assert_eq!(identity_of(""), "apiserver-4oymiquy7qobjgx36tejs35zeq");
        let of = |node: Option<&str>| called(&Machine { host_name: "debian".into(), node: node.map(str::to_owned) });
        assert_eq!([of(None), of(Some("debian")), of(Some("m2"))], ["debian", "debian", "debian/m2"]);
        assert_eq!(identity_of("a").len(), identity_of("a much longer name of a host").len());
    }

    #[test]
    fn the_order_of_servers_is_nobodys_business() {
        let addresses =
            |texts: &[&str]| -> BTreeSet<IpAddr> { texts.iter().map(|it| it.parse().expect("one")).collect() };
        let both = addresses(&["192.0.2.1", "192.0.2.2"]);
        let mut stored = endpoints(&both, 6443);
        assert!(says_the_same(&stored, &endpoints(&both, 6443)));
        stored["subsets"][0]["addresses"].as_array_mut().expect("a list").reverse();
        assert!(says_the_same(&stored, &endpoints(&both, 6443)));
        assert!(!says_the_same(&stored, &endpoints(&addresses(&["192.0.2.1"]), 6443)));
        assert!(!says_the_same(&stored, &endpoints(&both, 443)));
        stored["subsets"][0]["ports"] = json!([{ "protocol": "TCP", "port": 6443, "name": "https" }]);
        assert!(says_the_same(&stored, &endpoints(&both, 6443)), "nor that of fields");
        stored["metadata"]["labels"] = json!({});
        assert!(!says_the_same(&stored, &endpoints(&both, 6443)));

        let mut stored = slice(&both, 6443);
        stored["endpoints"].as_array_mut().expect("a list").reverse();
        assert!(says_the_same(&stored, &slice(&both, 6443)));
        stored["endpoints"][0]["conditions"]["ready"] = json!(false);
        assert!(!says_the_same(&stored, &slice(&both, 6443)));
        let mixed = slice(&addresses(&["192.0.2.1", "2001:db8::1"]), 6443);
        assert_eq!(
            (mixed["addressType"].as_str(), mixed["endpoints"].as_array().map(Vec::len)),
            (Some("IPv4"), Some(1))
        );
    }

    #[test]
    fn what_is_kept_of_a_server_is_what_upstream_keeps() {
        let stored = record("192.0.2.1:6443".parse().expect("an address"));
        assert!(stored.starts_with(b"k8s\0"), "{stored:?}");
        assert!(stored.windows(9).any(|it| it == b"192.0.2.1"));
        assert_eq!(address_of(b"/registry/masterleases/192.0.2.1"), "192.0.2.1".parse().ok());
        assert_eq!(address_of(b"/registry/masterleases/x"), None);
    }

    #[test]
    fn an_identity_lasts_as_long_as_it_says() {
        let now = "2026-11-26T12:00:00Z".parse().expect("a time");
        let lease = |renewed: &str| json!({ "spec": { "renewTime": renewed, "leaseDurationSeconds": 3600 } });
        assert!(is_over(&lease("2026-11-26T10:59:59.000000Z"), now));
        assert!(!is_over(&lease("2026-11-26T11:00:01.000000Z"), now));
        assert!(is_over(&json!({}), now));
    }
}
