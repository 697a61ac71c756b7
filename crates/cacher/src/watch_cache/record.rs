//! The little that selectors need to know of an object, read from its bytes without building it.

#[cfg(test)]
mod tests;

use std::{
    collections::{BTreeMap, VecDeque},
    fmt,
    sync::Arc,
};

use corten_kinds::{Kind, Schema};
use corten_schema::Shape;
use parking_lot::Mutex;
use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::Value;

type Labels = BTreeMap<String, String>;

/// So many different sets of labels are remembered, to be shared by what comes next.
const LABELS_REMEMBERED: usize = 16;

/// Made once per write.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Record {
    pub uid: String,
    /// Shared by the objects that were labelled alike.
    pub labels: Arc<Labels>,
    /// The values of the kind's selectable fields, in the order of its row.
    pub fields: Vec<String>,
}

/// Which paths to read from objects of a kind.
pub(crate) struct Reader {
    root: Node,
    /// What an absent field counts as: `false` and `0` where the schema says so.
    absent: Vec<&'static str>,
    /// The newest first: replicas come together.
    recent: Mutex<VecDeque<Arc<Labels>>>,
}

#[derive(Default)]
struct Node {
    children: Vec<(String, Node)>,
    leaves: Vec<Leaf>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Leaf {
    Uid,
    Labels,
    Field(usize),
    /// What a field is that is empty where it stands.
    Instead(usize),
}

impl Reader {
    pub(crate) fn new(kind: &Kind) -> Self {
        let mut root = Node::default();
        root.add("metadata.uid", Leaf::Uid);
        root.add("metadata.labels", Leaf::Labels);
        let paths: Vec<_> = kind.selectable_fields.iter().map(|it| kind.policy.selectable_path(it)).collect();
        for (at, found) in paths.iter().enumerate() {
            root.add(found.path, Leaf::Field(at));
            if let Some(instead) = found.instead {
                root.add(instead, Leaf::Instead(at));
            }
        }
        let absent = paths.iter().map(|it| absent_value(&kind.schema, it.path)).collect();
        Self { root, absent, recent: Mutex::default() }
    }

    pub(crate) fn read(&self, json: &[u8]) -> Result<Record, serde_json::Error> {
        let fields = self.absent.iter().map(|it| (*it).to_owned()).collect();
        let mut record = Record { fields, ..Record::default() };
        let mut deserializer = serde_json::Deserializer::from_slice(json);
        let mut labels = Labels::new();
        Walk { node: &self.root, record: &mut record, labels: &mut labels }.deserialize(&mut deserializer)?;
        record.labels = self.shared(labels);
        Ok(record)
    }

    /// As [`Reader::read`], of the object that is encoded in the bytes.
    pub(crate) fn read_value(&self, object: &Value) -> Record {
        let fields = self.absent.iter().map(|it| (*it).to_owned()).collect();
        let mut record = Record { fields, ..Record::default() };
        let mut labels = Labels::new();
        self.root.take(object, &mut record, &mut labels);
        record.labels = self.shared(labels);
        record
    }

    fn shared(&self, labels: Labels) -> Arc<Labels> {
        let mut recent = self.recent.lock();
        if let Some(known) = recent.iter().find(|it| ***it == labels) {
            return known.clone();
        }
        let labels = Arc::new(labels);
        recent.truncate(LABELS_REMEMBERED - 1);
        recent.push_front(labels.clone());
        labels
    }
}

/// Of custom resources nothing is what it is not said to be.
fn absent_value(schema: &Schema, path: &str) -> &'static str {
    let Schema::Table(type_name) = schema else { return "" };
    let (mut of, mut shape) = (corten_schema::find(type_name), None);
    for name in path.split('.') {
        shape = of.and_then(|it| it.field(name)).map(|it| &it.shape);
        of = match shape {
            Some(Shape::Object(inner)) => Some(*inner),
            _ => None,
        };
    }
    match shape {
        Some(Shape::Boolean) => "false",
        Some(Shape::Int32 | Shape::Int64) => "0",
        _ => "",
    }
}

impl Node {
    fn add(&mut self, path: &str, leaf: Leaf) {
        let mut node = self;
        for name in path.split('.') {
            let at = node.children.iter().position(|(it, _)| it == name).unwrap_or_else(|| {
                node.children.push((name.to_owned(), Self::default()));
                node.children.len() - 1
            });
            node = &mut node.children[at].1;
        }
        node.leaves.push(leaf);
    }
}

impl Node {
    /// Takes what the wanted paths lead to.
    fn take(&self, value: &Value, record: &mut Record, labels: &mut Labels) {
        let walk = Walk { node: self, record, labels };
        match value {
            Value::Object(entries) if self.leaves.contains(&Leaf::Labels) => {
                let texts = entries.iter().filter_map(|(name, value)| Some((name.clone(), value.as_str()?.to_owned())));
                walk.labels.extend(texts);
            }
            Value::Object(entries) => {
                for (name, node) in &self.children {
                    if let Some(value) = entries.get(name) {
                        node.take(value, walk.record, walk.labels);
                    }
                }
            }
            Value::String(text) => walk.scalar(text),
            Value::Bool(it) => walk.scalar(it),
            Value::Number(number) => walk.scalar(number),
            Value::Null | Value::Array(_) => {}
        }
    }
}

/// Descends only where a wanted path leads.
struct Walk<'a> {
    node: &'a Node,
    record: &'a mut Record,
    labels: &'a mut Labels,
}

impl<'de> DeserializeSeed<'de> for Walk<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl Walk<'_> {
    fn scalar(self, text: impl fmt::Display) {
        for leaf in &self.node.leaves {
            match *leaf {
                Leaf::Uid => self.record.uid = text.to_string(),
                Leaf::Field(at) => {
                    let text = text.to_string();
                    if !text.is_empty() {
                        self.record.fields[at] = text;
                    }
                }
                Leaf::Instead(at) if self.record.fields[at].is_empty() => self.record.fields[at] = text.to_string(),
                Leaf::Instead(_) | Leaf::Labels => {}
            }
        }
    }
}

impl<'de> Visitor<'de> for Walk<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any JSON")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        if self.node.leaves.contains(&Leaf::Labels) {
            while let Some((key, value)) = map.next_entry::<String, String>()? {
                self.labels.insert(key, value);
            }
            return Ok(());
        }
        while let Some(child) = map.next_key_seed(Child(self.node))? {
            match child {
                Some(node) => map.next_value_seed(Walk { node, record: self.record, labels: self.labels })?,
                None => {
                    map.next_value::<IgnoredAny>()?;
                }
            }
        }
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<(), A::Error> {
        while items.next_element::<IgnoredAny>()?.is_some() {}
        Ok(())
    }

    fn visit_str<E>(self, text: &str) -> Result<(), E> {
        self.scalar(text);
        Ok(())
    }

    fn visit_bool<E>(self, it: bool) -> Result<(), E> {
        self.scalar(it);
        Ok(())
    }

    fn visit_i64<E>(self, it: i64) -> Result<(), E> {
        self.scalar(it);
        Ok(())
    }

    fn visit_u64<E>(self, it: u64) -> Result<(), E> {
        self.scalar(it);
        Ok(())
    }

    fn visit_f64<E>(self, it: f64) -> Result<(), E> {
        self.scalar(it);
        Ok(())
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        Ok(())
    }
}

/// Finds the node a key leads to without copying the key.
struct Child<'a>(&'a Node);

impl<'a, 'de> DeserializeSeed<'de> for Child<'a> {
    type Value = Option<&'a Node>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_str(self)
    }
}

impl<'a> Visitor<'_> for Child<'a> {
    type Value = Option<&'a Node>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a key")
    }

    fn visit_str<E>(self, key: &str) -> Result<Self::Value, E> {
        Ok(self.0.children.iter().find(|(name, _)| name == key).map(|(_, node)| node))
    }
}
