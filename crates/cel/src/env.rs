//! What an expression may name: variables with their types, functions by the version that knows them, macros.

use std::{collections::BTreeMap, sync::Arc};

use crate::{
    declared::{DeclType, Type},
    functions::{self, Function, Overload},
    mutation,
    syntax::Macros,
};

/// The minor version whose functions a new expression may use: the oldest server that may have to read it.
pub const NEW_EXPRESSIONS: u16 = 36;
/// The minor version whose functions a stored expression may use: all that there are.
pub const STORED_EXPRESSIONS: u16 = 37;

/// A set of declarations. It is made once for a kind of expression, and expressions are compiled in it.
#[derive(Clone, Debug)]
pub struct Env {
    minor: u16,
    variables: BTreeMap<Arc<str>, DeclType>,
    has_bind: bool,
    has_mutation: bool,
    mixes: bool,
    sizes_entries: bool,
    reads_patterns: bool,
}

impl Env {
    /// An environment with the functions of this minor version of Kubernetes 1, and no variables.
    pub const fn new(minor: u16) -> Self {
        Self {
            minor,
            variables: BTreeMap::new(),
            has_bind: false,
            has_mutation: false,
            mixes: false,
            sizes_entries: false,
            reads_patterns: true,
        }
    }

    /// Declares a variable.
    #[must_use]
    pub fn variable(mut self, name: &str, of: DeclType) -> Self {
        self.variables.insert(name.into(), of);
        self
    }

    /// Enables `cel.bind`, which Kubernetes has for devices alone.
    #[must_use]
    pub fn with_bind(mut self) -> Self {
        self.has_bind = true;
        self
    }

    /// Estimates with the declared size of a map's values where one is selected by its name, which Kubernetes does for the
    /// attributes of devices alone.
    #[must_use]
    pub(crate) fn with_sized_entries(mut self) -> Self {
        self.sizes_entries = true;
        self
    }

    /// Enables `Object{…}` and `JSONPatch{…}`, which mutating policies make.
    #[must_use]
    pub fn with_mutation(mut self) -> Self {
        self.has_mutation = true;
        self
    }

    /// Lets lists and maps that are written out mix types, as the language does and Kubernetes does not.
    #[must_use]
    pub fn with_mixed_literals(mut self) -> Self {
        self.mixes = true;
        self
    }

    pub(crate) fn macros(&self) -> Macros {
        Macros { bind: self.has_bind, two_variables: self.minor >= 32, sort_by: self.minor >= 34 }
    }

    /// Takes patterns as they stand, as whoever reads what is stored does: each is compiled when it is first asked, and one that is
    /// wrong, or too large, fails then.
    #[must_use]
    pub fn with_patterns_unread(mut self) -> Self {
        self.reads_patterns = false;
        self
    }

    pub(crate) fn reads_patterns(&self) -> bool {
        self.reads_patterns
    }

    pub(crate) fn sizes_entries(&self) -> bool {
        self.sizes_entries
    }

    pub(crate) fn mixes(&self) -> bool {
        self.mixes
    }

    pub(crate) fn declared(&self, name: &str) -> Option<&DeclType> {
        self.variables.get(name)
    }

    /// The type of a global name: a variable, or the name of a type.
    pub(crate) fn ident(&self, name: &str) -> Option<Type> {
        if let Some(of) = self.variables.get(name) {
            return Some(of.cel_type());
        }
        functions::type_named(name).map(Type::of_type)
    }

    pub(crate) fn function(&self, name: &str) -> Option<&'static Function> {
        let found = functions::named(name)?;
        found.overloads.iter().any(|it| self.has(it)).then_some(found)
    }

    pub(crate) fn has(&self, overload: &Overload) -> bool {
        overload.since <= self.minor && (self.has_mutation || !overload.is_of_mutation)
    }

    /// A type that an expression can make a value of.
    pub(crate) fn structure(&self, name: &str) -> Option<Type> {
        if self.has_mutation { mutation::structure(name) } else { None }
    }
}
