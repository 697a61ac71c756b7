use corten_kinds::KINDS;

use super::*;

#[test]
fn what_is_counted_is_shown_and_forgotten_with_its_resource() {
    let metrics = Metrics::default();
    let kind = KINDS.iter().find(|it| &*it.resource.plural == "configmaps").expect("ConfigMaps are a built-in kind");
    let watch = metrics.watches.begin(kind, "system:kube-scheduler");
    watch.sent(3);
    metrics.store.wrote("create", &kind.resource, std::time::Duration::from_millis(30), None);
    assert_eq!(metrics.watches.of_schedulers(), 1);
    let text = metrics.text(Vec::new());
    for line in [
        r#"apiserver_longrunning_requests{group="",resource="configmaps",verb="WATCH",version="v1"} 1"#,
        r#"apiserver_watch_events_total{group="",resource="configmaps",version="v1"} 3"#,
        r#"etcd_request_duration_seconds_bucket{group="",operation="create",resource="configmaps",le="0.05"} 1"#,
        r#"etcd_request_duration_seconds_bucket{group="",operation="create",resource="configmaps",le="0.025"} 0"#,
        "# TYPE etcd_requests_total counter",
    ] {
        assert!(text.lines().any(|it| it == line), "{line} is missing:\n{text}");
    }
    metrics.forget(&kind.resource);
    assert!(!metrics.text(Vec::new()).contains("configmaps"));
    drop(watch);
    assert_eq!(metrics.watches.of_schedulers(), 0);
}

#[test]
fn what_is_looked_up_is_text_whatever_its_labels_hold() {
    let families = scraped::gauge("things", "Of all kinds.", &["name"], [(&["a\"\n\\b"][..], 1.5)]);
    assert_eq!(
        encoded(&families),
        "# HELP things Of all kinds.\n# TYPE things gauge\nthings{name=\"a\\\"\\n\\\\b\"} 1.5\n"
    );
    assert_eq!(encoded(&scraped::counter("none", "Nothing.", &["name"], [])), "");
}

#[test]
fn labels_beyond_the_bound_are_not_counted() {
    let bound = BoundedLabels::new(2);
    assert!(bound.admits(&["a", "bc"]));
    assert!(bound.admits(&["ab", "c"]));
    assert!(!bound.admits(&["abc", ""]), "there are as many as there may be");
    assert!(bound.admits(&["a", "bc"]), "one that is known is counted on");
}
