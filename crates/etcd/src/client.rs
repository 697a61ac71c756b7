//! One client for all members: it stays with one that answers, and moves on from one that does not.
//!
//! Every answer's header is looked at: a member of another cluster is never believed, and the newest revision that any
//! answer names is kept.

use std::{
    sync::{
        Arc, OnceLock,
        atomic::{AtomicUsize, Ordering::Relaxed},
    },
    time::Duration,
};

use corten_etcd_api::{ResponseHeader, WatchRequest, WatchResponse, method::WATCH};
use corten_store::Revision;
use futures_util::stream;
use http::uri::PathAndQuery;
use parking_lot::{Mutex, RwLock};
use tokio::{
    sync::{mpsc, watch},
    time::{Instant, timeout},
};
use tonic::{
    Status, Streaming,
    client::Grpc,
    metadata::MetadataValue,
    transport::{Channel, Endpoint},
};
use tonic_prost::ProstCodec;

use crate::{
    failure::{Certainty, Failure},
    messages::Answer,
    pause::Pause,
    quota,
    tls::Connector,
};

/// One member has so long for an answer; then another is asked.
const ANSWER_WAIT: Duration = Duration::from_secs(5);
/// How long is asked again; at least each member is asked once.
pub(crate) const PATIENCE: Duration = Duration::from_secs(5);
const CONNECT_WAIT: Duration = Duration::from_secs(3);
/// etcd refuses clients that ask more often than each five seconds.
const KEEPALIVE_EVERY: Duration = Duration::from_secs(10);
const KEEPALIVE_WAIT: Duration = Duration::from_secs(5);
/// The longest message that is read. What is longer is asked for in parts.
pub(crate) const MESSAGE_BYTES_MAX: usize = 64 << 20;
const WINDOW_BYTES: u32 = 4 << 20;
/// Requests that a watch has not sent yet: its creation and asking for progress.
const WATCH_REQUESTS_MAX: usize = 4;

struct Member {
    url: String,
    channel: Channel,
}

pub(crate) struct Client {
    /// As they are known now: some may come and go.
    members: RwLock<Vec<Arc<Member>>>,
    connector: Connector,
    current: AtomicUsize,
    /// The cluster of the first answer.
    cluster: OnceLock<u64>,
    newest: watch::Sender<Revision>,
    /// Why the last request had no answer, and since when that is so.
    trouble: Mutex<Option<(Instant, String)>>,
}

/// How often a request is sent.
pub(crate) struct Tries {
    /// Members that have not been asked.
    left: usize,
    end: Instant,
    pause: Pause,
}

impl Tries {
    /// Waits until it may be sent again. False where that was the last try.
    pub(crate) async fn again(&mut self) -> bool {
        self.left = self.left.saturating_sub(1);
        let goes_on = self.left > 0 || Instant::now() < self.end;
        if goes_on {
            self.pause.pass().await;
        }
        goes_on
    }
}

/// A watch, as one stream of requests and one of responses.
pub(crate) struct WatchStream {
    pub(crate) member: String,
    pub(crate) requests: mpsc::Sender<WatchRequest>,
    pub(crate) responses: Streaming<WatchResponse>,
}

impl Client {
    /// Connects when it is first asked.
    ///
    /// # Errors
    /// A URL is none.
    pub(crate) fn new(urls: &[String], connector: &Connector) -> Result<Self, String> {
        let members = urls.iter().map(|url| member(url, connector).map(Arc::new)).collect::<Result<Vec<_>, _>>()?;
        Ok(Self {
            members: RwLock::new(members),
            connector: connector.clone(),
            current: AtomicUsize::new(0),
            cluster: OnceLock::new(),
            newest: watch::Sender::new(0),
            trouble: Mutex::default(),
        })
    }

    pub(crate) fn urls(&self) -> Vec<String> {
        self.members.read().iter().map(|it| it.url.clone()).collect()
    }

    /// Asks these from now on. The connection to one that stays is kept.
    ///
    /// # Errors
    /// A URL is none; then nothing changes.
    pub(crate) fn set_members(&self, urls: &[String]) -> Result<(), String> {
        let mut members = self.members.write();
        let kept = |url: &String| members.iter().find(|it| it.url == *url).cloned();
        let made = |url: &String| member(url, &self.connector).map(Arc::new);
        let wanted = urls.iter().map(|url| kept(url).map_or_else(|| made(url), Ok)).collect::<Result<Vec<_>, _>>()?;
        if wanted.is_empty() {
            return Err("an etcd has a member at least".into());
        }
        let current = members.get(self.current.load(Relaxed)).map(|it| it.url.clone());
        let at = wanted.iter().position(|it| Some(&it.url) == current.as_ref()).unwrap_or_default();
        self.current.store(at, Relaxed);
        *members = wanted;
        Ok(())
    }

    #[cfg(test)]
    pub(crate) fn current_url(&self) -> String {
        self.member(self.current.load(Relaxed)).url.clone()
    }

    /// The one at this place, counted around: there may be fewer than a moment ago.
    fn member(&self, at: usize) -> Arc<Member> {
        let members = self.members.read();
        members[at % members.len()].clone()
    }

    /// What the member that answers says of the room it may take.
    pub(crate) async fn quota(&self) -> Option<u64> {
        let member = self.member(self.current.load(Relaxed));
        quota::of_member(&member.url, &self.connector).await
    }

    pub(crate) fn cluster(&self) -> Option<u64> {
        self.cluster.get().copied()
    }

    /// The newest revision that an answer has named.
    pub(crate) fn newest(&self) -> Revision {
        *self.newest.borrow()
    }

    pub(crate) fn follow_newest(&self) -> watch::Receiver<Revision> {
        self.newest.subscribe()
    }

    pub(crate) fn trouble(&self) -> Option<String> {
        self.trouble.lock().as_ref().map(|it| it.1.clone())
    }

    /// Asks what can be asked again without harm, until a member answers or all have had their time.
    pub(crate) async fn read<Q, A>(&self, method: &'static str, question: &Q) -> Result<A, Failure>
    where
        Q: prost::Message + Clone + 'static,
        A: Answer,
    {
        let mut tries = self.tries();
        loop {
            match self.ask(method, question).await {
                Err(failure) if failure.may_pass() && tries.again().await => {}
                answer => return answer,
            }
        }
    }

    /// An outage that has lasted as long as anybody is patient is no longer waited for.
    pub(crate) fn tries(&self) -> Tries {
        let now = Instant::now();
        let is_known = self.trouble.lock().as_ref().is_some_and(|it| it.0.elapsed() > PATIENCE);
        let end = if is_known { now } else { now + PATIENCE };
        Tries { left: self.members.read().len(), end, pause: Pause::default() }
    }

    /// Asks one member once.
    pub(crate) async fn ask<Q, A>(&self, method: &'static str, question: &Q) -> Result<A, Failure>
    where
        Q: prost::Message + Clone + 'static,
        A: Answer,
    {
        let at = self.current.load(Relaxed);
        let answer = self.ask_member(at, method, question).await;
        self.judge(at, &answer);
        answer
    }

    /// Asks a member though another is the one that answers.
    pub(crate) async fn ask_member<Q, A>(&self, at: usize, method: &'static str, question: &Q) -> Result<A, Failure>
    where
        Q: prost::Message + Clone + 'static,
        A: Answer,
    {
        self.ask_member_within(ANSWER_WAIT, at, method, question).await
    }

    /// As [`Client::ask_member`], of what takes its time.
    pub(crate) async fn ask_member_within<Q, A>(
        &self,
        wait: Duration,
        at: usize,
        method: &'static str,
        question: &Q,
    ) -> Result<A, Failure>
    where
        Q: prost::Message + Clone + 'static,
        A: Answer,
    {
        let member = self.member(at);
        let answering = async {
            let mut grpc = ready(&member.channel).await?;
            let (path, codec) = (PathAndQuery::from_static(method), ProstCodec::<Q, A>::default());
            grpc.unary(tonic::Request::new(question.clone()), path, codec).await.map(tonic::Response::into_inner)
        };
        let answer = match timeout(wait, answering).await {
            Ok(answer) => answer.map_err(|it| Failure::of(&member.url, &it))?,
            Err(_) => return Err(Failure::late(&member.url)),
        };
        self.believe(&member.url, answer.header())?;
        Ok(answer)
    }

    /// Begins a watch. The member ends it when it loses its leader (`hasleader`), so that it goes on at another.
    pub(crate) async fn watch(&self, create: WatchRequest) -> Result<WatchStream, Failure> {
        let at = self.current.load(Relaxed);
        let member = self.member(at);
        let (requests, mut sent) = mpsc::channel(WATCH_REQUESTS_MAX);
        requests.try_send(create).expect("the channel is new");
        let beginning = async {
            let mut grpc = ready(&member.channel).await?;
            let mut request = tonic::Request::new(stream::poll_fn(move |context| sent.poll_recv(context)));
            request.metadata_mut().insert("hasleader", MetadataValue::from_static("true"));
            let codec = ProstCodec::<WatchRequest, WatchResponse>::default();
            grpc.streaming(request, PathAndQuery::from_static(WATCH), codec).await.map(tonic::Response::into_inner)
        };
        let begun = match timeout(ANSWER_WAIT, beginning).await {
            Ok(begun) => begun.map_err(|it| Failure::of(&member.url, &it)),
            Err(_) => Err(Failure::late(&member.url)),
        };
        // That it begins says nothing: a member without a leader begins it, too, and ends it then.
        if begun.is_err() {
            self.judge(at, &begun);
        }
        Ok(WatchStream { member: member.url.clone(), requests, responses: begun? })
    }

    /// A member is left for the next where it does not answer.
    fn judge<A>(&self, at: usize, answer: &Result<A, Failure>) {
        match answer {
            Err(failure) if failure.certainty != Certainty::Refused => {
                let mut trouble = self.trouble.lock();
                let since = trouble.as_ref().map_or_else(Instant::now, |it| it.0);
                *trouble = Some((since, failure.to_string()));
                drop(trouble);
                self.leave_member(at);
            }
            _ => *self.trouble.lock() = None,
        }
    }

    fn leave_member(&self, at: usize) {
        let next = (at + 1) % self.members.read().len();
        // Somebody else may have left it already.
        let _ = self.current.compare_exchange(at, next, Relaxed, Relaxed);
    }

    /// Leaves a member that a watch has lost.
    pub(crate) fn leave(&self, url: &str) {
        let at = self.members.read().iter().position(|it| it.url == url);
        if let Some(at) = at {
            self.leave_member(at);
        }
    }

    /// # Errors
    /// The answer is of another cluster.
    pub(crate) fn believe(&self, member: &str, header: Option<&ResponseHeader>) -> Result<(), Failure> {
        let Some(header) = header else { return Ok(()) };
        let cluster = *self.cluster.get_or_init(|| header.cluster_id);
        if header.cluster_id != cluster {
            return Err(Failure::foreign(member, header.cluster_id, cluster));
        }
        let revision = header.revision.unsigned_abs();
        self.newest.send_if_modified(|newest| {
            let is_newer = *newest < revision;
            *newest = revision.max(*newest);
            is_newer
        });
        Ok(())
    }
}

fn member(url: &str, connector: &Connector) -> Result<Member, String> {
    let uri: http::Uri = url.parse().map_err(|it| format!("{url}: {it}"))?;
    let (Some("http" | "https"), Some(authority)) = (uri.scheme_str(), uri.authority()) else {
        return Err(format!("{url}: an address of etcd begins with http:// or https://, and names a host"));
    };
    let is_encrypted = uri.scheme_str() == Some("https");
    if is_encrypted && connector.tls.is_none() {
        return Err(format!("{url}: name the authority that its certificate is from with --etcd-cafile"));
    }
    // Who encrypts is the connector.
    let endpoint = Endpoint::from_shared(format!("http://{authority}")).map_err(|it| format!("{url}: {it}"))?;
    let endpoint = endpoint
        .connect_timeout(CONNECT_WAIT)
        .http2_keep_alive_interval(KEEPALIVE_EVERY)
        .keep_alive_timeout(KEEPALIVE_WAIT)
        .keep_alive_while_idle(true)
        .initial_stream_window_size(WINDOW_BYTES)
        .initial_connection_window_size(WINDOW_BYTES);
    let connector = Connector { tls: connector.tls.clone().filter(|_| is_encrypted) };
    Ok(Member { url: url.to_owned(), channel: endpoint.connect_with_connector_lazy(connector) })
}

async fn ready(channel: &Channel) -> Result<Grpc<Channel>, Status> {
    let mut grpc = Grpc::new(channel.clone()).max_decoding_message_size(MESSAGE_BYTES_MAX);
    grpc.ready().await.map_err(|it| Status::from_error(Box::new(it)))?;
    Ok(grpc)
}

/// Clones share everything.
pub(crate) type Shared = Arc<Client>;
