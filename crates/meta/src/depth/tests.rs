use super::*;

/// So small that a recursion without a bound is noticed at once.
const STACK_BYTES: usize = 512 * 1024;

fn lists(levels: usize) -> String {
    format!("{}1{}", "[".repeat(levels), "]".repeat(levels))
}

fn maps(levels: usize) -> String {
    format!("{}1{}", r#"{"a":"#.repeat(levels), "}".repeat(levels))
}

fn on_a_small_stack(check: impl FnOnce() + Send + 'static) {
    let thread = std::thread::Builder::new().stack_size(STACK_BYTES).spawn(check);
    thread.expect("a thread starts").join().expect("the check holds");
}

#[test]
fn the_bound_is_that_of_the_reader() {
    for nested in [lists, maps] {
        for (levels, expected) in [(0, true), (1, true), (LEVELS_MAX, true), (DEPTH_MAX, false), (DEPTH_MAX + 1, false)]
        {
            let text = nested(levels);
            assert_eq!(of_text(text.as_bytes()), levels);
            let read = serde_json::from_str::<Value>(&text);
            assert_eq!(read.is_ok(), expected, "{levels} levels");
            match read {
                Ok(value) => {
                    assert!(fits(&value, levels) && (levels == 0 || !fits(&value, levels - 1)));
                    assert!(fits(&value, LEVELS_MAX));
                }
                Err(error) => assert_eq!(reason(&error), EXCEEDED),
            }
        }
    }
}

#[test]
fn text_is_no_nesting() {
    for (json, levels) in
        [(r#"{"a":"[[[["}"#, 1), (r#"["\"[[",["\\"],[]]"#, 2), (r#""[""#, 0), ("]]][", 1), (r#"["\"#, 1), ("", 0)]
    {
        assert_eq!(of_text(json.as_bytes()), levels, "{json}");
    }
    assert!(reason(&serde_json::from_str::<Value>("[").expect_err("broken")).starts_with("EOF"));
}

#[test]
fn what_is_too_deep_is_read_up_to_the_bound() {
    on_a_small_stack(|| {
        for nested in [lists, maps] {
            for levels in [1, LEVELS_MAX, DEPTH_MAX, 255, 256, 1_000, 65_536, 500_000] {
                let text = nested(levels);
                let Read { value, is_whole } = read(text.as_bytes()).expect("it is JSON");
                assert_eq!(is_whole, levels <= LEVELS_MAX, "{levels} levels");
                assert!(fits(&value, LEVELS_MAX) && (is_whole || !fits(&value, LEVELS_MAX - 1)));
                if is_whole {
                    assert_eq!(value.to_string(), text);
                }
                let answer = read_answer(format!(r#"{{"items":[{text}]}}"#).as_bytes()).expect("it is JSON");
                assert_eq!(answer.is_whole, levels + 2 <= LEVELS_MAX + AROUND, "{levels} levels");
            }
        }
        assert!(read("[".repeat(500_000).as_bytes()).is_err(), "broken is not deep");
        assert!(read(b"[").is_err());
    });
}

#[test]
fn beside_what_is_too_deep_nothing_is_lost() {
    let deep = lists(200);
    let read = read(format!(r#"{{"a":{deep},"b":[1,-2,3.5,18446744073709551615,true,null,"x"],"c":{{}}}}"#).as_bytes());
    let Read { mut value, is_whole } = read.expect("it is JSON");
    assert!(!is_whole);
    value["a"] = Value::Null;
    assert_eq!(value.to_string(), r#"{"a":null,"b":[1,-2,3.5,18446744073709551615,true,null,"x"],"c":{}}"#);
}

#[test]
fn a_text_is_measured_without_being_read() {
    for (text, whole, first) in [
        (r#"[{"a":[1]},{}],"b":[[[[1]]]]"#, 4, Some((14, 3))),
        (r#"{"a":"]}\"[\\","b":{}}"#, 2, Some((22, 2))),
        (r#"{"a":["#, 2, None),
        (r#"{"a":"["#, 1, None),
        (r#""[" [1]"#, 1, None),
        ("", 0, None),
        ("]]", 0, None),
    ] {
        assert_eq!((of_text(text.as_bytes()), of_first(text.as_bytes())), (whole, first), "{text}");
    }
}
