//! Which addresses and ports a Service must get. Who gives them is a [`Source`]; here is decided what to ask of it.

use std::{
    collections::{BTreeMap, BTreeSet},
    net::IpAddr,
};

use corten_meta::Violation;
use corten_validation::{
    fill::{fill, made},
    read::{items, text},
};
use serde_json::{Value, json};

use super::{cluster_ips, needs};

/// What a Service has for itself in the cluster.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Holds {
    pub addresses: BTreeSet<IpAddr>,
    /// On every node.
    pub ports: BTreeSet<u16>,
}

impl Holds {
    pub fn of(service: &Value) -> Self {
        let mut holds = Self::default();
        if needs::cluster_ip(service) && !needs::is_headless(service) {
            let addresses = items(service, "/spec/clusterIPs").iter().filter_map(Value::as_str);
            holds.addresses.extend(addresses.filter_map(|it| it.parse::<IpAddr>().ok()));
        }
        if needs::may_have_node_ports(service) {
            holds.ports.extend(items(service, "/spec/ports").iter().filter_map(|it| port(&it["nodePort"])));
            holds.ports.extend(port(&service["spec"]["healthCheckNodePort"]));
        }
        holds
    }

    #[must_use]
    pub fn without(&self, other: &Self) -> Self {
        Self { addresses: &self.addresses - &other.addresses, ports: &self.ports - &other.ports }
    }

    pub fn is_empty(&self) -> bool {
        self.addresses.is_empty() && self.ports.is_empty()
    }
}

fn port(value: &Value) -> Option<u16> {
    value.as_u64().and_then(|it| u16::try_from(it).ok()).filter(|it| *it != 0)
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Family {
    V4,
    V6,
}

impl Family {
    pub fn of(address: IpAddr) -> Self {
        if address.is_ipv4() { Self::V4 } else { Self::V6 }
    }

    fn parse(text: &str) -> Option<Self> {
        match text {
            "IPv4" => Some(Self::V4),
            "IPv6" => Some(Self::V6),
            _ => None,
        }
    }

    pub fn as_str(self) -> &'static str {
        match self {
            Self::V4 => "IPv4",
            Self::V6 => "IPv6",
        }
    }

    fn other(self) -> Self {
        if self == Self::V4 { Self::V6 } else { Self::V4 }
    }
}

/// Gives addresses and ports, none of them twice.
pub trait Source {
    /// The families of the cluster's Services, the default one first.
    fn families(&self) -> Vec<Family>;

    /// # Errors
    /// Why there is none, in the words of the API.
    fn any_address(&mut self, family: Family) -> Result<IpAddr, String>;

    /// # Errors
    /// Why it cannot be this one.
    fn address(&mut self, address: IpAddr) -> Result<(), String>;

    /// # Errors
    /// Why there is none.
    fn any_port(&mut self) -> Result<u16, String>;

    /// # Errors
    /// Why it cannot be this one.
    fn port(&mut self, port: u16) -> Result<(), String>;
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AllocationError {
    Invalid(Vec<Violation>),
    /// Nothing is left, or the like: no field is to blame.
    Internal(String),
}

impl From<Violation> for AllocationError {
    fn from(violation: Violation) -> Self {
        Self::Invalid(vec![violation])
    }
}

/// Completes the Service with what it needs and does not have. What `old`, which it replaces, has, it may keep.
///
/// # Errors
/// Where it asks for what it cannot get.
pub fn allocate(service: &mut Value, old: Option<&Value>, source: &mut dyn Source) -> Result<(), AllocationError> {
    let held = old.map(Holds::of).unwrap_or_default();
    families(service, old, &source.families())?;
    addresses(service, &held, source)?;
    node_ports(service, &held, source)?;
    health_check_port(service, &held, source)
}

fn families(service: &mut Value, old: Option<&Value>, cluster: &[Family]) -> Result<(), AllocationError> {
    if !needs::cluster_ip(service) || !service["spec"].is_object() {
        return Ok(());
    }
    // Services do not follow the cluster from one family to two by themselves.
    let same = |field: &str| old.is_some_and(|old| old["spec"][field] == service["spec"][field]);
    if text(service, "/spec/ipFamilyPolicy") == "PreferDualStack"
        && ["ipFamilyPolicy", "ipFamilies", "clusterIPs"].iter().all(|it| same(it))
    {
        return Ok(());
    }
    let violations = corten_schema::violations(service, cluster_ips::validate);
    if !violations.is_empty() {
        return Err(AllocationError::Invalid(violations));
    }
    let default = cluster.first().copied().unwrap_or(Family::V4);
    let mut wanted: Vec<Family> =
        items(service, "/spec/ipFamilies").iter().filter_map(Value::as_str).filter_map(Family::parse).collect();
    let is_headless = needs::is_headless(service);
    if !is_headless {
        let given = items(service, "/spec/clusterIPs").iter().filter_map(Value::as_str);
        let of_given: Vec<Family> = given.filter_map(|it| it.parse().ok()).map(Family::of).collect();
        wanted.extend(of_given.into_iter().skip(wanted.len()));
    }
    let mut policy = text(service, "/spec/ipFamilyPolicy").to_owned();
    let is_selectorless = service["spec"]["selector"].as_object().is_none_or(serde_json::Map::is_empty);
    if policy.is_empty() && wanted.len() == 2 {
        policy = "RequireDualStack".into();
    }
    if is_headless && is_selectorless {
        // Its author lists its endpoints himself: they may be of families the cluster does not have.
        if wanted.is_empty() {
            wanted.push(default);
        }
        if wanted.len() < 2 && policy != "SingleStack" {
            wanted.push(wanted[0].other());
        }
        if policy.is_empty() {
            policy = "RequireDualStack".into();
        }
    } else {
        complete_families(&mut wanted, &mut policy, cluster, default)?;
    }
    let names: Vec<&str> = wanted.iter().map(|it| it.as_str()).collect();
    service["spec"]["ipFamilies"] = json!(names);
    service["spec"]["ipFamilyPolicy"] = json!(policy);
    Ok(())
}

fn complete_families(
    wanted: &mut Vec<Family>,
    policy: &mut String,
    cluster: &[Family],
    default: Family,
) -> Result<(), AllocationError> {
    let mut violations = Vec::new();
    if policy == "RequireDualStack" && cluster.len() < 2 {
        let detail = "this cluster is not configured for dual-stack services";
        violations.push(Violation::invalid("spec.ipFamilyPolicy", format!("{policy:?}"), detail));
    }
    for (at, family) in wanted.iter().enumerate().filter(|it| !cluster.contains(it.1)) {
        let shown = format!("{:?}", family.as_str());
        let path = format!("spec.ipFamilies[{at}]");
        violations.push(Violation::invalid(path, shown, "not configured on this cluster"));
    }
    if !violations.is_empty() {
        return Err(AllocationError::Invalid(violations));
    }
    if policy.is_empty() {
        *policy = "SingleStack".into();
    }
    if wanted.is_empty() {
        wanted.push(default);
    }
    if policy != "SingleStack" && wanted.len() == 1 && cluster.len() == 2 {
        wanted.push(wanted[0].other());
    }
    Ok(())
}

fn addresses(service: &mut Value, held: &Holds, source: &mut dyn Source) -> Result<(), AllocationError> {
    if !needs::cluster_ip(service) || needs::is_headless(service) {
        return Ok(());
    }
    let families = items(service, "/spec/ipFamilies").iter().filter_map(Value::as_str).filter_map(Family::parse);
    let families: Vec<Family> = families.collect();
    let mut all: Vec<Value> = items(service, "/spec/clusterIPs").to_vec();
    let asked = json!(all);
    for it in all.iter().filter_map(Value::as_str) {
        let Ok(address) = it.parse::<IpAddr>() else { continue };
        if held.addresses.contains(&address) {
            continue;
        }
        source.address(address).map_err(|reason| {
            Violation::invalid("spec.clusterIPs", &asked, &format!("failed to allocate IP {it}: {reason}"))
        })?;
    }
    for family in families.into_iter().skip(all.len()) {
        let address = source.any_address(family);
        let address =
            address.map_err(|it| AllocationError::Internal(format!("failed to allocate a serviceIP: {it}")))?;
        all.push(address.to_string().into());
    }
    let Some(spec) = service.as_object_mut().and_then(|it| made(it, "spec")) else { return Ok(()) };
    if let Some(first) = all.first().cloned() {
        fill(spec, "clusterIP", first);
    }
    spec.insert("clusterIPs".into(), all.into());
    Ok(())
}

fn node_ports(service: &mut Value, held: &Holds, source: &mut dyn Source) -> Result<(), AllocationError> {
    if !needs::may_have_node_ports(service) {
        return Ok(());
    }
    let must = needs::node_ports(service);
    let Some(ports) = service.pointer_mut("/spec/ports").and_then(Value::as_array_mut) else { return Ok(()) };
    // The same port under another protocol has the same number on the nodes.
    let mut given: BTreeMap<i64, u16> = BTreeMap::new();
    let mut asked: BTreeMap<Option<i64>, u16> = BTreeMap::new();
    for (number, wanted) in ports.iter().filter_map(|it| Some((it["port"].as_i64(), port(&it["nodePort"])?))) {
        asked.entry(number).or_insert(wanted);
    }
    for (at, entry) in ports.iter_mut().enumerate() {
        let number = entry["port"].as_i64().unwrap_or_default();
        let known = given.get(&number).copied();
        let own = port(&entry["nodePort"]);
        let wanted = own.or_else(|| asked.get(&Some(number)).copied());
        let got = match (known, wanted) {
            (Some(known), None) => known,
            (Some(known), Some(wanted)) if known == wanted => known,
            (_, Some(wanted)) => {
                if !held.ports.contains(&wanted) {
                    let path = format!("spec.ports[{at}].nodePort");
                    source.port(wanted).map_err(|reason| Violation::invalid(path, wanted, &reason))?;
                }
                wanted
            }
            (None, None) if must => source
                .any_port()
                .map_err(|it| AllocationError::Internal(format!("failed to allocate a nodePort: {it}")))?,
            (None, None) => continue,
        };
        given.entry(number).or_insert(got);
        if own.is_none() && must {
            entry["nodePort"] = got.into();
        }
    }
    Ok(())
}

fn health_check_port(service: &mut Value, held: &Holds, source: &mut dyn Source) -> Result<(), AllocationError> {
    if !needs::health_check_port(service) {
        return Ok(());
    }
    match port(&service["spec"]["healthCheckNodePort"]) {
        Some(wanted) if held.ports.contains(&wanted) => Ok(()),
        Some(wanted) => source.port(wanted).map_err(|it| {
            AllocationError::Internal(format!("failed to allocate requested HealthCheck NodePort {wanted}: {it}"))
        }),
        None => {
            let got = source.any_port();
            let got = got
                .map_err(|it| AllocationError::Internal(format!("failed to allocate a HealthCheck NodePort: {it}")))?;
            service["spec"]["healthCheckNodePort"] = got.into();
            Ok(())
        }
    }
}
