//! Pruning and defaulting beside a second, naive reading of the rules, over schemas and objects that a seed makes.

use serde_json::{Map, Value, json};

use crate::structural::Structural;

const NAMES: [&str; 5] = ["a", "b", "c", "metadata", "kind"];

/// xorshift64*: the same objects for a seed wherever it runs.
struct Random(u64);

impl Random {
    fn below(&mut self, n: u64) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33) % n
    }

    fn one_in(&mut self, n: u64) -> bool {
        self.below(n) == 0
    }

    fn name(&mut self) -> &'static str {
        NAMES[usize::try_from(self.below(5)).expect("below five")]
    }

    fn schema(&mut self, depth: u64) -> Value {
        let mut schema = match self.below(if depth == 0 { 2 } else { 5 }) {
            0 => json!({ "type": "string" }),
            1 => json!({ "type": "integer" }),
            2 => json!({ "type": "array", "items": self.schema(depth - 1) }),
            _ => self.object_schema(depth),
        };
        if self.one_in(4) {
            schema["nullable"] = true.into();
        }
        if self.one_in(3) {
            schema["default"] = self.value(Some(&schema.clone()), depth.min(2));
        }
        schema
    }

    fn object_schema(&mut self, depth: u64) -> Value {
        let mut schema = json!({ "type": "object" });
        match self.below(4) {
            0 => schema["additionalProperties"] = self.schema(depth - 1),
            1 if self.one_in(2) => schema["additionalProperties"] = true.into(),
            _ => {
                for _ in 0..1 + self.below(3) {
                    schema["properties"][self.name()] = self.schema(depth - 1);
                }
            }
        }
        for word in ["x-kubernetes-preserve-unknown-fields", "x-kubernetes-embedded-resource"] {
            if self.one_in(5) {
                schema[word] = true.into();
            }
        }
        schema
    }

    /// Mostly what the schema wants.
    fn value(&mut self, schema: Option<&Value>, depth: u64) -> Value {
        let fits = schema.filter(|_| !self.one_in(6));
        match fits.map_or("", |it| it["type"].as_str().unwrap_or_default()) {
            "string" => json!("x"),
            "integer" => json!(7),
            "array" if depth > 0 => {
                (0..self.below(3)).map(|_| self.value(fits.map(|it| &it["items"]), depth - 1)).collect()
            }
            "object" if depth > 0 => {
                let mut entries = Map::new();
                for _ in 0..self.below(5) {
                    let name = self.name();
                    let of = fits.and_then(|it| it["properties"].get(name).or_else(|| it.get("additionalProperties")));
                    let value = self.value(of, depth - 1);
                    entries.insert(name.into(), value);
                }
                Value::Object(entries)
            }
            _ => match self.below(4) {
                0 => Value::Null,
                1 => json!({ "a": { "b": null }, "z": [{ "a": 1 }] }),
                2 => json!([null, { "a": null }]),
                _ => json!("y"),
            },
        }
    }
}

fn is_set(schema: &Value, word: &str) -> bool {
    schema[word] == true
}

/// The schema of a field that is named, or of any other.
fn of_field<'s>(schema: &'s Value, name: &str) -> Option<&'s Value> {
    schema["properties"].get(name).or_else(|| schema.get("additionalProperties").filter(|it| it.is_object()))
}

fn pruned(schema: Option<&Value>, value: &Value, is_root: bool) -> Value {
    let keeps_unknown = schema.is_some_and(|it| is_set(it, "x-kubernetes-preserve-unknown-fields"));
    match value {
        Value::Object(entries) => {
            let has_head = is_root || schema.is_some_and(|it| is_set(it, "x-kubernetes-embedded-resource"));
            let mut left = Map::new();
            for (name, value) in entries {
                let is_head = has_head && ["kind", "apiVersion", "metadata"].contains(&&**name);
                let of = schema.and_then(|it| of_field(it, name));
                let allows_any = schema.is_some_and(|it| it["additionalProperties"] == true);
                if is_head || of.is_none() && keeps_unknown {
                    left.insert(name.clone(), value.clone());
                } else if of.is_some() || allows_any {
                    left.insert(name.clone(), pruned(of, value, false));
                }
            }
            Value::Object(left)
        }
        Value::Array(items) => {
            let of = schema.and_then(|it| it.get("items"));
            if of.is_none() && keeps_unknown {
                return value.clone();
            }
            items.iter().map(|it| pruned(of, it, false)).collect()
        }
        _ => value.clone(),
    }
}

/// A null that may not be one, where there is a default for it.
fn instead(schema: &Value, value: &Value) -> Value {
    let default = schema.get("default").filter(|_| value.is_null() && !is_set(schema, "nullable"));
    default.unwrap_or(value).clone()
}

fn defaulted(schema: &Value, value: &Value) -> Value {
    match value {
        Value::Object(entries) => {
            let mut whole = entries.clone();
            for (name, of) in schema["properties"].as_object().into_iter().flatten() {
                if let (Some(default), None) = (of.get("default"), entries.get(name)) {
                    whole.insert(name.clone(), default.clone());
                }
            }
            let fill = |(name, value): (String, Value)| match of_field(schema, &name) {
                Some(of) => (name, defaulted(of, &instead(of, &value))),
                None => (name, value),
            };
            Value::Object(whole.into_iter().map(fill).collect())
        }
        Value::Array(items) => match schema.get("items") {
            Some(of) => items.iter().map(|it| defaulted(of, &instead(of, it))).collect(),
            None => value.clone(),
        },
        _ => value.clone(),
    }
}

fn without_nulls(schema: &Value, value: &Value) -> Value {
    match value {
        Value::Object(entries) => {
            let stays = |(name, value): &(&String, &Value)| {
                let named = schema["properties"].get(*name);
                !(value.is_null() && named.is_some_and(|it| !is_set(it, "nullable")))
            };
            let below = |(name, value): (&String, &Value)| {
                (name.clone(), of_field(schema, name).map_or_else(|| value.clone(), |of| without_nulls(of, value)))
            };
            Value::Object(entries.iter().filter(stays).map(below).collect())
        }
        Value::Array(items) => match schema.get("items") {
            Some(of) => items.iter().map(|it| without_nulls(of, it)).collect(),
            None => value.clone(),
        },
        _ => value.clone(),
    }
}

#[test]
fn both_readings_of_the_rules_agree() {
    for seed in 1..4000 {
        let mut random = Random(0x9e37_79b9_7f4a_7c15_u64.wrapping_mul(seed));
        let mut schema = random.object_schema(4);
        if schema["additionalProperties"].is_boolean() || schema["additionalProperties"].is_object() {
            schema = json!({ "type": "object", "properties": { "a": schema } });
        }
        let value = random.value(Some(&schema), 4);
        let structural = Structural::read(&schema);
        let mut is = value.clone();
        structural.prune(&mut is);
        assert_eq!(is, pruned(Some(&schema), &value, true), "prune, seed {seed}: {schema} {value}");
        let mut is = value.clone();
        structural.default(&mut is).expect("small");
        let naive = without_nulls(&schema, &defaulted(&schema, &value));
        assert_eq!(is, naive, "default, seed {seed}: {schema} {value}");
        let once = is.clone();
        structural.prune(&mut is);
        let pruned_once = is.clone();
        structural.prune(&mut is);
        assert_eq!(is, pruned_once, "pruning twice is pruning once, seed {seed}");
        let mut again = once.clone();
        structural.default(&mut again).expect("small");
        assert_eq!(again, once, "defaulting twice is defaulting once, seed {seed}: {schema} {value}");
    }
}
