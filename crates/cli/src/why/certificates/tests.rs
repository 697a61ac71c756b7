use super::*;

fn now() -> Time {
    "2026-11-20T12:00:00Z".parse().expect("a time")
}

/// A certificate that is valid from so many days before now to so many days after.
fn certificate(before: i64, after: i64) -> String {
    let mut params = rcgen::CertificateParams::default();
    let day = |days: i64| {
        let second = now().unix_millis() / 1000 + days * 24 * 3600;
        std::time::UNIX_EPOCH + Duration::from_secs(u64::try_from(second).expect("after 1970"))
    };
    params.not_before = day(-before).into();
    params.not_after = day(after).into();
    let key = rcgen::KeyPair::generate().expect("a key");
    format!("{}{}", key.serialize_pem(), params.self_signed(&key).expect("signed").pem())
}

#[test]
fn what_should_have_been_renewed_is_named() {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let (data, log) = (dir.path(), Path::new("/data/log/corten.log"));
    let layout = Layout::new(data, "/run/corten");
    fs::create_dir_all(data.join("pki")).expect("made");
    fs::create_dir_all(data.join("kubelet/pki")).expect("made");
    for (file, before, after, said) in [
        ("pki/admin.crt", 355, 10, Some("CertificateEnds: it ends in 10 days")),
        ("pki/admin.crt", 345, 20, None),
        ("pki/apiserver.crt", 365, -1, Some("CertificateEnded: it ended 24h00m ago")),
        ("pki/apiserver.crt", -3, 365, Some("CertificateNotYetValid: it is not valid for another 3d")),
        ("pki/ca.crt", 3500, 150, Some("CertificateEnds: it ends in 150 days")),
        ("pki/ca.crt", 3000, 650, None),
        // A life that is short is renewed late in it.
        ("kubelet/pki/kubelet-server-current.pem", 9, 2, None),
        ("kubelet/pki/kubelet-server-current.pem", 29, 1, Some("it ends in 24h00m")),
    ] {
        fs::write(data.join(file), certificate(before, after)).expect("written");
        let groups = of_cluster(&layout, log, now());
        let summary = groups.first().map(|it| it.summary.clone());
        assert_eq!(summary.is_some(), said.is_some(), "{file} {before} {after}: {summary:?}");
        assert!(summary.unwrap_or_default().contains(said.unwrap_or_default()), "{file} {before} {after}");
        fs::remove_file(data.join(file)).expect("removed");
    }
    for file in ["pki/admin.crt", "pki/ca.crt", "pki/zone.crt"] {
        fs::write(data.join(file), certificate(-3, 365)).expect("written");
    }
    let groups = of_cluster(&layout, log, now());
    assert_eq!(groups.len(), 1, "the others follow from the authority");
    assert!(groups[0].summary.contains("corten certs rotate-ca"), "{}", groups[0].summary);
    for file in ["pki/admin.crt", "pki/ca.crt", "pki/zone.crt"] {
        fs::remove_file(data.join(file)).expect("removed");
    }
    fs::write(data.join("pki/odd.crt"), "no certificate").expect("written");
    assert!(of_cluster(&layout, log, now()).is_empty());
}

#[test]
fn a_copy_is_told_apart_from_what_is_renewed() {
    let copy = Path::new("/home/me/.kube/config");
    let group = of_user(certificate(360, 5).as_bytes(), copy, Some(Path::new("/data/admin.kubeconfig")), now());
    assert_eq!(group.map(|it| it.next).as_deref(), Some("cp /data/admin.kubeconfig /home/me/.kube/config"));
    assert!(of_user(certificate(5, 360).as_bytes(), copy, None, now()).is_none());
}
