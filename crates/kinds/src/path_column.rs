//! Columns of custom resources (`pkg/registry/customresource/tableconvertor` of apiextensions-apiserver).

use corten_meta::Time;
use corten_validation::json_path::JsonPath;
use serde_json::Value;

use crate::{ColumnType, age::since};

/// A column that shows the value at a path.
pub struct PathColumn {
    pub name: String,
    /// As it is written; a definition that another server stored may have one that is not known.
    pub column_type: String,
    pub format: String,
    pub description: String,
    pub priority: i64,
    pub(crate) path: Option<JsonPath>,
}

impl PathColumn {
    /// What a definition without columns of its own shows.
    pub(crate) fn age() -> Self {
        Self {
            name: "Age".into(),
            column_type: ColumnType::Date.name().into(),
            format: String::new(),
            description: AGE.into(),
            priority: 0,
            path: JsonPath::read(".metadata.creationTimestamp"),
        }
    }

    /// One of `additionalPrinterColumns`.
    pub(crate) fn read(column: &Value) -> Self {
        let text = |name: &str| column[name].as_str().unwrap_or_default().to_owned();
        Self {
            name: text("name"),
            column_type: text("type"),
            format: text("format"),
            description: match &*text("description") {
                "" => format!("Custom resource definition column (in JSONPath format): {}", text("jsonPath")),
                own => own.to_owned(),
            },
            priority: column["priority"].as_i64().unwrap_or_default(),
            path: JsonPath::read(&text("jsonPath")),
        }
    }

    pub fn cell(&self, object: &Value, now: Time) -> Value {
        let value = self.path.as_ref().and_then(|it| it.first(object));
        let Some(value) = value.filter(|it| !it.is_null()) else { return Value::Null };
        // As upstream (`cellForJSONValue`): nothing is shown under a type that is not known.
        let Some(column_type) = ColumnType::read(&self.column_type) else { return Value::Null };
        match column_type {
            ColumnType::String => text_of(value).into(),
            ColumnType::Integer => match (value.as_i64(), value.as_f64()) {
                (Some(it), _) => it.into(),
                #[expect(
                    clippy::cast_possible_truncation,
                    reason = "a fraction is cut off, as upstream does (cellForJSONValue)"
                )]
                (None, Some(it)) => (it as i64).into(),
                _ => Value::Null,
            },
            ColumnType::Number => {
                if value.is_number() {
                    value.clone()
                } else {
                    Value::Null
                }
            }
            ColumnType::Boolean => {
                if value.is_boolean() {
                    value.clone()
                } else {
                    Value::Null
                }
            }
            ColumnType::Date => match value.as_str() {
                Some(text) if text.parse::<Time>().is_ok() => since(text, now).into(),
                Some(_) => "<invalid>".into(),
                None => Value::Null,
            },
        }
    }
}

/// What the field says of itself in the API's documents.
const AGE: &str = "CreationTimestamp is a timestamp representing the server time when this object was created. It is not guaranteed to be set in happens-before order across separate operations. Clients may not set this value. It is represented in RFC3339 form and is in UTC.\n\nPopulated by the system. Read-only. Null for lists. More info: https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#metadata";

fn text_of(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}
