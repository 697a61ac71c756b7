use std::time::Duration;

use tempfile::TempDir;
use tokio::sync::watch;

use super::{File, ONE, SECRET, TWO, aesgcm, entry, memory, of_secrets, over, put, text};
use crate::{EncryptedStore, Encryption};

#[tokio::test]
async fn what_is_wrong_is_said_in_upstream_s_words() {
    let cases: &[(&str, &str)] = &[
        (
            "kind: EncryptionConfiguration\napiVersion: apiserver.config.k8s.io/v1",
            "error while parsing file: resources: Required value: at least one resources is required",
        ),
        (
            "kind: EncryptionConfig\napiVersion: v1",
            "error while parsing file: no kind \"EncryptionConfig\" is registered for version \"v1\", only EncryptionConfiguration of apiserver.config.k8s.io/v1",
        ),
        (
            &format!(
                "kind: EncryptionConfiguration\napiVersion: apiserver.config.k8s.io/v1\nresources:\n- {{resources: [], providers: []}}\n- {{resources: [secrets, '*.', Pods, '*', 'pods.*', events.events.k8s.io, apiserveripinfo, a.extensions], providers: [{{identity: {{}}, {}]}}",
                &aesgcm("k", ONE)[1..]
            ),
            "error while parsing file: [resources[0].resources: Required value: at least one resources[0].resources is required, resources[0].providers: Required value: at least one resources[0].providers is required, resources[1].resources: Invalid value: [\"secrets\", \"*.\", \"Pods\", \"*\", \"pods.*\", \"events.events.k8s.io\", \"apiserveripinfo\", \"a.extensions\"]: the same resource cannot be specified multiple times, resources[1].resources: Invalid value: [\"secrets\", \"*.\", \"Pods\", \"*\", \"pods.*\", \"events.events.k8s.io\", \"apiserveripinfo\", \"a.extensions\"]: using overlapping resources such as 'secrets' and '*.' in the same resource list is not allowed as they will be masked, resources[1].resources[2]: Invalid value: \"Pods\": resource name should not contain capital letters, resources[1].resources[3]: Invalid value: \"*\": use '*.' to encrypt all the resources from core API group or *.* to encrypt all resources, resources[1].resources[4]: Invalid value: \"pods.*\": encrypting the same resource across groups is not supported, resources[1].resources[5]: Invalid value: \"events.events.k8s.io\": '*.events.k8s.io' objects are stored using the 'events' API group in etcd. Use 'events' instead in the config file, resources[1].resources[6]: Invalid value: \"apiserveripinfo\": resources which do not have REST API/s cannot be encrypted, resources[1].resources[7]: Invalid value: \"a.extensions\": 'extensions' group has been removed and cannot be used for encryption, resources[1].providers[0]: Invalid value: [\"aesgcm\", \"identity\"]: more than one provider specified in a single element, should split into different list elements]",
        ),
        (
            &of_secrets(
                "{aesgcm: {keys: [{secret: AAAA}, {name: a}, {name: b, secret: '%'}]}}, {secretbox: {}}, {aescbc: {keys: []}}, {}",
            ),
            "error while parsing file: [resources[0].providers[0].aesgcm.keys[0].name: Required value: name is a mandatory field for a key, resources[0].providers[0].aesgcm.keys[0].secret: Invalid value: \"REDACTED\": secret is not of the expected length, got 3, expected one of [16 24 32], resources[0].providers[0].aesgcm.keys[1].secret: Required value: secret is a mandatory field for a key, resources[0].providers[0].aesgcm.keys[2].secret: Invalid value: \"REDACTED\": secrets must be base64 encoded, resources[0].providers[1].secretbox.keys: Required value: at least one keys is required, resources[0].providers[2].aescbc.keys: Required value: at least one keys is required, resources[0].providers[3]: Invalid value: []: provider does not contain any of the expected providers: KMS, AESGCM, AESCBC, Secretbox, Identity]",
        ),
        (
            &of_secrets(
                "{kms: {apiVersion: v2, name: 'a:b', endpoint: 'http://x', timeout: 0s, cachesize: 5}}, {kms: {apiVersion: v3, name: 'a:b'}}",
            ),
            "error while parsing file: [resources[0].providers[0].kms.name: Invalid value: \"a:b\": invalid KMS provider name a:b, must not contain ':', resources[0].providers[0].kms.timeout: Invalid value: 0s: timeout should be a positive value, resources[0].providers[0].kms.endpoint: Invalid value: \"http://x\": unsupported scheme \"http\" for KMS provider, only unix is supported, resources[0].providers[0].kms.cachesize: Invalid value: 5: cachesize is not supported in v2, resources[0].providers[1].kms.name: Invalid value: \"a:b\": invalid KMS provider name a:b, must not contain ':', resources[0].providers[1].kms.name: Invalid value: \"a:b\": duplicate KMS provider name a:b, names must be unique, resources[0].providers[1].kms.endpoint: Invalid value: \"\": endpoint is a mandatory field for a kms, resources[0].providers[1].kms.apiVersion: Invalid value: \"v3\": unsupported apiVersion apiVersion for KMS provider, only v1 and v2 are supported]",
        ),
        (
            &of_secrets("{kms: {name: a, endpoint: 'unix:///x'}}"),
            "error while building transformers: KMSv1 is deprecated and will only receive security updates going forward. Use KMSv2 instead.",
        ),
        (
            &format!(
                "{}- {{resources: ['*.'], providers: [{{identity: {{}}}}]}}\n- {{resources: [pods], providers: [{{identity: {{}}}}]}}\n",
                of_secrets("{identity: {}}")
            ),
            "error while building transformers: resource \"pods\" is masked by earlier rule \"*.\"",
        ),
    ];
    for (file, wrong) in cases {
        let error = Encryption::load(&File::new(file).path(), false).await.err().expect("it is wrong");
        assert_eq!(error.to_string(), *wrong, "{file}");
    }
}

#[tokio::test]
async fn a_key_in_the_wrong_place_is_not_told() {
    for providers in [
        format!("{{aesgcm: {{keys: {ONE}}}}}"),
        format!("{{aesgcm: {{keys: [{ONE}]}}}}"),
        format!("{{aesgcm: {{keys: [{{name: a, secret: b, {ONE}: c}}]}}}}"),
        format!("{{aesgcm: {{keys: [{{name: a, secret: [{ONE}]}}]}}}}"),
        format!("{{aesgcm: {ONE}}}"),
    ] {
        let error = Encryption::load(&File::new(&of_secrets(&providers)).path(), false).await.err();
        let error = error.expect("it is wrong").to_string();
        assert!(!error.contains(&ONE[20..]) && !error.contains(&ONE[..30]), "{error}");
    }
}

#[tokio::test]
async fn the_first_rule_that_names_a_resource_holds() {
    let key = |name| format!("providers: [{}]", aesgcm(name, ONE));
    let text_of = format!(
        "apiVersion: apiserver.config.k8s.io/v1\nkind: EncryptionConfiguration\nresources:\n- resources: [secrets]\n  {}\n- resources: [configmaps]\n  providers: [{{identity: {{}}}}]\n- resources: ['*.apps']\n  {}\n- resources: ['*.']\n  {}\n- resources: ['*.*']\n  {}\n",
        key("one"),
        key("apps"),
        key("core"),
        key("all"),
    );
    let inner = memory();
    let store = over(&inner, &text_of).await;
    for (key, first) in [
        (SECRET, "k8s:enc:aesgcm:v1:one:"),
        ("/registry/configmaps/default/a", "value"),
        ("/registry/deployments/default/a", "k8s:enc:aesgcm:v1:apps:"),
        ("/registry/pods/default/a", "k8s:enc:aesgcm:v1:core:"),
        ("/registry/minions/a", "k8s:enc:aesgcm:v1:core:"),
        ("/registry/services/specs/default/a", "k8s:enc:aesgcm:v1:core:"),
        ("/registry/leases/default/a", "k8s:enc:aesgcm:v1:all:"),
        ("/registry/stable.example.com/crontabs/default/a", "k8s:enc:aesgcm:v1:all:"),
        ("/registry/apiextensions.k8s.io/customresourcedefinitions/a", "k8s:enc:aesgcm:v1:all:"),
        // No objects.
        ("/registry/ranges/serviceips/10.0.0.1", "value"),
        ("compact_rev_key", "value"),
    ] {
        put(&store, key, "value").await.expect("it is stored");
        let stored = entry(&*inner, key).await.value;
        assert!(stored.starts_with(first.as_bytes()), "{key}: {:?}", text(&stored));
        assert_eq!(entry(&store, key).await.value, "value", "{key}");
    }
}

#[tokio::test(start_paused = true)]
async fn the_file_is_read_again_and_what_is_none_changes_nothing() {
    let file = File::new(&of_secrets(&aesgcm("one", ONE)));
    let encryption = Encryption::load(&file.path(), true).await.expect("it is a configuration");
    let inner = memory();
    let store = EncryptedStore::new(inner.clone(), encryption);
    let ended = watch::Sender::new(false);
    let keeping = tokio::spawn(store.clone().keep(ended.subscribe()));
    put(&store, SECRET, "value").await.expect("it is stored");

    let measured = |what: &str| {
        let out = corten_metrics::encoded(&store.encryption().measured());
        out.lines().filter(|it| it.contains(what)).map(str::to_owned).collect::<Vec<_>>().join("\n")
    };
    let reloads = || measured("automatic_reloads_total{");
    file.write("kind: None");
    let until = async |what: &str| {
        while !reloads().contains(what) {
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    };
    until("failure\"} 1").await;
    assert!(!store.is_stale(SECRET.as_bytes()).await.expect("the store is open"), "the first one is still in use");
    let refused = store.encryption().refused().expect("it is told");
    assert_eq!((refused.what, refused.path), ("the encryption configuration", file.path()));

    file.write(&of_secrets(&format!("{}, {}", aesgcm("two", TWO), aesgcm("one", ONE))));
    until("success\"} 1").await;
    assert!(store.encryption().refused().is_none());
    assert!(store.is_stale(SECRET.as_bytes()).await.expect("the store is open"));
    assert_eq!(entry(&store, SECRET).await.value, "value");
    put(&store, SECRET, "value").await.expect("it is stored");
    assert!(entry(&*inner, SECRET).await.value.starts_with(b"k8s:enc:aesgcm:v1:two:"));
    assert!(measured("last_config_info{").contains("hash=\"sha256:"));

    ended.send_replace(true);
    keeping.await.expect("it ends");
}

/// A key that is taken away while values are stored under it: they are known and told of until they are written anew.
#[tokio::test(start_paused = true)]
async fn a_key_that_is_taken_away_too_early_is_told_of() {
    let (one, two) = (aesgcm("one", ONE), aesgcm("two", TWO));
    let file = File::new(&of_secrets(&format!("{two}, {one}")));
    let store = EncryptedStore::new(memory(), Encryption::load(&file.path(), true).await.expect("a configuration"));
    let ended = watch::Sender::new(false);
    let keeping = tokio::spawn(store.clone().keep(ended.subscribe()));
    put(&store, SECRET, "value").await.expect("it is stored");
    put(&store, "/registry/configmaps/default/a", "plain").await.expect("it is stored");
    assert!(store.encryption().lost_keys().is_empty());
    let until = async |n: usize| {
        while store.encryption().lost_keys().len() != n {
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    };
    file.write(&of_secrets(&one));
    until(1).await;
    let told = store.encryption().lost_keys().remove(0);
    assert!(told.starts_with("1 of secrets are stored under key \"two\" of aesgcm, which the encryption"), "{told}");
    let out = corten_metrics::encoded(&store.encryption().measured());
    assert!(
        out.lines().any(|it| it.starts_with("corten_encryption_values_without_key{") && it.ends_with(" 1")),
        "{out}"
    );
    put(&store, SECRET, "value").await.expect("it is stored anew, under the other key");
    until(0).await;
    ended.send_replace(true);
    keeping.await.expect("it ends");
}

#[tokio::test]
async fn a_file_that_is_not_there_is_an_error() {
    let folder = TempDir::new().expect("there is room");
    let error = Encryption::load(&folder.path().join("none"), false).await.err().expect("there is none");
    assert!(error.to_string().contains("error reading encryption provider configuration file"), "{error}");
    let error = Encryption::load(&File::new("").path(), false).await.err().expect("it is empty");
    assert!(error.to_string().ends_with("is empty"), "{error}");
}

use corten_store::Store;
