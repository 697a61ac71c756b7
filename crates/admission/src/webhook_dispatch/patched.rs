//! What a webhook's patch makes of an object: read as the API would read it, defaulted, and brought back into the stored form.

use corten_cacher::codec;
use corten_kinds::{Kind, Schema};
use corten_meta::Status;
use corten_schema::{apply::Owners, patch};
use serde_json::Value;

use super::call::Failure;
use crate::{
    plugin::{Attributes, Operation},
    review_request,
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
        let is_nothing = serde_json::from_slice::<Vec<serde::de::IgnoredAny>>(patch).is_ok_and(|it| it.is_empty());
        if is_nothing {
            return Ok(false);
        }
        // What a tunnel is opened with is not read from the object that webhooks are shown.
        if object.is_null() || request.operation == Operation::Connect {
            return Err(internal(format!(
                "admission webhook {:?} attempted to modify the object, which is not supported for this operation",
                self.name
            )));
        }
        let mut new = patch::json(shown.clone(), patch).map_err(|it| internal(it.to_string()))?;
        if new["kind"] != shown["kind"] || new["apiVersion"] != shown["apiVersion"] {
            return Err(internal(format!("admission webhook {:?} changes the object's kind or version", self.name)));
        }
        let part = review_request::part_schema(request).map(Schema::Table);
        let schema = part.as_ref().unwrap_or(&row.schema);
        codec::unknown_fields(schema, &new).map_err(internal)?;
        codec::prune(schema, &mut new);
        if new == *shown {
            return Ok(false);
        }
        self.take(request, row, object, new).await?;
        Ok(true)
    }

    async fn take(
        &self,
        request: &Attributes<'_>,
        row: &Kind,
        object: &mut Value,
        mut new: Value,
    ) -> Result<(), Failure> {
        if request.form.scale(object).is_some() {
            request.form.take_scale(object, &new);
            return Ok(());
        }
        if !review_request::is_whole(request) {
            *object = new;
            return Ok(());
        }
        keep_owners(&mut new, object);
        let internal = |status| Failure::Internal(Box::new(status));
        let invalid = |it| internal(Status::invalid(&request.asked.resource, request.name, &[it]));
        // The defaults of a custom resource are those of the version that the webhook saw.
        if row.is_custom() {
            row.policy.try_default(&mut new).map_err(invalid)?;
        }
        let mut new = review_request::taken(request, row, new).await.map_err(internal)?;
        if !row.is_custom() {
            request.kind.policy.try_default(&mut new).map_err(invalid)?;
        }
        review_request::restore_what_is_given_later(request, &mut new, object);
        *object = new;
        Ok(())
    }
}

/// Makes the list of owners one text again. One that cannot be read is as if the webhook had left it alone.
pub(crate) fn keep_owners(new: &mut Value, old: &Value) {
    let before = old["metadata"]["managedFields"].clone();
    let after = new["metadata"].as_object_mut().and_then(|it| it.shift_remove("managedFields"));
    let same =
        |list: &Value| before.as_str().and_then(|it| serde_json::from_str::<Value>(it).ok()).as_ref() == Some(list);
    let text = match after {
        Some(list) if same(&list) => before,
        Some(list) => {
            let list = list.to_string();
            Owners::read_whole(&list).map_or(before, |it| it.write().into())
        }
        None => before,
    };
    if !text.is_null() && new["metadata"].is_object() {
        new["metadata"]["managedFields"] = text;
    }
}
