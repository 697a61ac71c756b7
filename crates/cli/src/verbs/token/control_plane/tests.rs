use super::*;

#[test]
fn all_that_a_control_plane_needs_is_shared_and_no_path_of_this_one() {
    let folder = tempfile::tempdir().expect("a folder");
    let data = folder.path();
    let mut hash = String::new();
    let refused = |hash: &str| format!("{:#}", shared(data, hash).expect_err("nothing to share"));
    assert!(refused(&hash).contains("the cluster's keys are not read"), "{}", refused(&hash));
    let authority = corten_pki::Authority::load_or_create(data.join("pki")).expect("an authority");
    assert!(refused(&hash).contains("only this machine has it"), "{}", refused(&hash));
    let certificate = data.join("elsewhere.crt");
    fs::write(&certificate, "etcd's").expect("written");
    let record = ControlPlaneRecord {
        etcd_servers: vec!["https://a:2379".into()],
        etcd_prefix: "/registry".into(),
        etcd_ca_file: Some(certificate.clone()),
        ..ControlPlaneRecord::default()
    };
    record.save(data).expect("written");
    assert!(refused(&hash).contains("belongs to another cluster"), "{}", refused(&hash));
    hash.push_str(&public_key_hashes(&authority.signer_pem())[0].0);
    assert!(refused(&hash).contains("has not met its etcd yet"), "{}", refused(&hash));
    fs::write(data.join(ETCD_CLUSTER), "abc\n").expect("written");
    let files: BTreeMap<String, Vec<u8>> = shared(data, &hash).expect("shared").into_iter().collect();
    let names: Vec<&str> = files.keys().map(String::as_str).collect();
    let expected = [
        "ca.crt",
        "ca.key",
        "control-plane.json",
        "etcd-ca.crt",
        "etcd-cluster",
        "front-proxy-ca.crt",
        "front-proxy-ca.key",
        "sa.key",
    ];
    assert_eq!(names, expected);
    assert_eq!((&files["etcd-ca.crt"][..], &files["etcd-cluster"][..]), (&b"etcd's"[..], &b"abc"[..]));
    let told: ControlPlaneRecord = serde_json::from_slice(&files["control-plane.json"]).expect("a record");
    assert_eq!(told, ControlPlaneRecord { etcd_ca_file: None, is_joined: true, ..record });
    fs::remove_file(certificate).expect("removed");
    assert!(refused(&hash).contains("elsewhere.crt"), "{}", refused(&hash));
}
