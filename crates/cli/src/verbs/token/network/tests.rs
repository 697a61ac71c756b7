use super::*;

fn settings(of: &[(&str, &str)]) -> Settings {
    of.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
}

#[test]
fn what_kubeadm_has_kept_is_read() {
    let text = "apiVersion: kubeadm.k8s.io/v1beta4\nkind: ClusterConfiguration\nnetworking:\n  dnsDomain: cluster.local\n  \
                podSubnet: 10.200.0.0/16\n  serviceSubnet: 10.97.0.0/16\n";
    let expected =
        settings(&[(CLUSTER_CIDR, "10.200.0.0/16"), (SERVICE_RANGE, "10.97.0.0/16"), (DOMAIN, "cluster.local")]);
    assert_eq!(read_kubeadm(text).expect("it is read"), expected);
    assert_eq!(read_kubeadm("kind: ClusterConfiguration").expect("it is read"), Settings::new());
    assert!(read_kubeadm("networking: [").is_err());
}

#[test]
fn an_option_counts_before_what_is_said_and_both_must_be_a_network() {
    let said = settings(&[(CLUSTER_CIDR, "10.200.0.0/16"), (SERVICE_RANGE, "10.97.0.0/16")]);
    let wanted = settled(said.clone(), &settings(&[(SERVICE_RANGE, "10.98.0.0/16")])).expect("a network");
    let expected = [
        (CLUSTER_CIDR, "10.200.0.0/16"),
        (DOMAIN, "cluster.local"),
        (NODE_MASK_IPV4, "24"),
        (NODE_MASK_IPV6, "64"),
        (SERVICE_RANGE, "10.98.0.0/16"),
    ];
    assert_eq!(wanted, settings(&expected));
    for (said, given, refused) in [
        (&[][..], &[][..], "--cluster-cidr, --service-cluster-ip-range is needed"),
        (&[(CLUSTER_CIDR, "10.200.0.0/16")], &[], "where its Pods and Services are: --service-cluster-ip-range is"),
        (&[(CLUSTER_CIDR, "x")], &[(SERVICE_RANGE, "10.98.0.0/16")], "the cluster's network is wrong"),
    ] {
        let error = settled(settings(said), &settings(given)).expect_err("refused").to_string();
        assert!(error.contains(refused), "{error}");
    }
}
