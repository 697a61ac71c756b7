//! The engines. Each passes the suite in `conformance`.

pub mod embedded;
pub mod memory;
