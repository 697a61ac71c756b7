//! How deep JSON may be nested: one bound for everything that users shape, whether it comes as JSON, YAML or protobuf, or is
//! made here by a patch.
//!
//! Most of what is done to a value is recursive: reading, comparing, cloning, writing, even dropping it. The bound is what
//! keeps all of that within a thread's stack, so it must hold after every step that makes a value, not only at the end.

use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Value, value::RawValue};

use crate::from_json;

/// So many lists and maps within each other are too many; `serde_json` refuses them by itself.
pub const DEPTH_MAX: usize = 128;

/// So many lists and maps may be within each other.
pub const LEVELS_MAX: usize = DEPTH_MAX - 1;

/// As Go's decoder says it.
pub const EXCEEDED: &str = "exceeded max depth";

/// What the server puts around an object: a list with its items, a table with its rows.
const AROUND: usize = 4;

/// Are there at most `levels` lists and maps within each other? Looks no deeper, so any value may be asked.
pub fn fits(value: &Value, levels: usize) -> bool {
    let inside = |it: &Value| fits(it, levels - 1);
    match value {
        Value::Array(items) => levels > 0 && items.iter().all(inside),
        Value::Object(entries) => levels > 0 && entries.values().all(inside),
        _ => true,
    }
}

/// How many lists and maps within each other a JSON text opens, however many that are.
pub fn of_text(json: &[u8]) -> usize {
    let mut scan = Scan::default();
    while scan.step(json).is_some() {}
    scan.deepest
}

/// Where the list or map ends with which a JSON text begins, and how many lists and maps within each other it opens. `None`: it
/// does not end, or the text begins otherwise.
pub fn of_first(json: &[u8]) -> Option<(usize, usize)> {
    let mut scan = Scan::default();
    if !matches!(json.first(), Some(b'[' | b'{')) {
        return None;
    }
    while scan.step(json)? > 0 {}
    Some((scan.at, scan.deepest))
}

/// Goes from one bracket of a JSON text to the next.
#[derive(Default)]
struct Scan {
    /// Behind the last bracket.
    at: usize,
    open: usize,
    deepest: usize,
}

impl Scan {
    /// How many are open behind the next bracket; `None` at the end.
    fn step(&mut self, json: &[u8]) -> Option<usize> {
        loop {
            let byte = *json.get(self.at)?;
            self.at += 1;
            match byte {
                b'"' => self.skip_string(json),
                b'[' | b'{' => {
                    self.open += 1;
                    self.deepest = self.deepest.max(self.open);
                    return Some(self.open);
                }
                b']' | b'}' => {
                    self.open = self.open.saturating_sub(1);
                    return Some(self.open);
                }
                _ => {}
            }
        }
    }

    fn skip_string(&mut self, json: &[u8]) {
        // Eight bytes at a time, for most of a JSON text is in strings.
        while let Some(chunk) = json.get(self.at..).and_then(|it| it.first_chunk()) {
            let word = u64::from_le_bytes(*chunk);
            let found = zero_bytes(word ^ every_byte(b'"')) | zero_bytes(word ^ every_byte(b'\\'));
            if found == 0 {
                self.at += chunk.len();
                continue;
            }
            self.at += found.trailing_zeros() as usize / 8;
            if json[self.at] == b'"' {
                self.at += 1;
                return;
            }
            self.at += 2;
        }
        while let Some(byte) = json.get(self.at) {
            self.at += if *byte == b'\\' { 2 } else { 1 };
            if *byte == b'"' {
                return;
            }
        }
    }
}

const fn every_byte(byte: u8) -> u64 {
    u64::from_le_bytes([byte; 8])
}

/// Says which bytes are zero by their highest bits. Above the lowest that is, a bit may be set for a byte that is not.
const fn zero_bytes(word: u64) -> u64 {
    word.wrapping_sub(every_byte(1)) & !word & every_byte(0x80)
}

/// Why a text could not be read, for whoever sent it.
pub fn reason(error: &serde_json::Error) -> String {
    let said = error.to_string();
    // A code of its own the error does not have.
    if said.starts_with("recursion limit exceeded") { EXCEEDED.to_owned() } else { said }
}

/// A value that was read, as far as it goes.
#[derive(Clone, Debug, PartialEq)]
pub struct Read {
    pub value: Value,
    /// False where something was nested too deeply: null stands in its place.
    pub is_whole: bool,
}

/// Reads one object of JSON that may be nested deeper than the bound, because nobody refused it when it was stored.
///
/// # Errors
/// The text is no JSON.
pub fn read(json: &[u8]) -> Result<Read, serde_json::Error> {
    read_within(json, LEVELS_MAX)
}

/// As [`read`], for an answer of the server: what is around the objects does not count.
///
/// # Errors
/// The text is no JSON.
pub fn read_answer(json: &[u8]) -> Result<Read, serde_json::Error> {
    read_within(json, LEVELS_MAX + AROUND)
}

fn read_within(json: &[u8], levels: usize) -> Result<Read, serde_json::Error> {
    match from_json(json) {
        Ok(value) => Ok(Read { value, is_whole: true }),
        Err(error) if of_text(json) < DEPTH_MAX => Err(error),
        Err(_) => {
            let mut is_whole = true;
            let mut deserializer = serde_json::Deserializer::from_slice(json);
            let value = Build { levels, piece: LEVELS_MAX, is_whole: &mut is_whole }.deserialize(&mut deserializer)?;
            deserializer.end()?;
            Ok(Read { value, is_whole })
        }
    }
}

/// Builds a value. Where `serde_json` would stop, the text is taken as it is, which does not recurse, and read anew.
struct Build<'w> {
    /// How many lists and maps may be within each other from here on.
    levels: usize,
    /// How many of them this deserializer still reads.
    piece: usize,
    is_whole: &'w mut bool,
}

impl Build<'_> {
    fn inside(&mut self) -> Build<'_> {
        Build { levels: self.levels.saturating_sub(1), piece: self.piece.saturating_sub(1), is_whole: self.is_whole }
    }

    fn is_at_end(&self) -> bool {
        self.levels == 0 || self.piece == 0
    }

    fn of_text(&mut self, text: &RawValue) -> Result<Value, serde_json::Error> {
        let text = text.get();
        if !text.starts_with(['[', '{']) {
            return serde_json::from_str(text);
        }
        if self.levels == 0 {
            *self.is_whole = false;
            return Ok(Value::Null);
        }
        let piece = Build { levels: self.levels, piece: LEVELS_MAX, is_whole: self.is_whole };
        piece.deserialize(&mut serde_json::Deserializer::from_str(text))
    }
}

impl<'de> DeserializeSeed<'de> for Build<'_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(mut self, deserializer: D) -> Result<Value, D::Error> {
        if self.is_at_end() {
            let text: &RawValue = serde::Deserialize::deserialize(deserializer)?;
            return self.of_text(text).map_err(serde::de::Error::custom);
        }
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Build<'_> {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any JSON")
    }

    fn visit_map<A: MapAccess<'de>>(mut self, mut entries: A) -> Result<Value, A::Error> {
        let mut map = Map::new();
        while let Some(key) = entries.next_key::<String>()? {
            map.insert(key, entries.next_value_seed(self.inside())?);
        }
        Ok(Value::Object(map))
    }

    fn visit_seq<A: SeqAccess<'de>>(mut self, mut items: A) -> Result<Value, A::Error> {
        let mut list = Vec::new();
        while let Some(item) = items.next_element_seed(self.inside())? {
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

#[cfg(test)]
mod tests;
