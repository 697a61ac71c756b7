//! Label and field selectors: their text form, their object form, and matching.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
};

use serde::{Deserialize, Deserializer, Serialize};

/// One requirement on one key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Requirement {
    In(String, BTreeSet<String>),
    NotIn(String, BTreeSet<String>),
    Exists(String),
    DoesNotExist(String),
    GreaterThan(String, i64),
    LessThan(String, i64),
}

/// A conjunction of requirements, made for matching; the empty one matches everything.
///
/// A selector may have thousands of requirements and be asked of thousands of objects, which have few labels each: what it costs to
/// ask follows the labels.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Selector {
    /// By their keys, each of which must be there.
    present: BTreeMap<String, Present>,
    /// The values that keys may not have; `None` where the key may not be there.
    absent: BTreeMap<String, Option<BTreeSet<String>>>,
}

/// What the value of a key must be.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Present {
    one_of: Option<BTreeSet<String>>,
    above: Option<i64>,
    below: Option<i64>,
}

impl Present {
    fn holds(&self, value: &str) -> bool {
        let is_bounded = self.above.is_some() || self.below.is_some();
        let is_within =
            |it: i64| self.above.is_none_or(|above| it > above) && self.below.is_none_or(|below| it < below);
        self.one_of.as_ref().is_none_or(|it| it.contains(value)) && (!is_bounded || value.parse().is_ok_and(is_within))
    }
}

impl Selector {
    pub fn matches(&self, labels: &BTreeMap<String, String>) -> bool {
        self.present.len() <= labels.len()
            && self.present.iter().all(|(key, it)| labels.get(key).is_some_and(|value| it.holds(value)))
            && labels.iter().all(|(key, value)| match self.absent.get(key) {
                None => true,
                Some(values) => values.as_ref().is_some_and(|it| !it.contains(value)),
            })
    }

    pub fn is_empty(&self) -> bool {
        self.present.is_empty() && self.absent.is_empty()
    }

    /// Reads the `labelSelector` query form: see [`requirements`].
    ///
    /// # Errors
    /// A sentence that says which part cannot be read.
    pub fn parse(text: &str) -> Result<Self, String> {
        requirements(text).map(Self::from_iter)
    }

    fn add(&mut self, requirement: Requirement) {
        match requirement {
            Requirement::In(key, values) => {
                let one_of = &mut self.present.entry(key).or_default().one_of;
                *one_of = Some(match one_of.take() {
                    Some(before) => before.intersection(&values).cloned().collect(),
                    None => values,
                });
            }
            Requirement::NotIn(key, values) => {
                if let Some(all) = self.absent.entry(key).or_insert_with(|| Some(BTreeSet::new())) {
                    all.extend(values);
                }
            }
            Requirement::Exists(key) => {
                self.present.entry(key).or_default();
            }
            Requirement::DoesNotExist(key) => {
                self.absent.insert(key, None);
            }
            Requirement::GreaterThan(key, bound) => {
                let above = &mut self.present.entry(key).or_default().above;
                *above = Some(above.map_or(bound, |it| it.max(bound)));
            }
            Requirement::LessThan(key, bound) => {
                let below = &mut self.present.entry(key).or_default().below;
                *below = Some(below.map_or(bound, |it| it.min(bound)));
            }
        }
    }
}

impl FromIterator<Requirement> for Selector {
    fn from_iter<I: IntoIterator<Item = Requirement>>(requirements: I) -> Self {
        let mut selector = Self::default();
        requirements.into_iter().for_each(|it| selector.add(it));
        selector
    }
}

/// Reads the `labelSelector` query form: `a=b,c!=d,e in (f,g),h notin (i),j,!k,l>1`.
///
/// # Errors
/// A sentence that says which part cannot be read.
pub fn requirements(text: &str) -> Result<Vec<Requirement>, String> {
    split_outside_parentheses(text)
        .into_iter()
        .map(str::trim)
        .filter(|it| !it.is_empty())
        .map(parse_requirement)
        .collect()
}

fn split_outside_parentheses(text: &str) -> Vec<&str> {
    let (mut parts, mut depth, mut start) = (Vec::new(), 0_usize, 0);
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            b'(' => depth += 1,
            b')' => depth = depth.saturating_sub(1),
            b',' if depth == 0 => {
                parts.push(&text[start..at]);
                start = at + 1;
            }
            _ => {}
        }
    }
    parts.push(&text[start..]);
    parts
}

fn parse_requirement(part: &str) -> Result<Requirement, String> {
    if let Some(key) = part.strip_prefix('!') {
        return Ok(Requirement::DoesNotExist(label_key(key)?));
    }
    if let Some(open) = part.find('(') {
        return parse_set(part, open);
    }
    for (operator, negated) in [("!=", true), ("==", false), ("=", false)] {
        if let Some((key, value)) = part.split_once(operator) {
            let (key, value) = (label_key(key)?, label_value(value)?);
            let values = BTreeSet::from([value]);
            return Ok(if negated { Requirement::NotIn(key, values) } else { Requirement::In(key, values) });
        }
    }
    for (operator, greater) in [('>', true), ('<', false)] {
        if let Some((key, value)) = part.split_once(operator) {
            let bound = value.trim().parse().map_err(|_| format!("{value:?} in {part:?} is not an integer"))?;
            let key = label_key(key)?;
            return Ok(if greater { Requirement::GreaterThan(key, bound) } else { Requirement::LessThan(key, bound) });
        }
    }
    label_key(part).map(Requirement::Exists)
}

fn parse_set(part: &str, open: usize) -> Result<Requirement, String> {
    let values = part[open + 1..].trim_end().strip_suffix(')').ok_or_else(|| format!("missing ')' in {part:?}"))?;
    let values = values.split(',').map(label_value).collect::<Result<BTreeSet<_>, _>>()?;
    let head = part[..open].trim();
    let (key, operator) =
        head.rsplit_once(char::is_whitespace).ok_or_else(|| format!("missing operator in {part:?}"))?;
    let key = label_key(key)?;
    match operator {
        "in" => Ok(Requirement::In(key, values)),
        "notin" => Ok(Requirement::NotIn(key, values)),
        other => Err(format!("found {other:?} in {part:?}, expected: in, notin")),
    }
}

fn label_key(text: &str) -> Result<String, String> {
    let text = text.trim();
    match crate::field::qualified_name(text).first() {
        None => Ok(text.to_owned()),
        Some(reason) => Err(format!("key: Invalid value: {text:?}: {reason}")),
    }
}

fn label_value(text: &str) -> Result<String, String> {
    let text = text.trim();
    match crate::field::label_value(text).first() {
        None => Ok(text.to_owned()),
        Some(reason) => Err(format!("values: Invalid value: {text:?}: {reason}")),
    }
}

/// `metav1.LabelSelector`, the form inside objects. Absent matches nothing, empty matches everything.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct LabelSelector {
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub match_labels: BTreeMap<String, String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub match_expressions: Vec<LabelSelectorRequirement>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct LabelSelectorRequirement {
    pub key: String,
    pub operator: String,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub values: Vec<String>,
}

impl LabelSelector {
    pub fn selector(&self) -> Selector {
        self.requirements().collect()
    }

    /// An operator that validation would have refused matches nothing.
    pub fn requirements(&self) -> impl Iterator<Item = Requirement> {
        let values = |it: &LabelSelectorRequirement| it.values.iter().cloned().collect();
        let labels = self.match_labels.iter().map(|(key, value)| Requirement::In(key.clone(), [value.clone()].into()));
        let expressions = self.match_expressions.iter().map(move |it| match &*it.operator {
            "NotIn" => Requirement::NotIn(it.key.clone(), values(it)),
            "Exists" => Requirement::Exists(it.key.clone()),
            "DoesNotExist" => Requirement::DoesNotExist(it.key.clone()),
            "In" => Requirement::In(it.key.clone(), values(it)),
            _ => Requirement::In(it.key.clone(), BTreeSet::new()),
        });
        labels.chain(expressions)
    }

    /// Whoever asks for many objects makes it a [`Selector`] first, once.
    pub fn matches(&self, labels: &BTreeMap<String, String>) -> bool {
        self.selector().matches(labels)
    }
}

/// The `labelSelector` query form.
impl fmt::Display for LabelSelector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let joined = |it: BTreeSet<String>| it.into_iter().collect::<Vec<_>>().join(",");
        let parts = self.requirements().map(|it| match it {
            Requirement::In(key, values) if values.len() == 1 => format!("{key}={}", joined(values)),
            Requirement::In(key, values) => format!("{key} in ({})", joined(values)),
            Requirement::NotIn(key, values) => format!("{key} notin ({})", joined(values)),
            Requirement::Exists(key) => key,
            Requirement::DoesNotExist(key) => format!("!{key}"),
            Requirement::GreaterThan(key, bound) => format!("{key}>{bound}"),
            Requirement::LessThan(key, bound) => format!("{key}<{bound}"),
        });
        f.write_str(&parts.collect::<Vec<_>>().join(","))
    }
}

/// Read from the form inside objects: whoever keeps a selector to match with it has it ready.
impl<'de> Deserialize<'de> for Selector {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        LabelSelector::deserialize(deserializer).map(|it| it.selector())
    }
}

/// `fieldSelector`: equalities on the few fields a kind makes selectable.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FieldSelector(pub Vec<FieldRequirement>);

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FieldRequirement {
    pub path: String,
    pub value: String,
    pub negated: bool,
}

impl FieldSelector {
    /// Reads `a.b=c,d!=e`; a backslash keeps a comma, equals sign or backslash.
    ///
    /// # Errors
    /// A sentence that says which part cannot be read.
    pub fn parse(text: &str) -> Result<Self, String> {
        let parts = split_unescaped(text);
        parts.iter().filter(|it| !it.is_empty()).map(|it| parse_field(it)).collect::<Result<_, _>>().map(Self)
    }

    /// Does `lookup`, which gives the value of a path, satisfy every requirement?
    pub fn matches<'a>(&self, lookup: impl Fn(&str) -> &'a str) -> bool {
        self.0.iter().all(|it| (lookup(&it.path) == it.value) != it.negated)
    }

    /// The value that `path` must equal, if one is asked for: what an index can serve.
    pub fn exact(&self, path: &str) -> Option<&str> {
        self.0.iter().find(|it| it.path == path && !it.negated).map(|it| &*it.value)
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

fn split_unescaped(text: &str) -> Vec<&str> {
    let (mut parts, mut start, mut escaped) = (Vec::new(), 0, false);
    for (at, byte) in text.bytes().enumerate() {
        if byte == b',' && !escaped {
            parts.push(&text[start..at]);
            start = at + 1;
        }
        escaped = byte == b'\\' && !escaped;
    }
    parts.push(&text[start..]);
    parts
}

fn parse_field(part: &str) -> Result<FieldRequirement, String> {
    for (operator, negated) in [("!=", true), ("==", false), ("=", false)] {
        if let Some((path, value)) = part.split_once(operator) {
            let value = value.replace("\\,", ",").replace("\\=", "=").replace("\\\\", "\\");
            return Ok(FieldRequirement { path: path.to_owned(), value, negated });
        }
    }
    Err(format!("invalid selector: '{part}'; can't understand '{part}'"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn label_selectors_match() {
        let labels: BTreeMap<String, String> =
            [("app", "web"), ("tier", "front"), ("n", "5")].map(|(k, v)| (k.into(), v.into())).into();
        for (text, expected) in [
            ("", true),
            ("app=web", true),
            ("app==web,tier!=back", true),
            ("app in (web, db),tier", true),
            ("app notin (web)", false),
            ("!app", false),
            ("!missing", true),
            ("missing!=x", true),
            ("n>4", true),
            ("n<5", false),
            ("app=db", false),
            ("app in (web,db),app in (db,web,x),app!=db", true),
            ("app in (web,db),app in (db,x)", false),
            ("app!=db,app!=x,app notin (y)", true),
            ("app!=db,app!=web", false),
            ("!app,app!=x", false),
            ("app!=x,!app", false),
            ("!missing,missing!=x", true),
            ("n>3,n>4,n<6,n<7,n", true),
            ("n>5,n>4", false),
            ("app>1", false),
            ("app,tier,n", true),
            ("app,tier,n,more", false),
        ] {
            assert_eq!(Selector::parse(text).expect(text).matches(&labels), expected, "{text}");
        }
        for text in ["app in (web", "a b", "app~web", "=x", "n>x", "app of (x)"] {
            assert!(Selector::parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn field_selectors_match() {
        let selector = FieldSelector::parse("spec.nodeName=n1,status.phase!=Failed").expect("valid");
        let lookup = |phase: &'static str| move |path: &str| if path == "spec.nodeName" { "n1" } else { phase };
        assert!(selector.matches(lookup("Running")));
        assert!(!selector.matches(lookup("Failed")));
        assert_eq!(selector.exact("spec.nodeName"), Some("n1"));
        assert!(FieldSelector::parse("nonsense").is_err());
    }
}
