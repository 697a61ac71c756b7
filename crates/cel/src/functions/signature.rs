//! A signature as the tables write it: `.name(T, …) -> U`.

use crate::declared::Type;

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

pub(super) struct Signature {
    pub(super) name: &'static str,
    pub(super) is_member: bool,
    pub(super) args: Vec<Type>,
    pub(super) result: Type,
    pub(super) n_params: u8,
}

impl Signature {
    /// The tables are constants, and a test reads all of them.
    pub(super) fn read(text: &'static str) -> Self {
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
