//! The functions there are: a table of overloads for each library, by name.
//!
//! A row is the overload's name upstream, its signature, and what does it. `.name(T, …)` is called on a `T`.

pub(crate) mod authorizer;
mod cidr;
mod convert;
mod format;
mod ip;
mod k8s_lists;
mod lists;
mod operators;
mod optional;
mod quantity;
pub(crate) mod regex;
mod semver;
mod sets;
mod strings;
mod text_format;
pub(crate) mod time;
mod url;

use std::{collections::BTreeMap, sync::LazyLock};

use crate::{error::Error, typing::Type, value::Value};

pub(crate) use cidr::Cidr;
pub(crate) use convert::text_of;
pub(crate) use format::Format;
pub(crate) use lists::insert_into;
pub(crate) use operators::{compare, field, found};
pub(crate) use semver::Semver;
pub(crate) use url::Url;

/// A regular expression in Go's syntax, which schemas use, too.
///
/// # Errors
/// What is wrong with it, as Go says it.
pub fn pattern(text: &str) -> Result<::regex::Regex, String> {
    regex::compiled(text)
}

/// Is the text an absolute URI, or a path that begins with a slash (Go's url.ParseRequestURI)?
pub fn is_uri(text: &str) -> bool {
    url::checked(text).is_ok()
}

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
const MUTATION: Library = ("mutation", 32, crate::mutation::ROWS);

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

/// The type that a name in an expression names.
pub(crate) fn type_named(name: &str) -> Option<Type> {
    Some(match name {
        "bool" => Type::Bool,
        "bytes" => Type::Bytes,
        "double" => Type::Double,
        "int" => Type::Int,
        "list" => Type::list(Type::Dyn),
        "map" => Type::map(Type::Dyn, Type::Dyn),
        "null_type" => Type::Null,
        "string" => Type::String,
        "type" => Type::Opaque("type"),
        "uint" => Type::Uint,
        "optional_type" => Type::optional(Type::Dyn),
        "google.protobuf.Duration" => Type::Duration,
        "google.protobuf.Timestamp" => Type::Timestamp,
        _ => Type::Opaque(OPAQUE.iter().find(|it| **it == name)?),
    })
}

/// What only functions look into.
const OPAQUE: [&str; 11] = [
    "kubernetes.Quantity",
    "kubernetes.URL",
    "kubernetes.NamedFormat",
    "kubernetes.Semver",
    "net.IP",
    "net.CIDR",
    "kubernetes.authorization.Authorizer",
    "kubernetes.authorization.PathCheck",
    "kubernetes.authorization.GroupCheck",
    "kubernetes.authorization.ResourceCheck",
    "kubernetes.authorization.Decision",
];

struct Signature {
    name: &'static str,
    is_member: bool,
    args: Vec<Type>,
    result: Type,
    n_params: u8,
}

impl Signature {
    /// The tables are constants, and a test reads all of them.
    fn read(text: &'static str) -> Self {
        let (call, result) = text.split_once(" -> ").expect("a signature says what it gives");
        let (name, args) = call.split_once('(').expect("a signature lists arguments");
        let args = args.strip_suffix(')').expect("the list of arguments ends");
        let mut params = Vec::new();
        let args =
            if args.is_empty() { Vec::new() } else { split(args).map(|it| read_type(it, &mut params)).collect() };
        let result = read_type(result, &mut params);
        let (name, is_member) = name.strip_prefix('.').map_or((name, false), |it| (it, true));
        Self { name, is_member, args, result, n_params: u8::try_from(params.len()).unwrap_or(u8::MAX) }
    }
}

/// At commas that are in no brackets.
fn split(text: &'static str) -> impl Iterator<Item = &'static str> {
    let mut depth = 0;
    text.split(move |it| {
        match it {
            '(' => depth += 1,
            ')' => depth -= 1,
            _ => {}
        }
        it == ',' && depth == 0
    })
    .map(str::trim)
}

pub(crate) fn read_type(text: &'static str, params: &mut Vec<&'static str>) -> Type {
    if let Some((outer, inner)) = text.strip_suffix(')').and_then(|it| it.split_once('(')) {
        let mut inner: Vec<Type> = split(inner).map(|it| read_type(it, params)).collect();
        let last = inner.pop().expect("something is in the brackets");
        return match outer {
            "list" => Type::list(last),
            "optional" => Type::optional(last),
            "type" => Type::of_type(last),
            "map" => Type::map(inner.pop().expect("a map has keys"), last),
            _ => Type::Error,
        };
    }
    if text.len() == 1 {
        let number = params.iter().position(|it| *it == text).unwrap_or_else(|| {
            params.push(text);
            params.len() - 1
        });
        return Type::Param(u8::try_from(number).unwrap_or(u8::MAX));
    }
    match text {
        "dyn" => Type::Dyn,
        "duration" => Type::Duration,
        "timestamp" => Type::Timestamp,
        "null" => Type::Null,
        "Quantity" => Type::Opaque(OPAQUE[0]),
        "URL" => Type::Opaque(OPAQUE[1]),
        "Format" => Type::Opaque(OPAQUE[2]),
        "Semver" => Type::Opaque(OPAQUE[3]),
        "IP" => Type::Opaque(OPAQUE[4]),
        "CIDR" => Type::Opaque(OPAQUE[5]),
        "Authorizer" => Type::Opaque(OPAQUE[6]),
        "PathCheck" => Type::Opaque(OPAQUE[7]),
        "GroupCheck" => Type::Opaque(OPAQUE[8]),
        "ResourceCheck" => Type::Opaque(OPAQUE[9]),
        "Decision" => Type::Opaque(OPAQUE[10]),
        name => type_named(name).unwrap_or(Type::Error),
    }
}

pub(crate) fn no_overload<'a>(_: &[Value<'a>]) -> Evaluated<'a> {
    Err(Error::no_such_overload())
}
