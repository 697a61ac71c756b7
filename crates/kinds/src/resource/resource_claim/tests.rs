use super::*;

#[test]
fn what_is_told_of_devices_goes_with_them() {
    let device = |name: &str| json!({ "driver": "d.example.com", "pool": "p", "device": name });
    let claim = |has: &[&str], told: &[&str]| {
        let [has, told] = [has, told].map(|it| it.iter().map(|it| device(it)).collect::<Vec<_>>());
        json!({ "status": { "allocation": { "devices": { "results": has } }, "devices": told } })
    };
    let old = claim(&["a", "b"], &["a", "b"]);
    let mut released = json!({ "status": { "devices": [device("a"), device("b")] } });
    ResourceClaim.prepare_status_update(&mut released, &old);
    assert_eq!(released, json!({ "status": {} }));

    let mut kept = claim(&["a", "b"], &["b", "never-had"]);
    ResourceClaim.prepare_status_update(&mut kept, &old);
    assert_eq!(kept, claim(&["a", "b"], &["b", "never-had"]), "that of others is for the validation");

    // Of two shares of a device one goes.
    let share = |id: &str| json!({ "driver": "d.example.com", "pool": "p", "device": "a", "shareID": id });
    let shared = |has: &[&str], told: &[&str]| {
        let [has, told] = [has, told].map(|it| it.iter().map(|it| share(it)).collect::<Vec<_>>());
        json!({ "status": { "allocation": { "devices": { "results": has } }, "devices": told } })
    };
    let mut one = shared(&["2"], &["1", "2"]);
    ResourceClaim.prepare_status_update(&mut one, &shared(&["1", "2"], &["1", "2"]));
    assert_eq!(one, shared(&["2"], &["2"]));

    let mut fewer = claim(&["b"], &["a", "b"]);
    ResourceClaim.prepare_status_update(&mut fewer, &old);
    assert_eq!(fewer, claim(&["b"], &["b"]));
}
