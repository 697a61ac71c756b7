use super::*;

const TEXT: &str = r#"
# HELP node_cpu_usage_seconds_total [STABLE] Cumulative cpu time consumed by the node in core-seconds
node_cpu_usage_seconds_total 100.5 1700000010000
node_memory_working_set_bytes 4096 1700000010000
container_cpu_usage_seconds_total{container="main",namespace="default",pod="web"} 5 1700000010000
container_memory_working_set_bytes{container="main",namespace="default",pod="web"} 1.048576e+06 1700000010000
container_start_time_seconds{container="main",namespace="default",pod="web"} 1.7e+09
broken{ 12
scrape_error 0
"#;

fn at(seconds: i64, edit: impl Fn(String) -> String) -> Arc<Reading> {
    let text = edit(TEXT.replace("1700000010000", &(seconds * 1000).to_string()));
    Arc::new(Reading::parse(&text, Time::from_unix_seconds(seconds)))
}

#[test]
fn use_is_the_difference_of_two_readings() {
    const FIRST: i64 = 1_700_000_010;
    let same = |it: String| it;
    for (name, older, newer, nanocores, seconds) in [
        ("half a core", Some(at(FIRST, same)), at(FIRST + 10, |it| it.replace("} 5 ", "} 10 ")), Some(500_000_000), 10),
        ("nothing", Some(at(FIRST, same)), at(FIRST + 2, same), Some(0), 2),
        // New since the older reading: reckoned from its start.
        ("new", Some(at(FIRST, |_| String::new())), at(FIRST, same), Some(500_000_000), 10),
        (
            "restarted",
            Some(at(FIRST, same)),
            at(FIRST + 10, |it| it.replace("1.7e+09", "1.700000015e+09")),
            Some(1_000_000_000),
            5,
        ),
        ("too short a while", Some(at(FIRST, same)), at(FIRST, same), None, 0),
        ("no memory", Some(at(FIRST, same)), at(FIRST + 10, |it| it.replace("container_memory", "other")), None, 0),
    ] {
        let pair = Pair { older, newer: Some(newer), ..Pair::default() };
        let found = pair.pod("default", "web");
        let used = found.as_ref().map(|(uses, window)| (uses["main"].nanocores, window.length.as_secs()));
        assert_eq!(used, nanocores.map(|it| (it, seconds)), "{name}");
        assert!(pair.pod("default", "other").is_none());
    }
}

#[test]
fn a_node_needs_two_readings() {
    let first = at(1_700_000_010, |it| it);
    let second = at(1_700_000_020, |it| it.replace("100.5", "102.5"));
    let (used, window) =
        Pair { older: Some(first.clone()), newer: Some(second), ..Pair::default() }.node().expect("two readings");
    assert_eq!((used.nanocores, used.memory_bytes, window.length.as_secs()), (200_000_000, 4096, 10));
    assert!(Pair { newer: Some(first), ..Pair::default() }.node().is_none());
}

#[test]
fn labels_are_found_whatever_is_in_them() {
    let text = r#"container_cpu_usage_seconds_total{pod="a",note="x{}\"",container="c"} 1"#;
    let sample = exposition::samples(text).next().expect("a sample");
    assert_eq!((sample.label("pod"), sample.label("container"), sample.label("none")), ("a", "c", ""));
}

#[test]
fn a_silent_node_is_not_asked_again_at_once() {
    let silent = Pair { silent_since: Some(Time::from_unix_seconds(100)), ..Pair::default() };
    assert!(silent.is_fresh(Time::from_unix_seconds(114)));
    assert!(!silent.is_fresh(Time::from_unix_seconds(116)));
}
