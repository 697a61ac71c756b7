//! What a webhook's patch makes of an object.

use corten_kinds::Kind;
use corten_meta::Status;
use corten_schema::patch;
use serde_json::Value;

use super::{call::Failure, large};
use crate::{
    patched::{self, Unfit},
    plugin::Attributes,
    webhook_source::Hook,
};

impl Hook {
    /// Puts the outcome into `object`. `shown` is what the webhook saw of it. Says whether it differs.
    ///
    /// # Errors
    /// The patch cannot be applied, or what it makes is no object of the kind.
    pub(super) async fn patch(
        &self,
        request: &Attributes<'_>,
        row: &Kind,
        object: &mut Value,
        shown: &Value,
        patch: &[u8],
    ) -> Result<bool, Failure> {
        let internal = |reason: String| Failure::Internal(Box::new(Status::internal(reason)));
        if object.is_null() {
            return Err(internal(format!(
                "admission webhook {:?} attempted to modify the object, which is not supported for this operation",
                self.name
            )));
        }
        let made = large::read(patch.len(), || patch::json(shown.clone(), patch)).await;
        let new = made.map_err(|it| internal(it.to_string()))?;
        let taken = large::taken(patch.len(), patched::take(request, row, object, shown, new)).await;
        taken.map_err(|it| match it {
            Unfit::OtherKind => {
                internal(format!("admission webhook {:?} changes the object's kind or version", self.name))
            }
            Unfit::Unreadable(reason) => internal(reason),
            Unfit::Invalid(violation) => {
                let status = Status::invalid(&request.asked.resource, request.name, &[violation]);
                Failure::Internal(Box::new(status))
            }
            Unfit::Unconverted(status) => Failure::Internal(status),
        })
    }
}
