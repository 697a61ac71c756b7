//! The connection of a client to one of several servers, and the client that goes to another where that one is gone: the program's own
//! [`FailoverTransport`], over lines that are cut by the dice.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use bytes::Bytes;
use corten_client::{
    Body, BoxFuture, Client, TransportError,
    https::{Failed, FailoverTransport, Patience, ServerTransport},
    kubeconfig::RestConfig,
};
use futures_util::stream;
use http::{Request, Response};
use http_body::Frame;
use http_body_util::{BodyExt, StreamBody};
use tokio::time::{sleep, timeout};

use crate::{
    freezer::Freezer,
    ground::Ground,
    line::{Line, Weather},
    signal::Signal,
};

/// Between asking whether a server is ready, as nodes do.
const READY_PERIOD: Duration = Duration::from_secs(10);

/// Is the way between a client and a server cut?
pub(crate) type Partition = Arc<Signal<bool>>;

/// The connection, and what may befall it.
#[derive(Clone)]
struct Way {
    partition: Partition,
    /// The process at the other end.
    freezer: Freezer,
    /// How often everything on it was ended, now and when this began.
    n_closes: (Arc<Signal<u64>>, u64),
    silence: Duration,
}

pub(crate) struct Wire {
    line: Line,
    partition: Partition,
    is_connected: AtomicBool,
    n_closes: Arc<Signal<u64>>,
}

impl Wire {
    pub(crate) fn new(line: Line, partition: Partition) -> Self {
        Self { line, partition, is_connected: AtomicBool::new(false), n_closes: Arc::default() }
    }

    fn way(&self, patience: Patience) -> Way {
        let freezer = self.line.process.as_ref().map(|it| it.0.clone()).unwrap_or_default();
        let n_closes = (self.n_closes.clone(), self.n_closes.get());
        let silence = patience.silent + patience.unanswered;
        Way { partition: self.partition.clone(), freezer, n_closes, silence }
    }

    async fn connect(&self, way: &Way, patience: Patience) -> Result<(), TransportError> {
        if self.is_connected.load(Ordering::Relaxed) {
            return Ok(());
        }
        sleep(Duration::from_millis(1)).await;
        if timeout(patience.connect, way.is_open()).await.is_err() {
            return Err(TransportError("the server does not answer".into()));
        }
        if self.line.server.lock().is_none() {
            return Err(TransportError("the server refuses to be connected to".into()));
        }
        self.is_connected.store(true, Ordering::Relaxed);
        Ok(())
    }

    async fn exchange(&self, request: Request<Bytes>, patience: Patience) -> Result<Response<Body>, Failed> {
        let way = self.way(patience);
        self.connect(&way, patience).await.map_err(|error| Failed { error, is_unsent: true })?;
        let answering = async {
            way.is_open().await;
            let answer = self.line.exchange(request).await;
            way.is_open().await;
            answer
        };
        let answer = tokio::select! {
            biased;
            broken = way.broken() => Err(broken),
            answer = answering => answer,
        };
        match answer {
            Ok(response) => Ok(response.map(|body| carried(body, way))),
            Err(error) => {
                // The server may be down by now, or the way cut.
                self.is_connected.store(false, Ordering::Relaxed);
                Err(Failed { error, is_unsent: false })
            }
        }
    }
}

impl ServerTransport for Wire {
    fn try_send(&self, request: Request<Bytes>, patience: Patience) -> BoxFuture<'_, Result<Response<Body>, Failed>> {
        Box::pin(self.exchange(request, patience))
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        self.is_connected.store(false, Ordering::Relaxed);
        self.n_closes.modify(|it| *it += 1);
        Box::pin(async {})
    }

    fn host(&self) -> Option<Arc<str>> {
        None
    }
}

impl Way {
    /// Ready while something passes.
    async fn is_open(&self) {
        while self.partition.get() || self.freezer.is_frozen() {
            self.partition.until(|it| !it).await;
            self.freezer.thawed().await;
        }
    }

    /// Ready once it has been silent for too long, or was closed.
    async fn broken(&self) -> TransportError {
        let (n_closes, begun) = &self.n_closes;
        tokio::select! {
            biased;
            () = n_closes.until(|it| it != *begun) => TransportError("the connection was closed".into()),
            () = self.silent() => TransportError("the connection is silent".into()),
        }
    }

    async fn silent(&self) {
        loop {
            tokio::select! {
                biased;
                () = self.partition.until(|it| it) => {}
                () = self.freezer.frozen() => {}
            }
            if timeout(self.silence, self.is_open()).await.is_err() {
                return;
            }
        }
    }
}

/// A body that comes as far as the way lets it.
fn carried(body: Body, way: Way) -> Body {
    let watched = way.clone();
    let broken = Box::pin(async move { watched.broken().await });
    let frames = stream::unfold(Some((body, way, broken)), |state| async move {
        let (mut body, way, mut broken) = state?;
        let coming = async {
            let frame = body.frame().await;
            way.is_open().await;
            frame
        };
        let frame = tokio::select! {
            biased;
            error = &mut broken => Some(Err(error.into())),
            frame = coming => frame,
        }?;
        let data = frame.map(|it| Frame::data(it.into_data().unwrap_or_default()));
        let goes_on = data.is_ok();
        Some((data, goes_on.then_some((body, way, broken))))
    });
    StreamBody::new(frames).boxed_unsync()
}

/// A client of all these servers, and what leaves those that are not ready.
pub(crate) fn client_of(wires: Vec<Wire>, first: usize, weather: Arc<Weather>) -> (Client, BoxFuture<'static, ()>) {
    let urls: Vec<String> = (0..wires.len()).map(|at| format!("https://server-{at}")).collect();
    let wires: Vec<Arc<Wire>> = wires.into_iter().map(Arc::new).collect();
    let target = RestConfig {
        server: urls[first].clone(),
        ca: Vec::new(),
        identity: None,
        token: None,
        server_name: None,
        insecure_skip_tls_verify: false,
        namespace: String::new(),
    };
    let all = urls.clone();
    let reach = Arc::new(move |target: &RestConfig| {
        let at = all.iter().position(|it| *it == target.server).expect("it is one of these");
        Ok(wires[at].clone() as Arc<dyn ServerTransport>)
    });
    let transport = FailoverTransport::by(reach, target, &urls, &urls[first]).expect("all can be reached");
    let transport = Arc::new(transport);
    let asked = transport.clone();
    let looking = async move {
        loop {
            sleep(READY_PERIOD).await;
            asked.check_ready().await;
        }
    };
    let mut moves = transport.moves();
    let counting = async move {
        while moves.changed().await.is_ok() {
            weather.n_moves.fetch_add(1, Ordering::Relaxed);
        }
    };
    let beside = async move {
        tokio::join!(looking, counting);
    };
    (Client::new(transport).with_deadline(Ground::DEADLINE), Box::pin(beside))
}
