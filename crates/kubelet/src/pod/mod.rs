//! One pod as a state machine.

pub(crate) mod admission;
pub(crate) mod certificates;
pub(crate) mod claims;
pub(crate) mod conditions;
pub(crate) mod container_record;
pub(crate) mod containers;
pub(crate) mod context;
pub(crate) mod device_claims;
pub(crate) mod device_health;
pub(crate) mod image_state;
pub(crate) mod image_volumes;
pub(crate) mod journal;
pub(crate) mod machine;
pub(crate) mod pinned;
pub(crate) mod probe;
pub(crate) mod resize;
pub(crate) mod rest;
pub(crate) mod restart_all;
pub(crate) mod sandbox_end;
pub(crate) mod span;
pub(crate) mod static_pod;
pub(crate) mod status;
pub(crate) mod sync_pod;
pub(crate) mod termination;
pub(crate) mod tokens;
pub(crate) mod unsupported;
