//! OpenAPI as protobuf, in the messages of gnostic, for clients that ask for it before JSON.

pub(super) mod v2;
pub(super) mod v3;
