//! Some members of a large map, as the text they are: what is not chosen is passed over and costs nothing.

use std::{borrow::Cow, fmt};

use serde::de::{DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, Visitor};
use serde_json::value::RawValue;

/// Those whose names begin with `prefix`.
///
/// # Errors
/// The text is no map, or more than `max` members are chosen.
pub(super) fn chosen<'t>(
    text: &'t str,
    prefix: &str,
    max: usize,
) -> Result<Vec<(String, &'t RawValue)>, serde_json::Error> {
    let mut reader = serde_json::Deserializer::from_str(text);
    let chosen = reader.deserialize_map(Chosen { prefix, max })?;
    reader.end()?;
    Ok(chosen)
}

struct Chosen<'p> {
    prefix: &'p str,
    max: usize,
}

/// A name without a copy, where it holds no escapes.
struct Name;

impl<'de> DeserializeSeed<'de> for Name {
    type Value = Cow<'de, str>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_str(self)
    }
}

impl<'de> Visitor<'de> for Name {
    type Value = Cow<'de, str>;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a name")
    }

    fn visit_borrowed_str<E: Error>(self, name: &'de str) -> Result<Self::Value, E> {
        Ok(Cow::Borrowed(name))
    }

    fn visit_str<E: Error>(self, name: &str) -> Result<Self::Value, E> {
        Ok(Cow::Owned(name.to_owned()))
    }
}

impl<'de> Visitor<'de> for Chosen<'_> {
    type Value = Vec<(String, &'de RawValue)>;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a map")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut chosen = Vec::new();
        while let Some(name) = map.next_key_seed(Name)? {
            if !name.starts_with(self.prefix) {
                map.next_value::<IgnoredAny>()?;
                continue;
            }
            if chosen.len() >= self.max {
                return Err(A::Error::custom(format_args!("there are more than {} of them", self.max)));
            }
            chosen.push((name.into_owned(), map.next_value()?));
        }
        Ok(chosen)
    }
}

/// At most how many values a text of JSON holds, without reading it: one for each place where one may begin.
pub(super) fn n_values_at_most(text: &str) -> usize {
    let (mut n, mut is_string, mut is_escaped) = (1, false, false);
    for byte in text.bytes() {
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' if is_string => is_escaped = true,
            b'"' => is_string = !is_string,
            b',' | b'[' | b'{' if !is_string => n += 1,
            _ => {}
        }
    }
    n
}
