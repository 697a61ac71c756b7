//! Selectors of devices: upstream's examples, and what each gives of one device.

use serde_json::json;

use crate::{Device, DeviceSelector, STORED_EXPRESSIONS, SelectorError};

fn ask(expression: &str) -> Result<bool, String> {
    let device = json!({
        "name": "gpu-0",
        "attributes": {
            "model": {"string": "a"}, "cores": {"int": 4}, "shared": {"bool": true}, "dra.example.com/firmware": {"version": "1.2.3"},
            "links": {"strings": ["x", "y"]}, "other.example.com/n": {"ints": [1, 2]},
        },
        "capacity": {"memory": {"value": "2Gi"}, "other.example.com/slots": {"value": "3"}},
    });
    let device = Device::new("dra.example.com", &device).expect("a device");
    DeviceSelector::compile(expression, STORED_EXPRESSIONS).map_err(|it| it.to_string())?.matches(&device)
}

#[test]
fn a_selector_is_asked_of_a_device() {
    for (expression, expected) in [
        (r#"device.driver == "dra.example.com""#, true),
        (r#"device.attributes["dra.example.com"].model == "a""#, true),
        (r#"device.attributes["dra.example.com"].cores > 4"#, false),
        (r#"device.attributes["dra.example.com"].shared"#, true),
        (r#"device.attributes["dra.example.com"].firmware.isGreaterThan(semver("1.2.0"))"#, true),
        (r#"device.capacity["dra.example.com"].memory.compareTo(quantity("1Gi")) > 0"#, true),
        (r#"device.capacity["other.example.com"].slots.isLessThan(quantity("3"))"#, false),
        (r#"cel.bind(dra, device.attributes["dra.example.com"], dra.cores == 4 && dra.shared)"#, true),
        (r#""model" in device.attributes["dra.example.com"]"#, true),
        (r#""model" in device.attributes["nobody.example.com"]"#, false),
        (r#""nobody.example.com" in device.attributes"#, false),
        (r#"has(device.attributes["nobody.example.com"].model)"#, false),
        (r#"device.attributes["dra.example.com"].links.exists(it, it == "y")"#, true),
        (r#"device.attributes["other.example.com"].n.all(it, it < 2)"#, false),
        ("device.allowMultipleAllocations", false),
    ] {
        assert_eq!(ask(expression), Ok(expected), "{expression}");
    }
}

#[test]
fn what_is_wrong_is_said_in_upstreams_words() {
    for (expression, words) in [
        ("aaa", "compilation failed: ERROR: <input>:1:1: undeclared reference to 'aaa'"),
        ("device.driver", "must evaluate to bool or the unknown type, not string"),
        ("device.nothing == 1", "undefined field 'nothing'"),
        (r#"device.attributes["nobody.example.com"].model == "a""#, "no such key: model"),
        (r#"device.attributes["dra.example.com"].model"#, "CEL result of type string could not be converted to bool"),
    ] {
        let error = ask(expression).expect_err(expression);
        assert!(error.contains(words), "{expression}: {error}");
    }
}

#[test]
fn a_bomb_does_not_compile_and_a_bad_attribute_makes_no_device() {
    let ten = "[1,2,3,4,5,6,7,8,9,10]";
    let bomb = (0..7).fold("int('1'.find('[0-9]*')) < 100".to_owned(), |it, nth| format!("{ten}.all(x{nth}, {it})"));
    assert_eq!(DeviceSelector::compile(&bomb, STORED_EXPRESSIONS).err(), Some(SelectorError::TooComplex));
    let device = json!({"attributes": {"v": {"version": "one"}}});
    let error = Device::new("d", &device).expect_err("no version");
    assert_eq!(error, "attribute v: parse semantic version: No Major.Minor.Patch elements found");
}
