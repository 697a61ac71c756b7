use super::*;

fn of(given: &[(&str, &str)]) -> Result<ClusterNetwork, Vec<String>> {
    ClusterNetwork::of(&given.iter().map(|it| (it.0.to_owned(), it.1.to_owned())).collect())
}

#[test]
fn what_is_written_is_read_again() {
    let only_ipv6 = of(&[
        (CLUSTER_CIDR, "fd12:1::/48"),
        (SERVICE_RANGE, "fd12:2::/112"),
        (NODE_MASK_IPV6, "64"),
        (DOMAIN, "Corp.Example."),
    ]);
    let only_ipv6 = only_ipv6.expect("good settings");
    assert_eq!(only_ipv6.domain, "corp.example");
    assert_eq!(only_ipv6.cluster_dns().map(|it| it.to_string()).as_deref(), Some("fd12:2::a"));
    assert_eq!(only_ipv6.services_where(false), only_ipv6.service_cidrs);
    for network in [ClusterNetwork::default(), only_ipv6] {
        assert_eq!(ClusterNetwork::of(&network.settings()).as_ref(), Ok(&network));
        assert!(network.differing(&network.settings()).is_empty());
    }
    let network = ClusterNetwork::default();
    assert_eq!(network.cluster_cidrs.len() + network.service_cidrs.len(), 4, "every default is a range");
    assert_eq!(network.api_address().map(|it| it.to_string()).as_deref(), Some("10.96.0.1"));
    assert_eq!(
        network.first_parts().iter().map(ToString::to_string).collect::<Vec<_>>(),
        ["10.244.0.0/24", "fd00:10:244::/64"]
    );
    assert_eq!(network.services_where(false).len(), 1);
    let given = [(DOMAIN.to_owned(), "a.b".to_owned()), (NODE_MASK_IPV4.to_owned(), "24".to_owned())].into();
    assert_eq!(network.differing(&given), [(DOMAIN.to_owned(), "cluster.local".to_owned())]);
}

#[test]
fn what_cannot_be_is_refused() {
    for (name, value, expected) in [
        (
            SERVICE_RANGE,
            "10.0.0.0/11",
            "specified --service-cluster-ip-range is too large; for 32-bit addresses, the mask must be >= 12",
        ),
        (
            SERVICE_RANGE,
            "fd00::/107",
            "specified --service-cluster-ip-range is too large; for 128-bit addresses, the mask must be >= 108",
        ),
        (SERVICE_RANGE, "10.0.0.0/30", "the name server's address"),
        (SERVICE_RANGE, "", "--service-cluster-ip-range must contain at least one valid cidr"),
        (
            SERVICE_RANGE,
            "10.0.0.0/16,10.1.0.0/16",
            "--service-cluster-ip-range[0] and --service-cluster-ip-range[1] must be of different IP family",
        ),
        (SERVICE_RANGE, "10.0.0.0/16,fd00::/112,fd01::/112", "must not contain more than two entries"),
        (
            SERVICE_RANGE,
            "10.244.0.0/20",
            "--cluster-cidr 10.244.0.0/16 and --service-cluster-ip-range 10.244.0.0/20 overlap",
        ),
        (SERVICE_RANGE, "fd00::/112", "must begin with the same IP family"),
        (
            CLUSTER_CIDR,
            "10.0.0.0/16",
            "--service-cluster-ip-range has an IP family that --cluster-cidr has not: give --service-cluster-ip-range 10.96.0.0/12 too",
        ),
        (CLUSTER_CIDR, "127.0.0.0/8", "--cluster-cidr: 127.0.0.0/8 holds loopback addresses"),
        (CLUSTER_CIDR, "169.254.0.0/16", "holds link-local addresses, which lead to no other machine"),
        (SERVICE_RANGE, "224.10.0.0/16", "holds multicast addresses"),
        (SERVICE_RANGE, "::/112", "--service-cluster-ip-range: ::/112 holds unspecified and loopback addresses"),
        (CLUSTER_CIDR, "10.50.0.1/16", "10.50.0.1/16 is an address within 10.50.0.0/16"),
        (CLUSTER_CIDR, "pods", "--cluster-cidr: invalid CIDR address: pods"),
        (
            CLUSTER_CIDR,
            "10.0.0.0/25",
            "the size of pod subnet with mask 25 is smaller than the size of node subnet with mask 24",
        ),
        (
            CLUSTER_CIDR,
            "fd00::/40",
            "pod subnet mask (40) and node-mask (64, --node-cidr-mask-size-ipv6) difference is greater than 16",
        ),
        (NODE_MASK_IPV4, "31", "leaves no addresses for Pods"),
        (NODE_MASK_IPV4, "x", "must be the length of a prefix, and not x"),
        (DOMAIN, "corp_example", "--cluster-domain must be a domain"),
        (DOMAIN, "", "--cluster-domain must be a domain"),
    ] {
        let errors = of(&[(name, value)]).expect_err(value);
        assert!(errors.iter().any(|it| it.contains(expected)), "{value}: {errors:?}");
    }
}

#[test]
fn node_ports_are_read_as_upstream_reads_them() {
    for (text, expected) in [
        ("30000-32767", Some("30000-32767")),
        ("40000+100", Some("40000-40100")),
        ("80", Some("80-80")),
        ("0-100", None),
        ("300-200", None),
        ("65000+1000", None),
        ("ports", None),
    ] {
        assert_eq!(NodePorts::parse(text).map(|it| it.to_string()).as_deref(), expected, "{text}");
    }
    assert_eq!(NodePorts::parse(&NodePorts::default().to_string()), Some(NodePorts::default()));
}
