//! YAML as it is sent: within bounds, and with the keys that a mapping gives twice, of which the last one counts.

use std::{collections::BTreeSet, fmt};

use corten_meta::{Violation, depth::LEVELS_MAX, shortened};
use serde::de::{Deserialize, DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::Value;
use serde_saphyr::{DuplicateKeyPolicy, Options, Spanned};

/// The document, and a sentence in the words of upstream's reader for each key that is there again:
/// `line 4: key "a" already set in map`.
///
/// # Errors
/// What is wrong with it, in one line.
pub fn read(body: &[u8]) -> Result<(Value, Vec<String>), String> {
    match serde_saphyr::from_slice_with_options(body, options(DuplicateKeyPolicy::Error)) {
        Ok(value) => Ok((value, Vec::new())),
        Err(error) if matches!(error.without_snippet(), serde_saphyr::Error::DuplicateMappingKey { .. }) => {
            let last_wins = options(DuplicateKeyPolicy::LastWins);
            let value = serde_saphyr::from_slice_with_options(body, last_wins).map_err(|it| first_line(&it))?;
            // Where the last one wins a visitor is shown all of them.
            let found: Repeated = serde_saphyr::from_slice_with_options(body, options(DuplicateKeyPolicy::LastWins))
                .map_err(|it| first_line(&it))?;
            Ok((value, found.0))
        }
        Err(error) => Err(first_line(&error)),
    }
}

/// Within bounds that alias bombs run into. What an alias stands for counts where it stands.
fn options(duplicate_keys: DuplicateKeyPolicy) -> Options {
    let mut options = serde_saphyr::options! {
        budget: serde_saphyr::budget! {
            max_depth: LEVELS_MAX,
            max_nodes: 250_000,
            max_events: 500_000,
            max_aliases: 1_000,
            max_documents: 1,
        },
        alias_limits: serde_saphyr::alias_limits! { max_total_replayed_events: 100_000 },
    };
    options.duplicate_keys = duplicate_keys;
    // `defaultMode: 0644`; upstream's reader takes YAML 1.1.
    options.legacy_octal_numbers = true;
    options
}

fn first_line(error: &serde_saphyr::Error) -> String {
    error.to_string().lines().next().unwrap_or_default().to_owned()
}

/// The sentences about repeated keys, in document order.
struct Repeated(Vec<String>);

impl<'de> Deserialize<'de> for Repeated {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let mut found = Vec::new();
        KeyVisitor(&mut found).deserialize(deserializer)?;
        Ok(Self(found))
    }
}

/// Goes through a document, keeps nothing of it, and notes which keys come again.
struct KeyVisitor<'f>(&'f mut Vec<String>);

impl<'de> DeserializeSeed<'de> for KeyVisitor<'_> {
    type Value = ();
    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for KeyVisitor<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any YAML")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<(), A::Error> {
        let mut keys = BTreeSet::new();
        while let Some(key) = entries.next_key::<Spanned<String>>()? {
            let line = key.referenced.line();
            if keys.contains(&key.value) {
                if self.0.len() < Violation::MOST {
                    self.0.push(format!("line {line}: key {:?} already set in map", shortened(&key.value)));
                }
            } else {
                keys.insert(key.value);
            }
            entries.next_value_seed(KeyVisitor(self.0))?;
        }
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<(), A::Error> {
        while items.next_element_seed(KeyVisitor(self.0))?.is_some() {}
        Ok(())
    }

    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        self.deserialize(deserializer)
    }
    fn visit_newtype_struct<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        IgnoredAny::deserialize(deserializer).map(drop)
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
    fn visit_i128<E>(self, _: i128) -> Result<(), E> {
        Ok(())
    }
    fn visit_u128<E>(self, _: u128) -> Result<(), E> {
        Ok(())
    }
    fn visit_f64<E>(self, _: f64) -> Result<(), E> {
        Ok(())
    }
    fn visit_str<E>(self, _: &str) -> Result<(), E> {
        Ok(())
    }
    fn visit_bytes<E>(self, _: &[u8]) -> Result<(), E> {
        Ok(())
    }
    fn visit_none<E>(self) -> Result<(), E> {
        Ok(())
    }
    fn visit_unit<E>(self) -> Result<(), E> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::read;

    #[test]
    fn the_last_of_equal_keys_counts_and_each_is_named() {
        let (value, repeated) =
            read(b"a: 1\nb: {c: x, c: z}\nl:\n- k: 1\n  k: 2\na: [~, 1.5, true]\n").expect("it is YAML");
        assert_eq!(value, json!({ "a": [null, 1.5, true], "b": { "c": "z" }, "l": [{ "k": 2 }] }));
        assert_eq!(
            repeated,
            [
                "line 2: key \"c\" already set in map",
                "line 5: key \"k\" already set in map",
                "line 6: key \"a\" already set in map"
            ]
        );
        assert_eq!(read(b"a: 1\nb: 2").expect("it is YAML").1, [""; 0]);
    }

    #[test]
    fn what_upstream_takes_for_numbers_and_truths_is_that() {
        let (value, _) =
            read(b"[0644, 0o10, 0x1f, 1_000, yes, off, y, 'y', 12:30:45, 2001-01-01, ~]").expect("it is YAML");
        assert_eq!(value, json!([420, 8, 31, 1000, true, false, true, "y", "12:30:45", "2001-01-01", null]));
    }

    #[test]
    fn bounds_hold_with_equal_keys_too() {
        let bomb = "a: &a [x,x,x,x,x,x,x,x,x,x]\nb: &b [*a,*a,*a,*a,*a,*a,*a,*a,*a,*a]\nc: &c [*b,*b,*b,*b,*b,*b,*b,*b,*b,*b]\n\
                    d: &d [*c,*c,*c,*c,*c,*c,*c,*c,*c,*c]\na: &e [*d,*d,*d,*d,*d,*d,*d,*d,*d,*d]\na: [*e,*e,*e,*e,*e,*e,*e,*e]\n";
        assert!(read(bomb.as_bytes()).is_err());
        let twice: String = (0..5_000).map(|it| format!("k{it}: 1\nk{it}: 2\n")).collect();
        assert_eq!(read(twice.as_bytes()).expect("it is YAML").1.len(), 100);
    }
}
