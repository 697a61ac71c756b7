//! The Common Expression Language as Kubernetes has it: parse, check against declared types, estimate, and evaluate within a
//! budget.
//!
//! Everything here is pure and bounded: an expression has at most so many characters, nodes and levels, and an evaluation at
//! most so many units of cost and of fuel. One thing is kept from one evaluation to the next: patterns that were compiled, so that an
//! evaluation whose fuel just suffices may not suffice where its pattern has to be compiled first. The words of errors are upstream's, since people look for them.

mod budget;
mod compile;
mod declared;
mod devices;
mod env;
mod error;
mod escape;
mod estimate;
mod fuel;
mod functions;
mod mutation;
mod opaque;
mod pattern;
mod run;
mod syntax;
mod timestamp;
mod typing;
mod value;

pub use budget::{
    MESSAGE_BYTES_MAX, PER_CALL_LIMIT, REQUEST_BYTES_MAX, RUNTIME_BUDGET, RUNTIME_BUDGET_MATCH_CONDITIONS,
    STATIC_ESTIMATE_LIMIT, STATIC_ESTIMATE_LIMIT_TOTAL,
};
pub use compile::Checked;
pub use declared::{DeclType, Field, ListKind, ObjectDecl, Shape, Type};
pub use devices::{Device, DeviceSelector, EXPRESSION_BYTES_MAX as SELECTOR_BYTES_MAX, SelectorError};
pub use env::{Env, NEW_EXPRESSIONS, STORED_EXPRESSIONS};
pub use error::{Error, ErrorKind, Issue, Issues};
pub use escape::{escape, unescape};
pub use estimate::Range;
pub use fuel::{Fuel, FuelLimit, MOMENT, is_spent, spend};
pub use functions::{Function, Overload, is_uri, named as function, table as functions};
pub use mutation::to_json as mutation_json;
pub use opaque::authorizing::{Attributes, Authorizer, Authorizing, Decision};
pub use pattern::{Pattern, check as check_pattern};
pub use run::{Activation, Outcome, Program};
pub use syntax::{DEPTH_MAX, NESTED_MAX, NODES_MAX, SOURCE_CHARS_MAX};
pub use timestamp::Timestamp;
pub use value::{Key, List, Map, Opaque, Text, Value};

#[cfg(test)]
mod tests;
