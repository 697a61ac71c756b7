//! Tells at once when something became of a container, from containerd's own event service.
//!
//! CRI's `GetContainerEvents` is not there before containerd 1.7. An event only says where to look: after `Connected`
//! anything may have been missed, and the listener lists afresh.

use std::{path::Path, time::Duration};

use futures_util::{Stream, StreamExt, stream};
use http::uri::PathAndQuery;
use prost::Message;
use tonic::{Streaming, client::Grpc, transport::Channel};
use tonic_prost::ProstCodec;

/// What became of a container; a sandbox is the container of the same id.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RuntimeEvent {
    /// The events begin, or begin again, here.
    Connected,
    Started {
        container: String,
    },
    /// Its main process has ended.
    Exited {
        container: String,
    },
    /// The kernel killed a process of it for want of memory.
    Oom {
        container: String,
    },
    Deleted {
        container: String,
    },
}

#[derive(Clone, PartialEq, prost::Message)]
struct SubscribeRequest {
    #[prost(string, repeated, tag = "1")]
    filters: Vec<String>,
}

#[derive(Clone, PartialEq, prost::Message)]
struct PublishRequest {
    #[prost(string, tag = "1")]
    topic: String,
    #[prost(message, optional, tag = "2")]
    event: Option<Any>,
}

#[derive(Clone, PartialEq, prost::Message)]
struct Envelope {
    #[prost(string, tag = "2")]
    namespace: String,
    #[prost(string, tag = "3")]
    topic: String,
    #[prost(message, optional, tag = "4")]
    event: Option<Any>,
}

#[derive(Clone, PartialEq, prost::Message)]
struct Any {
    #[prost(string, tag = "1")]
    type_url: String,
    #[prost(bytes = "vec", tag = "2")]
    value: Vec<u8>,
}

/// The one field all task events share, and the one by which `TaskExit` tells a container's end from an exec's.
#[derive(Clone, PartialEq, prost::Message)]
struct TaskEvent {
    #[prost(string, tag = "1")]
    container_id: String,
}

#[derive(Clone, PartialEq, prost::Message)]
struct TaskExit {
    #[prost(string, tag = "1")]
    container_id: String,
    #[prost(string, tag = "2")]
    id: String,
}

const FIRST_WAIT: Duration = Duration::from_millis(20);
const LONGEST_WAIT: Duration = Duration::from_secs(1);
const LISTEN_DEADLINE: Duration = Duration::from_secs(10);

/// The event that we send to ourselves.
const LISTENING: &str = "/corten/listening";

enum Subscription {
    Away { wait: Duration },
    Open(Box<Streaming<Envelope>>),
}

/// The events of all Pods' containers. Never ends; comes back by itself when the runtime was away.
pub fn events(socket: &Path) -> impl Stream<Item = RuntimeEvent> + Send + Unpin + 'static {
    let start = (Subscription::Away { wait: Duration::ZERO }, socket.to_owned());
    stream::unfold(start, |(mut subscription, socket)| async move {
        loop {
            let (next, event) = subscription.step(&socket).await;
            subscription = next;
            if let Some(event) = event {
                return Some((event, (subscription, socket)));
            }
        }
    })
    .boxed()
}

impl Subscription {
    async fn step(self, socket: &Path) -> (Self, Option<RuntimeEvent>) {
        match self {
            Self::Away { wait } => {
                tokio::time::sleep(wait).await;
                match tokio::time::timeout(LISTEN_DEADLINE, listen(socket)).await {
                    Ok(Some(stream)) => (Self::Open(Box::new(stream)), Some(RuntimeEvent::Connected)),
                    Ok(None) | Err(_) => (Self::Away { wait: (wait * 2).clamp(FIRST_WAIT, LONGEST_WAIT) }, None),
                }
            }
            Self::Open(mut stream) => match stream.next().await {
                Some(Ok(envelope)) => (Self::Open(stream), read(&envelope)),
                Some(Err(_)) | None => (Self::Away { wait: FIRST_WAIT }, None),
            },
        }
    }
}

/// Subscribes, and returns when containerd has taken note of it; nothing where it is away.
///
/// containerd does not say when a subscription begins: even the head of its answer comes with the first event. So we publish
/// one of our own until it comes back.
async fn listen(socket: &Path) -> Option<Streaming<Envelope>> {
    let mut grpc = Grpc::new(crate::cri::channel(socket).ok()?);
    grpc.ready().await.ok()?;
    let mut publisher = grpc.clone();
    let filters = vec!["namespace==k8s.io,topic~=\"^/tasks/\"".to_owned(), format!("topic==\"{LISTENING}\"")];
    let subscribed = async move {
        let path = PathAndQuery::from_static("/containerd.services.events.v1.Events/Subscribe");
        let codec = ProstCodec::<SubscribeRequest, Envelope>::default();
        let request = tonic::Request::new(SubscribeRequest { filters });
        let mut stream = grpc.server_streaming(request, path, codec).await.ok()?.into_inner();
        loop {
            if stream.next().await?.ok()?.topic == LISTENING {
                return Some(stream);
            }
        }
    };
    let publishing = async move {
        loop {
            tokio::time::sleep(FIRST_WAIT).await;
            if publish(&mut publisher).await.is_none() {
                return;
            }
        }
    };
    tokio::select! {
        biased;
        stream = subscribed => stream,
        () = publishing => None,
    }
}

async fn publish(grpc: &mut Grpc<Channel>) -> Option<()> {
    let event = Any { type_url: "corten.dev/Listening".to_owned(), value: Vec::new() };
    let mut request = tonic::Request::new(PublishRequest { topic: LISTENING.to_owned(), event: Some(event) });
    request.metadata_mut().insert("containerd-namespace", "k8s.io".parse().ok()?);
    let path = PathAndQuery::from_static("/containerd.services.events.v1.Events/Publish");
    grpc.ready().await.ok()?;
    grpc.unary(request, path, ProstCodec::<PublishRequest, ()>::default()).await.ok().map(drop)
}

fn read(envelope: &Envelope) -> Option<RuntimeEvent> {
    let value = envelope.event.as_ref()?.value.as_slice();
    let container = TaskEvent::decode(value).ok()?.container_id;
    match envelope.topic.as_str() {
        "/tasks/start" => Some(RuntimeEvent::Started { container }),
        "/tasks/oom" => Some(RuntimeEvent::Oom { container }),
        "/tasks/delete" => Some(RuntimeEvent::Deleted { container }),
        // The end of an exec names the exec in `id`.
        "/tasks/exit" => TaskExit::decode(value)
            .is_ok_and(|it| it.id == it.container_id)
            .then_some(RuntimeEvent::Exited { container }),
        _ => None,
    }
}
