//! One broken rule of an object, with the path of its field. Wording follows apimachinery's `field.Error`.

use std::{
    borrow::Cow,
    fmt::{self, Write as _},
};

/// More than any name, label or line of text that a rule knows: only what breaks one is shown in part.
const VALUE_BYTES_MAX: usize = 4 << 10;
const PATH_BYTES_MAX: usize = 4 << 10;
const MESSAGE_BYTES_MAX: usize = 16 << 10;
const ELLIPSIS: &str = "...";

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
    /// The path of an object as a whole, as `field.NewPath("")` is printed.
    pub const WHOLE_OBJECT: &str = "[]";
    /// As many of one object are told.
    pub const MOST: usize = 100;

    fn new(path: impl Into<String>, rule: Rule, message: String) -> Self {
        Self { path: path.into(), rule, message }.bounded()
    }

    /// What stands after the last violation that is told where there are more.
    pub fn and_more(told: usize) -> Self {
        Self::new("", Rule::TooMany, format!("Too many: only the first {told} violations are listed"))
    }

    /// The same with a path and a message of bounded size: an object says itself how long its keys and values are.
    #[must_use]
    pub fn bounded(mut self) -> Self {
        cut(&mut self.path, PATH_BYTES_MAX);
        cut(&mut self.message, MESSAGE_BYTES_MAX);
        self
    }

    pub fn required(path: impl Into<String>, detail: &str) -> Self {
        Self::new(path, Rule::Required, with_detail("Required value".into(), detail))
    }

    /// `value` is printed as Go prints it: strings quoted, numbers plain.
    pub fn invalid(path: impl Into<String>, value: impl fmt::Display, detail: &str) -> Self {
        Self::new(path, Rule::Invalid, with_detail(format!("Invalid value: {}", shown(value)), detail))
    }

    pub fn not_supported(path: impl Into<String>, value: &str, supported: &[&str]) -> Self {
        let supported: Vec<String> = supported.iter().map(|it| format!("{it:?}")).collect();
        let detail = format!("supported values: {}", supported.join(", "));
        Self::new(
            path,
            Rule::NotSupported,
            with_detail(format!("Unsupported value: {}", shown(format_args!("{value:?}"))), &detail),
        )
    }

    pub fn duplicate(path: impl Into<String>, value: impl fmt::Display) -> Self {
        Self::new(path, Rule::Duplicate, format!("Duplicate value: {}", shown(value)))
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
        Self::new(path, Rule::NotFound, format!("Not found: {}", shown(value)))
    }

    pub fn wrong_type(path: impl Into<String>, value: impl fmt::Display, detail: &str) -> Self {
        Self::new(path, Rule::TypeInvalid, with_detail(format!("Invalid value: {}", shown(value)), detail))
    }
}

/// The violations of one object, up to [`Violation::MOST`]: beyond that nothing is kept, and whoever looks for more may stop.
#[derive(Debug, Default)]
pub struct Violations {
    told: Vec<Violation>,
    is_cut: bool,
}

impl Violations {
    pub fn push(&mut self, violation: Violation) {
        if self.is_full() {
            self.is_cut = true;
        } else {
            self.told.push(violation);
        }
    }

    /// Takes no more from `violations` than there is room for, and one that shows that there was more.
    pub fn extend(&mut self, violations: impl IntoIterator<Item = Violation>) {
        for violation in violations {
            self.push(violation);
            if self.is_cut {
                return;
            }
        }
    }

    pub fn is_full(&self) -> bool {
        self.told.len() >= Violation::MOST
    }

    /// All of them; or the first ones, and one that says that there are more.
    pub fn into_vec(mut self) -> Vec<Violation> {
        self.told.extend(self.is_cut.then(|| Violation::and_more(Violation::MOST)));
        self.told
    }
}

/// What is written of a value: so much of its start, then an ellipsis. Nothing past that is formatted.
fn shown(value: impl fmt::Display) -> String {
    let mut start = Start(String::new());
    // An error says only that the value is longer.
    let is_whole = write!(start, "{value}").is_ok();
    if !is_whole {
        start.0.push_str(ELLIPSIS);
    }
    start.0
}

/// Takes text until it is full.
struct Start(String);

impl fmt::Write for Start {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let room = VALUE_BYTES_MAX - self.0.len();
        let fits = boundary(text, room);
        self.0.push_str(&text[..fits]);
        if fits < text.len() { Err(fmt::Error) } else { Ok(()) }
    }
}

/// Shortens `text` to at most so many bytes and an ellipsis.
fn cut(text: &mut String, most: usize) {
    if text.len() > most + ELLIPSIS.len() {
        text.truncate(boundary(text, most));
        text.push_str(ELLIPSIS);
    }
}

/// As much of a path or a name as a sentence about it shows: an object says itself how long its keys are, and a sentence
/// may be about each of the thousand things below a key.
pub fn shortened(text: &str) -> Cow<'_, str> {
    if text.len() <= PATH_BYTES_MAX + ELLIPSIS.len() {
        return Cow::Borrowed(text);
    }
    Cow::Owned(format!("{}{ELLIPSIS}", &text[..boundary(text, PATH_BYTES_MAX)]))
}

/// Where a character begins at or next before `at`.
fn boundary(text: &str, at: usize) -> usize {
    (0..=at.min(text.len())).rev().find(|it| text.is_char_boundary(*it)).unwrap_or(0)
}

fn with_detail(message: String, detail: &str) -> String {
    if detail.is_empty() { message } else { format!("{message}: {detail}") }
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.path.is_empty() { f.write_str(&self.message) } else { write!(f, "{}: {}", self.path, self.message) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keeps_a_bounded_number_and_looks_for_no_more() {
        let mut found = Violations::default();
        let mut drawn = 0;
        found.extend((0..).map(|it| {
            drawn = it;
            Violation::required("spec", "")
        }));
        assert_eq!((drawn, found.is_full()), (Violation::MOST, true));
        let told = found.into_vec();
        assert_eq!((told.len(), told.last()), (Violation::MOST + 1, Some(&Violation::and_more(Violation::MOST))));
        let mut found = Violations::default();
        found.extend(vec![Violation::required("spec", ""); Violation::MOST]);
        assert_eq!(found.into_vec().len(), Violation::MOST);
    }

    #[test]
    fn shows_small_values_whole_and_the_start_of_large_ones() {
        for size in [1, 2, VALUE_BYTES_MAX, VALUE_BYTES_MAX + 1, 1 << 20] {
            let value = "ä".repeat(size / 2) + &"x".repeat(size % 2);
            let violation = Violation::invalid(value.clone(), &value, &value);
            let is_whole = violation.message == format!("Invalid value: {value}: {value}");
            assert_eq!(is_whole, size <= VALUE_BYTES_MAX, "{size} bytes");
            assert!(violation.message.len() <= MESSAGE_BYTES_MAX + ELLIPSIS.len(), "{size} bytes");
            assert!(violation.path.len() <= PATH_BYTES_MAX + ELLIPSIS.len(), "{size} bytes");
        }
    }
}
