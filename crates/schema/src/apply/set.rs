//! A set of paths into an object, as a tree. Fields are borrowed from the object or the text the set was read from.

use std::{borrow::Cow, cmp::Ordering, fmt};

use serde::de::{Deserialize, Deserializer, Error, MapAccess, Visitor};

use super::{
    element::{Element, Text, form_below},
    form::Form,
};

/// Sorted by element; no node is empty.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Set<'a>(pub(super) Vec<Node<'a>>);

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Node<'a> {
    pub(super) element: Element<'a>,
    /// Is this very path in the set, and not only paths below it?
    pub(super) member: bool,
    pub(super) below: Set<'a>,
}

impl<'a> Set<'a> {
    /// The set of these paths, each a list of field names: `["metadata", "name"]`.
    pub fn of_fields(paths: &[&[&'a str]]) -> Self {
        let mut set = Self::default();
        for path in paths {
            let mut at = &mut set;
            for (depth, name) in path.iter().enumerate() {
                let node = at.node(Element::field(name));
                node.member |= depth + 1 == path.len();
                at = &mut node.below;
            }
        }
        set
    }

    /// The node of an element, made where there is none.
    fn node(&mut self, element: Element<'a>) -> &mut Node<'a> {
        let at = match self.0.binary_search_by(|it| it.element.cmp(&element)) {
            Ok(at) => at,
            Err(at) => {
                self.0.insert(at, Node { element, member: false, below: Set::default() });
                at
            }
        };
        &mut self.0[at]
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn get(&self, element: &Element<'_>) -> Option<&Node<'a>> {
        self.0.binary_search_by(|it| it.element.cmp(element)).ok().map(|at| &self.0[at])
    }

    /// Adds a node, in any order; [`Self::sort`] comes after the last.
    pub(super) fn push(&mut self, element: Element<'a>, member: bool, below: Self) {
        if member || !below.is_empty() {
            self.0.push(Node { element, member, below });
        }
    }

    pub(super) fn sort(&mut self) {
        if !self.0.is_sorted_by(|a, b| a.element < b.element) {
            self.0.sort_by(|a, b| a.element.cmp(&b.element));
        }
    }

    /// Is this path, given by field names, in the set?
    pub fn has(&self, path: &[&str]) -> bool {
        let Some((first, rest)) = path.split_first() else { return false };
        match self.get(&Element::field(first)) {
            Some(node) if rest.is_empty() => node.member,
            Some(node) => node.below.has(rest),
            None => false,
        }
    }

    pub fn union(self, other: Self) -> Self {
        if self.is_empty() {
            return other;
        }
        if other.is_empty() {
            return self;
        }
        let mut united = Vec::with_capacity(self.0.len().max(other.0.len()));
        let (mut left, mut right) = (self.0.into_iter().peekable(), other.0.into_iter().peekable());
        loop {
            let order = match (left.peek(), right.peek()) {
                (Some(a), Some(b)) => a.element.cmp(&b.element),
                (Some(_), None) => Ordering::Less,
                (None, Some(_)) => Ordering::Greater,
                (None, None) => return Self(united),
            };
            match order {
                Ordering::Less => united.extend(left.next()),
                Ordering::Greater => united.extend(right.next()),
                Ordering::Equal => {
                    if let (Some(mut a), Some(b)) = (left.next(), right.next()) {
                        a.member |= b.member;
                        a.below = a.below.union(b.below);
                        united.push(a);
                    }
                }
            }
        }
    }

    /// The union of many, two by two: each path is handed on as often as the number of sets can be halved, and not once for
    /// each set that comes after its own.
    pub(super) fn union_all(mut sets: Vec<Self>) -> Self {
        while sets.len() > 1 {
            let mut halved = Vec::with_capacity(sets.len().div_ceil(2));
            let mut sets_left = sets.into_iter();
            while let Some(one) = sets_left.next() {
                halved.push(match sets_left.next() {
                    Some(other) => one.union(other),
                    None => one,
                });
            }
            sets = halved;
        }
        sets.pop().unwrap_or_default()
    }

    /// Without the paths of `other`; paths below them stay.
    pub fn difference(self, other: &Set<'_>) -> Self {
        self.less(other, false)
    }

    /// Without the paths of `other` and all below them.
    pub fn without(self, other: &Set<'_>) -> Self {
        self.less(other, true)
    }

    fn less(self, other: &Set<'_>, with_all_below: bool) -> Self {
        if other.is_empty() {
            return self;
        }
        let kept = self.0.into_iter().filter_map(|mut node| {
            if let Some(gone) = other.get(&node.element) {
                if gone.member && with_all_below {
                    return None;
                }
                node.member &= !gone.member;
                node.below = node.below.less(&gone.below, with_all_below);
            }
            (node.member || !node.below.is_empty()).then_some(node)
        });
        Self(kept.collect())
    }

    pub fn intersection(&self, other: &Set<'_>) -> Self {
        let mut both = Self::default();
        // What is in both is looked for from the smaller one: of thousands of small sets each is compared with a large one.
        if self.0.len() <= other.0.len() {
            for a in &self.0 {
                if let Some(b) = other.get(&a.element) {
                    both.push(a.element.clone(), a.member && b.member, a.below.intersection(&b.below));
                }
            }
        } else {
            for b in &other.0 {
                if let Some(a) = self.get(&b.element) {
                    both.push(a.element.clone(), a.member && b.member, a.below.intersection(&b.below));
                }
            }
        }
        both
    }

    /// Are all paths of `other` in this set?
    pub fn contains(&self, other: &Set<'_>) -> bool {
        other.0.iter().all(|wanted| {
            self.get(&wanted.element)
                .is_some_and(|node| (node.member || !wanted.member) && node.below.contains(&wanted.below))
        })
    }

    /// With every field of a struct that has something below it in the set.
    pub(super) fn with_named_fields(mut self, form: Form<'_>) -> Self {
        for node in &mut self.0 {
            let inside = form_below(form, &node.element);
            if let (Form::Struct(of), Element::Field(name)) = (form, &node.element) {
                node.member |= of.field(name).is_some();
            }
            node.below = std::mem::take(&mut node.below).with_named_fields(inside);
        }
        self
    }

    /// The paths as messages write them, in order: `.spec.containers[name="web"].image`.
    pub fn paths(&self) -> Vec<String> {
        let mut out = Vec::new();
        self.each_path(&mut |path| out.push(path.to_owned()));
        out
    }

    pub(super) fn each_path(&self, each: &mut dyn FnMut(&str)) {
        fn walk(set: &Set<'_>, path: &mut String, each: &mut dyn FnMut(&str)) {
            for node in &set.0 {
                let length = path.len();
                path.push_str(&node.element.to_string());
                if node.member {
                    each(path);
                }
                walk(&node.below, path, each);
                path.truncate(length);
            }
        }
        walk(self, &mut String::new(), each);
    }

    /// Reads the JSON of a `fieldsV1`.
    ///
    /// # Errors
    /// Where it is no such JSON.
    pub fn read(json: &'a str) -> Result<Self, serde_json::Error> {
        serde_json::from_str::<Body<'a>>(json).map(|it| it.below)
    }

    /// Writes the JSON of a `fieldsV1`.
    pub fn write(&self, out: &mut String) {
        out.push('{');
        self.write_nodes(out, true);
        out.push('}');
    }

    fn write_nodes(&self, out: &mut String, mut first: bool) {
        for node in &self.0 {
            if !std::mem::take(&mut first) {
                out.push(',');
            }
            node.element.write(out);
            out.push_str(":{");
            if node.member && !node.below.is_empty() {
                out.push_str("\".\":{}");
            }
            node.below.write_nodes(out, !node.member);
            out.push('}');
        }
    }

    pub fn to_json(&self) -> String {
        let mut out = String::new();
        self.write(&mut out);
        out
    }
}

/// What stands behind an element: `{}` and `{".":{}}` say that the path itself is in the set.
struct Body<'a> {
    member: bool,
    below: Set<'a>,
}

impl<'de> Deserialize<'de> for Body<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(Read)
    }
}

struct Read;

impl<'de> Visitor<'de> for Read {
    type Value = Body<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a set of fields")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut body = Body { member: false, below: Set::default() };
        let mut is_leaf = true;
        while let Some(Text(key)) = map.next_key::<Text<'de>>()? {
            is_leaf = false;
            let inside: Body<'de> = map.next_value()?;
            if key == "." {
                body.member = true;
            } else if let Some(element) = Element::read(key).map_err(A::Error::custom)? {
                body.below.push(element, inside.member, inside.below);
            }
        }
        body.member |= is_leaf;
        body.below.sort();
        body.below.unite_alike();
        Ok(body)
    }
}

impl Set<'_> {
    /// A client may have written an element twice, in one spelling or in many.
    fn unite_alike(&mut self) {
        if self.0.is_sorted_by(|a, b| a.element < b.element) {
            return;
        }
        let mut united: Vec<Node<'_>> = Vec::with_capacity(self.0.len());
        let mut nodes = std::mem::take(&mut self.0).into_iter().peekable();
        while let Some(mut node) = nodes.next() {
            let mut below = vec![std::mem::take(&mut node.below)];
            while let Some(again) = nodes.next_if(|it| it.element == node.element) {
                node.member |= again.member;
                below.push(again.below);
            }
            node.below = Set::union_all(below);
            united.push(node);
        }
        self.0 = united;
    }
}

impl Node<'_> {
    /// The same set, with all text its own.
    pub(super) fn into_owned(self) -> Node<'static> {
        let element = match self.element {
            Element::Field(name) => Element::Field(Cow::Owned(name.into_owned())),
            Element::Key(keys) => Element::Key(
                keys.into_iter().map(|(name, it)| (Cow::Owned(name.into_owned()), it.into_owned())).collect(),
            ),
            Element::Value(value) => Element::Value(value.into_owned()),
            Element::Index(at) => Element::Index(at),
        };
        Node { element, member: self.member, below: self.below.into_owned() }
    }
}

impl Set<'_> {
    pub fn into_owned(self) -> Set<'static> {
        Set(self.0.into_iter().map(Node::into_owned).collect())
    }
}
