//! The tree of an expression. Every node has a number, under which its place and its type are found.

use std::sync::Arc;

/// The number of a node.
pub(crate) type Id = u32;

/// The accumulator of a fold that a macro makes. No expression can name it.
pub(crate) const ACCUMULATOR: &str = "@result";
/// The variable of a fold over nothing, which only binds a name.
pub(crate) const UNUSED: &str = "#unused";

#[derive(Clone, Debug)]
pub(crate) struct Expr {
    pub(crate) id: Id,
    /// How many levels are below this node, and this one.
    pub(crate) depth: u16,
    pub(crate) kind: Kind,
}

#[derive(Clone, Debug)]
pub(crate) enum Kind {
    Literal(Literal),
    Ident(Arc<str>),
    Select(Box<Select>),
    Call(Box<Call>),
    List(List),
    Map(Vec<Entry>),
    Struct(Box<Struct>),
    Fold(Box<Fold>),
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Literal {
    Null,
    Bool(bool),
    Int(i64),
    Uint(u64),
    Double(f64),
    String(Arc<str>),
    Bytes(Arc<[u8]>),
}

#[derive(Clone, Debug)]
pub(crate) struct Select {
    pub(crate) operand: Expr,
    pub(crate) field: Arc<str>,
    /// `has(a.b)`: is it there?
    pub(crate) is_test: bool,
}

#[derive(Clone, Debug)]
pub(crate) struct Call {
    pub(crate) function: Arc<str>,
    pub(crate) target: Option<Expr>,
    pub(crate) args: Vec<Expr>,
}

#[derive(Clone, Debug)]
pub(crate) struct List {
    pub(crate) elements: Vec<Expr>,
    /// Which elements are written with `?`.
    pub(crate) optional: Vec<usize>,
}

#[derive(Clone, Debug)]
pub(crate) struct Entry {
    pub(crate) key: Expr,
    pub(crate) value: Expr,
    pub(crate) is_optional: bool,
}

#[derive(Clone, Debug)]
pub(crate) struct Struct {
    pub(crate) name: Arc<str>,
    pub(crate) fields: Vec<StructField>,
}

#[derive(Clone, Debug)]
pub(crate) struct StructField {
    pub(crate) id: Id,
    pub(crate) name: Arc<str>,
    pub(crate) value: Expr,
    pub(crate) is_optional: bool,
}

/// `for variable in range { if !condition { break } accumulator = step }; result`.
#[derive(Clone, Debug)]
pub(crate) struct Fold {
    pub(crate) range: Expr,
    pub(crate) variable: Arc<str>,
    pub(crate) variable2: Option<Arc<str>>,
    pub(crate) accumulator: Arc<str>,
    pub(crate) init: Expr,
    pub(crate) condition: Expr,
    pub(crate) step: Expr,
    pub(crate) result: Expr,
}

impl Fold {
    /// Does it only give a value a name, as `cel.bind` does?
    pub(crate) fn is_bind(&self) -> bool {
        let is_empty = matches!(&self.range.kind, Kind::List(it) if it.elements.is_empty());
        let is_never = matches!(self.condition.kind, Kind::Literal(Literal::Bool(false)));
        is_empty && is_never && *self.accumulator != *ACCUMULATOR
    }
}

impl Expr {
    /// `a.b.c`, if it is nothing but names.
    pub(crate) fn qualified(&self) -> Option<String> {
        match &self.kind {
            Kind::Ident(name) => Some((**name).to_owned()),
            Kind::Select(select) if !select.is_test => {
                let mut name = select.operand.qualified()?;
                name.push('.');
                name.push_str(&select.field);
                Some(name)
            }
            _ => None,
        }
    }

    /// The name that a qualified name begins with.
    pub(crate) fn root(&self) -> Option<&str> {
        match &self.kind {
            Kind::Ident(name) => Some(name),
            Kind::Select(select) if !select.is_test => select.operand.root(),
            _ => None,
        }
    }
}
