//! One broken rule of an object, with the path of its field. Wording follows apimachinery's `field.Error`.

use std::fmt;

/// Which rule a field broke; decides the cause's `reason` and the start of the message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rule {
    Required,
    Invalid,
    NotSupported,
    Duplicate,
    Forbidden,
    TooLong,
    TooMany,
    NotFound,
    TypeInvalid,
}

impl Rule {
    /// The `reason` of the cause in a Status.
    pub fn reason(self) -> &'static str {
        match self {
            Self::Required => "FieldValueRequired",
            Self::Invalid => "FieldValueInvalid",
            Self::NotSupported => "FieldValueNotSupported",
            Self::Duplicate => "FieldValueDuplicate",
            Self::Forbidden => "FieldValueForbidden",
            Self::TooLong => "FieldValueTooLong",
            Self::TooMany => "FieldValueTooMany",
            Self::NotFound => "FieldValueNotFound",
            Self::TypeInvalid => "FieldValueTypeInvalid",
        }
    }
}

/// `path: message`, for example `spec.replicas: Invalid value: -1: must be greater than or equal to 0`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// `spec.containers[0].image`.
    pub path: String,
    pub rule: Rule,
    /// Everything after the path, as in `Invalid value: -1: must be greater than or equal to 0`.
    pub message: String,
}

impl Violation {
    fn new(path: impl Into<String>, rule: Rule, message: String) -> Self {
        Self { path: path.into(), rule, message }
    }

    pub fn required(path: impl Into<String>, detail: &str) -> Self {
        Self::new(path, Rule::Required, with_detail("Required value".into(), detail))
    }

    /// `value` is printed as Go prints it: strings quoted, numbers plain.
    pub fn invalid(path: impl Into<String>, value: impl fmt::Display, detail: &str) -> Self {
        Self::new(path, Rule::Invalid, with_detail(format!("Invalid value: {value}"), detail))
    }

    pub fn not_supported(path: impl Into<String>, value: &str, supported: &[&str]) -> Self {
        let mut supported: Vec<String> = supported.iter().map(|it| format!("{it:?}")).collect();
        supported.sort();
        let detail = format!("supported values: {}", supported.join(", "));
        Self::new(path, Rule::NotSupported, with_detail(format!("Unsupported value: {value:?}"), &detail))
    }

    pub fn duplicate(path: impl Into<String>, value: impl fmt::Display) -> Self {
        Self::new(path, Rule::Duplicate, format!("Duplicate value: {value}"))
    }

    pub fn forbidden(path: impl Into<String>, detail: &str) -> Self {
        Self::new(path, Rule::Forbidden, with_detail("Forbidden".into(), detail))
    }

    pub fn too_long(path: impl Into<String>, max_bytes: usize) -> Self {
        Self::new(path, Rule::TooLong, format!("Too long: may not be more than {max_bytes} bytes"))
    }

    pub fn too_many(path: impl Into<String>, actual: usize, max: usize) -> Self {
        Self::new(path, Rule::TooMany, format!("Too many: {actual}: must have at most {max} items"))
    }

    pub fn not_found(path: impl Into<String>, value: impl fmt::Display) -> Self {
        Self::new(path, Rule::NotFound, format!("Not found: {value}"))
    }

    pub fn wrong_type(path: impl Into<String>, value: impl fmt::Display, detail: &str) -> Self {
        Self::new(path, Rule::TypeInvalid, with_detail(format!("Invalid value: {value}"), detail))
    }
}

fn with_detail(message: String, detail: &str) -> String {
    if detail.is_empty() { message } else { format!("{message}: {detail}") }
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.path.is_empty() { f.write_str(&self.message) } else { write!(f, "{}: {}", self.path, self.message) }
    }
}
