//! What a Secret holds is on no disk: not in the log, not in a checkpoint, not in what is held back.

use std::{path::Path, sync::Arc};

use corten_store::{
    Store,
    embedded::{Embedded, Options},
};
use tempfile::TempDir;

use super::{ONE, SECRET, aesgcm, encryption, entry, of_secrets, put};
use crate::EncryptedStore;

const MARKER: &str = "m4rk3r-of-a-secret";

/// The files that hold the marker, and how many files there are.
fn found(folder: &Path) -> (Vec<String>, usize) {
    let files: Vec<_> = std::fs::read_dir(folder)
        .expect("it is a folder")
        .map(|it| it.expect("it is read").path())
        .filter(|it| it.is_file())
        .collect();
    let holds = |path: &Path| {
        let bytes = std::fs::read(path).expect("it is read");
        bytes.windows(MARKER.len()).any(|it| it == MARKER.as_bytes())
    };
    (files.iter().filter(|it| holds(it)).map(|it| it.display().to_string()).collect(), files.len())
}

async fn open(folder: &Path, providers: &str) -> EncryptedStore {
    let options = Options { log_bytes_min: 16 << 10, log_ahead: 4 << 10, ..Options::default() };
    let inner: Arc<dyn Store> = Arc::new(Embedded::open(folder, options).expect("it opens"));
    EncryptedStore::new(inner, encryption(&of_secrets(providers)).await)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_secret_is_on_no_disk() {
    let folder = TempDir::new().expect("there is room");
    let key = aesgcm("one", ONE);
    let store = open(folder.path(), &key).await;
    for n in 0..200 {
        put(&store, &format!("{SECRET}{}", n % 10), &format!("{MARKER} {}", "x".repeat(200))).await.expect("stored");
    }
    assert_eq!(found(folder.path()).0, [""; 0], "while it runs, with a log and checkpoints");
    store.compact(store.revision()).await.expect("it is compacted");
    store.close().await;
    assert_eq!(found(folder.path()).0, [""; 0], "when it is closed");

    let store = open(folder.path(), &format!("{{identity: {{}}}}, {key}")).await;
    assert!(entry(&store, &format!("{SECRET}0")).await.value.starts_with(MARKER.as_bytes()));
    assert_eq!(found(folder.path()).0, [""; 0], "when the key is only there to read");
    put(&store, &format!("{SECRET}0"), MARKER).await.expect("it is stored");
    store.close().await;
    let (found, n_files) = found(folder.path());
    assert_eq!(found.len(), 1, "the marker would be found: of {n_files} files");
}
