use std::collections::BTreeSet;

use corten_kinds::{KINDS, Kinds};
use corten_routes::RequestInfo;

use super::*;

#[test]
fn what_is_counted_is_shown_and_forgotten_with_its_resource() {
    let metrics = Metrics::default();
    let kind = KINDS.iter().find(|it| &*it.resource.plural == "configmaps").expect("ConfigMaps are a built-in kind");
    let path = "/api/v1/namespaces/default/configmaps";
    let info = RequestInfo::read(&Kinds::default(), "GET", path, Some("watch=true")).expect("a path that can be read");
    let watch = metrics.watches.begin(kind, &info, "system:kube-scheduler");
    watch.sent(3);
    metrics.store.wrote("create", &kind.resource, std::time::Duration::from_millis(30), None);
    assert_eq!(metrics.watches.of_schedulers(), 1);
    let text = metrics.text(Vec::new());
    for line in [
        r#"apiserver_longrunning_requests{component="apiserver",group="",resource="configmaps",scope="namespace",subresource="",verb="WATCH",version="v1"} 1"#,
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
fn times_that_were_counted_elsewhere_are_a_histogram() {
    let times = scraped::Distribution { up_to: vec![(0.1, 2), (1.0, 3)], n: 4, sum: 5.5 };
    let families = scraped::histogram("waits", "Of a queue.", &["name"], [(&["a"][..], &times)]);
    assert_eq!(
        encoded(&families),
        "# HELP waits Of a queue.\n# TYPE waits histogram\nwaits_bucket{name=\"a\",le=\"0.1\"} 2\n\
         waits_bucket{name=\"a\",le=\"1\"} 3\nwaits_bucket{name=\"a\",le=\"+Inf\"} 4\n\
         waits_sum{name=\"a\"} 5.5\nwaits_count{name=\"a\"} 4\n"
    );
}

#[test]
fn labels_beyond_the_bound_are_not_counted() {
    let bound = BoundedLabels::new(2);
    assert!(bound.admits(&["a", "bc"]));
    assert!(bound.admits(&["ab", "c"]));
    assert!(!bound.admits(&["abc", ""]), "there are as many as there may be");
    assert!(bound.admits(&["a", "bc"]), "one that is known is counted on");
    bound.forget("a");
    assert!(bound.admits(&["abc", ""]), "what is gone leaves its place");
    assert!(!bound.admits(&["a", "bc"]));
    assert_eq!(bound.make_room(|it| it == "abc"), BTreeSet::from(["ab".into()]));
    assert!(bound.admits(&["a", "bc"]));
    assert_eq!(BoundedLabels::new(2).make_room(|_| false), BTreeSet::new());
}

#[test]
fn what_is_gone_is_counted_no_more() {
    let metric = registered::counter(&Registry::new(), "calls", "Of webhooks.", &["name", "code"]);
    for labels in [["a", "200"], ["a", "500"], ["b", "200"]] {
        metric.with_label_values(&labels).inc();
    }
    forget_labelled(&metric, "name", "a");
    let left = prometheus::core::Collector::collect(&metric);
    assert_eq!(encoded(&left), "# HELP calls Of webhooks.\n# TYPE calls counter\ncalls{code=\"200\",name=\"b\"} 1\n");
}
