//! What can be wrong with a measurement without anything being measured.

use std::time::Duration;

use corten_testbed::text_field;

use super::{
    load::quantile,
    machine, objects,
    report::{Report, Row, Unit, measured_otherwise},
    subject::Subject,
};

#[test]
fn a_pod_is_as_large_as_those_kubernetes_was_measured_with() {
    // With what the server adds it shall come to about 2.7 KB.
    let length = objects::pod("listed-12345").len();
    assert!((1_600..2_400).contains(&length), "{length}");
}

#[test]
fn quantiles_of_few_and_many() {
    let of = |n: u64, q| quantile(&(1..=n).map(Duration::from_millis).collect::<Vec<_>>(), q).as_millis();
    assert_eq!([of(0, 0.5), of(1, 0.99), of(3, 0.5), of(100, 0.99), of(101, 0.5)], [0, 1, 2, 99, 51]);
}

#[test]
fn fields_are_found_also_where_the_text_is_cut() {
    let json = r#"{"kind":"PodList","metadata":{"resourceVersion":"17","continue":""},"items":[{"name":"ä"#;
    assert_eq!(text_field(json.as_bytes(), "resourceVersion").ok(), Some("17"));
    assert_eq!(text_field(&json.as_bytes()[..json.len() - 1], "continue").ok(), Some(""));
    assert!(text_field(json.as_bytes(), "uid").is_err());
}

#[test]
fn better_means_more_of_a_rate_and_less_of_a_time() {
    let rows = vec![
        Row::new("gets", 500.0, Unit::PerSecond).kubernetes(100.0),
        Row::new("start", 0.02, Unit::Seconds).kubernetes(2.0).note("once"),
        Row::new("memory", 40.0, Unit::Megabytes),
    ];
    let subject = Subject::ControlPlane;
    let report =
        Report { machine: machine::describe().expect("this machine has a kernel"), quick: false, subject, rows };
    let expected = "\
measured   Corten  Kubernetes  better  detail
gets       500 /s      100 /s    5.0x
start     0.020 s      2.00 s  100.0x  once
memory    40.0 MB           -       -";
    assert_eq!(report.table(), expected);
    assert!(report.page().contains("| start | 0.020 s | 2.00 s | 100.0x | once |"));
    assert_eq!(report.json()["rows"][0]["unit"], "/s");
}

#[test]
fn what_was_measured_otherwise_stays() {
    assert_eq!(measured_otherwise("# a\n\n| b |\n\n## c\n\nd\n"), "\n## c\n\nd\n");
    assert_eq!(measured_otherwise("# a\n\n| b |\n"), "");
}
