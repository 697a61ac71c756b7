//! Shares the addresses of the pool out: each Service of type LoadBalancer has one of each of its families, alone and for as long as
//! it wants it.
//!
//! Who has an address keeps it. Then those come that name theirs (`spec.loadBalancerIP`), then all others, the oldest first. What
//! anybody's status still shows is nobody else's: an address is free once the API says so. What a Service calls external is given
//! away all the same: else whoever may write one could use the pool up.
//!
//! Each Service is looked at twice. At first only a note is made of what it gets, which every later look at any Service sees; then its
//! status is written. So a write that is refused, or takes long, holds up nobody else, and its address is nobody else's meanwhile.

use std::{
    collections::{BTreeMap, BTreeSet},
    net::IpAddr,
    time::Duration,
};

use corten_api::load_balancer::{AddressPool, POOL_ADDRESSES};
use corten_meta::{Key, ObjectMeta, Time};
use corten_reconcile::{Actor, Effect, EventType, Plan, View, Wait};
use serde_json::{Value, json};

use super::{Node, balance, event, taken_away, vip};
use crate::projections::{Ingress, ReachableService};

const ASSIGNED: &str = "Assigned";
const NOT_IN_POOL: &str = "AddressNotInPool";
/// How soon a Service that lacks an address looks again, though nobody said that one is free.
const LOOK_AGAIN: Duration = Duration::from_secs(20);
/// So many of those that lack one are woken by each change: who gets one wakes the next.
const WOKEN_MAX: usize = 8;

pub(super) fn assign(pool: &AddressPool, view: &View, key: &Key, now: Time) -> Plan {
    let mut plan = Plan::default();
    let Some(service) = view.get::<ReachableService>(key) else { return plan };
    if !service.is_ours() {
        plan.effects.extend(view.note(key).map(|_| Effect::Remember { note: Value::Null }));
        plan.effects.extend(taken_away(service));
        return plan;
    }
    let shares = shares(pool, view);
    let Some(share) = shares.into_iter().find(|it| it.service.metadata.key() == *key) else { return plan };
    let addresses: Vec<IpAddr> = share.addresses.iter().filter_map(|it| it.1).collect();
    plan.waits.clone_from(&share.lacks);
    if addresses != reserved(view, service) {
        let note = if addresses.is_empty() {
            Value::Null
        } else {
            json!({ "uid": service.metadata.uid, "addresses": addresses })
        };
        plan.effects.push(Effect::Remember { note });
        plan.wake_at = Some(now);
        return plan;
    }
    plan.wake_at = (!share.lacks.is_empty()).then(|| now.after(LOOK_AGAIN));
    share.tell(now, &mut plan);
    plan
}

/// Whom a change of a Service wakes: itself, and the first of those to whom what it had may go.
pub(super) fn sharers(view: &View, changed: &ObjectMeta) -> Vec<Key> {
    let lacks = |it: &&ReachableService| {
        it.is_ours() && it.pool_addresses().is_some_and(|it| it.status == "False" && it.reason != NOT_IN_POOL)
    };
    let mut lacking: Vec<&ReachableService> = view.list::<ReachableService>().filter(lacks).collect();
    lacking.sort_by_cached_key(|it| (it.metadata.creation_timestamp, it.metadata.key()));
    let lacking = lacking.into_iter().map(|it| it.metadata.key()).filter(|it| *it != changed.key());
    [changed.key()].into_iter().chain(lacking.take(WOKEN_MAX)).collect()
}

/// What each Service gets, by what there is and what is noted.
fn shares<'a>(pool: &'a AddressPool, view: &'a View) -> Vec<Share<'a>> {
    let all: Vec<&ReachableService> = view.list::<ReachableService>().collect();
    let mut ours: Vec<(&ReachableService, Vec<IpAddr>)> =
        all.iter().filter(|it| it.is_ours()).map(|it| (*it, reserved(view, it))).collect();
    ours.sort_by_cached_key(|it| rank(it.0, &it.1));
    let nodes: BTreeSet<IpAddr> =
        view.list::<Node>().flat_map(|it| &it.status.addresses).filter_map(|it| it.address.parse().ok()).collect();
    let mut sharing = Sharing { pool, taken: BTreeMap::new(), nodes };
    let mut shares: Vec<Share<'_>> = ours.iter().map(|it| sharing.keep(it.0, &it.1)).collect();
    for service in all {
        for address in ingress_of(service) {
            sharing.taken.entry(address).or_insert_with(|| service.metadata.key());
        }
    }
    shares.iter_mut().for_each(|it| sharing.give_named(it));
    sharing.give_free(&mut shares);
    shares
}

/// What was noted of it. Another Service of its name is not meant.
fn reserved(view: &View, service: &ReachableService) -> Vec<IpAddr> {
    let note = view.note(&service.metadata.key()).filter(|it| it["uid"] == *service.metadata.uid);
    let addresses = note.and_then(|it| it["addresses"].as_array()).into_iter().flatten();
    addresses.filter_map(|it| it.as_str()?.parse().ok()).collect()
}

/// Who had an address from the pool before, or is about to, comes first, then the older.
fn rank(service: &ReachableService, reserved: &[IpAddr]) -> (bool, Option<Time>, Key) {
    let is_new = service.pool_addresses().is_none() && reserved.is_empty();
    (is_new, service.metadata.creation_timestamp, service.metadata.key())
}

fn ingress_of(service: &ReachableService) -> impl Iterator<Item = IpAddr> {
    service.status.load_balancer.ingress.iter().filter_map(|it| it.ip.parse().ok())
}

struct Sharing<'a> {
    pool: &'a AddressPool,
    /// What nobody else is given, and whose it is.
    taken: BTreeMap<IpAddr, Key>,
    nodes: BTreeSet<IpAddr>,
}

/// What one Service gets.
struct Share<'a> {
    service: &'a ReachableService,
    /// Of each family, IPv4 where true: what it has.
    addresses: Vec<(bool, Option<IpAddr>)>,
    lacks: Vec<Wait>,
}

impl<'a> Sharing<'a> {
    /// What it has already, as far as it may keep that.
    fn keep(&mut self, service: &'a ReachableService, reserved: &[IpAddr]) -> Share<'a> {
        let named = named(service);
        let families: Vec<bool> = service.spec.ip_families.iter().map(|it| it != "IPv6").collect();
        // A family that the pool has nothing of is done without where there is another.
        let is_any = families.iter().any(|it| self.pool.has_family(*it));
        let mut share = Share { service, addresses: Vec::new(), lacks: Vec::new() };
        for is_ipv4 in families.into_iter().filter(|it| !is_any || self.pool.has_family(*it)) {
            let may_keep = |it: &IpAddr| {
                let is_wanted = named.is_none_or(|named| named.is_ipv4() != is_ipv4 || named == *it);
                let is_free = !self.taken.contains_key(it) && !self.nodes.contains(it);
                it.is_ipv4() == is_ipv4 && is_wanted && is_free && self.pool.contains(*it)
            };
            let kept = ingress_of(service).chain(reserved.iter().copied()).find(may_keep);
            if let Some(kept) = kept {
                self.taken.insert(kept, service.metadata.key());
            }
            share.addresses.push((is_ipv4, kept));
        }
        share
    }

    fn give_named(&mut self, share: &mut Share<'_>) {
        let Some(address) = named(share.service) else {
            if !share.service.spec.load_balancer_ip.is_empty() {
                share.lacks.push(self.not_in_pool(share.service));
            }
            return;
        };
        let own = share.service.metadata.key();
        let Some((_, place)) = share.addresses.iter_mut().find(|it| it.0 == address.is_ipv4()) else {
            let message = format!("spec.loadBalancerIP {address} is of no family in its ipFamilies");
            return share.lacks.push(Wait::new(NOT_IN_POOL, message, Actor::Author));
        };
        if place.is_some() {
            return;
        }
        if !self.pool.contains(address) {
            return share.lacks.push(self.not_in_pool(share.service));
        }
        let holder = self.taken.get(&address).filter(|it| **it != own);
        if holder.is_none() && !self.nodes.contains(&address) {
            *place = Some(address);
            self.taken.insert(address, own);
            return;
        }
        // Who may not read a Service is not told of it.
        let holder = match holder {
            Some(it) if it.namespace == own.namespace => format!("service {it}"),
            Some(_) => "a service of another namespace".to_owned(),
            None => "a node".to_owned(),
        };
        let message = format!("spec.loadBalancerIP {address} is that of {holder}");
        share.lacks.push(Wait::new("AddressTaken", message, Actor::Author));
    }

    fn not_in_pool(&self, service: &ReachableService) -> Wait {
        let message = format!(
            "spec.loadBalancerIP {} is not in the pool of load balancers' addresses {}",
            service.spec.load_balancer_ip, self.pool
        );
        Wait::new(NOT_IN_POOL, message, Actor::Author)
    }

    fn exhausted(&self, is_ipv4: bool) -> Wait {
        let family = if is_ipv4 { "IPv4" } else { "IPv6" };
        let n_nodes = self.nodes.iter().filter(|it| it.is_ipv4() == is_ipv4 && self.pool.contains(**it)).count();
        let lack = match (self.pool.has_family(is_ipv4), n_nodes) {
            (false, _) => "none of them".to_owned(),
            (true, 0) => "all taken".to_owned(),
            (true, n) => format!("all taken, {n} by addresses of nodes"),
        };
        let message = format!(
            "the pool of load balancers' addresses {} has no {family} address for it, {lack}: delete a Service of type LoadBalancer, or start the servers with a larger --load-balancer-pool",
            self.pool
        );
        Wait::new("PoolExhausted", message, Actor::Operator)
    }

    fn give_free(&mut self, shares: &mut [Share<'_>]) {
        for is_ipv4 in [true, false] {
            let mut free = self.pool.addresses(is_ipv4);
            for share in shares.iter_mut() {
                let key = share.service.metadata.key();
                // Who names an address has no other in its place.
                let is_named = match named(share.service) {
                    Some(named) => named.is_ipv4() == is_ipv4,
                    None => !share.service.spec.load_balancer_ip.is_empty(),
                };
                let is_place = |it: &&mut (bool, Option<IpAddr>)| it.0 == is_ipv4 && it.1.is_none() && !is_named;
                let Some((_, place)) = share.addresses.iter_mut().find(is_place) else { continue };
                *place = free.find(|it| !self.taken.contains_key(it) && !self.nodes.contains(it));
                match place {
                    Some(given) => drop(self.taken.insert(*given, key)),
                    None => share.lacks.push(self.exhausted(is_ipv4)),
                }
            }
        }
    }
}

/// The address that it asks for.
fn named(service: &ReachableService) -> Option<IpAddr> {
    service.spec.load_balancer_ip.parse::<IpAddr>().ok().map(|it| it.to_canonical())
}

impl Share<'_> {
    fn tell(self, now: Time, plan: &mut Plan) {
        let service = self.service;
        let ingress: Vec<Ingress> = self.addresses.iter().filter_map(|it| Some(vip(&it.1?.to_string()))).collect();
        let (status, reason, message) = match self.lacks.first() {
            None => ("True", ASSIGNED, "one node answers for each of its addresses".to_owned()),
            Some(lack) => ("False", &*lack.reason, lack.message.clone()),
        };
        let told = service.pool_addresses();
        let is_told = told.is_some_and(|it| it.status == status && it.reason == reason && it.message == message);
        if !is_told || ingress != service.status.load_balancer.ingress {
            let since = told.filter(|it| it.status == status).and_then(|it| it.last_transition_time).unwrap_or(now);
            let condition = json!({
                "type": POOL_ADDRESSES, "status": status, "reason": reason, "message": message, "lastTransitionTime": since,
            });
            if status == "True" {
                plan.effects.extend(balance(service, &ingress, Some(condition)));
            } else {
                plan.effects.push(super::patch(service, &ingress, Some(condition)));
                let message = format!("Error syncing load balancer: failed to ensure load balancer: {message}");
                plan.effects.push(event(service, EventType::Warning, "SyncLoadBalancerFailed", &message));
            }
        }
    }
}
