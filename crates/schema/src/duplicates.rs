//! Finds fields that a JSON text gives twice, and where in the text a finding stands; a DOM cannot, since it keeps only the last.

use std::{
    borrow::Cow,
    collections::{BTreeMap, BTreeSet, btree_map},
    fmt::{self, Write},
};

use corten_meta::shortened;
use serde::{
    Deserialize,
    de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor},
};
use serde_json::{Map, Value};

/// As many as Kubernetes reports before it stops counting.
const REPORTED_MAX: usize = 100;

/// Reads a whole JSON text as a DOM, with the sentences of [`duplicates`]. The text is gone through a second time only
/// where there are any.
///
/// # Errors
/// The text is no JSON, or is nested deeper than `serde_json` allows (128 levels).
pub fn read(json: &[u8]) -> Result<(Value, Vec<String>), serde_json::Error> {
    let mut has_duplicates = false;
    let value = match std::str::from_utf8(json) {
        // Then no string of it is looked at for that again.
        Ok(text) => build(serde_json::Deserializer::from_str(text), &mut has_duplicates),
        Err(_) => build(serde_json::Deserializer::from_slice(json), &mut has_duplicates),
    }?;
    Ok((value, if has_duplicates { duplicates(json) } else { Vec::new() }))
}

fn build<'de, R: serde_json::de::Read<'de>>(
    mut deserializer: serde_json::Deserializer<R>,
    has_duplicates: &mut bool,
) -> Result<Value, serde_json::Error> {
    let value = Build(has_duplicates).deserialize(&mut deserializer)?;
    deserializer.end()?;
    Ok(value)
}

/// Builds the same DOM as `serde_json` does, and notices when a field comes again.
struct Build<'f>(&'f mut bool);

impl<'de> DeserializeSeed<'de> for Build<'_> {
    type Value = Value;
    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Build<'_> {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any JSON")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Value, A::Error> {
        let mut map = Map::new();
        while let Some(key) = entries.next_key::<String>()? {
            let value = entries.next_value_seed(Build(self.0))?;
            if map.insert(key, value).is_some() {
                *self.0 = true;
            }
        }
        Ok(Value::Object(map))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let mut list = Vec::new();
        while let Some(item) = items.next_element_seed(Build(self.0))? {
            list.push(item);
        }
        Ok(Value::Array(list))
    }

    fn visit_bool<E>(self, it: bool) -> Result<Value, E> {
        Ok(it.into())
    }
    fn visit_i64<E>(self, it: i64) -> Result<Value, E> {
        Ok(it.into())
    }
    fn visit_u64<E>(self, it: u64) -> Result<Value, E> {
        Ok(it.into())
    }
    fn visit_f64<E>(self, it: f64) -> Result<Value, E> {
        Ok(it.into())
    }
    fn visit_str<E>(self, it: &str) -> Result<Value, E> {
        Ok(it.into())
    }
    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }
}

/// `duplicate field "spec.replicas"`, in document order. Text that is no JSON, or nested deeper than `serde_json` allows
/// (128 levels), gives what was found up to there: reading it as a value is what reports the error.
pub fn duplicates(json: &[u8]) -> Vec<String> {
    in_document_order(json, &[])
}

/// The sentences of [`duplicates`] and these of unknown fields, in document order. A field that is unknown is not looked into,
/// and is unknown however often it comes (`saveStrictError` of sigs.k8s.io/json).
pub fn in_document_order(json: &[u8], unknown: &[String]) -> Vec<String> {
    let unknown = unknown.iter().map(String::as_str).collect();
    let mut found = StrictErrors { path: String::new(), unknown, sentences: Vec::new() };
    let mut deserializer = serde_json::Deserializer::from_slice(json);
    drop(Scan(&mut found).deserialize(&mut deserializer));
    found.sentences
}

struct StrictErrors<'u> {
    path: String,
    unknown: BTreeSet<&'u str>,
    sentences: Vec<String>,
}

impl StrictErrors<'_> {
    fn report(&mut self, sentence: String) {
        if self.sentences.len() < REPORTED_MAX && !self.sentences.contains(&sentence) {
            self.sentences.push(sentence);
        }
    }

    fn report_duplicate(&mut self) {
        self.report(format!("duplicate field {:?}", shortened(&self.path)));
    }

    /// Whether the field here is unknown.
    fn report_unknown(&mut self) -> bool {
        let sentence = if self.unknown.is_empty() { return false } else { unknown_field(&self.path) };
        let is_unknown = self.unknown.contains(&*sentence);
        if is_unknown {
            self.report(sentence);
        }
        is_unknown
    }
}

/// What is said of a field that the schema does not have.
pub(crate) fn unknown_field(path: &str) -> String {
    format!("unknown field {:?}", shortened(path))
}

/// Copied only where it is written with escapes.
#[derive(Deserialize)]
struct Name<'j>(#[serde(borrow)] Cow<'j, str>);

struct Scan<'f, 'u>(&'f mut StrictErrors<'u>);

impl<'de> DeserializeSeed<'de> for Scan<'_, '_> {
    type Value = ();
    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Scan<'_, '_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any JSON")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<(), A::Error> {
        // Whether it has been reported: a field that comes a thousand times is one finding.
        let mut seen: BTreeMap<Cow<'de, str>, bool> = BTreeMap::new();
        while let Some(Name(key)) = entries.next_key::<Name<'de>>()? {
            let length = self.0.path.len();
            if length > 0 {
                self.0.path.push('.');
            }
            self.0.path.push_str(&key);
            if self.0.report_unknown() {
                entries.next_value::<IgnoredAny>()?;
                self.0.path.truncate(length);
                continue;
            }
            match seen.entry(key) {
                btree_map::Entry::Vacant(it) => drop(it.insert(false)),
                btree_map::Entry::Occupied(mut it) => {
                    if !it.insert(true) {
                        self.0.report_duplicate();
                    }
                }
            }
            entries.next_value_seed(Scan(self.0))?;
            self.0.path.truncate(length);
        }
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<(), A::Error> {
        let length = self.0.path.len();
        for at in 0_usize.. {
            let _ = write!(self.0.path, "[{at}]");
            let more = items.next_element_seed(Scan(self.0))?.is_some();
            self.0.path.truncate(length);
            if !more {
                break;
            }
        }
        Ok(())
    }

    fn visit_bool<E>(self, _: bool) -> Result<(), E> {
        Ok(())
    }
    fn visit_i64<E>(self, _: i64) -> Result<(), E> {
        Ok(())
    }
    fn visit_u64<E>(self, _: u64) -> Result<(), E> {
        Ok(())
    }
    fn visit_f64<E>(self, _: f64) -> Result<(), E> {
        Ok(())
    }
    fn visit_str<E>(self, _: &str) -> Result<(), E> {
        Ok(())
    }
    fn visit_unit<E>(self) -> Result<(), E> {
        Ok(())
    }
}
