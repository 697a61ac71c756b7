//! The newest state of every object, encoded once, and all that is made of it for an answer: versions, forms, lists, tables.
//!
//! Nothing here knows who asks: what a request says comes as its headers and its query.

#![expect(
    clippy::result_large_err,
    reason = "a Status is made once for each refused request; a box would burden every signature"
)]

pub mod answer;
pub mod apart;
pub mod body;
pub mod by_node;
pub mod codec;
pub mod derived;
pub mod fence;
pub mod sweeps;
pub mod warnings;
pub mod watch_cache;
