//! API Priority and Fairness: how many requests are answered at once, and whose is next where more come (KEP-1040).
//!
//! A FlowSchema says to which priority level a request belongs, and to which flow within it. A priority level has so many
//! seats; a request takes as many as it is wide. Where none is free it waits in one of the level's queues, and a flow is
//! dealt few of them, so that one that asks too much fills its own and leaves others theirs.

mod allotment;
mod flow_schema;
mod priority_level;
mod queue_set;
mod shuffle;
mod width;

pub use allotment::{Allotment, Demand, Division, allot};
pub use flow_schema::{Distinguisher, FlowSchema, RequestDigest, RequestedResource};
pub use priority_level::{Limited, PriorityLevel, Queuing, nominal};
pub use queue_set::{
    Arrival, DispatchTimes, Dispatched, QueueId, QueuePosition, QueueSet, QueueState, Refusal, Ticket,
};
pub use width::{OBJECTS_PER_SEAT, SEATS_MAX, width_max, width_of_list};

/// The priority level of what no flow schema matches, and its flow schema.
pub const CATCH_ALL: &str = "catch-all";
/// The priority level that nobody waits in.
pub const EXEMPT: &str = "exempt";
