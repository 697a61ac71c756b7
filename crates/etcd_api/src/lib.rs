//! What is said to etcd and what it answers: the messages of `etcdserverpb` and `mvccpb` as far as they are used, with the
//! numbers that etcd publishes.

mod cluster;
mod kv;
mod lease;
mod maintenance;
pub mod method;
mod watch;

pub use cluster::{
    AuthStatusRequest, AuthStatusResponse, Member, MemberAddRequest, MemberAddResponse, MemberListRequest,
    MemberListResponse, MemberPromoteRequest, MemberPromoteResponse, MemberRemoveRequest, MemberRemoveResponse,
    MemberUpdateRequest, MemberUpdateResponse,
};
pub use kv::{
    CompactionRequest, CompactionResponse, Compare, CompareWith, DeleteRangeRequest, DeleteRangeResponse, KeyValue,
    PutRequest, PutResponse, RangeRequest, RangeResponse, RequestKind, RequestOp, ResponseKind, ResponseOp, TxnRequest,
    TxnResponse,
};
pub use lease::{
    LeaseGrantRequest, LeaseGrantResponse, LeaseKeepAliveRequest, LeaseKeepAliveResponse, LeaseLeasesRequest,
    LeaseLeasesResponse, LeaseRevokeRequest, LeaseRevokeResponse, LeaseStatus, LeaseTimeToLiveRequest,
    LeaseTimeToLiveResponse,
};
pub use maintenance::{
    AlarmMember, AlarmRequest, AlarmResponse, DefragmentRequest, DefragmentResponse, HashKvRequest, HashKvResponse,
    HashRequest, HashResponse, SnapshotRequest, SnapshotResponse, StatusRequest, StatusResponse,
};
use prost::Message;
pub use watch::{
    Event, WatchCancelRequest, WatchCreateRequest, WatchProgressRequest, WatchRequest, WatchRequestKind, WatchResponse,
};

#[derive(Clone, Copy, PartialEq, Message)]
pub struct ResponseHeader {
    #[prost(uint64, tag = "1")]
    pub cluster_id: u64,
    #[prost(uint64, tag = "2")]
    pub member_id: u64,
    #[prost(int64, tag = "3")]
    pub revision: i64,
    #[prost(uint64, tag = "4")]
    pub raft_term: u64,
}
