//! What a function is: its name, and the ways to call it.

use crate::{declared::Type, error::Error, value::Value};

pub(crate) type Evaluated<'a> = Result<Value<'a>, Box<Error>>;
pub(crate) type Run = for<'a> fn(&[Value<'a>]) -> Evaluated<'a>;

/// A function, by its name.
#[derive(Debug)]
pub struct Function {
    pub name: &'static str,
    pub overloads: Vec<Overload>,
}

/// One way to call a function.
#[derive(Debug)]
pub struct Overload {
    pub id: &'static str,
    /// As the table writes it.
    pub signature: &'static str,
    /// The library it belongs to.
    pub library: &'static str,
    /// The minor version of Kubernetes since which expressions may use it.
    pub since: u16,
    pub(crate) is_of_mutation: bool,
    pub(crate) is_member: bool,
    pub(crate) args: Vec<Type>,
    pub(crate) result: Type,
    pub(crate) n_params: u8,
    pub(crate) run: Run,
}

/// `(overload, signature, what does it)`.
pub(crate) type Row = (&'static str, &'static str, Run);

pub(crate) fn no_overload<'a>(_: &[Value<'a>]) -> Evaluated<'a> {
    Err(Error::no_such_overload())
}
