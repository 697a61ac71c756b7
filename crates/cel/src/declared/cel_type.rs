//! What an expression may be, as the checker sees it.

use std::{fmt, sync::Arc};

use super::ObjectDecl;

/// What an expression may be.
#[derive(Clone, Debug)]
pub enum Type {
    /// Known when it runs.
    Dyn,
    /// What is wrong already: it fits everything, so that one mistake is one complaint.
    Error,
    Null,
    Bool,
    Int,
    Uint,
    Double,
    String,
    Bytes,
    Duration,
    Timestamp,
    List(Arc<Type>),
    Map(Arc<(Type, Type)>),
    /// `?T`.
    Optional(Arc<Type>),
    /// The type of a type.
    Type(Arc<Type>),
    /// An object whose fields a schema declares.
    Object(Arc<ObjectDecl>),
    /// An object whose fields nothing declares, by its name: each of them is dyn.
    Open(Arc<str>),
    /// What only functions look into: a quantity, an address.
    Opaque(&'static str),
    /// `T` of a declared function.
    Param(u8),
    /// What a `T` becomes at one call.
    Var(u32),
}

impl Type {
    pub fn list(of: Self) -> Self {
        Self::List(Arc::new(of))
    }

    pub fn map(key: Self, value: Self) -> Self {
        Self::Map(Arc::new((key, value)))
    }

    pub fn optional(of: Self) -> Self {
        Self::Optional(Arc::new(of))
    }

    pub(crate) fn of_type(of: Self) -> Self {
        Self::Type(Arc::new(of))
    }

    pub(crate) fn is_dyn_or_error(&self) -> bool {
        matches!(self, Self::Dyn | Self::Error)
    }

    /// Of one size, whatever its value is.
    pub(crate) fn is_scalar(&self) -> bool {
        match self {
            Self::Bool | Self::Double | Self::Duration | Self::Int | Self::Timestamp | Self::Uint => true,
            Self::Optional(of) => of.is_scalar(),
            _ => false,
        }
    }

    /// The same, all through.
    pub(crate) fn is_exactly(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::List(a), Self::List(b)) | (Self::Optional(a), Self::Optional(b)) => a.is_exactly(b),
            (Self::Type(a), Self::Type(b)) => a.is_exactly(b),
            (Self::Map(a), Self::Map(b)) => a.0.is_exactly(&b.0) && a.1.is_exactly(&b.1),
            (Self::Object(a), Self::Object(b)) => a.name == b.name,
            (Self::Open(a), Self::Open(b)) => a == b,
            (Self::Opaque(a), Self::Opaque(b)) => a == b,
            (Self::Param(a), Self::Param(b)) => a == b,
            (Self::Var(a), Self::Var(b)) => a == b,
            _ => std::mem::discriminant(self) == std::mem::discriminant(other),
        }
    }

    /// What a value of this type says of `type(value)`.
    pub(crate) fn value_name(&self) -> &str {
        match self {
            Self::Dyn | Self::Param(_) | Self::Var(_) => "dyn",
            Self::Error => "error",
            Self::Null => "null_type",
            Self::Bool => "bool",
            Self::Int => "int",
            Self::Uint => "uint",
            Self::Double => "double",
            Self::String => "string",
            Self::Bytes => "bytes",
            Self::Duration => "google.protobuf.Duration",
            Self::Timestamp => "google.protobuf.Timestamp",
            Self::List(_) => "list",
            Self::Map(_) => "map",
            Self::Optional(_) => "optional_type",
            Self::Type(_) => "type",
            Self::Object(object) => &object.name,
            Self::Open(name) => name,
            Self::Opaque(name) => name,
        }
    }
}

/// As cel-go's complaints write it.
impl fmt::Display for Type {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Null => f.write_str("null"),
            Self::Error => f.write_str("!error!"),
            Self::Duration => f.write_str("duration"),
            Self::Timestamp => f.write_str("timestamp"),
            Self::List(of) => write!(f, "list({of})"),
            Self::Map(of) => write!(f, "map({}, {})", of.0, of.1),
            Self::Optional(of) => write!(f, "optional_type({of})"),
            Self::Type(of) => write!(f, "type({of})"),
            Self::Var(number) => write!(f, "_var{number}"),
            Self::Param(number) => write!(f, "{}", char::from(b'A' + number)),
            other => f.write_str(other.value_name()),
        }
    }
}
