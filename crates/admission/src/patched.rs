//! What webhooks and policies make of an object that they were shown: read as the API would read it, defaulted, and brought back into
//! the stored form.

use corten_cacher::codec;
use corten_kinds::{Kind, Schema};
use corten_meta::{Status, Violation};
use corten_schema::apply::Owners;
use serde_json::Value;

use crate::{
    plugin::{Attributes, Operation},
    review_request,
};

/// Why it cannot take the object's place.
pub(crate) enum Unfit {
    /// It says that it is something else than what was shown.
    OtherKind,
    /// It has fields that the kind does not have.
    Unreadable(String),
    /// What its defaults need is wrong.
    Invalid(Violation),
    /// Nobody converts it into the version it was sent in.
    Unconverted(Box<Status>),
}

/// Puts `new`, which was made of what was `shown` in the version of `row`, into the place of `object`. Says whether it differs.
///
/// # Errors
/// It is no object of the kind.
pub(crate) async fn take(
    request: &Attributes<'_>,
    row: &Kind,
    object: &mut Value,
    shown: &Value,
    mut new: Value,
) -> Result<bool, Unfit> {
    if new["kind"] != shown["kind"] || new["apiVersion"] != shown["apiVersion"] {
        return Err(Unfit::OtherKind);
    }
    // The options of a connection have no schema here: who begins it reads them.
    if request.operation == Operation::Connect {
        let changes = new != *shown;
        *object = new;
        return Ok(changes);
    }
    let part = review_request::part_schema(request).map(Schema::Table);
    let schema = part.as_ref().unwrap_or(&row.schema);
    codec::unknown_fields(schema, &new).map_err(Unfit::Unreadable)?;
    codec::prune(schema, &mut new);
    if new == *shown {
        return Ok(false);
    }
    if request.form.scale(object).is_some() {
        request.form.take_scale(object, &new);
    } else if review_request::is_whole(request) {
        *object = stored(request, row, object, new).await?;
    } else {
        *object = new;
    }
    Ok(true)
}

/// What says which object it is: name, namespace and uid.
pub(crate) struct NamedAs([String; 3]);

impl NamedAs {
    const FIELDS: [&str; 3] = ["name", "namespace", "uid"];

    pub(crate) fn of(object: &Value) -> Self {
        Self(Self::FIELDS.map(|it| object["metadata"][it].as_str().unwrap_or_default().to_owned()))
    }

    /// What was changed of it so that the request will be refused: in upstream's words, which do not say by whom.
    pub(crate) fn moved(&self, request: &Attributes<'_>, object: &Value) -> Option<String> {
        if !review_request::is_whole(request) {
            return None;
        }
        // A new object may be given another name, and its uid later.
        let stays = |field: &str| field == "namespace" || request.operation == Operation::Update;
        let now = Self::of(object);
        let fields = Self::FIELDS.iter().zip(self.0.iter().zip(&now.0));
        let mut moved = fields.filter(|(field, (before, now))| stays(field) && !now.is_empty() && before != now);
        moved.next().map(|(field, (before, now))| format!("it changes metadata.{field} from {before:?} to {now:?}"))
    }
}

async fn stored(request: &Attributes<'_>, row: &Kind, object: &Value, mut new: Value) -> Result<Value, Unfit> {
    keep_owners(&mut new, object);
    // The defaults of a custom resource are those of the version that was shown.
    if row.is_custom() {
        row.policy.try_default(&mut new).map_err(Unfit::Invalid)?;
    }
    let mut new = review_request::taken(request, row, new).await.map_err(|it| Unfit::Unconverted(Box::new(it)))?;
    if !row.is_custom() {
        request.kind.policy.try_default(&mut new).map_err(Unfit::Invalid)?;
    }
    review_request::restore_what_is_given_later(request, &mut new, object);
    Ok(new)
}

/// Makes the list of owners one text again. One that cannot be read is as if it had been left alone.
fn keep_owners(new: &mut Value, old: &Value) {
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

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn owners_are_one_text_again() {
        let entry = json!({ "manager": "a", "operation": "Update", "apiVersion": "v1", "fieldsType": "FieldsV1",
            "fieldsV1": { "f:data": { "f:a": {} } } });
        let text = json!([entry]).to_string();
        let old = json!({ "metadata": { "managedFields": text } });
        let renamed = json!([{ "manager": "b", "operation": "Update", "apiVersion": "v1", "fieldsType": "FieldsV1",
            "fieldsV1": { "f:data": { "f:a": {} } } }]);
        for (what, given, manager) in [
            ("left alone", json!([entry]), "a"),
            ("taken away", Value::Null, "a"),
            ("another's", renamed, "b"),
            ("no list of owners", json!([{ "manager": 1 }]), "a"),
        ] {
            let mut new = json!({ "metadata": { "managedFields": given } });
            if new["metadata"]["managedFields"].is_null() {
                new["metadata"] = json!({});
            }
            keep_owners(&mut new, &old);
            let text = new["metadata"]["managedFields"].as_str().unwrap_or_else(|| panic!("{what}: {new}"));
            let list: Value = serde_json::from_str(text).expect("JSON");
            assert_eq!(list[0]["manager"], manager, "{what}");
        }
        let mut bare = json!({ "metadata": {} });
        keep_owners(&mut bare, &json!({ "metadata": {} }));
        assert_eq!(bare, json!({ "metadata": {} }));
    }
}
