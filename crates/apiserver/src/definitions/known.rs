//! What is known of one definition.

use std::sync::Arc;

use corten_kinds::custom::{CLEANUP_FINALIZER, DefinedNames, Rows, has_condition, names_of, rows};
use corten_store::Revision;
use serde_json::Value;

use super::Served;

pub(super) struct Known {
    definition: Value,
    revision: Revision,
    /// It is no longer stored.
    pub(super) is_gone: bool,
    /// What is served of it.
    pub(super) served: Option<Served>,
    /// Its names were looked at, as they are asked for in this generation.
    named: Option<i64>,
}

/// What rows are made of: where it has changed, so have they.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct Origin {
    uid: String,
    generation: i64,
    names: DefinedNames,
    is_leaving: bool,
}

impl Known {
    pub(super) fn new(definition: Value, revision: Revision) -> Self {
        Self { definition, revision, is_gone: false, served: None, named: None }
    }

    pub(super) fn take(&mut self, definition: Value, revision: Revision) {
        (self.definition, self.revision, self.is_gone) = (definition, revision, false);
    }

    pub(super) fn definition(&self) -> &Value {
        &self.definition
    }

    pub(super) fn revision(&self) -> Revision {
        self.revision
    }

    fn text(&self, pointer: &str) -> &str {
        self.definition.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
    }

    pub(super) fn name(&self) -> &str {
        self.text("/metadata/name")
    }

    pub(super) fn uid(&self) -> &str {
        self.text("/metadata/uid")
    }

    pub(super) fn group(&self) -> &str {
        self.text("/spec/group")
    }

    /// By which definitions stand in the order in which they came.
    pub(super) fn age(&self) -> (String, Revision) {
        (self.text("/metadata/creationTimestamp").to_owned(), self.revision)
    }

    fn generation(&self) -> i64 {
        self.definition["metadata"]["generation"].as_i64().unwrap_or_default()
    }

    /// Has it the names that it asks for, and does it say so?
    pub(super) fn is_named(&self) -> bool {
        has_condition(&self.definition, "NamesAccepted") && self.named == Some(self.generation())
    }

    /// Has it names that no other may have?
    pub(super) fn has_names(&self) -> bool {
        !self.text("/status/acceptedNames/plural").is_empty()
    }

    pub(super) fn accepted_names(&self) -> DefinedNames {
        accepted(&self.definition)
    }

    /// Is it being deleted, and its objects not gone yet?
    pub(super) fn is_leaving(&self) -> bool {
        let finalizers = self.definition["metadata"]["finalizers"].as_array();
        !self.is_gone
            && self.is_terminating()
            && finalizers.is_some_and(|it| it.iter().any(|it| it == CLEANUP_FINALIZER))
    }

    fn is_terminating(&self) -> bool {
        self.definition["metadata"]["deletionTimestamp"].is_string()
    }

    pub(super) fn rows(&self) -> Option<&Arc<Rows>> {
        self.served.as_ref().map(|it| &it.rows)
    }

    /// The rows it is to be served by from now on; `None` where those there are are still right, or it may have none yet.
    pub(super) fn make_rows(&mut self) -> Option<Served> {
        let is_established = has_condition(&self.definition, "Established");
        if !is_established && !has_condition(&self.definition, "NamesAccepted") {
            return None;
        }
        self.named = Some(self.generation());
        let of = Origin {
            uid: self.uid().to_owned(),
            generation: self.generation(),
            names: names_of(&self.definition),
            is_leaving: self.is_terminating(),
        };
        let before = self.served.as_ref();
        if before.is_some_and(|it| it.of == of) {
            return None;
        }
        // That it takes no new objects does not change those it has.
        let needs_cache = before.is_none_or(|it| Origin { is_leaving: of.is_leaving, ..it.of.clone() } != of);
        let rows = Arc::new(rows(&self.definition)?);
        Some(Served { rows, of, needs_cache })
    }
}

/// The names that a definition's status says it has.
pub(super) fn accepted(definition: &Value) -> DefinedNames {
    names_of(definition)
}
