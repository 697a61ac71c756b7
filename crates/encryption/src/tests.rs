//! What is stored, and what becomes of it under other keys, other plugins and other configurations.

mod configurations;
mod known_answers;
mod on_disk;
mod plugins;
mod stores;
mod wrong_keys;

use std::{path::PathBuf, sync::Arc};

use bytes::Bytes;
use corten_store::{Compare, Entry, Operation, Outcome, Store, Txn, memory::Memory};
use tempfile::TempDir;

use crate::{EncryptedStore, Encryption};

const SECRET: &str = "/registry/secrets/default/a";
/// 32 bytes each, in base64.
const ONE: &str = "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAE=";
const TWO: &str = "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAI=";

/// A configuration whose secrets have these providers.
fn of_secrets(providers: &str) -> String {
    format!(
        "apiVersion: apiserver.config.k8s.io/v1\nkind: EncryptionConfiguration\nresources:\n- resources: [secrets]\n  providers: [{providers}]\n"
    )
}

fn aesgcm(name: &str, secret: &str) -> String {
    format!("{{aesgcm: {{keys: [{{name: {name}, secret: {secret}}}]}}}}")
}

/// A file to be read, and the folder it is in.
struct File(TempDir);

impl File {
    fn new(text: &str) -> Self {
        let file = Self(TempDir::new().expect("there is room"));
        file.write(text);
        file
    }

    fn path(&self) -> PathBuf {
        self.0.path().join("encryption.yaml")
    }

    fn write(&self, text: &str) {
        std::fs::write(self.path(), text).expect("there is room");
    }
}

async fn encryption(text: &str) -> Encryption {
    Encryption::load(&File::new(text).path(), false).await.expect("it is a configuration")
}

async fn over(inner: &Arc<dyn Store>, text: &str) -> EncryptedStore {
    EncryptedStore::new(inner.clone(), encryption(text).await)
}

fn memory() -> Arc<dyn Store> {
    Arc::new(Memory::default())
}

async fn put(store: &dyn Store, key: &str, value: &str) -> Result<Outcome, corten_store::Error> {
    put_at(store, key, value, None).await
}

async fn put_at(
    store: &dyn Store,
    key: &str,
    value: &str,
    mod_revision: Option<u64>,
) -> Result<Outcome, corten_store::Error> {
    let key = Bytes::from(key.to_owned());
    let compares = mod_revision.map(|mod_revision| Compare { key: key.clone(), mod_revision }).into_iter().collect();
    let value = Bytes::from(value.to_owned());
    store.commit(Txn { compares, operations: vec![Operation::Put { key, value }] }).await
}

async fn entry(store: &dyn Store, key: &str) -> Entry {
    store.get(key.as_bytes()).await.expect("the store is open").expect("it is there")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}
