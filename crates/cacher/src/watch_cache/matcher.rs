//! Which objects a list or watch wants, and the narrowest lane of events that holds all of them.

use std::collections::HashSet;

use corten_kinds::{Kind, Names};
use corten_meta::{FieldRequirement, FieldSelector, Selector, Status};

use super::{Stored, key_of};

#[derive(Clone, Debug, Default)]
pub struct Matcher {
    /// Empty: all namespaces.
    pub namespace: String,
    /// `namespace/name` where exactly one object can match.
    pub key: Option<String>,
    labels: Selector,
    fields: Vec<FieldRequirements>,
}

/// All that a selector says of one field: however much that is, an object's value is looked up once.
#[derive(Clone, Debug)]
struct FieldRequirements {
    field: Field,
    is: Option<String>,
    is_not: HashSet<String>,
    /// It is to be two values at once: nothing matches.
    is_contradictory: bool,
}

impl FieldRequirements {
    fn new(field: Field) -> Self {
        Self { field, is: None, is_not: HashSet::new(), is_contradictory: false }
    }

    fn add(&mut self, it: &FieldRequirement) {
        if it.negated {
            self.is_not.insert(it.value.clone());
        } else {
            let is = self.is.get_or_insert_with(|| it.value.clone());
            self.is_contradictory |= *is != it.value;
        }
    }

    fn matches(&self, value: &str) -> bool {
        !self.is_contradictory && self.is.as_ref().is_none_or(|it| it == value) && !self.is_not.contains(value)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Field {
    Name,
    Namespace,
    /// Its place among the kind's selectable fields.
    Selectable(usize),
}

/// What an index can serve. A watcher of a narrow scope is not woken by other objects.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Scope {
    All,
    Namespace(String),
    Object(String),
    Field(usize, String),
}

impl Matcher {
    /// Reads `labelSelector` and `fieldSelector`.
    ///
    /// # Errors
    /// 400 where one cannot be read or names a field the kind does not offer.
    pub fn new(kind: &Kind, namespace: &str, labels: &str, fields: &str) -> Result<Self, Status> {
        Self::reading(kind, &kind.selectable_fields, namespace, labels, fields)
    }

    /// As [`Self::new`], where `recorded` are the fields that are known of each object: those of all versions of its kind.
    ///
    /// # Errors
    /// See [`Self::new`].
    pub fn reading(kind: &Kind, recorded: &Names, namespace: &str, labels: &str, fields: &str) -> Result<Self, Status> {
        let labels =
            Selector::parse(labels).map_err(|it| Status::bad_request(format!("unable to parse requirement: {it}")))?;
        let selector = FieldSelector::parse(fields).map_err(Status::bad_request)?;
        let mut matcher = Self { namespace: namespace.to_owned(), labels, ..Self::default() };
        for it in &selector.0 {
            let field = field_of(kind, recorded, &it.path)?;
            let at = matcher.fields.iter().position(|it| it.field == field).unwrap_or_else(|| {
                matcher.fields.push(FieldRequirements::new(field));
                matcher.fields.len() - 1
            });
            matcher.fields[at].add(it);
        }
        matcher.narrow(kind.resource.namespaced);
        Ok(matcher)
    }

    /// `metadata.name=x` and `metadata.namespace=y` become part of the key.
    fn narrow(&mut self, namespaced: bool) {
        let exact = |field: Field| self.fields.iter().find(|it| it.field == field).and_then(|it| it.is.clone());
        let (namespace, name) = (exact(Field::Namespace), exact(Field::Name));
        if namespaced && self.namespace.is_empty() {
            self.namespace = namespace.unwrap_or_default();
        }
        if let Some(name) = name
            && namespaced != self.namespace.is_empty()
        {
            self.key = Some(key_of(&self.namespace, &name));
        }
    }

    /// Wants everything in a namespace; empty: everything.
    pub fn within(namespace: &str) -> Self {
        Self { namespace: namespace.to_owned(), ..Self::default() }
    }

    /// Wants exactly one object.
    pub fn of_object(mut self, namespace: &str, name: &str) -> Self {
        self.key = Some(key_of(namespace, name));
        self
    }

    pub fn matches(&self, object: &Stored) -> bool {
        self.in_scope(object)
            && self.labels.matches(&object.record.labels)
            && self.fields.iter().all(|it| it.matches(value_of(it.field, object)))
    }

    fn in_scope(&self, object: &Stored) -> bool {
        match &self.key {
            Some(key) => *key == *object.key,
            None => self.namespace.is_empty() || object.namespace() == self.namespace,
        }
    }

    /// What holds whatever converts the objects, of whose labels and fields nothing is known before.
    #[must_use]
    pub fn before_conversion(&self) -> Self {
        Self { namespace: self.namespace.clone(), key: self.key.clone(), ..Self::default() }
    }

    /// May what it leaves out be known only after a conversion?
    pub fn is_selective(&self) -> bool {
        !self.labels.is_empty() || !self.fields.is_empty()
    }

    /// Does it look at more than metadata?
    pub fn reads_fields(&self) -> bool {
        self.fields.iter().any(|it| matches!(it.field, Field::Selectable(_)))
    }

    /// Everything in its namespace: no selector leaves objects out.
    pub fn is_everything(&self) -> bool {
        self.key.is_none() && self.labels.is_empty() && self.fields.is_empty()
    }

    pub fn scope(&self) -> Scope {
        if let Some(key) = &self.key {
            return Scope::Object(key.clone());
        }
        let exact = self.fields.iter().find_map(|it| match it.field {
            Field::Selectable(at) => Some(Scope::Field(at, it.is.clone()?)),
            _ => None,
        });
        match exact {
            Some(scope) => scope,
            None if self.namespace.is_empty() => Scope::All,
            None => Scope::Namespace(self.namespace.clone()),
        }
    }
}

impl Scope {
    pub fn holds(&self, object: &Stored) -> bool {
        match self {
            Self::All => true,
            Self::Namespace(namespace) => object.namespace() == namespace,
            Self::Object(key) => *object.key == **key,
            Self::Field(at, value) => object.record.fields[*at] == *value,
        }
    }

    /// Every scope but `All` that holds `object`.
    pub fn of(object: &Stored) -> impl Iterator<Item = Self> + '_ {
        let fields = object.record.fields.iter().enumerate().map(|(at, value)| Self::Field(at, value.clone()));
        let namespace = Self::Namespace(object.namespace().to_owned());
        [namespace, Self::Object(object.key.to_string())].into_iter().chain(fields)
    }
}

fn field_of(kind: &Kind, recorded: &Names, path: &str) -> Result<Field, Status> {
    match path {
        "metadata.name" => Ok(Field::Name),
        "metadata.namespace" if kind.resource.namespaced => Ok(Field::Namespace),
        // A view of a built-in kind names its fields in the order of those that are recorded.
        _ => match kind.selectable_fields.iter().position(|it| it == path) {
            Some(at) if kind.is_custom() => {
                Ok(Field::Selectable(recorded.iter().position(|it| it == path).unwrap_or(at)))
            }
            Some(at) => Ok(Field::Selectable(at)),
            None => Err(Status::bad_request(format!("field label not supported: {path}"))),
        },
    }
}

fn value_of(field: Field, object: &Stored) -> &str {
    match field {
        Field::Name => object.name(),
        Field::Namespace => object.namespace(),
        Field::Selectable(at) => &object.record.fields[at],
    }
}
