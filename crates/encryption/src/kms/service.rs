//! A plugin's three calls, over gRPC at a Unix socket (`k8s.io/kms/apis/v2`). It is somebody else's program: every call has a
//! deadline, and no answer is read beyond a size.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use http::uri::PathAndQuery;
use prost::Message;
use tokio::time::{Instant, timeout};
use tonic::{
    Code, Status,
    client::Grpc,
    transport::{Channel, Endpoint},
};
use tonic_prost::ProstCodec;

use crate::metrics::Metrics;

/// Annotations of 32 KiB and what is around them.
const ANSWER_MAX: usize = 64 * 1024;

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct StatusRequest {}

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct StatusResponse {
    #[prost(string, tag = "1")]
    pub(crate) version: String,
    #[prost(string, tag = "2")]
    pub(crate) healthz: String,
    #[prost(string, tag = "3")]
    pub(crate) key_id: String,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct DecryptRequest {
    #[prost(bytes = "vec", tag = "1")]
    pub(crate) ciphertext: Vec<u8>,
    #[prost(string, tag = "2")]
    pub(crate) uid: String,
    #[prost(string, tag = "3")]
    pub(crate) key_id: String,
    #[prost(btree_map = "string, bytes", tag = "4")]
    pub(crate) annotations: BTreeMap<String, Vec<u8>>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct DecryptResponse {
    #[prost(bytes = "vec", tag = "1")]
    pub(crate) plaintext: Vec<u8>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct EncryptRequest {
    #[prost(bytes = "vec", tag = "1")]
    pub(crate) plaintext: Vec<u8>,
    #[prost(string, tag = "2")]
    pub(crate) uid: String,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct EncryptResponse {
    #[prost(bytes = "vec", tag = "1")]
    pub(crate) ciphertext: Vec<u8>,
    #[prost(string, tag = "2")]
    pub(crate) key_id: String,
    #[prost(btree_map = "string, bytes", tag = "3")]
    pub(crate) annotations: BTreeMap<String, Vec<u8>>,
}

pub(crate) const STATUS: &str = "/v2.KeyManagementService/Status";
pub(crate) const DECRYPT: &str = "/v2.KeyManagementService/Decrypt";
pub(crate) const ENCRYPT: &str = "/v2.KeyManagementService/Encrypt";

/// Why there is no answer, in Go's words.
#[derive(Debug)]
pub(crate) struct CallError {
    message: String,
    /// Nothing was heard of the plugin at all.
    pub(crate) is_silence: bool,
}

impl std::fmt::Display for CallError {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(&self.message)
    }
}

pub(crate) struct Service {
    name: String,
    channel: Channel,
    timeout: Duration,
    metrics: Arc<Metrics>,
}

impl Service {
    /// Connects when it is first called. The task of the channel needs a runtime.
    ///
    /// # Errors
    /// The endpoint is none.
    pub(crate) fn new(name: &str, endpoint: &str, timeout: Duration, metrics: Arc<Metrics>) -> Result<Self, String> {
        // `unix:///run/kms.sock`, or `unix:///@name` for a socket without a file.
        let path = endpoint.strip_prefix("unix://").unwrap_or(endpoint);
        let path = if path.starts_with("/@") { &path[1..] } else { path };
        if path.is_empty() || path == "/" {
            return Err(format!("failed to create connection to {endpoint}, error: invalid endpoint"));
        }
        let endpoint = Endpoint::from_shared(format!("unix:{path}"))
            .map_err(|it| format!("failed to create connection to {endpoint}, error: {it}"))?;
        let channel = endpoint.connect_timeout(timeout).connect_lazy();
        Ok(Self { name: name.to_owned(), channel, timeout, metrics })
    }

    pub(crate) async fn status(&self) -> Result<StatusResponse, CallError> {
        self.call(STATUS, StatusRequest {}).await
    }

    pub(crate) async fn decrypt(&self, request: DecryptRequest) -> Result<Vec<u8>, CallError> {
        let answer: DecryptResponse = self.call(DECRYPT, request).await?;
        Ok(answer.plaintext)
    }

    pub(crate) async fn encrypt(&self, request: EncryptRequest) -> Result<EncryptResponse, CallError> {
        self.call(ENCRYPT, request).await
    }

    async fn call<Q, A>(&self, method: &'static str, question: Q) -> Result<A, CallError>
    where
        Q: Message + 'static,
        A: Message + Default + 'static,
    {
        let begun = Instant::now();
        let answer = timeout(self.timeout, self.ask(method, question)).await;
        let answer = answer.unwrap_or_else(|_| Err(Status::deadline_exceeded("context deadline exceeded")));
        let code = answer.as_ref().map_or_else(|it| code_name(it.code()), |_| "OK");
        self.metrics.called(&self.name, method, code, begun.elapsed());
        answer.map_err(|it| CallError {
            message: format!("rpc error: code = {} desc = {}", code_name(it.code()), told(&it)),
            is_silence: matches!(it.code(), Code::DeadlineExceeded | Code::Unavailable),
        })
    }

    async fn ask<Q, A>(&self, method: &'static str, question: Q) -> Result<A, Status>
    where
        Q: Message + 'static,
        A: Message + Default + 'static,
    {
        let mut grpc = Grpc::new(self.channel.clone()).max_decoding_message_size(ANSWER_MAX);
        grpc.ready().await.map_err(|it| Status::unavailable(source(&it)))?;
        let codec = ProstCodec::<Q, A>::default();
        let answer = grpc.unary(tonic::Request::new(question), PathAndQuery::from_static(method), codec).await?;
        Ok(answer.into_inner())
    }
}

/// The innermost reason says more than `transport error`.
fn source(error: &dyn std::error::Error) -> String {
    let mut innermost = error;
    while let Some(next) = innermost.source() {
        innermost = next;
    }
    innermost.to_string()
}

/// What a plugin says may be of any length.
const MESSAGE_MAX: usize = 512;

fn told(status: &Status) -> String {
    let message = match std::error::Error::source(status) {
        Some(inner) if status.code() == Code::Unavailable => source(inner),
        _ => status.message().to_owned(),
    };
    match message.char_indices().nth(MESSAGE_MAX) {
        Some((end, _)) => format!("{}…", &message[..end]),
        None => message,
    }
}

/// As Go names it.
fn code_name(code: Code) -> &'static str {
    match code {
        Code::Ok => "OK",
        Code::Cancelled => "Canceled",
        Code::Unknown => "Unknown",
        Code::InvalidArgument => "InvalidArgument",
        Code::DeadlineExceeded => "DeadlineExceeded",
        Code::NotFound => "NotFound",
        Code::AlreadyExists => "AlreadyExists",
        Code::PermissionDenied => "PermissionDenied",
        Code::ResourceExhausted => "ResourceExhausted",
        Code::FailedPrecondition => "FailedPrecondition",
        Code::Aborted => "Aborted",
        Code::OutOfRange => "OutOfRange",
        Code::Unimplemented => "Unimplemented",
        Code::Internal => "Internal",
        Code::Unavailable => "Unavailable",
        Code::DataLoss => "DataLoss",
        Code::Unauthenticated => "Unauthenticated",
    }
}
