//! The words of audit: how much of a request is recorded, where records go, and what is kept while it is under way.

mod file_log;
mod policy;

use bytes::Bytes;
use serde_json::Value;

pub use file_log::{FileLog, Rotation};
pub use policy::{Level, Stage, Verdict};
pub use policy::{Policy, PolicyError};

/// Where records go. Must return at once.
pub trait Sink: Send + Sync {
    /// `line` is one record as JSON, without a line break.
    fn record(&self, line: Vec<u8>);

    /// How many records were dropped because the sink could not keep up.
    fn dropped(&self) -> u64;
}

/// What is kept of a request while it is under way.
#[derive(Default)]
pub struct Trail {
    pub verdict: Verdict,
    pub body: Option<Bytes>,
    /// The request's object, once it is decoded; its body is shown where it is none.
    pub decoded: Option<Value>,
    /// The name of that object: the path of a create has none.
    pub name: String,
    /// Why it was refused, where the answer is no Status that says so.
    pub reason: String,
}

impl Trail {
    /// Is there to be a record? Otherwise nothing needs to be remembered for it.
    pub fn is_kept(&self) -> bool {
        self.verdict.level > Level::None
    }

    /// The request's body, where the policy wants it.
    pub fn saw_body(&mut self, body: &Bytes) {
        if self.verdict.level >= Level::Request {
            self.body = Some(body.clone());
        }
    }

    /// The request's object, as it was understood (audit.LogRequestObject).
    pub fn decoded(&mut self, object: &Value) {
        if !self.is_kept() {
            return;
        }
        object["metadata"]["name"].as_str().unwrap_or_default().clone_into(&mut self.name);
        if self.verdict.level >= Level::Request {
            self.decoded = Some(object.clone());
        }
    }
}
