//! The functions there are: a table of overloads for each library, by name.
//!
//! A row is the overload's name upstream, its signature, and what does it. `.name(T, …)` is called on a `T`.

mod authorizer;
mod cidr;
mod convert;
mod format;
mod ip;
mod k8s_lists;
mod lists;
mod mutation;
mod operators;
mod optional;
mod overload;
mod quantity;
pub(crate) mod regex;
mod semver;
mod sets;
mod signature;
mod strings;
mod text_format;
mod time;
mod url;

use std::{collections::BTreeMap, sync::LazyLock};

use signature::Signature;

pub(crate) use lists::insert_into;
pub(crate) use operators::{field, found};
pub(crate) use overload::{Evaluated, Row, Run, no_overload};
pub use overload::{Function, Overload};
#[cfg(test)]
pub(crate) use signature::read_type;
pub(crate) use signature::type_named;

/// What one function makes may have so many bytes: it stops a text that doubles itself before its cost is counted.
const MADE_BYTES_MAX: usize = 16 << 20;
/// What an item of a list takes, beside its text.
const ITEM_BYTES: usize = 64;

/// Is the text an absolute URI, or a path that begins with a slash (Go's url.ParseRequestURI)?
pub fn is_uri(text: &str) -> bool {
    crate::opaque::url::checked(text).is_ok()
}

/// Rows of one library: its name, since which minor version, the rows.
type Library = (&'static str, u16, &'static [Row]);

/// The libraries Kubernetes has, in the order in which it got them.
const LIBRARIES: [Library; 19] = [
    ("standard", 0, operators::ROWS),
    ("standard", 0, convert::ROWS),
    ("standard", 0, time::ROWS),
    ("standard", 0, regex::STANDARD_ROWS),
    ("strings", 0, strings::ROWS),
    ("strings", 29, text_format::ROWS),
    ("url", 0, url::ROWS),
    ("regex", 0, regex::ROWS),
    ("lists", 0, k8s_lists::ROWS),
    ("authorizer", 27, authorizer::ROWS),
    ("optional", 28, optional::ROWS),
    ("quantity", 28, quantity::ROWS),
    ("sets", 29, sets::ROWS),
    ("ip", 30, ip::ROWS),
    ("cidr", 30, cidr::ROWS),
    ("format", 31, format::ROWS),
    ("authorizer", 31, authorizer::SELECTOR_ROWS),
    ("semver", 33, semver::ROWS),
    ("lists", 34, lists::ROWS),
];
/// What macros with two variables are made of.
const TWO_VARIABLES: Library = ("two variables", 32, lists::MAP_ROWS);
const MUTATION: Library = ("mutation", 32, mutation::ROWS);

static TABLE: LazyLock<BTreeMap<&'static str, Function>> = LazyLock::new(|| {
    let mut table = BTreeMap::new();
    for (library, since, rows) in LIBRARIES.iter().chain([&TWO_VARIABLES, &MUTATION]) {
        for (id, signature, run) in *rows {
            let parsed = Signature::read(signature);
            let function =
                table.entry(parsed.name).or_insert_with(|| Function { name: parsed.name, overloads: Vec::new() });
            function.overloads.push(Overload {
                id,
                signature,
                library,
                since: *since,
                is_of_mutation: *library == "mutation",
                is_member: parsed.is_member,
                args: parsed.args,
                result: parsed.result,
                n_params: parsed.n_params,
                run: *run,
            });
        }
    }
    table
});

/// The function of this name.
pub fn named(name: &str) -> Option<&'static Function> {
    TABLE.get(name)
}

/// All functions, by name.
pub fn table() -> impl Iterator<Item = &'static Function> {
    TABLE.values()
}
