//! Devices that are given several times at once, and what each takes of them.

use super::*;

/// One device that several may have, and one that is given as a whole.
fn shared(capacity: &Value) -> Inventory {
    let attributes = json!({"kind": {"string": "nic"}});
    inventory(&[slice(json!([
        {"name": "s", "allowMultipleAllocations": true, "attributes": attributes, "capacity": capacity},
        {"name": "w", "attributes": attributes, "capacity": {"memory": {"value": "10Gi"}}},
    ]))])
}

fn memory(policy: Value) -> Value {
    json!({"memory": {"value": "10Gi", "requestPolicy": policy}})
}

fn asking(request: &str) -> ResourceClaimSpec {
    one(json!({"capacity": {"requests": {"memory": request}}}))
}

/// What others have of the device that is shared.
fn others(amounts: &[(&str, &str)]) -> Value {
    let result = |it: &(&str, &str)| {
        let (of, capacity) = ("0-0-0-0", json!({it.0: it.1}));
        json!({"request": "r", "driver": "gpu.example.com", "pool": "n1", "device": "s", "shareID": of, "consumedCapacity": capacity})
    };
    json!({"devices": {"results": amounts.iter().map(result).collect::<Vec<_>>()}})
}

/// How much is taken by a request, as the policy of the device wants it.
#[test]
fn a_request_is_rounded_up_as_the_policy_says() {
    let range = |range: Value| memory(json!({"default": "1Gi", "validRange": range}));
    let values = memory(json!({"default": "2Gi", "validValues": ["1Gi", "2Gi", "8Gi"]}));
    let stepped = range(json!({"min": "1Gi", "max": "9Gi", "step": "2Gi"}));
    let parts = memory(json!({"default": "100m", "validRange": {"min": "100m", "max": "2500m", "step": "100m"}}));
    let none = json!({"memory": {"value": "10Gi"}});
    let is = |of: &str| Ok(format!("r=s(memory:{of})"));
    let elsewhere = || Ok("r=w".to_owned());
    for (what, capacity, request, expected) in [
        ("no policy, all", &none, None, is("10Gi")),
        ("no policy, what is asked for", &none, Some("3Gi"), is("3Gi")),
        ("no policy, too much", &none, Some("11Gi"), Err(Refusal::NotHere)),
        ("the default", &values, None, is("2Gi")),
        ("a value", &values, Some("1Gi"), is("1Gi")),
        ("the next value", &values, Some("3Gi"), is("8Gi")),
        ("beyond the values", &values, Some("9Gi"), elsewhere()),
        ("the default of a range", &stepped, None, is("1Gi")),
        ("the least", &stepped, Some("1"), is("1Gi")),
        ("a step", &stepped, Some("3Gi"), is("3Gi")),
        ("the next step", &stepped, Some("3221225473"), is("5Gi")),
        ("the last step", &stepped, Some("8Gi"), is("9Gi")),
        ("beyond the most", &stepped, Some("10Gi"), elsewhere()),
        ("no steps", &range(json!({"min": "1Gi"})), Some("1500Mi"), is("1500Mi")),
        ("a step of a part", &parts, Some("250m"), is("300m")),
        ("the least part", &parts, Some("1m"), is("100m")),
        ("a whole number of parts", &parts, Some("2"), is("2")),
        ("the last part", &parts, Some("2401m"), is("2500m")),
        ("beyond the last part", &parts, Some("2600m"), elsewhere()),
        ("a default alone", &memory(json!({"default": "1Gi"})), None, is("1Gi")),
        ("a default alone, and another request", &memory(json!({"default": "1Gi"})), Some("3Gi"), is("3Gi")),
        ("nothing at all", &json!({}), None, Ok("r=s".to_owned())),
    ] {
        let claim = request.map_or_else(|| one(json!({})), asking);
        assert_eq!(given(&shared(capacity), &[&claim], &[]), expected, "{what}");
    }
}

#[test]
fn a_device_is_shared_until_it_is_used_up() {
    let inventory = shared(&memory(json!({"default": "1Gi"})));
    let four = asking("4Gi");
    assert_eq!(given(&inventory, &[&four, &four], &[]).as_deref(), Ok("r=s(memory:4Gi); r=s(memory:4Gi)"));
    assert_eq!(given(&inventory, &[&four, &four, &four], &[]).as_deref(), Ok("r=s(memory:4Gi); r=s(memory:4Gi); r=w"));
    assert_eq!(given(&inventory, &[&four, &four, &four, &four], &[]), Err(Refusal::NotHere));
    for (amounts, expected) in [
        (vec![("memory", "6Gi")], "r=s(memory:4Gi)"),
        (vec![("memory", "3Gi"), ("gpu.example.com/memory", "3Gi")], "r=s(memory:4Gi)"),
        (vec![("memory", "6Gi"), ("memory", "1")], "r=w"),
        // What a device has no more is nobody's.
        (vec![("bandwidth", "600Gi")], "r=s(memory:4Gi)"),
    ] {
        assert_eq!(given_beside(&inventory, &[&four], &others(&amounts)).as_deref(), Ok(expected), "{amounts:?}");
    }
    // Somebody has it as a whole, from the time before it was shared.
    assert_eq!(given(&inventory, &[&four], &["s"]).as_deref(), Ok("r=w"));
    let mut whole = serde_json::to_value(others(&[("memory", "1Gi")])).expect("a value");
    whole["devices"]["results"][0]["device"] = json!("w");
    assert_eq!(
        given_beside(&inventory, &[&asking("9Gi"), &asking("2Gi")], &whole),
        Err(Refusal::NotHere),
        "w has a share"
    );
    whole["devices"]["results"][0]["adminAccess"] = json!(true);
    assert_eq!(
        given_beside(&inventory, &[&asking("9Gi"), &asking("2Gi")], &whole).as_deref(),
        Ok("r=s(memory:9Gi); r=w")
    );
}

#[test]
fn one_request_may_have_a_device_several_times() {
    let inventory = shared(&memory(json!({"default": "4Gi"})));
    let count = |count: i64| one(json!({"count": count}));
    assert_eq!(given(&inventory, &[&count(2)], &[]).as_deref(), Ok("r=s(memory:4Gi) r=s(memory:4Gi)"));
    assert_eq!(given(&inventory, &[&count(3)], &[]).as_deref(), Ok("r=s(memory:4Gi) r=s(memory:4Gi) r=w"));
    assert_eq!(given(&inventory, &[&count(4)], &[]), Err(Refusal::NotHere));
    let all = one(json!({"allocationMode": "All"}));
    assert_eq!(given(&inventory, &[&all], &[]).as_deref(), Ok("r=s(memory:4Gi) r=w"), "each once");
    let apart = |attribute: &str| {
        let request = json!([{"name": "r", "exactly": {"deviceClassName": "gpu", "count": 2}}]);
        claim(json!({"requests": request, "constraints": [{"distinctAttribute": attribute}]}))
    };
    assert_eq!(given(&inventory, &[&apart("gpu.example.com/kind")], &[]), Err(Refusal::NotHere));
    let named =
        |name: &str| json!({"name": name, "allowMultipleAllocations": true, "attributes": {"id": {"string": name}}});
    let two = super::inventory(&[slice(json!([named("a"), named("b")]))]);
    assert_eq!(given(&two, &[&count(2)], &[]).as_deref(), Ok("r=a r=a"));
    assert_eq!(given(&two, &[&apart("gpu.example.com/id")], &[]).as_deref(), Ok("r=a r=b"));
}

#[test]
fn names_of_capacities_have_the_drivers_domain() {
    let own = shared(&json!({"memory": {"value": "10Gi"}}));
    let full = shared(&json!({"gpu.example.com/memory": {"value": "10Gi"}}));
    let both = shared(&json!({"memory": {"value": "1Gi"}, "gpu.example.com/memory": {"value": "10Gi"}}));
    let asked = |name: &str| one(json!({"capacity": {"requests": {name: "9Gi"}}}));
    for (inventory, name, expected) in [
        (&own, "gpu.example.com/memory", Ok("r=s(memory:9Gi)")),
        (&full, "memory", Ok("r=s(gpu.example.com/memory:9Gi)")),
        (&both, "memory", Ok("r=s(gpu.example.com/memory:9Gi)")),
        (&own, "other.com/memory", Err(Refusal::NotHere)),
        (&own, "nothing", Err(Refusal::NotHere)),
    ] {
        let found = given(inventory, &[&asked(name)], &[]);
        assert_eq!(found, expected.map(str::to_owned), "{name}");
    }
    let twice = one(json!({"capacity": {"requests": {"memory": "1", "gpu.example.com/memory": "2"}}}));
    assert!(matches!(given(&own, &[&twice], &[]), Err(Refusal::Broken(it)) if it.contains("by two names")));
}

/// No other device is looked for where nobody could reckon with what is asked for.
#[test]
fn what_cannot_be_reckoned_with_is_told() {
    let stepped = shared(&memory(json!({"default": "1", "validRange": {"min": "1", "step": "7"}})));
    for (inventory, request, told) in [
        (&stepped, "9223372036854775806", "cannot be represented"),
        (&shared(&json!({"memory": {"value": "10Gi"}})), "-1", "is negative"),
    ] {
        let found = given(inventory, &[&asking(request)], &[]);
        assert!(matches!(&found, Err(Refusal::Broken(it)) if it.contains(told)), "{request}: {found:?}");
    }
}

/// A device that takes of counters takes of them once, however many have it.
#[test]
fn shares_take_of_counters_once() {
    let takes = json!([{"counterSet": "c", "counters": {"n": {"value": "2"}}}]);
    let device = |name: &str, is_shared: bool| json!({"name": name, "allowMultipleAllocations": is_shared, "consumesCounters": takes});
    let mut spec = slice(json!([device("s", true), device("w", false)]));
    spec["sharedCounters"] = json!([{"name": "c", "counters": {"n": {"value": "3"}}}]);
    let inventory = inventory(&[spec]);
    let one = one(json!({}));
    assert_eq!(given(&inventory, &[&one, &one, &one], &[]).as_deref(), Ok("r=s; r=s; r=s"));
    assert_eq!(given_beside(&inventory, &[&one], &others(&[])).as_deref(), Ok("r=s"));
    assert_eq!(given(&inventory, &[&one], &["w"]), Err(Refusal::NotHere));
}
