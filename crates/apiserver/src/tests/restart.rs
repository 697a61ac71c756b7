//! A second start over the same store.

use corten_store::Store;

use super::server;
use crate::Server;

#[tokio::test]
async fn a_restart_of_an_unchanged_cluster_writes_nothing() {
    let config = server::config();
    let (store, pki) = (config.store.clone(), config.pki.clone());
    Server::start(config).await.expect("an empty store is filled").stop().await;
    let revision = store.revision();
    assert!(revision > 30, "the first start writes the first objects, but the store is at {revision}");

    let again = crate::Config { store: store.clone(), pki, ..server::config() };
    Server::start(again).await.expect("a filled store is read").stop().await;
    assert_eq!(Store::revision(&*store), revision);
}
