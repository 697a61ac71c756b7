//! The shape of the type table.

/// One named type of the API.
pub struct Type {
    /// `io.k8s.api.core.v1.PodSpec`.
    pub name: &'static str,
    /// Sorted by name.
    pub fields: &'static [Field],
}

pub struct Field {
    pub name: &'static str,
    pub shape: Shape,
    pub required: bool,
    /// How strategic merge patch and server-side apply merge this field.
    pub merge: Merge,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    String,
    Integer,
    Number,
    Boolean,
    /// RFC 3339 text.
    Time,
    Quantity,
    IntOrString,
    /// Base64 text.
    Bytes,
    /// Any JSON (RawExtension, FieldsV1, JSONSchemaProps' JSON).
    Any,
    Object(&'static str),
    List(&'static Shape),
    Map(&'static Shape),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Merge {
    /// Replaced as one value.
    Atomic,
    /// Objects and maps, field by field.
    Deep,
    /// Lists of objects told apart by these fields; the first is strategic merge patch's key.
    ByKeys(&'static [&'static str]),
    /// Lists of scalars as sets.
    Set,
    /// Deep with strategic merge's `retainKeys`.
    RetainKeys,
}
