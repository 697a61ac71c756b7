//! Paths to values as kubectl and CustomResourceDefinitions write them: `.spec.ports[0].name`,
//! `.status.conditions[?(@.type=="Ready")].status` (k8s.io/client-go/util/jsonpath). It is no RFC 9535: names may hold dashes, a
//! dot in a name is `\.`, and there is no root before the first dot.

use serde_json::Value;

/// A path that was read.
#[derive(Debug, PartialEq)]
pub struct JsonPath(Vec<Step>);

#[derive(Debug, PartialEq)]
enum Step {
    Name(String),
    /// From the end where it is negative.
    Index(i64),
    /// From, to and every how many; an end that is not said is that of the list.
    Slice(Option<i64>, Option<i64>),
    All,
    /// The value and all below it.
    Recursive,
    /// The elements of which the value at a path compares so.
    Filter(Vec<Step>, Comparison, Value),
    /// The elements that have the path.
    Has(Vec<Step>),
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Comparison {
    Equal,
    Unequal,
    Less,
    AtMost,
    More,
    AtLeast,
}

/// In this order: the longer first.
const COMPARISONS: [(&str, Comparison); 6] = [
    ("==", Comparison::Equal),
    ("!=", Comparison::Unequal),
    ("<=", Comparison::AtMost),
    (">=", Comparison::AtLeast),
    ("<", Comparison::Less),
    (">", Comparison::More),
];

impl JsonPath {
    /// `None` where it is no path.
    pub fn read(text: &str) -> Option<Self> {
        let (steps, rest) = steps(text)?;
        (rest.is_empty() && !steps.is_empty()).then_some(Self(steps))
    }

    /// The first value that the path leads to.
    pub fn first<'v>(&self, value: &'v Value) -> Option<&'v Value> {
        found(&self.0, value).into_iter().next()
    }
}

/// The steps at the beginning of a text, and what is left of it.
fn steps(mut text: &str) -> Option<(Vec<Step>, &str)> {
    let mut steps = Vec::new();
    loop {
        text = if let Some(rest) = text.strip_prefix("..") {
            steps.push(Step::Recursive);
            let (name, rest) = name(rest);
            if !name.is_empty() {
                steps.push(named(name));
            }
            rest
        } else if let Some(rest) = text.strip_prefix('.') {
            let (name, rest) = name(rest);
            match name.is_empty() {
                // `.` alone is the value itself, `.[0]` its first element.
                true if rest.is_empty() || rest.starts_with('[') => {}
                true => return None,
                false => steps.push(named(name)),
            }
            rest
        } else if let Some(rest) = text.strip_prefix('[') {
            let (step, rest) = bracket(rest)?;
            steps.push(step);
            rest
        } else {
            return Some((steps, text));
        };
    }
}

fn named(name: String) -> Step {
    if name == "*" { Step::All } else { Step::Name(name) }
}

/// A name up to what ends it; `\` takes the next letter as it is.
fn name(text: &str) -> (String, &str) {
    let mut name = String::new();
    let mut letters = text.char_indices();
    while let Some((at, letter)) = letters.next() {
        match letter {
            '\\' => name.extend(letters.next().map(|it| it.1)),
            '.' | '[' | ']' | ')' | ' ' | '=' | '!' | '<' | '>' => return (name, &text[at..]),
            letter => name.push(letter),
        }
    }
    (name, "")
}

/// What stands in brackets, the first of which is read.
fn bracket(text: &str) -> Option<(Step, &str)> {
    if let Some(filter) = text.strip_prefix("?(") {
        return self::filter(filter);
    }
    for quote in ['\'', '"'] {
        if let Some(rest) = text.strip_prefix(quote) {
            let end = rest.find(quote)?;
            let step = Step::Name(rest[..end].replace("\\.", "."));
            return Some((step, rest[end + 1..].strip_prefix(']')?));
        }
    }
    let end = text.find(']')?;
    let (inside, rest) = (text[..end].trim(), &text[end + 1..]);
    if inside == "*" {
        return Some((Step::All, rest));
    }
    let number = |text: &str| if text.is_empty() { Some(None) } else { text.parse().ok().map(Some) };
    let step = match inside.split_once(':') {
        Some((from, to)) => Step::Slice(number(from)?, number(to)?),
        None => Step::Index(inside.parse().ok()?),
    };
    Some((step, rest))
}

/// `@.type=="Ready")]`.
fn filter(text: &str) -> Option<(Step, &str)> {
    let (path, rest) = steps(text.trim_start().strip_prefix('@')?)?;
    let rest = rest.trim_start();
    if let Some(rest) = rest.strip_prefix(")]") {
        return Some((Step::Has(path), rest));
    }
    let (sign, comparison) = COMPARISONS.into_iter().find(|it| rest.starts_with(it.0))?;
    let rest = rest[sign.len()..].trim_start();
    let (value, rest) = literal(rest)?;
    Some((Step::Filter(path, comparison, value), rest.trim_start().strip_prefix(")]")?))
}

fn literal(text: &str) -> Option<(Value, &str)> {
    for quote in ['"', '\''] {
        if let Some(rest) = text.strip_prefix(quote) {
            let end = rest.find(quote)?;
            return Some((rest[..end].into(), &rest[end + 1..]));
        }
    }
    let end = text.find([')', ' '])?;
    let value = serde_json::from_str(&text[..end]).ok()?;
    Some((value, &text[end..]))
}

/// As many values are looked at on the way: `..` may lead far.
const LOOKED_AT_MAX: usize = 10_000;

fn found<'v>(steps: &[Step], value: &'v Value) -> Vec<&'v Value> {
    let mut values = vec![value];
    for step in steps {
        let mut next = Vec::new();
        for value in values {
            step.take(value, &mut next);
            if next.len() > LOOKED_AT_MAX {
                break;
            }
        }
        values = next;
    }
    values
}

impl Step {
    fn take<'v>(&self, value: &'v Value, out: &mut Vec<&'v Value>) {
        match (self, value) {
            (Self::Name(name), Value::Object(entries)) => out.extend(entries.get(name)),
            (Self::Index(at), Value::Array(items)) => out.extend(place(*at, items.len()).and_then(|it| items.get(it))),
            (Self::Slice(from, to), Value::Array(items)) => {
                let end =
                    |at: Option<i64>, or| at.map_or(or, |it| place(it, items.len()).unwrap_or(0).min(items.len()));
                let (from, to) = (end(*from, 0), end(*to, items.len()));
                out.extend(items.get(from..to).into_iter().flatten());
            }
            (Self::All, Value::Array(items)) => out.extend(items),
            (Self::All, Value::Object(entries)) => out.extend(entries.values()),
            (Self::Recursive, value) => below(value, out),
            (Self::Filter(path, comparison, than), Value::Array(items)) => {
                let fits = |it: &&Value| found(path, it).first().is_some_and(|it| comparison.holds(it, than));
                out.extend(items.iter().filter(fits));
            }
            (Self::Has(path), Value::Array(items)) => out.extend(items.iter().filter(|it| !found(path, it).is_empty())),
            _ => {}
        }
    }
}

/// Where in a list of so many an index is; `None` before its beginning.
fn place(at: i64, len: usize) -> Option<usize> {
    usize::try_from(at).ok().or_else(|| len.checked_sub(usize::try_from(at.unsigned_abs()).ok()?))
}

fn below<'v>(value: &'v Value, out: &mut Vec<&'v Value>) {
    let mut waiting = vec![value];
    while let Some(value) = waiting.pop() {
        if out.len() > LOOKED_AT_MAX {
            return;
        }
        out.push(value);
        match value {
            Value::Array(items) => waiting.extend(items.iter().rev()),
            Value::Object(entries) => waiting.extend(entries.values().rev()),
            _ => {}
        }
    }
}

impl Comparison {
    fn holds(self, value: &Value, than: &Value) -> bool {
        use std::cmp::Ordering::{Equal, Greater, Less};
        let order = match (value, than) {
            (Value::String(a), Value::String(b)) => Some(a.cmp(b)),
            (Value::Bool(a), Value::Bool(b)) => Some(a.cmp(b)),
            (a, b) => a.as_f64().zip(b.as_f64()).and_then(|(a, b)| a.partial_cmp(&b)),
        };
        match self {
            Self::Equal => order == Some(Equal),
            Self::Unequal => order.is_some_and(|it| it != Equal),
            Self::Less => order == Some(Less),
            Self::AtMost => matches!(order, Some(Less | Equal)),
            Self::More => order == Some(Greater),
            Self::AtLeast => matches!(order, Some(Greater | Equal)),
        }
    }
}
