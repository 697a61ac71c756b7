//! The webhooks of the cluster: their configurations as they are asked, and what is counted of their answers.

mod compiled;
mod failing;
mod measures;

pub use compiled::Webhooks;
pub(crate) use compiled::{Hook, Hooks};
pub(crate) use failing::DENIALS_MIN;
pub use failing::{FailingWebhook, Trouble};
pub(crate) use measures::{Call, ErrorType, Phase};
