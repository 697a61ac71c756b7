//! Finds fields that a JSON text gives twice; a DOM cannot, since it keeps only the last.

use std::{collections::BTreeSet, fmt};

use serde::de::{DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};

/// As many as Kubernetes reports before it stops counting.
const REPORTED_MAX: usize = 100;

/// `duplicate field "spec.replicas"`, in document order. Text that is no JSON, or nested deeper than `serde_json` allows
/// (128 levels), gives what was found up to there: reading it as a value is what reports the error.
pub fn duplicates(json: &[u8]) -> Vec<String> {
    let mut found = Found { path: String::new(), sentences: Vec::new() };
    let mut deserializer = serde_json::Deserializer::from_slice(json);
    drop(Scan(&mut found).deserialize(&mut deserializer));
    found.sentences
}

struct Found {
    path: String,
    sentences: Vec<String>,
}

impl Found {
    fn report(&mut self) {
        let sentence = format!("duplicate field {:?}", self.path);
        if self.sentences.len() < REPORTED_MAX && !self.sentences.contains(&sentence) {
            self.sentences.push(sentence);
        }
    }
}

struct Scan<'f>(&'f mut Found);

impl<'de> DeserializeSeed<'de> for Scan<'_> {
    type Value = ();
    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Scan<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any JSON")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<(), A::Error> {
        let mut seen = BTreeSet::new();
        while let Some(key) = entries.next_key::<String>()? {
            let length = self.0.path.len();
            if length > 0 {
                self.0.path.push('.');
            }
            self.0.path.push_str(&key);
            if !seen.insert(key) {
                self.0.report();
            }
            entries.next_value_seed(Scan(self.0))?;
            self.0.path.truncate(length);
        }
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<(), A::Error> {
        let length = self.0.path.len();
        for at in 0_usize.. {
            self.0.path.push_str(&format!("[{at}]"));
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
