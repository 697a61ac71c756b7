//! Slices and claims as users write them, and which devices come of them.

mod consumable;

use std::collections::BTreeMap;

use corten_api::resource::v1::{DeviceRequestAllocationResult, ResourceClaimSpec};
use serde_json::{Value, json};

use super::*;

fn inventory(slices: &[Value]) -> Inventory {
    let mut inventory = Inventory::default();
    for (idx, spec) in slices.iter().enumerate() {
        inventory.set_slice(format!("s{idx}"), serde_json::from_value(spec.clone()).expect("a slice"));
    }
    let class = json!({
        "selectors": [{"cel": {"expression": "device.driver == \"gpu.example.com\""}}],
        "config": [{"opaque": {"driver": "gpu.example.com", "parameters": {"of": "class"}}}],
    });
    inventory.set_class("gpu".into(), serde_json::from_value(class).expect("a class"));
    inventory
}

fn slice(devices: Value) -> Value {
    json!({"driver": "gpu.example.com", "nodeName": "n1", "pool": {"name": "n1", "generation": 1, "resourceSliceCount": 1}, "devices": devices})
}

fn gpus() -> Inventory {
    let gpu = |name: &str, memory: &str, numa: i64, version: &str| json!({"name": name, "attributes": {"numa": {"int": numa}, "driverVersion": {"version": version}, "other.org/kind": {"string": "big"}}, "capacity": {"memory": {"value": memory}}});
    inventory(&[slice(json!([
        gpu("a", "10Gi", 0, "1.2.3"),
        gpu("b", "40Gi", 1, "2.0.0"),
        gpu("c", "80Gi", 1, "2.1.0"),
        gpu("d", "80Gi", 0, "2.1.0")
    ]))])
}

fn claim(devices: Value) -> ResourceClaimSpec {
    serde_json::from_value(json!({ "devices": devices })).expect("a claim")
}

fn one(request: Value) -> ResourceClaimSpec {
    let mut exactly = json!({"deviceClassName": "gpu"});
    exactly.as_object_mut().expect("an object").extend(request.as_object().expect("an object").clone());
    claim(json!({"requests": [{"name": "r", "exactly": exactly}]}))
}

fn given(inventory: &Inventory, claims: &[&ResourceClaimSpec], taken: &[&str]) -> Result<String, Refusal> {
    let result = |it: &&str| json!({"request": "r", "driver": "gpu.example.com", "pool": "n1", "device": it});
    let results: Vec<Value> = taken.iter().map(result).collect();
    given_beside(inventory, claims, &json!({"devices": {"results": results}}))
}

/// Beside an allocation of somebody else.
fn given_beside(inventory: &Inventory, claims: &[&ResourceClaimSpec], other: &Value) -> Result<String, Refusal> {
    let mut taken = Taken::default();
    taken.add(&serde_json::from_value(other.clone()).expect("an allocation"));
    let labels = BTreeMap::from([("zone".to_owned(), "a".to_owned())]);
    let allocations =
        allocate(claims, TargetNode { name: "n1", labels: &labels }, inventory, &taken, &Selectors::default())?;
    let one = |it: &Allocation| {
        let results = it.devices.iter().flat_map(|it| it.results.iter().flatten());
        let one = |it: &DeviceRequestAllocationResult| {
            let of = it.consumed_capacity.iter().flatten().map(|(name, it)| format!("{name}:{}", it.0));
            let of = of.collect::<Vec<_>>().join(",");
            let of = if of.is_empty() { of } else { format!("({of})") };
            format!("{}={}{of}", it.request, it.device)
        };
        results.map(one).collect::<Vec<_>>().join(" ")
    };
    Ok(allocations.iter().map(one).collect::<Vec<_>>().join("; "))
}

fn selected(expression: &str) -> Result<String, Refusal> {
    let claim = one(json!({"selectors": [{"cel": {"expression": expression}}]}));
    given(&gpus(), &[&claim], &[])
}

#[test]
fn expressions_choose_devices() {
    let own = "device.attributes[\"gpu.example.com\"]";
    for (expression, device) in [
        ("true".to_owned(), "r=a"),
        (format!("{own}.numa == 1"), "r=b"),
        ("device.capacity[\"gpu.example.com\"].memory.compareTo(quantity(\"80Gi\")) >= 0".to_owned(), "r=c"),
        (format!("{own}.driverVersion.isGreaterThan(semver(\"1.9.0\")) && {own}.numa == 0"), "r=d"),
        ("device.attributes[\"other.org\"].kind == \"big\"".to_owned(), "r=a"),
        ("!has(device.attributes[\"unknown.org\"].kind)".to_owned(), "r=a"),
        ("cel.bind(d, device.attributes[\"gpu.example.com\"], d.numa == 1)".to_owned(), "r=b"),
    ] {
        assert_eq!(selected(&expression), Ok(device.to_owned()), "{expression}");
    }
    assert_eq!(selected("device.driver == \"nobody\""), Err(Refusal::NotHere));
    for (expression, why) in [
        ("device.attributes[\"unknown.org\"].kind == 1", "no such key"),
        ("device.driver +", "compilation failed"),
        ("1", "must evaluate to bool"),
    ] {
        let Err(Refusal::Broken(message)) = selected(expression) else { panic!("{expression} is not refused") };
        assert!(message.starts_with("request r: ") && message.contains(why), "{message}");
    }
}

#[test]
fn counts_are_kept_and_nothing_is_given_twice() {
    let two = one(json!({"count": 2}));
    assert_eq!(given(&gpus(), &[&two], &["a"]), Ok("r=b r=c".into()));
    assert_eq!(given(&gpus(), &[&two, &two], &[]), Ok("r=a r=b; r=c r=d".into()));
    assert_eq!(given(&gpus(), &[&two, &two], &["d"]), Err(Refusal::NotHere));
    let all = one(json!({"allocationMode": "All"}));
    assert_eq!(given(&gpus(), &[&all], &[]), Ok("r=a r=b r=c r=d".into()));
    assert_eq!(given(&gpus(), &[&all], &["a"]), Err(Refusal::NotHere));
    let admin = one(json!({"adminAccess": true, "allocationMode": "All"}));
    assert_eq!(given(&gpus(), &[&admin], &["a", "b"]), Ok("r=a r=b r=c r=d".into()));
    let large = one(json!({"capacity": {"requests": {"memory": "50Gi"}}}));
    assert_eq!(given(&gpus(), &[&large], &["c"]), Ok("r=d".into()));
    let unknown = one(json!({"deviceClassName": "none"}));
    assert_eq!(
        given(&gpus(), &[&unknown], &[]),
        Err(Refusal::Broken("request r: device class none does not exist".into()))
    );
}

#[test]
fn the_first_alternative_that_is_there_is_taken() {
    let claim = claim(json!({"requests": [{"name": "r", "firstAvailable": [
        {"name": "many", "deviceClassName": "gpu", "count": 5},
        {"name": "big", "deviceClassName": "gpu", "selectors": [{"cel": {"expression": "device.capacity[\"gpu.example.com\"].memory.isGreaterThan(quantity(\"50Gi\"))"}}]},
        {"name": "any", "deviceClassName": "gpu"},
    ]}]}));
    assert_eq!(given(&gpus(), &[&claim], &[]), Ok("r/big=c".into()));
    assert_eq!(given(&gpus(), &[&claim], &["c", "d"]), Ok("r/any=a".into()));
}

#[test]
fn devices_have_in_common_what_they_must() {
    let requests = json!([
        {"name": "x", "exactly": {"deviceClassName": "gpu"}},
        {"name": "y", "exactly": {"deviceClassName": "gpu"}},
    ]);
    let with = |constraint: Value| claim(json!({"requests": requests, "constraints": [constraint]}));
    // The first device of all fits nothing: the search goes back.
    let same = with(json!({"matchAttribute": "gpu.example.com/numa"}));
    assert_eq!(given(&gpus(), &[&same], &["d"]), Ok("x=b y=c".into()));
    let different = with(json!({"distinctAttribute": "gpu.example.com/numa", "requests": ["x", "y"]}));
    assert_eq!(given(&gpus(), &[&different], &["a"]), Ok("x=b y=d".into()));
    let nobody_has_it = with(json!({"matchAttribute": "gpu.example.com/color"}));
    assert_eq!(given(&gpus(), &[&nobody_has_it], &[]), Err(Refusal::NotHere));
}

#[test]
fn taints_keep_claims_off_that_do_not_tolerate_them() {
    let tainted = inventory(&[slice(json!([
        {"name": "a", "taints": [{"key": "ill", "effect": "NoSchedule"}]},
        {"name": "b", "taints": [{"key": "ill", "effect": "None"}]},
    ]))]);
    assert_eq!(given(&tainted, &[&one(json!({}))], &[]), Ok("r=b".into()));
    let tolerant = one(json!({"tolerations": [{"key": "ill", "operator": "Exists"}]}));
    assert_eq!(given(&tainted, &[&tolerant], &[]), Ok("r=a".into()));
}

#[test]
fn parts_of_one_device_share_what_it_has() {
    let part = |name: &str, memory: &str| json!({"name": name, "consumesCounters": [{"counterSet": "card", "counters": {"memory": {"value": memory}}}]});
    let pool = json!({"name": "n1", "generation": 1, "resourceSliceCount": 2});
    let counters = json!({"driver": "gpu.example.com", "nodeName": "n1", "pool": pool, "sharedCounters": [{"name": "card", "counters": {"memory": {"value": "40Gi"}}}]});
    let parts = json!({"driver": "gpu.example.com", "nodeName": "n1", "pool": pool, "devices": [part("whole", "40Gi"), part("half", "20Gi"), part("other", "20Gi")]});
    let shared = inventory(&[counters, parts]);
    let any = one(json!({}));
    assert_eq!(given(&shared, &[&any], &[]), Ok("r=whole".into()));
    assert_eq!(given(&shared, &[&any, &any], &[]), Ok("r=half; r=other".into()));
    assert_eq!(given(&shared, &[&any], &["half"]), Ok("r=other".into()));
    assert_eq!(given(&shared, &[&any, &any, &any], &[]), Err(Refusal::NotHere));
}

#[test]
fn only_whole_pools_of_the_newest_generation_count_and_only_for_their_nodes() {
    let of = |generation: i64, count: i64, device: &str, node: &str| json!({"driver": "gpu.example.com", "nodeName": node, "pool": {"name": "n1", "generation": generation, "resourceSliceCount": count}, "devices": [{"name": device}]});
    let any = one(json!({}));
    assert_eq!(given(&inventory(&[of(1, 1, "old", "n1"), of(2, 1, "new", "n1")]), &[&any], &[]), Ok("r=new".into()));
    assert_eq!(given(&inventory(&[of(1, 2, "a", "n1")]), &[&any], &[]), Err(Refusal::NotHere));
    assert_eq!(given(&inventory(&[of(1, 1, "a", "n2")]), &[&any], &[]), Err(Refusal::NotHere));
    let zone = json!({"driver": "gpu.example.com", "nodeSelector": {"nodeSelectorTerms": [{"matchExpressions": [{"key": "zone", "operator": "In", "values": ["a"]}]}]}, "pool": {"name": "z", "generation": 1, "resourceSliceCount": 1}, "devices": [{"name": "net"}]});
    assert_eq!(given(&inventory(&[zone]), &[&any], &[]), Ok("r=net".into()));
}

#[test]
fn an_allocation_says_where_it_holds_and_what_drivers_are_told() {
    let mut spec = one(json!({}));
    let own = json!([{"requests": ["r"], "opaque": {"driver": "gpu.example.com", "parameters": {"of": "claim"}}}, {"requests": ["other"], "opaque": {"driver": "gpu.example.com", "parameters": {}}}]);
    spec.devices.as_mut().expect("devices").config = serde_json::from_value(own).expect("config");
    let labels = BTreeMap::new();
    let target = TargetNode { name: "n1", labels: &labels };
    let allocation =
        allocate(&[&spec], target, &gpus(), &Taken::default(), &Selectors::default()).expect("given").remove(0);
    assert!(selects(allocation.node_selector.as_ref().expect("one node"), target));
    assert!(!selects(allocation.node_selector.as_ref().expect("one node"), TargetNode { name: "n2", labels: &labels }));
    let config = allocation.devices.as_ref().and_then(|it| it.config.clone()).expect("config");
    let told: Vec<_> = config.iter().map(|it| (it.source.as_str(), it.requests.clone().unwrap_or_default())).collect();
    assert_eq!(told, [("FromClass", vec!["r".to_owned()]), ("FromClaim", vec!["r".to_owned()])]);
    assert_eq!(given_beside(&gpus(), &[&one(json!({}))], &json!(allocation)).as_deref(), Ok("r=b"), "it is taken");
}

#[test]
fn a_puzzle_comes_to_an_end() {
    let device = |it: usize| json!({"name": format!("d{it}"), "attributes": {"n": {"int": it}}});
    let many = inventory(&[slice((0..64).map(device).collect())]);
    let requests: Vec<Value> =
        (0..16).map(|it| json!({"name": format!("r{it}"), "exactly": {"deviceClassName": "gpu"}})).collect();
    // No two have it in common, but for the last constraint, which is looked at last of all.
    let constraint = json!([{"matchAttribute": "gpu.example.com/n", "requests": ["r14", "r15"]}]);
    let puzzle = claim(json!({"requests": requests, "constraints": constraint}));
    let refused = given(&many, &[&puzzle], &[]).expect_err("there is no way");
    assert_eq!(refused, Refusal::Broken("no allocation was found in 100000 tries".into()));
}

/// Whoever writes a claim chooses how many selectors it has, and how much each of them takes.
#[test]
fn selectors_that_take_too_long_come_to_an_end() {
    let device = |it: usize| json!({"name": format!("d{it}"), "attributes": {"n": {"string": "x".repeat(64)}}});
    let many = inventory(&[slice((0..100).map(device).collect())]);
    let text = "device.attributes[\"gpu.example.com\"].n";
    let list = "[1,2,3,4,5,6,7,8,9,10,11,12]";
    let bomb = format!("{list}.all(a, {list}.all(b, {list}.all(c, {text}.matches('(x*)*y') || a + b + c > 0)))");
    let selectors: Vec<Value> =
        (0..32).map(|it| json!({"cel": {"expression": format!("{it} >= 0 && {bomb}")}})).collect();
    let claim = one(json!({"selectors": selectors}));
    check(&claim, &many, &Selectors::default()).expect("each of them may be written");
    assert_eq!(given(&many, &[&claim], &[]), Err(Refusal::TooMuchWork));
    // What one node has used up is not there for another.
    let (labels, used) = (BTreeMap::new(), Selectors::default());
    for name in ["n1", "n1"] {
        let given = allocate(&[&claim], TargetNode { name, labels: &labels }, &many, &Taken::default(), &used);
        assert_eq!(given.map(drop), Err(Refusal::TooMuchWork));
    }
    assert_eq!(check(&one(json!({})), &many, &used), Err(Refusal::TooMuchWork));
}

/// A class has megabytes of expressions: each is compiled once, however many requests name the class.
#[test]
fn a_class_is_compiled_once_for_all_requests() {
    let mut inventory = gpus();
    let long = |it: usize| format!("{it} >= 0{}", " && true".repeat(100));
    let selectors: Vec<Value> = (0..32).map(|it| json!({"cel": {"expression": long(it)}})).collect();
    let class = serde_json::from_value(json!({ "selectors": selectors })).expect("a class");
    inventory.set_class("large".into(), class);
    let alternatives: Vec<Value> =
        (0..8).map(|it| json!({"name": format!("a{it}"), "deviceClassName": "large"})).collect();
    let requests: Vec<Value> =
        (0..32).map(|it| json!({"name": format!("r{it}"), "firstAvailable": alternatives})).collect();
    assert_eq!(check(&claim(json!({ "requests": requests })), &inventory, &Selectors::default()), Ok(()));
}

#[test]
fn what_an_administrator_taints_is_given_to_whoever_tolerates_it() {
    let mut inventory = gpus();
    let taint = serde_json::from_value(json!({"key": "broken", "effect": "NoSchedule"})).expect("a taint");
    let driver = Some("gpu.example.com".to_owned());
    let rule = TaintRule { driver, device: Some("a".into()), taint, ..TaintRule::default() };
    inventory.set_taint_rule("t".into(), Some(rule.clone()));
    assert_eq!(given(&inventory, &[&one(json!({}))], &[]), Ok("r=b".into()));
    let tolerating = one(json!({"tolerations": [{"key": "broken", "operator": "Exists"}]}));
    assert_eq!(given(&inventory, &[&tolerating], &[]), Ok("r=a".into()));
    inventory
        .set_taint_rule("t".into(), Some(TaintRule { driver: Some("another.example.com".into()), ..rule.clone() }));
    assert_eq!(given(&inventory, &[&one(json!({}))], &[]), Ok("r=a".into()));
    inventory.set_taint_rule("t".into(), Some(TaintRule { taint: rule.taint, ..TaintRule::default() }));
    assert!(given(&inventory, &[&one(json!({}))], &[]).is_err());
    inventory.set_taint_rule("t".into(), None);
    assert_eq!(given(&inventory, &[&one(json!({}))], &[]), Ok("r=a".into()));
}
