//! Random objects of a type, as they are stored: no nulls, nothing empty, no key twice. Few different values, so that two of
//! them have much in common.

use serde_json::{Map, Value, json};

use crate::{Apply, Field, Merge, Patch, Shape, Type};

/// Deeper than this only scalars grow.
const DEPTH_MAX: usize = 7;
const FIELDS_MAX: u64 = 5;
const ITEMS_MAX: u64 = 4;

const WHOLE: Merge = Merge { apply: Apply::Atomic, patch: Patch::Replace, retain_keys: false };

/// Fields of metadata that nobody owns: what identifies an object, and its owners.
const NOBODYS: &[&str] =
    &["managedFields", "namespace", "uid", "selfLink", "generation", "resourceVersion", "creationTimestamp"];

fn is_never_omitted(field: &Field) -> bool {
    field.required && matches!(field.shape, Shape::List(_) | Shape::Map(_))
}

/// SplitMix64: the same numbers everywhere.
pub(super) struct Random(u64);

impl Random {
    pub(super) fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ 0x5eed)
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut it = self.0;
        it = (it ^ (it >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        it = (it ^ (it >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        it ^ (it >> 31)
    }

    pub(super) fn below(&mut self, end: usize) -> usize {
        usize::try_from(self.next() % end as u64).expect("it is below a usize")
    }

    pub(super) fn one_in(&mut self, n: u64) -> bool {
        self.next().is_multiple_of(n)
    }

    fn pick<T: Copy>(&mut self, of: &[T]) -> T {
        of[self.below(of.len())]
    }

    pub(super) fn object(&mut self, of: &'static Type) -> Value {
        let mut object = self.fields(of, 0, &[]);
        object.insert("apiVersion".into(), "v1".into());
        object.insert("kind".into(), of.short_name().into());
        let metadata = object.entry("metadata").or_insert_with(|| json!({}));
        metadata["name"] = "a".into();
        Value::Object(object)
    }

    /// Some fields of a struct, and all of `always`.
    fn fields(&mut self, of: &'static Type, depth: usize, always: &[&str]) -> Map<String, Value> {
        let mut object = Map::new();
        let n_fields = 1 + self.next() % FIELDS_MAX;
        for _ in 0..n_fields {
            if of.fields.is_empty() {
                break;
            }
            let field = &of.fields[self.below(of.fields.len())];
            if of.short_name() == "ObjectMeta" && NOBODYS.contains(&field.name) {
                continue;
            }
            self.field(field, depth, &mut object);
        }
        // A list that is never omitted is null where it is left out, and null has an owner.
        let is_there = |it: &&Field| is_never_omitted(it) || always.contains(&it.name);
        for field in of.fields.iter().filter(is_there) {
            self.field(field, depth, &mut object);
        }
        object
    }

    fn field(&mut self, field: &Field, depth: usize, object: &mut Map<String, Value>) {
        if !object.contains_key(field.name)
            && let Some(value) = self.value(field.shape, *field.merge, depth + 1)
        {
            object.insert(field.name.into(), value);
        }
    }

    /// `None` rather than something empty.
    fn value(&mut self, shape: Shape, merge: Merge, depth: usize) -> Option<Value> {
        if depth > DEPTH_MAX && matches!(shape, Shape::Object(_) | Shape::List(_) | Shape::Map(_)) {
            return None;
        }
        let value = match shape {
            Shape::String => self.pick(&["a", "b", "c", "d~/e", "\"f\""]).into(),
            Shape::Bytes => self.pick(&["YQ==", "Yg=="]).into(),
            Shape::Int32 | Shape::Int64 => self.pick(&[1, 2, 80]).into(),
            Shape::Number => self.pick(&[1.5, 2.5]).into(),
            Shape::Boolean => true.into(),
            Shape::Time => self.pick(&["2026-01-02T03:04:05Z", "2026-01-02T03:04:06Z"]).into(),
            Shape::MicroTime => self.pick(&["2026-01-02T03:04:05.000001Z", "2026-01-02T03:04:05.000002Z"]).into(),
            Shape::Quantity => self.pick(&["1", "500m", "2Gi"]).into(),
            Shape::IntOrString => self.pick(&[json!(80), json!("25%"), json!("http")].each_ref()).clone(),
            Shape::Any => self.pick(&[json!({"x": {"y": [1, 2]}}), json!({"x": {"z": "1"}})].each_ref()).clone(),
            Shape::Object(of) => Value::Object(self.fields(of, depth, &[])),
            Shape::Map(of) => {
                let mut entries = Map::new();
                for _ in 0..=self.next() % ITEMS_MAX {
                    let key = self.pick(&["a", "b", "c", "x.y/z", "~"]);
                    if let Some(value) = self.value(*of, WHOLE, depth + 1) {
                        entries.insert(key.into(), value);
                    }
                }
                Value::Object(entries)
            }
            Shape::List(of) => Value::Array(self.items(*of, merge, depth)),
        };
        let is_empty = value.as_array().is_some_and(Vec::is_empty) || value.as_object().is_some_and(Map::is_empty);
        (!is_empty).then_some(value)
    }

    fn items(&mut self, of: Shape, merge: Merge, depth: usize) -> Vec<Value> {
        let keys = keys(merge);
        let mut items: Vec<Value> = Vec::new();
        for _ in 0..=self.next() % ITEMS_MAX {
            let item = match of {
                Shape::Object(of) => Some(Value::Object(self.fields(of, depth, &keys))),
                _ => self.value(of, WHOLE, depth + 1),
            };
            items.extend(item.filter(|it| it.as_object().is_none_or(|it| !it.is_empty())));
        }
        unique(&mut items, merge);
        items
    }

    /// Something between `a` and `other`.
    pub(super) fn mixed(&mut self, of: &'static Type, a: &Value, other: &Value) -> Value {
        let mut mixed = self.mix(Shape::Object(of), WHOLE, a, other, &["apiVersion", "kind", "metadata", "name"]);
        mixed["metadata"]["name"] = "a".into();
        mixed
    }

    fn mix(&mut self, shape: Shape, merge: Merge, a: &Value, other: &Value, kept: &[&str]) -> Value {
        match (shape, a, other) {
            (Shape::Object(_) | Shape::Map(_), Value::Object(a), Value::Object(other)) => {
                let never =
                    |name: &str| matches!(shape, Shape::Object(of) if of.field(name).is_some_and(is_never_omitted));
                let mut out = Map::new();
                for name in a.keys().chain(other.keys()) {
                    let mixed = match (a.get(name), other.get(name)) {
                        (Some(one), Some(two)) if self.one_in(2) => {
                            let (shape, merge) = inside(shape, name);
                            self.mix(shape, merge, one, two, kept)
                        }
                        (Some(one), _) if kept.contains(&&**name) || never(name) || !self.one_in(4) => one.clone(),
                        (_, Some(two)) if self.one_in(2) => two.clone(),
                        _ => continue,
                    };
                    out.insert(name.clone(), mixed);
                }
                if out.is_empty() { Value::Object(a.clone()) } else { Value::Object(out) }
            }
            (Shape::List(of), Value::Array(a), Value::Array(other)) => {
                let keys = keys(merge);
                let mut out: Vec<Value> = Vec::new();
                for one in a {
                    let same = other.iter().find(|two| !keys.is_empty() && keys.iter().all(|it| one[it] == two[it]));
                    match same {
                        Some(two) if self.one_in(2) => out.push(self.mix(*of, WHOLE, one, two, &keys)),
                        _ if self.one_in(3) => {}
                        _ => out.push(one.clone()),
                    }
                }
                out.extend(other.iter().filter(|_| self.one_in(2)).cloned());
                for at in (1..out.len()).rev() {
                    let to = self.below(at + 1);
                    out.swap(at, to);
                }
                unique(&mut out, merge);
                if out.is_empty() { Value::Array(a.clone()) } else { Value::Array(out) }
            }
            _ => other.clone(),
        }
    }
}

fn inside(shape: Shape, name: &str) -> (Shape, Merge) {
    match shape {
        Shape::Object(of) => of.field(name).map_or((Shape::Any, WHOLE), |it| (it.shape, *it.merge)),
        Shape::Map(of) => (*of, WHOLE),
        _ => (Shape::Any, WHOLE),
    }
}

/// The fields by which either way of merging tells elements apart.
fn keys(merge: Merge) -> Vec<&'static str> {
    let mut keys = match merge.apply {
        Apply::ByKeys(keys) => keys.to_vec(),
        _ => Vec::new(),
    };
    if let Patch::ByKey(key) = merge.patch
        && !keys.contains(&key)
    {
        keys.push(key);
    }
    keys
}

/// Drops elements that either way of merging would take for one that is there.
fn unique(items: &mut Vec<Value>, merge: Merge) {
    let is_set = merge.apply == Apply::Set || merge.patch == Patch::Set;
    let same = |a: &Value, b: &Value| {
        let by_apply = matches!(merge.apply, Apply::ByKeys(keys) if keys.iter().all(|it| a[it] == b[it]));
        let by_patch = matches!(merge.patch, Patch::ByKey(key) if a[key] == b[key]);
        by_apply || by_patch || (is_set && a == b)
    };
    let mut kept: Vec<Value> = Vec::new();
    for item in items.drain(..) {
        if !kept.iter().any(|it| same(it, &item)) {
            kept.push(item);
        }
    }
    *items = kept;
}
