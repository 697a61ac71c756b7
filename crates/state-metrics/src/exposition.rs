//! Writes samples as Prometheus's text.

use std::{
    collections::{BTreeMap, BTreeSet},
    io::Write,
};

use corten_meta::{Quantity, Time};

/// The samples of one family of one object.
pub(crate) struct Samples<'a> {
    name: &'static str,
    /// The labels that say which object it is, as they are written.
    identity: &'a [u8],
    labels: &'static [&'static str],
    out: &'a mut Vec<u8>,
    written: Written,
}

/// The series of the object that are written already: it may hold the same twice, and Prometheus takes a series once.
struct Written {
    /// Where they begin in the text.
    begin: usize,
    n: usize,
    /// Once there are too many to be gone through.
    series: BTreeSet<Box<[u8]>>,
}

impl Written {
    const FEW: usize = 16;

    /// Is what ends `out`, from `at` on, a series that was not written before?
    fn is_new(&mut self, out: &[u8], at: usize) -> bool {
        let (before, series) = out.split_at(at);
        let lines = || before[self.begin..].split(|it| *it == b'\n').filter(|it| !it.is_empty());
        let is_it = |line: &[u8]| line.strip_prefix(series).is_some_and(|it| it.first() == Some(&b' '));
        if self.n == Self::FEW {
            // Behind the last brace of a line is its number.
            let series_of = |line: &[u8]| line.iter().rposition(|it| *it == b'}').map(|end| Box::from(&line[..=end]));
            let all: BTreeSet<Box<[u8]>> = lines().filter_map(series_of).collect();
            self.series = all;
        }
        let is_new = if self.n < Self::FEW { !lines().any(is_it) } else { self.series.insert(series.into()) };
        self.n += usize::from(is_new);
        is_new
    }
}

impl<'a> Samples<'a> {
    pub(crate) fn new(
        name: &'static str,
        identity: &'a [u8],
        labels: &'static [&'static str],
        out: &'a mut Vec<u8>,
    ) -> Self {
        let written = Written { begin: out.len(), n: 0, series: BTreeSet::new() };
        Self { name, identity, labels, out, written }
    }

    /// One sample, with the values of the family's own labels.
    pub(crate) fn add(&mut self, values: &[&str], number: f64) {
        debug_assert_eq!(values.len(), self.labels.len(), "{}", self.name);
        self.write(self.labels.iter().copied().zip(values.iter().copied()), number);
    }

    /// One sample with labels that the object itself names, of a family without labels of its own.
    pub(crate) fn add_labels(&mut self, labels: &BTreeMap<String, &str>, number: f64) {
        self.write(labels.iter().map(|(label, value)| (&**label, *value)), number);
    }

    fn write<'l>(&mut self, labels: impl Iterator<Item = (&'l str, &'l str)>, number: f64) {
        let begin = self.out.len();
        self.out.extend_from_slice(self.name.as_bytes());
        self.out.push(b'{');
        self.out.extend_from_slice(self.identity);
        let mut is_first = self.identity.is_empty();
        for (label, value) in labels {
            write_label(label, value, &mut is_first, self.out);
        }
        self.out.push(b'}');
        if self.written.is_new(self.out, begin) {
            writeln!(self.out, " {number}").expect("writing to memory does not fail");
        } else {
            self.out.truncate(begin);
        }
    }

    /// The only one, of a family without labels of its own.
    pub(crate) fn one(&mut self, number: impl Number) {
        if let Some(number) = number.number() {
            self.add(&[], number);
        }
    }

    /// One for each value of a label, which is 1 where it is the one that holds.
    pub(crate) fn one_of(&mut self, values: &[&str], holds: &str) {
        for value in values {
            self.add(&[value], f64::from(u8::from(*value == holds)));
        }
    }
}

/// Where a number may be missing, there is no sample.
pub(crate) trait Number {
    fn number(self) -> Option<f64>;
}

impl Number for f64 {
    fn number(self) -> Option<f64> {
        Some(self)
    }
}

impl Number for i32 {
    fn number(self) -> Option<f64> {
        Some(f64::from(self))
    }
}

impl Number for bool {
    fn number(self) -> Option<f64> {
        Some(f64::from(u8::from(self)))
    }
}

impl Number for i64 {
    #[expect(clippy::cast_precision_loss, reason = "the format has no other numbers")]
    fn number(self) -> Option<f64> {
        Some(self as f64)
    }
}

impl Number for Time {
    fn number(self) -> Option<f64> {
        (self.unix_millis() / 1000).number()
    }
}

impl Number for Quantity {
    fn number(self) -> Option<f64> {
        Some(self.approximate())
    }
}

impl<T: Number> Number for Option<T> {
    fn number(self) -> Option<f64> {
        self.and_then(Number::number)
    }
}

/// `a="1",b="2"`.
pub(crate) fn labels(names: &[&str], values: &[&str]) -> Vec<u8> {
    let (mut out, mut is_first) = (Vec::new(), true);
    for (name, value) in names.iter().zip(values) {
        write_label(name, value, &mut is_first, &mut out);
    }
    out
}

/// What a label's name may hold: letters, digits and underscores.
pub(crate) fn label_text(text: &str) -> String {
    text.chars().map(|it| if it.is_ascii_alphanumeric() { it } else { '_' }).collect()
}

fn write_label(name: &str, value: &str, is_first: &mut bool, out: &mut Vec<u8>) {
    if !std::mem::take(is_first) {
        out.push(b',');
    }
    out.extend_from_slice(name.as_bytes());
    out.extend_from_slice(b"=\"");
    for byte in value.bytes() {
        match byte {
            b'\\' => out.extend_from_slice(b"\\\\"),
            b'"' => out.extend_from_slice(b"\\\""),
            b'\n' => out.extend_from_slice(b"\\n"),
            _ => out.push(byte),
        }
    }
    out.push(b'"');
}
