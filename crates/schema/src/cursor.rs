//! Reads an object for validation: a place in it that knows its own path, so that every rule reports with one.
//!
//! Steps are kept in one arena per validation; a cursor is a plain copyable pair of a value and a step.

use std::cell::{Cell, RefCell};

use corten_meta::{Quantity, Violation};
use serde_json::{Map, Value};

static NULL: Value = Value::Null;

/// As many as the rules of most objects take: the arena seldom grows.
const STEPS: usize = 256;
/// So many names are compared rather than hashed.
const COMPARED_MAX: usize = 12;

/// Runs `rules` over `object` and gives the violations they reported, in order: all of them up to [`Violation::MOST`],
/// beyond that the first ones and one that says that there are more.
pub fn violations(object: &Value, rules: impl FnOnce(Cursor<'_>)) -> Vec<Violation> {
    let report = Report {
        steps: RefCell::new(Vec::with_capacity(STEPS)),
        violations: RefCell::default(),
        is_cut: Cell::new(false),
    };
    rules(Cursor { value: object, report: &report, step: None });
    let mut violations = report.violations.take();
    violations.extend(report.is_cut.get().then(|| Violation::and_more(Violation::MOST)));
    violations
}

struct Report<'a> {
    steps: RefCell<Vec<Step<'a>>>,
    violations: RefCell<Vec<Violation>>,
    /// Was there a violation that found no room?
    is_cut: Cell<bool>,
}

#[derive(Clone, Copy)]
struct Step<'a> {
    before: Option<usize>,
    name: Name<'a>,
}

#[derive(Clone, Copy)]
enum Name<'a> {
    Field(&'a str),
    Index(usize),
    /// An entry of a map: `data[key]`.
    Key(&'a str),
}

/// A place in an object, whether or not there is a value.
#[derive(Clone, Copy)]
pub struct Cursor<'a> {
    value: &'a Value,
    report: &'a Report<'a>,
    step: Option<usize>,
}

impl<'a> Cursor<'a> {
    /// A field of an object.
    pub fn at(self, field: &'a str) -> Self {
        self.go(Name::Field(field), self.entry(field))
    }

    /// The entry of a map.
    pub fn key(self, key: &'a str) -> Self {
        self.go(Name::Key(key), self.entry(key))
    }

    /// In a short map names are compared faster than they are hashed.
    fn entry(self, name: &str) -> &'a Value {
        let Value::Object(entries) = self.value else { return &NULL };
        let found = if entries.len() <= COMPARED_MAX {
            entries.iter().find(|it| it.0 == name).map(|it| it.1)
        } else {
            entries.get(name)
        };
        found.unwrap_or(&NULL)
    }

    /// The elements of a list; none where there is no list, and no further ones once the report is cut: what a list
    /// costs is bounded by what is told about it.
    pub fn each(self) -> impl DoubleEndedIterator<Item = Self> + Clone {
        let items = self.items().iter().enumerate().filter(move |_| !self.report.is_cut.get());
        items.map(move |(at, value)| self.go(Name::Index(at), value))
    }

    /// The elements of the list in `field`.
    pub fn list(self, field: &'a str) -> impl DoubleEndedIterator<Item = Self> + Clone {
        self.at(field).each()
    }

    /// The entries of a map; none where there is no map, and no further ones once the report is cut.
    pub fn entries(self) -> impl Iterator<Item = (&'a str, Self)> {
        let entries = self.value.as_object().into_iter().flatten().filter(move |_| !self.report.is_cut.get());
        entries.map(move |(key, value)| (key.as_str(), self.go(Name::Key(key), value)))
    }

    fn go(self, name: Name<'a>, value: &'a Value) -> Self {
        let mut steps = self.report.steps.borrow_mut();
        steps.push(Step { before: self.step, name });
        Self { value, report: self.report, step: Some(steps.len() - 1) }
    }

    /// The same place with another's value: what is read at one path and reported at another.
    pub fn instead(self, other: Self) -> Self {
        Self { value: other.value, ..self }
    }

    pub fn value(self) -> &'a Value {
        self.value
    }

    /// Is there a value? Empty text, an empty list or map are values.
    pub fn exists(self) -> bool {
        !self.value.is_null()
    }

    /// Absent, or what Go's decoder cannot tell from absent: empty text, list or map.
    pub fn is_empty(self) -> bool {
        match self.value {
            Value::Null => true,
            Value::String(it) => it.is_empty(),
            Value::Array(it) => it.is_empty(),
            Value::Object(it) => it.is_empty(),
            _ => false,
        }
    }

    /// The text, or the empty one.
    pub fn str(self) -> &'a str {
        self.value.as_str().unwrap_or_default()
    }

    /// The number, or zero.
    pub fn int(self) -> i64 {
        self.value.as_i64().unwrap_or_default()
    }

    /// The truth value, or false.
    pub fn bool(self) -> bool {
        self.value.as_bool().unwrap_or_default()
    }

    /// The quantity, where it is one.
    pub fn quantity(self) -> Option<Quantity> {
        match self.value {
            Value::String(text) => text.parse().ok(),
            Value::Number(number) => number.to_string().parse().ok(),
            _ => None,
        }
    }

    pub fn items(self) -> &'a [Value] {
        self.value.as_array().map_or(&[], Vec::as_slice)
    }

    pub fn map(self) -> Option<&'a Map<String, Value>> {
        self.value.as_object()
    }

    /// `spec.containers[0].image`.
    pub fn path(self) -> String {
        let steps = self.report.steps.borrow();
        let mut names = Vec::new();
        let mut next = self.step;
        while let Some(step) = next {
            names.push(steps[step].name);
            next = steps[step].before;
        }
        let mut path = String::new();
        for name in names.into_iter().rev() {
            match name {
                Name::Field(field) if path.is_empty() => path.push_str(field),
                Name::Field(field) => path.extend([".", field]),
                Name::Index(at) => path.push_str(&format!("[{at}]")),
                Name::Key(key) => path.extend(["[", key, "]"]),
            }
        }
        path
    }

    /// How many violations were reported so far, by all rules.
    pub fn reported(self) -> usize {
        self.report.violations.borrow().len()
    }

    pub fn report(self, violation: Violation) {
        let mut violations = self.report.violations.borrow_mut();
        if violations.len() < Violation::MOST {
            violations.push(violation.bounded());
        } else {
            self.report.is_cut.set(true);
        }
    }

    /// Reports the value at hand as invalid.
    pub fn invalid(self, detail: &str) {
        self.report(Violation::invalid(self.path(), self.value, detail));
    }

    /// Reports as invalid what is shown instead of the value at hand: the key of an entry, or nothing that is secret or long.
    pub fn invalid_as(self, shown: &str, detail: &str) {
        self.report(Violation::invalid(self.path(), format!("{shown:?}"), detail));
    }

    /// Reports each sentence about the value at hand.
    pub fn invalid_all(self, details: Vec<String>) {
        details.iter().for_each(|it| self.invalid(it));
    }

    /// Reports the place as invalid without showing what is there.
    pub fn invalid_unshown(self, detail: &str) {
        let message = format!("Invalid value: {detail}");
        self.report(Violation { path: self.path(), rule: corten_meta::Rule::Invalid, message });
    }

    /// Reports a list that has more than `most` items.
    pub fn at_most(self, most: usize) -> bool {
        let many = self.items().len();
        if many > most {
            self.report(Violation::too_many(self.path(), many, most));
        }
        many <= most
    }

    pub fn forbidden(self, detail: &str) {
        self.report(Violation::forbidden(self.path(), detail));
    }

    pub fn missing(self, detail: &str) {
        self.report(Violation::required(self.path(), detail));
    }

    pub fn duplicate(self) {
        self.report(Violation::duplicate(self.path(), self.value));
    }

    pub fn not_found(self) {
        self.report(Violation::not_found(self.path(), self.value));
    }

    pub fn unsupported(self, supported: &[&str]) {
        self.report(Violation::not_supported(self.path(), self.str(), supported));
    }

    /// Must be there and not be empty. True where it is.
    pub fn required(self) -> bool {
        if self.is_empty() {
            self.missing("");
        }
        !self.is_empty()
    }

    /// Must be one of these. Absent counts as empty text.
    pub fn one_of(self, supported: &[&str]) -> bool {
        let known = supported.contains(&self.str());
        if !known {
            self.unsupported(supported);
        }
        known
    }

    pub fn non_negative_int(self) {
        if self.int() < 0 {
            self.invalid_int("must be greater than or equal to 0");
        }
    }

    pub fn positive_int(self) {
        if self.int() <= 0 {
            self.invalid_int("must be greater than 0");
        }
    }

    /// Must not be less than zero, where it is a quantity.
    pub fn non_negative_quantity(self) {
        if self.quantity().is_some_and(Quantity::is_negative) {
            self.invalid("must be greater than or equal to 0");
        }
    }

    /// Must lie between `least` and `most`, both included.
    pub fn int_between(self, least: i64, most: i64) {
        if !(least..=most).contains(&self.int()) {
            self.invalid_int(&format!("must be between {least} and {most}, inclusive"));
        }
    }

    /// As [`Self::invalid`], where absent means zero.
    pub fn invalid_int(self, detail: &str) {
        self.report(Violation::invalid(self.path(), self.int(), detail));
    }

    /// Must follow a grammar of [`corten_meta::field`].
    pub fn follows(self, grammar: fn(&str) -> Vec<String>) {
        grammar(self.str()).iter().for_each(|it| self.invalid_as(self.str(), it));
    }
}
