//! Where a volume may be: external-provisioner's `GenerateAccessibilityRequirements`, with `--immediate-topology` and without
//! `--strict-topology`, as is its default. A volume of the built-in driver is on the node that makes it.

use std::collections::BTreeMap;

use corten_api::{core::v1::PersistentVolumeClaim, storage::v1::StorageClass};

use crate::{
    acting::Acting,
    provision::{SELECTED_NODE, annotation},
    words::{DriverFacts, Topology},
};

/// A class with more places says too much.
const PLACES_MAX: usize = 256;

/// The places a driver is told, the best first, which is the selected node's; none: it is told of none.
pub(crate) fn of(
    claim: &PersistentVolumeClaim,
    class: &StorageClass,
    driver: &DriverFacts,
    acting: Acting<'_>,
) -> Result<Vec<Topology>, String> {
    let allowed = allowed(class)?;
    let selected = annotation(claim, SELECTED_NODE);
    if driver.is_built_in() {
        return of_built_in(allowed, selected.is_some(), driver);
    }
    if driver.topology.is_empty() {
        return Ok(if selected.is_some() { Vec::new() } else { allowed });
    }
    let has_named_some = class.allowed_topologies.as_ref().is_some_and(|it| !it.is_empty());
    let mut places = if has_named_some { allowed } else { all(driver, acting.nodes) };
    places.retain(|it| !it.is_empty());
    places.sort();
    places.dedup();
    if places.is_empty() {
        return Ok(places);
    }
    let first = match selected {
        Some(node) => {
            let missing = || format!("topology of selected node {node:?} is in none of the class's allowedTopologies");
            let own = acting.place_of_node(node, driver)?;
            places.iter().position(|it| is_in(it, &own)).ok_or_else(missing)?
        }
        None => spread(claim.metadata.name.as_deref().unwrap_or_default(), places.len()),
    };
    places.rotate_left(first);
    Ok(places)
}

/// Those of all nodes that have the driver's labels.
fn all(driver: &DriverFacts, nodes: &BTreeMap<String, Topology>) -> Vec<Topology> {
    let of = |labels: &Topology| {
        let keys = driver.topology.keys();
        keys.map(|key| labels.get_key_value(key).map(|it| (it.0.clone(), it.1.clone()))).collect::<Option<Topology>>()
    };
    nodes.values().filter_map(of).chain([driver.topology.clone()]).collect()
}

fn of_built_in(allowed: Vec<Topology>, is_selected: bool, driver: &DriverFacts) -> Result<Vec<Topology>, String> {
    if is_selected || allowed.is_empty() {
        let own = Some(&driver.topology).filter(|it| !it.is_empty());
        return Ok(own.cloned().into_iter().collect());
    }
    let (here, elsewhere): (Vec<_>, Vec<_>) = allowed.into_iter().partition(|it| is_in(it, &driver.topology));
    if here.is_empty() {
        return Err("this node is in none of the class's allowedTopologies".into());
    }
    Ok(here.into_iter().chain(elsewhere).collect())
}

fn is_in(place: &Topology, labels: &Topology) -> bool {
    place.iter().all(|it| labels.get(it.0) == Some(it.1))
}

/// Each place that the class names, with one value of each key.
fn allowed(class: &StorageClass) -> Result<Vec<Topology>, String> {
    let mut places: Vec<Topology> = Vec::new();
    for term in class.allowed_topologies.as_deref().unwrap_or_default() {
        let mut of_term = vec![Topology::new()];
        for expression in term.match_label_expressions.iter().flatten() {
            if of_term.len().saturating_mul(expression.values.len()).saturating_add(places.len()) > PLACES_MAX {
                return Err(format!("allowedTopologies of the class name more than {PLACES_MAX} places"));
            }
            let with = |place: &Topology, value: &String| {
                let mut place = place.clone();
                place.insert(expression.key.clone(), value.clone());
                place
            };
            of_term =
                of_term.iter().flat_map(|it| expression.values.iter().map(move |value| with(it, value))).collect();
        }
        places.extend(of_term);
    }
    Ok(places)
}

/// Which place a claim begins with that no node was selected for: claims of one StatefulSet one after the other, those of one of its Pods
/// the same (`getPVCNameHashAndIndexOffset`).
fn spread(claim: &str, n_places: usize) -> usize {
    let numbered = claim.rsplit_once('-').and_then(|(rest, number)| Some((rest, number.parse::<u32>().ok()?)));
    let (hashed, number) = match numbered {
        // CLAIM-STATEFULSET-NUMBER
        Some((rest, number)) => (rest.rsplit_once('-').map_or(rest, |it| it.1), number),
        None => (claim, 0),
    };
    // FNV-1, as Go's fnv.New32.
    let hash = hashed.bytes().fold(2_166_136_261_u32, |hash, it| hash.wrapping_mul(16_777_619) ^ u32::from(it));
    let n_places = u32::try_from(n_places).unwrap_or(u32::MAX).max(1);
    usize::try_from(hash.wrapping_add(number) % n_places).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use serde_json::{Value, json};

    use super::*;

    fn place(all: &[(&str, &str)]) -> Topology {
        all.iter().map(|it| (it.0.to_owned(), it.1.to_owned())).collect()
    }

    /// Nodes in zones a, b and c, and one that lacks the driver's labels; the driver is asked on n2.
    fn told(socket: bool, selected: &str, class: Value, name: &str) -> Result<String, String> {
        let nodes = [("n1", "a"), ("n2", "b"), ("n3", "c"), ("n4", "b")];
        let mut nodes: BTreeMap<String, Topology> =
            nodes.iter().map(|it| (it.0.to_owned(), place(&[("zone", it.1), ("other", "x")]))).collect();
        nodes.insert("n5".into(), place(&[("other", "x")]));
        let driver = DriverFacts {
            name: "sample".into(),
            socket: socket.then(|| "/x/csi.sock".into()),
            topology: place(&[("zone", "b")]),
            ..DriverFacts::default()
        };
        let mut with = json!({ "metadata": { "name": "sample" }, "provisioner": "sample" });
        if !class.is_null() {
            with["allowedTopologies"] = json!([{ "matchLabelExpressions": [{ "key": "zone", "values": class }] }]);
        }
        let mut claim = json!({ "metadata": { "name": name, "namespace": "default" } });
        if !selected.is_empty() {
            claim["metadata"]["annotations"] = json!({ SELECTED_NODE: selected });
        }
        let (claim, class) = (serde_json::from_value(claim), serde_json::from_value(with));
        let acting = Acting { node: "n2", leases: &BTreeSet::new(), nodes: &nodes, volumes: &BTreeMap::new() };
        let places = of(&claim.expect("a claim"), &class.expect("a class"), &driver, acting)?;
        let values = places.iter().map(|it| it.values().cloned().collect::<Vec<_>>().join("/"));
        Ok(values.collect::<Vec<_>>().join(" "))
    }

    #[test]
    fn a_driver_is_told_all_places_and_first_that_of_the_selected_node() {
        let any = || Value::Null;
        for (socket, selected, class, expected) in [
            (true, "n2", any(), Ok("b c a")),
            (true, "n4", any(), Ok("b c a")),
            (true, "n3", any(), Ok("c a b")),
            (true, "n2", json!(["a", "b"]), Ok("b a")),
            (true, "n2", json!(["a"]), Err("is in none of the class's")),
            (true, "n1", json!(["a"]), Ok("a")),
            (true, "n5", any(), Err("node n5 has no label zone")),
            (true, "n6", any(), Err("node \"n6\" not found")),
            (false, "n2", any(), Ok("b")),
            (false, "n2", json!(["a"]), Ok("b")),
            (false, "", any(), Ok("b")),
            (false, "", json!(["a", "b"]), Ok("b a")),
            (false, "", json!(["a"]), Err("is in none of the class's")),
        ] {
            let told = told(socket, selected, class.clone(), "data");
            match expected {
                Ok(places) => assert_eq!(told.as_deref(), Ok(places), "{socket} {selected} {class}"),
                Err(words) => assert!(told.is_err_and(|it| it.contains(words)), "{socket} {selected} {class}"),
            }
        }
        let many: Vec<String> = (0..257).map(|it| it.to_string()).collect();
        assert!(told(true, "", json!(many), "data").is_err_and(|it| it.contains("more than 256 places")));
    }

    #[test]
    fn claims_of_a_stateful_set_are_spread() {
        let first = |name: &str| told(true, "", Value::Null, name).expect("told")[..1].to_owned();
        let all: Vec<String> = (0..4).map(|it| first(&format!("data-web-{it}"))).collect();
        assert_eq!(all[0], all[3]);
        assert!(all[0] != all[1] && all[1] != all[2] && all[0] != all[2], "{all:?}");
        assert_eq!(first("logs-web-1"), all[1], "of one Pod");
    }
}
