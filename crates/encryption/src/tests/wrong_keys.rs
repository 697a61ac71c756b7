use std::{sync::Arc, time::Duration};

use corten_store::Store;
use tokio::{sync::watch, task::JoinHandle};

use super::{File, ONE, SECRET, TWO, aesgcm, entry, memory, of_secrets, over, put};
use crate::{EncryptedStore, Encryption};

const OTHER: &str = "/registry/secrets/default/b";

/// A store whose file is read again.
struct Kept {
    file: File,
    store: EncryptedStore,
    ended: watch::Sender<bool>,
    keeping: JoinHandle<()>,
}

impl Kept {
    async fn over(inner: &Arc<dyn Store>, providers: &str) -> Self {
        let file = File::new(&of_secrets(providers));
        let encryption = Encryption::load(&file.path(), true).await.expect("it is a configuration");
        let store = EncryptedStore::new(inner.clone(), encryption);
        let ended = watch::Sender::new(false);
        let keeping = tokio::spawn(store.clone().keep(ended.subscribe()));
        Self { file, store, ended, keeping }
    }

    fn reloads(&self) -> Vec<String> {
        let out = corten_metrics::encoded(&self.store.encryption().measured());
        out.lines().filter(|it| it.contains("automatic_reloads_total{")).map(str::to_owned).collect()
    }

    /// What becomes of the file when it says this: why it is refused.
    async fn says(&self, providers: &str) -> Option<String> {
        let before = self.reloads();
        self.file.write(&of_secrets(providers));
        while self.reloads() == before {
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        self.store.encryption().refused().map(|it| it.reason)
    }

    async fn end(self) {
        self.ended.send_replace(true);
        self.keeping.await.expect("it ends");
    }
}

fn refused(key: &str, opens: &str) -> Option<String> {
    Some(format!(
        "{key} {opens} of secrets under its name: give the new key a new name, put it first, keep the old one"
    ))
}

#[tokio::test(start_paused = true)]
async fn another_key_under_a_name_that_is_stored_is_refused() {
    for provider in ["aesgcm", "aescbc", "secretbox"] {
        let of = |keys: &str| format!("{{{provider}: {{keys: [{keys}]}}}}");
        let key = |name: &str, secret: &str| format!("{{name: {name}, secret: {secret}}}");
        let (right, wrong, plain) = (of(&key("one", ONE)), of(&key("one", TWO)), "{identity: {}}");
        let inner = memory();
        let kept = Kept::over(&inner, &format!("{right}, {plain}")).await;
        // Under CBC's other key some would open, by chance, to something that is no object.
        for n in 0..300 {
            put(&kept.store, &format!("{SECRET}{n}"), "{}").await.expect("it is stored");
        }
        put(&kept.store, "/registry/configmaps/default/a", "{}").await.expect("it is stored");
        let reason = refused(&format!("key \"one\" of {provider}"), "opens none of the 300");
        assert_eq!(kept.says(&format!("{wrong}, {plain}")).await, reason);
        put(&kept.store, OTHER, "{}").await.expect("it is stored");
        assert_eq!(entry(&over(&inner, &of_secrets(&right)).await, OTHER).await.value, "{}", "the old key is in use");

        let moved = of(&format!("{}, {}", key("two", TWO), key("one", ONE)));
        assert_eq!(kept.says(&format!("{moved}, {plain}")).await, None, "a new name is what was asked for");
        // The old key is under its name all the same.
        assert_eq!(kept.says(&format!("{wrong}, {right}, {plain}")).await, None);
        kept.end().await;
    }
}

#[tokio::test(start_paused = true)]
async fn one_that_comes_back_is_tried() {
    let (one, plain) = (aesgcm("one", ONE), "{identity: {}}");
    let kept = Kept::over(&memory(), &one).await;
    put(&kept.store, SECRET, "{}").await.expect("it is stored");
    assert_eq!(kept.says(plain).await, None, "it is gone: that is told of elsewhere");
    let wrong = format!("{plain}, {}", aesgcm("one", TWO));
    assert_eq!(kept.says(&wrong).await, refused("key \"one\" of aesgcm", "opens none of the 1"));
    put(&kept.store, SECRET, "{}").await.expect("it is stored anew, plain");
    // The same file is tried again by and by, and no value has the name now.
    while kept.store.encryption().refused().is_some() {
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
    kept.end().await;
}

#[tokio::test(start_paused = true)]
async fn some_values_of_a_name_may_be_under_another_key() {
    let inner = memory();
    let (one, two) = (aesgcm("one", ONE), aesgcm("one", TWO));
    put(&over(&inner, &of_secrets(&one)).await, SECRET, "{}").await.expect("it is stored");
    let kept = Kept::over(&inner, &two).await;
    // Nothing opens it: the key that does makes nothing worse.
    assert_eq!(kept.says(&one).await, None);
    kept.end().await;
    put(&over(&inner, &of_secrets(&two)).await, OTHER, "{}").await.expect("it is stored");
    // It opens one of the two: what was written under the wrong key is no reason to keep that.
    let kept = Kept::over(&inner, &two).await;
    assert_eq!(kept.says(&one).await, None);
    kept.end().await;
}
