//! Values that kube-apiserver stored, and one put together by another program from the format of KMS plugins.

use std::sync::Arc;

use bytes::Bytes;

use super::{SECRET, encryption, text};
use crate::{
    envelope::{EncryptedObject, HKDF_SHA256_XNONCE_AES_GCM_SEED, Opener},
    group_resource::GroupResource,
    transformers::Opened,
};

/// The key of all three, and the configuration kube-apiserver 1.36 had.
const CONFIGURATION: &str = "
apiVersion: apiserver.config.k8s.io/v1
kind: EncryptionConfiguration
resources:
- resources: [secrets]
  providers: [{aescbc: {keys: [{name: key1, secret: qLrr5fgLa+QMYMURuFRUUuRwj1qYVo9uMCHgmEczo/8=}]}}, {identity: {}}]
- resources: [configmaps, widgets.ek.example.org]
  providers: [{aesgcm: {keys: [{name: key2, secret: qLrr5fgLa+QMYMURuFRUUuRwj1qYVo9uMCHgmEczo/8=}]}}, {identity: {}}]
- resources: [serviceaccounts, leases.coordination.k8s.io]
  providers: [{secretbox: {keys: [{name: key3, secret: qLrr5fgLa+QMYMURuFRUUuRwj1qYVo9uMCHgmEczo/8=}]}}, {identity: {}}]
";

#[tokio::test]
async fn what_kube_apiserver_stored_is_read() {
    let encryption = encryption(CONFIGURATION).await;
    let cases: [(&str, &[u8], &str); 3] = [
        ("secrets", include_bytes!("../../testdata/secrets.aescbc.bin"), "Secret"),
        ("configmaps", include_bytes!("../../testdata/configmaps.aesgcm.bin"), "ConfigMap"),
        ("serviceaccounts", include_bytes!("../../testdata/serviceaccounts.secretbox.bin"), "ServiceAccount"),
    ];
    for (resource, stored, kind) in cases {
        let key = format!("/registry/{resource}/ek/ek-enc");
        let resource = GroupResource::parse(resource);
        let stored = Bytes::from_static(stored);
        match encryption.open(Some(&resource), key.as_bytes(), &stored) {
            Opened::Plain { value, is_stale } => {
                assert!(value.starts_with(b"k8s\0"), "{resource}: {:?}", text(&value));
                assert!(text(&value).contains(kind), "{resource}: {:?}", text(&value));
                assert!(!is_stale, "{resource}");
                let again = encryption.seal(&resource, key.as_bytes(), &value).expect("the key is here");
                let again = again.expect("it is encrypted");
                assert_eq!(again.len(), stored.len(), "{resource}: the form is the same");
                assert!(matches!(
                    encryption.open(Some(&resource), key.as_bytes(), &again),
                    Opened::Plain { value: read, .. } if read == value
                ));
            }
            Opened::Unreadable(reason) => panic!("{resource}: {reason}"),
            Opened::NeedsSeed(..) => panic!("{resource}: there is no plugin"),
        }
    }
    // What is authenticated beside the value is its place.
    let moved = Bytes::from_static(include_bytes!("../../testdata/configmaps.aesgcm.bin"));
    let opened = encryption.open(Some(&GroupResource::parse("configmaps")), b"/registry/configmaps/ek/other", &moved);
    let Opened::Unreadable(reason) = opened else { panic!("a value that was moved is read") };
    assert_eq!(reason, r#"key "key2" of aesgcm does not open it: cipher: message authentication failed"#);
}

/// With the seed 0, 1, … 31: made with Node's crypto.
const OF_PLUGIN: &str = "0a49fffefdfcfbfaf9f8f7f6f5f4f3f2f1f0efeeedecebeae9e8e7e6e5e4e3e2e1e00102030405060708090a0b0c0ab5e5db64098c59896da6b2ee0e5732ee90404f078566307879cb442c12056b65792d311a0b7365616c6564207365656422140a0f6b6d732e6578616d706c652e6f72671201762801";

#[test]
fn the_form_of_plugins_is_kubernetes_own() {
    let bytes = |at: usize| u8::from_str_radix(&OF_PLUGIN[at..at + 2], 16).expect("it is hexadecimal");
    let stored: Bytes = (0..OF_PLUGIN.len()).step_by(2).map(bytes).collect();
    let object = EncryptedObject::read(stored.clone()).expect("it is an object");
    assert_eq!(object.key_id, "key-1");
    assert_eq!(object.encrypted_dek_source, "sealed seed");
    assert_eq!(object.annotations["kms.example.org"], b"v");
    assert_eq!(object.encrypted_dek_source_type, HKDF_SHA256_XNONCE_AES_GCM_SEED);
    let seed: Vec<u8> = (0..32).collect();
    let opener = Arc::new(Opener::new(object.encrypted_dek_source_type, &seed).expect("it is a seed"));
    let plain = opener.open(SECRET.as_bytes(), &object.encrypted_data).expect("the seed opens it");
    assert_eq!(plain, b"k8s\0 a secret");
    assert_eq!(prost::Message::encode_to_vec(&object), stored, "and is written in the same form");
    let again = opener.seal(SECRET.as_bytes(), &plain).expect("a seed seals");
    assert_eq!(again.len(), object.encrypted_data.len());
    assert_ne!(again, object.encrypted_data, "no two are alike");
    assert_eq!(opener.open(SECRET.as_bytes(), &again), Ok(plain));
}

#[test]
fn no_bytes_of_a_plugin_s_form_break_what_reads_them() {
    for bytes in [&b""[..], b"\x0a", b"\x0a\xff\xff\xff\xff\x0f", b"\x28\x07", b"\x0a\x01x\x12\x01k\x1a\x00"] {
        EncryptedObject::read(Bytes::copy_from_slice(bytes)).expect_err("it is none");
    }
}
