//! What every answer of etcd has, and its revision and cluster in it.

use corten_etcd_api::{
    AlarmResponse, CompactionResponse, DefragmentResponse, LeaseGrantResponse, MemberAddResponse, MemberListResponse,
    MemberPromoteResponse, MemberRemoveResponse, MemberUpdateResponse, RangeResponse, ResponseHeader, StatusResponse,
    TxnResponse, WatchResponse,
};
use prost::Message;

/// An answer with the header that says of which cluster and revision it is.
pub(crate) trait Answer: Message + Default + 'static {
    fn header(&self) -> Option<&ResponseHeader>;
}

macro_rules! answers {
    ($($message:ident),*) => {
        $(impl Answer for $message {
            fn header(&self) -> Option<&ResponseHeader> {
                self.header.as_ref()
            }
        })*
    };
}

answers!(
    RangeResponse,
    TxnResponse,
    LeaseGrantResponse,
    CompactionResponse,
    WatchResponse,
    StatusResponse,
    AlarmResponse,
    DefragmentResponse,
    MemberListResponse,
    MemberAddResponse,
    MemberRemoveResponse,
    MemberUpdateResponse,
    MemberPromoteResponse
);
