//! Stands between a store and etcd, keeps back what etcd says, and cuts connections.

use std::{net::SocketAddr, sync::Arc};

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    sync::watch,
    task::JoinSet,
};

#[derive(Clone, Copy, PartialEq)]
struct State {
    /// Nothing of what etcd says goes on.
    is_mute: bool,
    /// How often all connections were cut.
    n_cuts: u64,
}

pub(super) struct Proxy {
    address: SocketAddr,
    state: Arc<watch::Sender<State>>,
    _task: JoinSet<()>,
}

impl Proxy {
    pub(super) async fn to(url: &str) -> Self {
        let etcd = url.strip_prefix("http://").expect("no TLS").to_owned();
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let address = listener.local_addr().expect("it is bound");
        let state = Arc::new(watch::Sender::new(State { is_mute: false, n_cuts: 0 }));
        let (mut task, shared) = (JoinSet::new(), state.clone());
        task.spawn(async move {
            let mut connections = JoinSet::new();
            while let Ok((client, _)) = listener.accept().await {
                if let Ok(server) = TcpStream::connect(&etcd).await {
                    connections.spawn(between(client, server, shared.subscribe()));
                }
            }
        });
        Self { address, state, _task: task }
    }

    pub(super) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    pub(super) fn mute(&self) {
        self.state.send_modify(|it| it.is_mute = true);
    }

    /// Ends all connections; new ones are whole.
    pub(super) fn cut(&self) {
        self.state.send_modify(|it| *it = State { is_mute: false, n_cuts: it.n_cuts + 1 });
    }
}

async fn between(client: TcpStream, server: TcpStream, mut state: watch::Receiver<State>) {
    let n_cuts = state.borrow().n_cuts;
    let (mut from_client, mut to_client) = client.into_split();
    let (mut from_server, mut to_server) = server.into_split();
    let told = state.clone();
    let forth = tokio::io::copy(&mut from_client, &mut to_server);
    let back = async {
        let mut bytes = vec![0; 64 << 10];
        while let Ok(n @ 1..) = from_server.read(&mut bytes).await {
            let now = *told.borrow();
            // What etcd said before the cut is lost, though the others are heard again from then on.
            if now.n_cuts > n_cuts {
                return;
            }
            if !now.is_mute && to_client.write_all(&bytes[..n]).await.is_err() {
                return;
            }
        }
    };
    tokio::select! {
        _ = forth => {}
        () = back => {}
        _ = state.wait_for(|it| it.n_cuts > n_cuts) => {}
    }
}
