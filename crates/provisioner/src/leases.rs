//! Who acts for a driver that several nodes have: upstream's sidecars elect a leader, by a Lease for each driver. Here there is one for
//! the driver, and one for each place that not every node reaches: volumes of a zone are that zone's nodes' to remove and grow.

use corten_meta::{Time, stable_hash};
use serde_json::{Value, json};

use crate::words::{DriverFacts, Topology};

/// Where they are kept.
pub const NAMESPACE: &str = "kube-system";
/// As external-provisioner's `--leader-election-lease-duration`: so long after its last change a Lease is anybody's.
const DURATION_SECONDS: i64 = 15;

/// Of all that concerns the driver and no place: attachments, claims for which no node was selected, volumes that all nodes reach.
pub fn of_driver(driver: &str) -> String {
    format!("corten-csi-{}", driver.to_ascii_lowercase())
}

/// Of the volumes that nodes in this place reach.
pub fn of_place(driver: &str, place: &Topology) -> String {
    if place.is_empty() {
        return of_driver(driver);
    }
    let text: String = place.iter().map(|(key, value)| format!("{key}\0{value}\0")).collect();
    format!("{}-{:016x}", of_driver(driver), stable_hash(text.as_bytes()))
}

/// Those that a node with this driver stands for; none for the one that is built in, whose volumes are their node's.
pub fn names(driver: &DriverFacts) -> Vec<String> {
    if driver.is_built_in() {
        return Vec::new();
    }
    vec![of_driver(&driver.name), of_place(&driver.name, &driver.topology)]
}

/// After how many seconds without a change somebody else may have the Lease.
pub fn duration_seconds(spec: &Value) -> u64 {
    spec["leaseDurationSeconds"].as_u64().unwrap_or_default().clamp(1, 3600)
}

/// Does anybody hold it, for who does not stand for it? Machines' clocks may differ by some of the time that it lasts.
pub fn is_held(spec: Option<&Value>, now: Time) -> bool {
    let Some(spec) = spec else { return false };
    let renewed = spec["renewTime"].as_str().and_then(|it| it.parse::<Time>().ok());
    let lasts = i64::try_from(duration_seconds(spec)).unwrap_or(i64::MAX).saturating_mul(3);
    let is_fresh = renewed.is_some_and(|it| now < it.after_seconds(lasts));
    is_fresh && spec["holderIdentity"].as_str().is_some_and(|it| !it.is_empty())
}

/// What the Lease is to say so that `me` holds it; `None`: somebody else does. As client-go's `tryAcquireOrRenew`, which believes no
/// other machine's clock: `is_stale` says that it was not changed for as long as it lasts.
pub fn held(spec: Option<&Value>, me: &str, is_stale: bool, now: Time) -> Option<Value> {
    let taken = |transitions: i64| {
        json!({
            "holderIdentity": me,
            "leaseDurationSeconds": DURATION_SECONDS,
            "acquireTime": now.micro(),
            "renewTime": now.micro(),
            "leaseTransitions": transitions,
        })
    };
    let Some(spec) = spec else { return Some(taken(0)) };
    match spec["holderIdentity"].as_str().unwrap_or_default() {
        holder if holder == me => {
            let mut spec = spec.clone();
            spec["renewTime"] = json!(now.micro());
            spec["leaseDurationSeconds"] = DURATION_SECONDS.into();
            Some(spec)
        }
        holder if holder.is_empty() || is_stale => {
            Some(taken(spec["leaseTransitions"].as_i64().unwrap_or_default().saturating_add(1)))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lease_is_its_holders_until_it_is_stale() {
        let now = Time::from_unix_seconds(100);
        let first = held(None, "n1", false, now).expect("nobody's");
        assert_eq!((&first["holderIdentity"], &first["leaseTransitions"]), (&json!("n1"), &json!(0)));
        assert_eq!(held(Some(&first), "n2", false, now), None);
        let renewed = held(Some(&first), "n1", true, now.after_seconds(5)).expect("its own");
        assert_eq!(renewed["acquireTime"], first["acquireTime"]);
        assert_ne!(renewed["renewTime"], first["renewTime"]);
        for (seconds, is_fresh) in [(5, true), (49, true), (50, false)] {
            assert_eq!(is_held(Some(&renewed), now.after_seconds(seconds)), is_fresh, "{seconds}");
        }
        let given_up = json!({ "holderIdentity": "", "renewTime": now.micro() });
        assert!(!is_held(None, now) && !is_held(Some(&given_up), now));
        let taken = held(Some(&renewed), "n2", true, now.after_seconds(30)).expect("anybody's");
        assert_eq!((&taken["holderIdentity"], &taken["leaseTransitions"]), (&json!("n2"), &json!(1)));
        assert_eq!(duration_seconds(&json!({ "leaseDurationSeconds": -1 })), 1);
    }

    #[test]
    fn places_have_leases_of_their_own() {
        let zone = |it: &str| Topology::from([("zone".to_owned(), it.to_owned())]);
        assert_eq!(of_place("D.example", &Topology::new()), "corten-csi-d.example");
        assert_ne!(of_place("d", &zone("a")), of_place("d", &zone("b")));
    }
}
