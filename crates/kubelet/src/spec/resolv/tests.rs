use serde_json::{Value, json};

use super::*;

const CLUSTER: &str = "shop.svc.cluster.local svc.cluster.local cluster.local";

/// `servers | searches | options`, and then the warnings.
fn shown(spec: &Value, config: &Config) -> String {
    let mut spec = spec.clone();
    spec["containers"] = json!([]);
    let pod = json!({ "metadata": { "name": "web", "namespace": "shop", "uid": "u1" }, "spec": spec });
    let pod: Pod = serde_json::from_value(pod).expect("a pod");
    let words = |text: &str| text.split(' ').map(str::to_owned).collect();
    let resolv =
        Dns { servers: words("192.0.2.1 192.0.2.2"), searches: words("example.com corp"), options: words("rotate") };
    let facts = NodeFacts { resolv, ..NodeFacts::default() };
    let (dns, warnings) = of_pod(&pod, config, Some(&facts));
    let mut lines = vec![format!("{} | {} | {}", dns.servers.join(" "), dns.searches.join(" "), dns.options.join(" "))];
    lines.extend(warnings.into_iter().map(|(reason, message)| format!("{reason}: {message}")));
    lines.join("\n")
}

#[test]
fn each_policy_has_its_servers_and_searches() {
    let config = Config::new("n1", "192.0.2.9");
    let node = "192.0.2.1 192.0.2.2 | example.com corp | rotate";
    let cluster = format!("10.96.0.10 | {CLUSTER} example.com corp | ndots:5");
    for (spec, expected) in [
        (json!({}), cluster.clone()),
        (json!({ "dnsPolicy": "ClusterFirst" }), cluster.clone()),
        (json!({ "dnsPolicy": "ClusterFirst", "hostNetwork": true }), node.to_owned()),
        (json!({ "dnsPolicy": "ClusterFirstWithHostNet", "hostNetwork": true }), cluster),
        (json!({ "dnsPolicy": "Default" }), node.to_owned()),
        (json!({ "dnsPolicy": "None", "dnsConfig": { "nameservers": ["192.0.2.7"] } }), "192.0.2.7 |  | ".to_owned()),
        // What the pod adds comes after, and once; its options win.
        (
            json!({ "dnsConfig": {
                "nameservers": ["192.0.2.7", "10.96.0.10"],
                "searches": ["corp", "mine.example"],
                "options": [{ "name": "ndots", "value": "2" }, { "name": "edns0" }],
            } }),
            format!("10.96.0.10 192.0.2.7 | {CLUSTER} example.com corp mine.example | ndots:2 edns0"),
        ),
    ] {
        assert_eq!(shown(&spec, &config), expected, "{spec}");
    }
}

#[test]
fn without_a_cluster_server_the_node_has_the_word() {
    let config = Config { cluster_dns: Vec::new(), ..Config::new("n1", "192.0.2.9") };
    let found = shown(&json!({}), &config);
    let expected = "192.0.2.1 192.0.2.2 | example.com corp | rotate\nMissingClusterDNS: pod: \"web_shop(u1)\". kubelet does \
        not have ClusterDNS IP configured and cannot create Pod using \"ClusterFirst\" policy. Falling back to \"Default\" \
        policy.";
    assert_eq!(found, expected);
}

#[test]
fn what_resolvers_cannot_take_is_left_out_aloud() {
    let config = Config::new("n1", "192.0.2.9");
    let line = |n: usize, of: &str| (0..n).map(|it| format!("{of}{it}")).collect::<Vec<_>>();
    let servers = json!({ "dnsPolicy": "None", "dnsConfig": { "nameservers": line(4, "192.0.2.") } });
    let kept = "192.0.2.0 192.0.2.1 192.0.2.2";
    assert_eq!(
        shown(&servers, &config),
        format!(
            "{kept} |  | \nDNSConfigForming: Nameserver limits were exceeded, some nameservers have been omitted, the \
             applied nameserver line is: {kept}"
        )
    );
    let search = |searches: Vec<String>| json!({ "dnsPolicy": "None", "dnsConfig": { "searches": searches } });
    for (what, searches, kept) in [
        ("as many as there may be", line(32, "d"), line(32, "d")),
        ("one more", line(33, "d"), line(32, "d")),
        ("one that is too long", vec!["a".repeat(254), "b".into()], vec!["b".into()]),
        ("a line that just fits", vec!["a".repeat(226); 1], vec!["a".repeat(226); 1]),
        ("a line that is too long", line(10, &"x".repeat(230)), line(8, &"x".repeat(230))),
    ] {
        let kept_line = kept.join(" ");
        let mut expected = format!(" | {kept_line} | ");
        if kept.len() < searches.len() {
            expected += &format!(
                "\nDNSConfigForming: Search Line limits were exceeded, some search paths have been omitted, the applied \
                 search line is: {kept_line}"
            );
        }
        assert_eq!(shown(&search(searches), &config), expected, "{what}");
    }
}
