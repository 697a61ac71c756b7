use std::{path::Path, sync::Arc, time::Duration};

use corten_store::{Range, Store};
use tempfile::TempDir;
use tokio::{sync::watch, task::JoinHandle};

use super::{File, SECRET, entry, memory, of_secrets, put};
use crate::{EncryptedStore, Encryption, plugin::Plugin};

/// A plugin that runs, until it is dropped.
struct RunningPlugin {
    folder: TempDir,
    plugin: Arc<Plugin>,
    task: JoinHandle<std::io::Result<()>>,
}

impl Drop for RunningPlugin {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl RunningPlugin {
    async fn new() -> Self {
        let folder = TempDir::new().expect("there is room");
        let plugin = Arc::new(Plugin::new(folder.path()));
        let task = tokio::spawn(plugin.clone().serve());
        let running = Self { folder, plugin, task };
        running.says("key", "one");
        while !running.folder.path().join("kms.sock").exists() {
            tokio::task::yield_now().await;
        }
        running
    }

    fn says(&self, name: &str, text: &str) {
        std::fs::write(self.folder.path().join(name), text).expect("there is room");
    }
}

fn configuration(folder: &Path) -> String {
    let endpoint = folder.join("kms.sock");
    of_secrets(&format!(
        "{{kms: {{apiVersion: v2, name: cloud, timeout: 1s, endpoint: 'unix://{}'}}}}, {{identity: {{}}}}",
        endpoint.display()
    ))
}

async fn over_plugin(inner: &Arc<dyn Store>, running: &RunningPlugin) -> EncryptedStore {
    let file = File::new(&configuration(running.folder.path()));
    EncryptedStore::new(inner.clone(), Encryption::load(&file.path(), false).await.expect("it is a configuration"))
}

#[tokio::test]
async fn a_plugin_is_asked_once_for_each_of_its_keys() {
    let (inner, running) = (memory(), RunningPlugin::new().await);
    let store = over_plugin(&inner, &running).await;
    store.encryption().plugins_ready().expect("it is well");
    let n_asked = running.plugin.n_decrypted();
    for n in 0..100 {
        put(&store, &format!("{SECRET}{n}"), "value").await.expect("it is stored");
    }
    assert!(entry(&*inner, &format!("{SECRET}0")).await.value.starts_with(b"k8s:enc:kms:v2:cloud:"));
    let page = store.range(Range::prefix("/registry/"), None, 0).await.expect("a range is answered");
    assert!(page.entries.iter().all(|it| it.value == "value"));
    assert_eq!(running.plugin.n_decrypted(), n_asked, "the seed is known");

    let again = over_plugin(&inner, &running).await;
    let n_asked = running.plugin.n_decrypted();
    let page = again.range(Range::prefix("/registry/"), None, 0).await.expect("a range is answered");
    assert!(page.entries.iter().all(|it| it.value == "value" && it.unreadable.is_none()));
    assert_eq!(running.plugin.n_decrypted(), n_asked + 1, "another server asks once");
}

#[tokio::test]
async fn another_key_makes_stale_what_the_first_encrypted() {
    let (inner, running) = (memory(), RunningPlugin::new().await);
    let store = over_plugin(&inner, &running).await;
    put(&store, SECRET, "value").await.expect("it is stored");
    assert!(!store.is_stale(SECRET.as_bytes()).await.expect("the store is open"));
    running.says("key", "two");
    store.encryption().plugins()[0].check().await.expect("it is well");
    assert!(store.is_stale(SECRET.as_bytes()).await.expect("the store is open"));
    assert_eq!(entry(&store, SECRET).await.value, "value");
    put(&store, SECRET, "value").await.expect("it is stored");
    assert!(!store.is_stale(SECRET.as_bytes()).await.expect("the store is open"));
    assert_eq!(entry(&over_plugin(&inner, &running).await, SECRET).await.value, "value");
}

#[tokio::test]
async fn a_plugin_that_fails_or_lies_is_not_written_with() {
    for (fault, said) in [
        (
            "error",
            "failed to perform status section of the healthz check for KMS Provider cloud, error: rpc error: code = Internal desc = ",
        ),
        ("hang", "error: rpc error: code = DeadlineExceeded desc = context deadline exceeded"),
        ("flood", "rpc error: code = OutOfRange desc = "),
        ("sick", "kmsv2 Provider cloud is not healthy, error: got unexpected healthz status: the key store is away"),
        ("lie", "it encrypts with another key than it says"),
        ("forget", "it does not decrypt what it has encrypted"),
    ] {
        let (inner, running) = (memory(), RunningPlugin::new().await);
        running.says("fault", fault);
        let store = over_plugin(&inner, &running).await;
        let error = store.encryption().plugins_ready().expect_err("it is not well");
        assert!(error.starts_with("kms-provider-0: ") && error.contains(said), "{fault}: {error}");
        if fault != "sick" {
            let error = put(&store, SECRET, "value").await.expect_err("it cannot be encrypted").to_string();
            assert!(error.contains("KMS provider \"cloud\" has given no key yet"), "{fault}: {error}");
        }
        put(&store, "/registry/pods/default/a", "value").await.expect("others are stored");
        running.says("fault", "");
        store.encryption().plugins()[0].check().await.expect("it is well");
        put(&store, SECRET, "value").await.expect("it is stored");
    }
}

#[tokio::test]
async fn who_starts_without_its_plugin_reads_when_that_comes() {
    let (inner, running) = (memory(), RunningPlugin::new().await);
    put(&over_plugin(&inner, &running).await, SECRET, "value").await.expect("it is stored");
    running.says("fault", "error");
    let store = over_plugin(&inner, &running).await;
    let page = store.range(Range::prefix("/registry/"), None, 0).await.expect("a range is answered");
    let reason = page.entries[0].unreadable.as_deref().expect("nobody opens it");
    assert!(
        reason.starts_with("KMS provider \"cloud\": failed to decrypt DEK, error: rpc error: code = Internal"),
        "{reason}"
    );
    let mut changes = store.watch(Range::prefix("/registry/"), page.revision).await.expect("it is watched");
    let ended = watch::Sender::new(false);
    let keeping = tokio::spawn(store.clone().keep(ended.subscribe()));
    let next = async {
        loop {
            // The task that follows it may not have seen that it was not well.
            running.says("fault", "error");
            store.encryption().plugins()[0].check().await.expect_err("it is not well");
            running.says("fault", "");
            store.encryption().plugins()[0].check().await.expect("it is well");
            if let Ok(next) = tokio::time::timeout(Duration::from_millis(50), changes.next()).await {
                return next;
            }
        }
    };
    let next = tokio::time::timeout(Duration::from_secs(30), next).await.expect("it is told");
    assert!(matches!(next, Err(corten_store::Error::Compacted { .. })), "{next:?}");
    assert_eq!(entry(&store, SECRET).await.value, "value");
    ended.send_replace(true);
    keeping.await.expect("it ends");
}

#[tokio::test]
async fn a_watch_waits_for_the_plugin_and_keeps_the_order() {
    let (inner, running) = (memory(), RunningPlugin::new().await);
    let store = over_plugin(&inner, &running).await;
    let mut changes = store.watch(Range::prefix("/registry/"), store.revision()).await.expect("it is watched");
    // Another server writes with a seed of its own.
    put(&over_plugin(&inner, &running).await, SECRET, "theirs").await.expect("it is stored");
    assert!(changes.ready().is_none(), "the plugin must be asked");
    put(&store, "/registry/pods/default/a", "ours").await.expect("it is stored");
    let mut seen = Vec::new();
    while seen.len() < 2 {
        seen.extend(changes.next().await.expect("it is told"));
    }
    let values: Vec<_> = seen.iter().map(|it| it.entry.as_ref().expect("it is there").value.clone()).collect();
    assert_eq!(values, ["theirs", "ours"]);
}

#[tokio::test]
async fn a_seed_is_written_with_for_three_minutes_after_the_plugin_was_well() {
    let (inner, running) = (memory(), RunningPlugin::new().await);
    let store = over_plugin(&inner, &running).await;
    drop(running);
    tokio::time::pause();
    put(&store, SECRET, "value").await.expect("it is stored");
    tokio::time::advance(Duration::from_secs(179)).await;
    put(&store, SECRET, "value").await.expect("the seed is still good");
    tokio::time::advance(Duration::from_secs(2)).await;
    let error = put(&store, SECRET, "value").await.expect_err("it is too old").to_string();
    assert!(error.contains("encryptedDEKSource with keyID hash \"sha256:"), "{error}");
    assert_eq!(entry(&store, SECRET).await.value, "value", "reads go on");
}

#[tokio::test]
async fn a_plugin_that_keeps_still_is_waited_for_once_and_not_for_each_seed() {
    let (inner, running) = (memory(), RunningPlugin::new().await);
    for n in 0..20 {
        running.says("key", &format!("key-{n}"));
        put(&over_plugin(&inner, &running).await, &format!("{SECRET}{n:02}"), "value").await.expect("it is stored");
    }
    let store = over_plugin(&inner, &running).await;
    running.says("fault", "hang");
    let begun = std::time::Instant::now();
    for _ in 0..5 {
        let page = store.range(Range::prefix("/registry/"), None, 0).await.expect("a range is answered");
        let n_unreadable = page.entries.iter().filter(|it| it.unreadable.is_some()).count();
        // The last one's seed was made by another server with the same plugin: only its own key is known here.
        assert!(n_unreadable >= 19, "{n_unreadable}");
    }
    assert!(begun.elapsed() < Duration::from_secs(4), "{:?}: the plugin's second is waited for once", begun.elapsed());
    running.says("fault", "");
    store.encryption().plugins()[0].forget_failures();
    let page = store.range(Range::prefix("/registry/"), None, 0).await.expect("a range is answered");
    assert!(page.entries.iter().all(|it| it.value == "value"));
}
