//! Refusals in etcd's words and codes (`rpctypes`): clients tell them apart by the text.

use corten_store::Error;
use tonic::Status;

pub(crate) fn empty_key() -> Status {
    Status::invalid_argument("etcdserver: key is not provided")
}

pub(crate) fn key_not_found() -> Status {
    Status::invalid_argument("etcdserver: key not found")
}

pub(crate) fn value_provided() -> Status {
    Status::invalid_argument("etcdserver: value is provided")
}

pub(crate) fn lease_provided() -> Status {
    Status::invalid_argument("etcdserver: lease is provided")
}

pub(crate) fn too_many_operations() -> Status {
    Status::invalid_argument("etcdserver: too many operations in txn request")
}

pub(crate) fn duplicate_key() -> Status {
    Status::invalid_argument("etcdserver: duplicate key given in txn request")
}

pub(crate) fn sort_option() -> Status {
    Status::invalid_argument("etcdserver: invalid sort option")
}

pub(crate) fn too_large() -> Status {
    Status::invalid_argument("etcdserver: request is too large")
}

pub(crate) fn too_many_requests() -> Status {
    Status::resource_exhausted("etcdserver: too many requests")
}

pub(crate) fn compacted() -> Status {
    Status::out_of_range("etcdserver: mvcc: required revision has been compacted")
}

pub(crate) fn no_space() -> Status {
    Status::resource_exhausted("etcdserver: mvcc: database space exceeded")
}

pub(crate) fn no_lease() -> Status {
    Status::not_found("etcdserver: requested lease not found")
}

pub(crate) fn lease_exists() -> Status {
    Status::failed_precondition("etcdserver: lease already exists")
}

pub(crate) fn lease_too_long() -> Status {
    Status::out_of_range("etcdserver: too large lease TTL")
}

pub(crate) fn stopped() -> Status {
    Status::unavailable("etcdserver: server stopped")
}

pub(crate) fn reserved(reason: &str) -> Status {
    Status::permission_denied(format!("etcdserver: permission denied: {reason}"))
}

pub(crate) fn of_store(error: Error) -> Status {
    match error {
        Error::Compacted { .. } => compacted(),
        Error::Future { .. } => Status::out_of_range("etcdserver: mvcc: required revision is a future revision"),
        Error::Closed => stopped(),
        Error::TooLarge { .. } => too_large(),
        // Nobody knows whether it is written: as where etcd's answer is lost.
        Error::Io(message) => Status::unknown(message),
        Error::Unavailable(message) | Error::Encryption(message) => Status::unavailable(message),
    }
}
