//! Who answers which method.

use std::{pin::Pin, sync::Arc};

use corten_etcd_api::{
    AlarmRequest, AuthStatusRequest, CompactionRequest, DefragmentRequest, HashKvRequest, HashRequest,
    LeaseGrantRequest, LeaseKeepAliveRequest, LeaseLeasesRequest, LeaseRevokeRequest, LeaseTimeToLiveRequest,
    MemberListRequest, RangeRequest, SnapshotRequest, SnapshotResponse, StatusRequest, WatchRequest, method,
};
use futures_util::{Stream, StreamExt};
use http::{Request, Response};
use hyper::body::Incoming;
use prost::Message;
use tokio::sync::watch;
use tonic::{
    Status, Streaming,
    body::Body,
    server::{Grpc, ServerStreamingService, StreamingService, UnaryService},
};
use tonic_prost::ProstCodec;

use crate::{cluster, core::Core, kv, lease, maintenance, snapshot, watch as watches};

/// What is longer is not read: a transaction that is too large is told so in etcd's words below this.
const MESSAGE_BYTES_MAX: usize = 16 << 20;

type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;
type Boxed<T> = Pin<Box<dyn Future<Output = Result<tonic::Response<T>, Status>> + Send>>;
type Messages<T> = Pin<Box<dyn Stream<Item = Result<T, Status>> + Send>>;

/// Boxed, because one type for all of it is more than the compiler can follow.
pub(crate) fn respond(
    core: Arc<Core>,
    stopping: watch::Receiver<bool>,
    request: Request<Incoming>,
) -> BoxFuture<'static, Response<Body>> {
    Box::pin(answer(core, stopping, request))
}

async fn answer(core: Arc<Core>, stopping: watch::Receiver<bool>, request: Request<Incoming>) -> Response<Body> {
    let path = request.uri().path().to_owned();
    match &*path {
        method::RANGE => unary(core, request, |core, it: RangeRequest| async move { kv::range(&core, &it) }).await,
        method::PUT => unary(core, request, kv::put).await,
        method::DELETE_RANGE => unary(core, request, kv::delete_range).await,
        method::TXN => unary(core, request, kv::txn).await,
        method::COMPACT => unary(core, request, |core, it: CompactionRequest| kv::compact(core, it)).await,
        method::WATCH => {
            streaming(request, move |it: Streaming<WatchRequest>| {
                Box::pin(watches::stream(core.clone(), it, stopping.clone()))
            })
            .await
        }
        method::LEASE_GRANT => unary(core, request, |core, it: LeaseGrantRequest| lease::grant(core, it)).await,
        method::LEASE_REVOKE => unary(core, request, |core, it: LeaseRevokeRequest| lease::revoke(core, it.id)).await,
        method::LEASE_KEEP_ALIVE => {
            let answer = move |it: Streaming<LeaseKeepAliveRequest>| -> Messages<_> {
                let (core, stopping) = (core.clone(), stopping.clone());
                let ended = async move {
                    let mut stopping = stopping;
                    let _ = stopping.wait_for(|it| *it).await;
                };
                Box::pin(it.map(move |it| it.map(|it| lease::keep_alive(&core, it))).take_until(ended))
            };
            streaming(request, answer).await
        }
        method::LEASE_TIME_TO_LIVE => {
            unary(core, request, |core, it: LeaseTimeToLiveRequest| async move { lease::time_to_live(&core, it) }).await
        }
        method::LEASE_LEASES => {
            unary(core, request, |core, _: LeaseLeasesRequest| async move { Ok(lease::list(&core)) }).await
        }
        _ => respond_of_member(core, request, &path).await,
    }
}

async fn respond_of_member(core: Arc<Core>, request: Request<Incoming>, path: &str) -> Response<Body> {
    match path {
        method::STATUS => {
            unary(core, request, |core, _: StatusRequest| async move { Ok(maintenance::status(&core)) }).await
        }
        method::ALARM => {
            unary(core, request, |core, it: AlarmRequest| async move { maintenance::alarm(&core, it) }).await
        }
        method::DEFRAGMENT => {
            unary(core, request, |core, _: DefragmentRequest| async move { Ok(maintenance::defragment(&core)) }).await
        }
        method::HASH => unary(core, request, |core, _: HashRequest| maintenance::hash(core)).await,
        method::HASH_KV => unary(core, request, |core, it: HashKvRequest| maintenance::hash_kv(core, it)).await,
        method::MEMBER_LIST => {
            unary(core, request, |core, _: MemberListRequest| async move { Ok(cluster::members(&core)) }).await
        }
        method::AUTH_STATUS => {
            unary(core, request, |core, _: AuthStatusRequest| async move { Ok(cluster::auth_status(&core)) }).await
        }
        method::SNAPSHOT => {
            let mut grpc = Grpc::new(ProstCodec::<SnapshotResponse, SnapshotRequest>::default());
            grpc.server_streaming(Snapshots(core), request).await
        }
        other => refusal(other).into_http(),
    }
}

/// Why a method is not answered.
fn refusal(path: &str) -> Status {
    let reason = match path.split('/').nth(1) {
        Some("etcdserverpb.Auth") => {
            "there are no users and roles: whoever has a client certificate of this server's authority may do everything"
        }
        Some("etcdserverpb.Cluster") => "there is one member: members are neither added nor removed",
        _ => return Status::unimplemented(format!("etcdserver: {path} is not answered here")),
    };
    Status::unimplemented(format!("etcdserver: {reason}"))
}

struct Unary<F>(Arc<Core>, F);

impl<Q, A, F, T> UnaryService<Q> for Unary<F>
where
    F: Fn(Arc<Core>, Q) -> T,
    T: Future<Output = Result<A, Status>> + Send + 'static,
{
    type Response = A;
    type Future = Boxed<A>;

    fn call(&mut self, request: tonic::Request<Q>) -> Self::Future {
        let answer = (self.1)(self.0.clone(), request.into_inner());
        Box::pin(async move { answer.await.map(tonic::Response::new) })
    }
}

async fn unary<Q, A, F, T>(core: Arc<Core>, request: Request<Incoming>, answer: F) -> Response<Body>
where
    Q: Message + Default + Send + 'static,
    A: Message + Default + Send + 'static,
    F: Fn(Arc<Core>, Q) -> T,
    T: Future<Output = Result<A, Status>> + Send + 'static,
{
    let mut grpc = Grpc::new(ProstCodec::<A, Q>::default()).max_decoding_message_size(MESSAGE_BYTES_MAX);
    grpc.unary(Unary(core, answer), request).await
}

struct Snapshots(Arc<Core>);

impl ServerStreamingService<SnapshotRequest> for Snapshots {
    type Response = SnapshotResponse;
    type ResponseStream = Messages<SnapshotResponse>;
    type Future = Boxed<Self::ResponseStream>;

    fn call(&mut self, _: tonic::Request<SnapshotRequest>) -> Self::Future {
        let core = self.0.clone();
        Box::pin(async move {
            let parts: Messages<SnapshotResponse> = Box::pin(snapshot::stream(core).await?);
            Ok(tonic::Response::new(parts))
        })
    }
}

struct Exchange<F>(F);

impl<Q, A, F> StreamingService<Q> for Exchange<F>
where
    F: FnMut(Streaming<Q>) -> Messages<A>,
    A: 'static,
{
    type Response = A;
    type ResponseStream = Messages<A>;
    type Future = std::future::Ready<Result<tonic::Response<Self::ResponseStream>, Status>>;

    fn call(&mut self, request: tonic::Request<Streaming<Q>>) -> Self::Future {
        std::future::ready(Ok(tonic::Response::new((self.0)(request.into_inner()))))
    }
}

fn streaming<Q, A, F>(request: Request<Incoming>, answer: F) -> BoxFuture<'static, Response<Body>>
where
    Q: Message + Default + Send + 'static,
    A: Message + Default + Send + 'static,
    F: FnMut(Streaming<Q>) -> Messages<A> + Send + 'static,
{
    let mut grpc = Grpc::new(ProstCodec::<A, Q>::default()).max_decoding_message_size(MESSAGE_BYTES_MAX);
    Box::pin(async move { grpc.streaming(Exchange(answer), request).await })
}
