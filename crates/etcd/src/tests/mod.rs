//! What is held against members that do not answer; with the feature `real`, against a real etcd too.

#[cfg(feature = "real")]
mod real;

use corten_store::{Error, Limits, Operation, Store, Txn};

use crate::{Options, StartError, client::Client, keys::Keys, store::EtcdStore, tls::Connector};

fn options(url: &str) -> Options {
    Options { servers: vec![url.to_owned()], tls: None, prefix: "/registry".into() }
}

/// A port where nobody listens.
fn nowhere() -> String {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a free port");
    format!("http://{}", listener.local_addr().expect("it is bound"))
}

#[tokio::test(start_paused = true)]
async fn nobody_listens() {
    let url = nowhere();
    let client = Client::new(std::slice::from_ref(&url), &Connector { tls: None }).expect("a URL");
    let store = EtcdStore::new(client.into(), Keys::new("/registry"), Limits::default());
    let put = Operation::Put { key: "/registry/a".into(), value: "1".into() };
    let refused = store.commit(Txn { compares: vec![], operations: vec![put] }).await;
    // No member has it: it is certainly not done.
    assert!(matches!(&refused, Err(Error::Unavailable(it)) if it.contains(&url)), "{refused:?}");
    assert!(matches!(store.get(b"/registry/a").await, Err(Error::Unavailable(_))));
    assert!(matches!(store.newest().await, Err(Error::Unavailable(_))));
    let before = tokio::time::Instant::now();
    assert!(matches!(store.newest().await, Err(Error::Unavailable(_))));
    assert!(before.elapsed() < crate::client::PATIENCE, "an outage that is known is not waited for");
    let writable = store.writable().expect_err("it is known to be away");
    assert!(writable.to_string().contains("refused"), "{writable}");
}

#[tokio::test(start_paused = true)]
async fn the_start_says_what_to_do() {
    let url = nowhere();
    let silent = EtcdStore::connect(&options(&url), Limits::default()).await.err();
    assert!(matches!(&silent, Some(StartError::Silent(it)) if it.contains(&url)), "{silent:?}");
    let said = silent.map(|it| it.to_string()).unwrap_or_default();
    assert!(said.ends_with("start etcd, or correct --etcd-servers and the files for TLS"), "{said}");

    for (url, said) in [
        ("localhost:2379", "localhost:2379: an address of etcd begins with http:// or https://, and names a host"),
        ("https://e:2379", "https://e:2379: name the authority that its certificate is from with --etcd-cafile"),
    ] {
        let refused = EtcdStore::connect(&options(url), Limits::default()).await.err();
        assert_eq!(refused.map(|it| it.to_string()).as_deref(), Some(said));
    }
}
