//! One connection to a plugin's socket.

use std::{error::Error, path::Path, time::Duration};

use http::uri::PathAndQuery;
use prost::Message;
use tokio::time::Instant;
use tonic::{
    Code, Status, Streaming,
    client::Grpc,
    transport::{Channel, Endpoint},
};
use tonic_prost::ProstCodec;

const CONNECT_PATIENCE: Duration = Duration::from_secs(5);
/// The bound that gRPC itself sets for what is received.
const ANSWER_BYTES_MAX: usize = 4 << 20;
/// What of a plugin's words is passed on.
const MESSAGE_CHARS_MAX: usize = 2048;

/// Connects when first used, and again after the plugin was away. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Client {
    channel: Channel,
}

impl Client {
    /// # Errors
    /// `InvalidArgument`: the path is none.
    pub fn new(socket: &Path) -> Result<Self, Status> {
        let endpoint = Endpoint::from_shared(format!("unix:{}", socket.display()));
        let endpoint = endpoint.map_err(|it| Status::invalid_argument(format!("socket {}: {it}", socket.display())))?;
        Ok(Self { channel: endpoint.connect_timeout(CONNECT_PATIENCE).connect_lazy() })
    }

    /// Asks one question and waits for its answer, at most as long as `patience` says.
    ///
    /// # Errors
    /// What the plugin says; `Unavailable` where nobody listens, or ends amid the call; `DeadlineExceeded`.
    pub async fn call<Q, A>(&self, method: &'static str, question: Q, patience: Duration) -> Result<A, Status>
    where
        Q: Message + 'static,
        A: Message + Default + 'static,
    {
        let mut request = tonic::Request::new(question);
        request.set_timeout(patience);
        let work = async {
            let mut grpc = self.ready().await?;
            let answer = grpc.unary(request, PathAndQuery::from_static(method), ProstCodec::<Q, A>::default()).await;
            answer.map(tonic::Response::into_inner).map_err(shortened)
        };
        let began = Instant::now();
        let answer = tokio::time::timeout(patience, work).await;
        // The channel keeps to the time that the request names, too, and calls that a cancellation.
        let is_late = |it: &Status| it.code() == Code::Cancelled && began.elapsed() >= patience;
        match answer {
            Ok(answer) if !answer.as_ref().is_err_and(is_late) => answer,
            _ => Err(late()),
        }
    }

    /// Asks one question and gets a stream of answers, whose beginning is waited for as long as `patience` says.
    ///
    /// # Errors
    /// As [`Client::call`].
    pub async fn stream<Q, A>(
        &self,
        method: &'static str,
        question: Q,
        patience: Duration,
    ) -> Result<Streaming<A>, Status>
    where
        Q: Message + 'static,
        A: Message + Default + 'static,
    {
        let work = async {
            let mut grpc = self.ready().await?;
            let (path, codec) = (PathAndQuery::from_static(method), ProstCodec::<Q, A>::default());
            let answer = grpc.server_streaming(tonic::Request::new(question), path, codec).await;
            answer.map(tonic::Response::into_inner).map_err(shortened)
        };
        tokio::time::timeout(patience, work).await.unwrap_or_else(|_| Err(late()))
    }

    async fn ready(&self) -> Result<Grpc<Channel>, Status> {
        let mut grpc = Grpc::new(self.channel.clone()).max_decoding_message_size(ANSWER_BYTES_MAX);
        grpc.ready().await.map_err(|it| Status::new(Code::Unavailable, it.to_string()))?;
        Ok(grpc)
    }
}

fn late() -> Status {
    Status::deadline_exceeded("context deadline exceeded")
}

/// The plugin's words, of bounded length. What has another error behind it comes from this side: the connection was cut amid the call, and
/// whether that was carried out is not known (`Unavailable`, as Go's client calls it).
#[expect(clippy::needless_pass_by_value, reason = "it is what map_err gives")]
fn shortened(status: Status) -> Status {
    let bounded = |it: &str| it.chars().take(MESSAGE_CHARS_MAX).collect::<String>();
    match status.source() {
        Some(source) if status.code() == Code::Unknown => {
            Status::unavailable(bounded(&format!("the connection was cut: {source}")))
        }
        _ => Status::new(status.code(), bounded(status.message())),
    }
}
