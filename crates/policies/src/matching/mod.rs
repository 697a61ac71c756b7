//! Which requests a webhook or an admission policy is about: rules, selectors, and conditions in CEL. All of it is read once, when
//! the configuration changes; a request that nothing is about costs one lookup by its resource.

mod bindings;
mod conditions;
mod criteria;
mod index;
mod request;
mod rule;

pub use bindings::{Bindings, Uses};
pub(crate) use conditions::evaluate;
pub use conditions::{Conditions, OUT_OF_BUDGET, Verdict};
pub use criteria::{Criteria, Matched, NoNamespace};
pub use index::Index;
pub use request::{GroupVersionResource, Operation, Request, is_exempt};

#[cfg(test)]
mod tests;
