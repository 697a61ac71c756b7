use std::{sync::Arc, time::Duration};

use corten_store::{Entry, Outcome, Range, Store, conformance, memory::Memory};
use tokio::sync::watch;

use super::{File, ONE, SECRET, TWO, aesgcm, encryption, entry, memory, of_secrets, over, put, put_at, text};
use crate::{EncryptedStore, Encryption};

#[tokio::test]
async fn an_encrypted_store_is_a_store() {
    let all =
        "apiVersion: apiserver.config.k8s.io/v1\nkind: EncryptionConfiguration\nresources:\n- resources: ['*.*']\n";
    let text = format!("{all}  providers: [{}]\n", aesgcm("one", ONE));
    // Made beforehand: what makes a store does not wait.
    let mut made = Vec::new();
    for _ in 0..32 {
        made.push(encryption(&text).await);
    }
    let made = parking_lot::Mutex::new(made);
    conformance::run(&|limits| {
        let encryption = made.lock().pop().expect("there are as many as cases");
        let locate = |_: &[u8]| Some(("things".to_owned(), "example.org".to_owned()));
        Arc::new(EncryptedStore::locating(Arc::new(Memory::with_limits(limits)), encryption, locate))
    })
    .await;
}

#[tokio::test]
async fn a_rotation_rewrites_what_does_not_change() {
    let inner = memory();
    let (one, two) = (aesgcm("one", ONE), aesgcm("two", TWO));
    let is_stale = async |providers: &str| {
        let store = over(&inner, &of_secrets(providers)).await;
        let read = entry(&store, SECRET).await;
        assert_eq!((&*read.value, read.unreadable), (&b"value"[..], None), "{providers}");
        store.is_stale(SECRET.as_bytes()).await.expect("the store is open")
    };
    put(&*inner, SECRET, "value").await.expect("it is stored");
    assert!(!is_stale("{identity: {}}").await);
    assert!(is_stale(&format!("{one}, {{identity: {{}}}}")).await, "it is plain");

    put(&over(&inner, &of_secrets(&one)).await, SECRET, "value").await.expect("it is stored");
    assert!(!is_stale(&one).await);
    assert!(is_stale(&format!("{two}, {one}")).await, "another provider is the first");
    let keys = format!("{{aesgcm: {{keys: [{{name: two, secret: {TWO}}}, {{name: one, secret: {ONE}}}]}}}}");
    assert!(is_stale(&keys).await, "another key is the first");
    assert!(is_stale(&format!("{{identity: {{}}}}, {one}")).await, "it is encrypted and is to be plain");
}

#[tokio::test]
async fn what_no_key_opens_is_left_as_it_is_and_said() {
    let inner = memory();
    put(&over(&inner, &of_secrets(&aesgcm("one", ONE))).await, SECRET, "value").await.expect("it is stored");
    let stored = entry(&*inner, SECRET).await;
    for (providers, reason) in [
        (aesgcm("one", TWO), r#"key "one" of aesgcm does not open it: cipher: message authentication failed"#),
        (
            aesgcm("two", TWO),
            r#"no matching key was found for the provided AES transformer: key "one" of aesgcm encrypted it, and configured of aesgcm is "two""#,
        ),
        (
            "{identity: {}}".to_owned(),
            r#"identity transformer tried to read encrypted data: key "one" of aesgcm encrypted it"#,
        ),
        (
            format!("{{secretbox: {{keys: [{{name: one, secret: {ONE}}}]}}}}"),
            r#"no matching prefix found: key "one" of aesgcm encrypted it, which is not configured"#,
        ),
    ] {
        let store = over(&inner, &of_secrets(&providers)).await;
        let read = entry(&store, SECRET).await;
        assert_eq!(read.unreadable.as_deref(), Some(reason));
        assert_eq!(read.value, stored.value, "the value is as it is stored");
        let page = store.range(Range::prefix("/registry/"), None, 0).await.expect("a range is answered");
        assert_eq!(page.entries, [Entry { unreadable: Some(reason.into()), ..stored.clone() }]);
        let created = put_at(&store, SECRET, "another", Some(0)).await.expect("the store is open");
        assert!(matches!(created, Outcome::Conflict(Some(_))), "{created:?}");
        put(&store, "/registry/secrets/default/b", "other").await.expect("others are stored");
        assert_eq!(entry(&store, "/registry/secrets/default/b").await.value, "other");
        let removed = corten_store::Operation::Delete { key: "/registry/secrets/default/b".into() };
        inner.commit(corten_store::Txn { compares: vec![], operations: vec![removed] }).await.expect("it goes");
        assert_eq!(entry(&*inner, SECRET).await, stored);
    }
}

#[tokio::test(start_paused = true)]
async fn watches_begin_anew_when_the_right_key_comes() {
    let inner = memory();
    put(&over(&inner, &of_secrets(&aesgcm("one", ONE))).await, SECRET, "value").await.expect("it is stored");
    let file = File::new(&of_secrets(&aesgcm("two", TWO)));
    let store = EncryptedStore::new(inner, Encryption::load(&file.path(), true).await.expect("it is one"));
    let ended = watch::Sender::new(false);
    let keeping = tokio::spawn(store.clone().keep(ended.subscribe()));
    let page = store.range(Range::prefix("/registry/"), None, 0).await.expect("a range is answered");
    assert!(page.entries[0].unreadable.is_some());
    let mut changes = store.watch(Range::prefix("/registry/"), page.revision).await.expect("it is watched");
    file.write(&of_secrets(&format!("{}, {}", aesgcm("two", TWO), aesgcm("one", ONE))));
    let next = tokio::time::timeout(Duration::from_secs(60), changes.next()).await.expect("it is told");
    assert!(matches!(next, Err(corten_store::Error::Compacted { .. })), "{next:?}");
    let page = store.range(Range::prefix("/registry/"), None, 0).await.expect("a range is answered");
    assert_eq!((&*page.entries[0].value, &page.entries[0].unreadable), (&b"value"[..], &None));
    ended.send_replace(true);
    keeping.await.expect("it ends");
}

#[tokio::test]
async fn a_writer_s_own_bytes_come_back_to_it() {
    let inner = memory();
    let store = over(&inner, &of_secrets(&aesgcm("one", ONE))).await;
    let mut changes = store.watch(Range::prefix("/registry/"), store.revision()).await.expect("it is watched");
    let value = bytes::Bytes::from_static(b"value");
    let operation = corten_store::Operation::Put { key: SECRET.into(), value: value.clone() };
    store.commit(corten_store::Txn { compares: vec![], operations: vec![operation] }).await.expect("it is stored");
    let change = changes.next().await.expect("it is told").remove(0);
    let seen = change.entry.expect("it is there").value;
    assert_eq!(seen.as_ptr(), value.as_ptr(), "nothing was decrypted");
    assert!(!text(&entry(&*inner, SECRET).await.value).contains("value"));
}

/// A small generator of numbers: the same from the same seed.
struct SeededRng(u64);

impl SeededRng {
    fn below(&mut self, n: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).expect("31 bits") % n
    }
}

#[tokio::test]
async fn damaged_values_are_unreadable_and_break_nothing() {
    let providers = format!(
        "{}, {{aescbc: {{keys: [{{name: one, secret: {ONE}}}]}}}}, {{secretbox: {{keys: [{{name: one, secret: {ONE}}}]}}}}, {{kms: {{apiVersion: v2, name: one, endpoint: 'unix:///nowhere', timeout: 1ms}}}}",
        aesgcm("one", ONE)
    );
    let inner = memory();
    let store = over(&inner, &of_secrets(&providers)).await;
    let mut rng = SeededRng(1);
    for prefix in
        ["aesgcm:v1:one:", "aescbc:v1:one:", "secretbox:v1:one:", "kms:v2:one:", "kms:v1:one:", "aesgcm:v1:", ""]
    {
        for length in (0..64).chain(0..64) {
            let mut value = format!("k8s:enc:{prefix}").into_bytes();
            // Much of it is what protobuf may begin with.
            value.extend((0..length).map(|_| [0x0a, 0x12, 0x1a, 0x22, 0x28, 1, 2, 0xff][rng.below(8)]));
            let operation = corten_store::Operation::Put { key: SECRET.into(), value: value.clone().into() };
            inner.commit(corten_store::Txn { compares: vec![], operations: vec![operation] }).await.expect("stored");
            let read = entry(&store, SECRET).await;
            // CBC authenticates nothing: some damage goes unseen.
            assert!(read.unreadable.is_some() || prefix.starts_with("aescbc"), "{prefix} {value:?}");
            assert!(read.unreadable.is_none() || read.value == value);
            store.is_stale(SECRET.as_bytes()).await.expect("the store is open");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn each_of_many_that_nothing_opens_is_tried_again() {
    let inner = memory();
    let (one, two) = (of_secrets(&aesgcm("one", ONE)), of_secrets(&aesgcm("two", TWO)));
    let theirs = over(&inner, &two).await;
    for n in 100..300 {
        put(&theirs, &format!("{SECRET}{n}"), "value").await.expect("it is stored");
    }
    let file = File::new(&one);
    let store = EncryptedStore::new(inner.clone(), Encryption::load(&file.path(), false).await.expect("it is read"));
    let page = store.range(Range::prefix("/registry/"), None, 0).await.expect("a range is answered");
    assert!(page.entries.iter().all(|it| it.unreadable.is_some()));
    // Where nobody watches that: this server learns of it only when it tries.
    put(&over(&inner, &one).await, &format!("{SECRET}299"), "value").await.expect("it is stored");
    let mut changes = store.watch(Range::prefix("/registry/"), inner.revision()).await.expect("it is watched");
    let ended = watch::Sender::new(false);
    let keeping = tokio::spawn(store.clone().keep(ended.subscribe()));
    let next = tokio::time::timeout(Duration::from_secs(60), changes.next()).await.expect("it is told");
    assert!(matches!(next, Err(corten_store::Error::Compacted { .. })), "{next:?}");
    ended.send_replace(true);
    keeping.await.expect("it ends");
}
