//! What server-side apply asks of a type, whoever describes it: the constant table, or the schema of a custom resource
//! (kube-openapi's `pkg/schemaconv`, which makes one form of both).

use corten_cel::ListKind;

use crate::{
    Apply, Default, Field, Shape, Type, find,
    structural::{Structural, Values},
};

/// The type of an object or a struct within one.
#[derive(Clone, Copy, Debug)]
pub enum Struct<'t> {
    Table(&'static Type),
    /// A whole object or, with `is_embedded` false, a part of one.
    Custom {
        of: &'t Structural,
        is_embedded: bool,
    },
}

/// The type of any value.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Described<'t> {
    Table(Shape),
    Custom(&'t Structural),
    /// Nobody says: maps go field by field, all else is one value (structured-merge-diff's `__untyped_deduced_`).
    Deduced,
}

/// One field of a struct.
#[derive(Clone, Copy)]
pub enum FieldType<'t> {
    Table(&'static Field),
    Custom(&'t Structural),
    /// `apiVersion` and `kind`.
    Text,
    /// `metadata`.
    ObjectMeta(&'static Type),
}

/// The fields that tell the elements of a list apart.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Keys<'t> {
    Table(&'static [&'static str]),
    Custom(&'t [String]),
}

impl From<&'static Type> for Struct<'_> {
    fn from(of: &'static Type) -> Self {
        Self::Table(of)
    }
}

impl Struct<'_> {
    /// May objects have been written while the type was another? A definition is changed, the table is not.
    pub(crate) fn may_have_changed(self) -> bool {
        matches!(self, Self::Custom { .. })
    }
}

impl<'t> From<&'t Structural> for Struct<'t> {
    fn from(of: &'t Structural) -> Self {
        Self::Custom { of, is_embedded: true }
    }
}

impl<'t> Struct<'t> {
    pub fn field(self, name: &str) -> Option<FieldType<'t>> {
        match self {
            Self::Table(of) => of.field(name).map(FieldType::Table),
            Self::Custom { is_embedded: true, .. } if matches!(name, "apiVersion" | "kind") => Some(FieldType::Text),
            Self::Custom { is_embedded: true, .. } if name == "metadata" => {
                let of = find("io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta").expect("it is a row of the table");
                Some(FieldType::ObjectMeta(of))
            }
            Self::Custom { of, .. } => of.properties().get(name).map(|it| FieldType::Custom(it)),
        }
    }

    /// The names of all fields.
    pub fn names(self) -> Vec<&'t str> {
        match self {
            Self::Table(of) => of.fields.iter().map(|it| it.name).collect(),
            Self::Custom { of, is_embedded } => {
                let own = of.properties().keys().map(String::as_str);
                let of_all = if is_embedded { &["apiVersion", "kind", "metadata"][..] } else { &[] };
                of_all.iter().copied().chain(own.filter(|it| !of_all.contains(it))).collect()
            }
        }
    }

    /// What a field without a description may be: `None` where there may be none.
    pub(crate) fn unknown(self) -> Option<Described<'t>> {
        match self {
            Self::Custom { of, .. } if of.preserves_unknown() => Some(Described::Deduced),
            Self::Custom { .. } | Self::Table(_) => None,
        }
    }
}

impl<'t> FieldType<'t> {
    pub(crate) fn described(self) -> Described<'t> {
        match self {
            Self::Table(of) => Described::Table(of.shape),
            Self::Custom(of) => Described::Custom(of),
            Self::Text => Described::Table(Shape::String),
            Self::ObjectMeta(of) => Described::Table(Shape::Object(of)),
        }
    }

    pub(crate) fn apply(self) -> Apply {
        match self {
            Self::Table(of) => of.merge.apply,
            Self::Custom(_) | Self::Text | Self::ObjectMeta(_) => Apply::Deep,
        }
    }

    /// In Go, what is no pointer is always there; custom resources have no such fields.
    pub(crate) fn default(self) -> Default {
        match self {
            Self::Table(of) => of.default,
            Self::Custom(_) | Self::Text | Self::ObjectMeta(_) => Default::None,
        }
    }

    pub(crate) fn is_required(self) -> bool {
        matches!(self, Self::Table(of) if of.required)
    }
}

/// What a value of a described type is made of.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Made<'t> {
    Any,
    Scalar(Shape),
    /// Any scalar: text, a number or a truth value.
    AnyScalar,
    Struct(Struct<'t>),
    Map(Described<'t>),
    List(Described<'t>),
}

impl<'t> Described<'t> {
    pub(crate) fn made(self) -> Made<'t> {
        match self {
            Self::Deduced => Made::Any,
            Self::Table(Shape::Any) => Made::Any,
            Self::Table(Shape::Object(of)) => Made::Struct(Struct::Table(of)),
            Self::Table(Shape::Map(of)) => Made::Map(Self::Table(*of)),
            Self::Table(Shape::List(of)) => Made::List(Self::Table(*of)),
            Self::Table(scalar) => Made::Scalar(scalar),
            Self::Custom(of) => match of.values() {
                Values::Any => Made::Any,
                Values::AnyScalar => Made::AnyScalar,
                Values::Scalar(shape) => Made::Scalar(shape),
                Values::Struct => Made::Struct(Struct::Custom { of, is_embedded: of.is_embedded() }),
                Values::Map(of) => Made::Map(of.map_or(Self::Deduced, Self::Custom)),
                Values::List(of) => Made::List(of.map_or(Self::Deduced, Self::Custom)),
            },
        }
    }

    /// How its parts have owners of their own, where its type says so itself.
    pub(crate) fn list_keys(self) -> Option<ListKeys<'t>> {
        let Self::Custom(of) = self else { return None };
        match of.list_type() {
            ListKind::Atomic => None,
            ListKind::Set => Some(ListKeys::Set),
            ListKind::Map(keys) => Some(ListKeys::Keys(Keys::Custom(keys))),
        }
    }

    pub(crate) fn is_atomic(self) -> bool {
        match self {
            Self::Table(Shape::Object(of)) => of.atomic,
            Self::Custom(of) => of.is_atomic_map(),
            Self::Table(_) | Self::Deduced => false,
        }
    }
}

pub(crate) enum ListKeys<'t> {
    Set,
    Keys(Keys<'t>),
}

impl<'t> Keys<'t> {
    pub(crate) fn iter(self) -> impl Iterator<Item = &'t str> {
        let (table, custom) = match self {
            Self::Table(keys) => (keys, &[][..]),
            Self::Custom(keys) => (&[][..], keys),
        };
        table.iter().copied().chain(custom.iter().map(String::as_str))
    }
}
