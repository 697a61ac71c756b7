//! The shape of the type table. Rows are `static`s that point at each other, so a walk over an object never looks a name up.

use std::fmt;

/// One named type of the API.
pub struct Type {
    /// `io.k8s.api.core.v1.PodSpec`.
    pub name: &'static str,
    /// Sorted by name.
    pub fields: &'static [Field],
    /// Server-side apply treats it as one value.
    pub atomic: bool,
    /// The places in `fields` of those that protobuf has, in the order of their numbers.
    pub(crate) wire: &'static [u8],
}

pub struct Field {
    pub name: &'static str,
    /// Of `name`, see [`begin`].
    pub(crate) begin: u64,
    pub shape: Shape,
    pub required: bool,
    /// Is its zero value (empty text, 0, `false`) not written? It is no pointer in Go, and has `omitempty`.
    pub omitted: bool,
    pub merge: &'static Merge,
    pub default: Default,
    /// Its protobuf field number, after the numbers of the embedded structs it lies in. Empty: unknown.
    pub number: &'static [u8],
    /// Is it on the wire of protobuf even where nobody set it? It is no pointer in Go, nor list or map.
    pub(crate) always: bool,
}

/// The first eight bytes of a name, as a number that sorts as the name does. Fields are looked up for each field of each
/// object, several times; few of one type begin alike, and numbers are compared at once.
pub(crate) const fn begin(name: &str) -> u64 {
    let name = name.as_bytes();
    let (mut number, mut at) = (0, 0);
    while at < 8 {
        number = number << 8 | if at < name.len() { name[at] as u64 } else { 0 };
        at += 1;
    }
    number
}

/// As [`begin`], where a program runs: eight bytes at once.
fn begin_now(name: &str) -> u64 {
    match name.as_bytes().first_chunk() {
        Some(whole) => u64::from_be_bytes(*whole),
        None => name.bytes().zip((0..8).rev()).map(|(byte, at)| u64::from(byte) << (8 * at)).sum(),
    }
}

/// What a field is where nobody says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Default {
    /// Absent.
    None,
    /// The zero value of its type: it is no pointer in Go.
    Zero,
    Text(&'static str),
}

#[derive(Clone, Copy, Debug)]
pub enum Shape {
    String,
    Int32,
    Int64,
    Number,
    Boolean,
    /// RFC 3339 text.
    Time,
    MicroTime,
    /// Text or a plain number.
    Quantity,
    IntOrString,
    /// Base64 text.
    Bytes,
    /// Any JSON (RawExtension, FieldsV1, JSONSchemaProps' JSON).
    Any,
    Object(&'static Type),
    List(&'static Shape),
    Map(&'static Shape),
}

/// How two values of one field become one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Merge {
    pub apply: Apply,
    pub patch: Patch,
    /// Strategic merge: a patch may carry `$retainKeys`.
    pub retain_keys: bool,
}

/// How server-side apply merges.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Apply {
    /// Objects and maps, field by field.
    Deep,
    /// Replaced as one value.
    Atomic,
    /// Lists of objects told apart by these fields.
    ByKeys(&'static [&'static str]),
    /// Lists of scalars as sets.
    Set,
}

/// How strategic merge patch merges.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Patch {
    /// Objects and maps, field by field.
    Deep,
    /// Replaced as one value.
    Replace,
    /// Lists of objects told apart by this field.
    ByKey(&'static str),
    /// Lists of scalars as sets.
    Set,
}

impl Type {
    pub fn field(&self, name: &str) -> Option<&'static Field> {
        self.place(name).map(|at| &self.fields[at])
    }

    /// Where in `fields` it is.
    pub(crate) fn place(&self, name: &str) -> Option<usize> {
        let sought = begin_now(name);
        let order = |it: &Field| it.begin.cmp(&sought).then_with(|| it.name.cmp(name));
        self.fields.binary_search_by(order).ok()
    }

    /// Are there field numbers? Types that are none of Kubernetes's have none.
    pub fn has_protobuf(&self) -> bool {
        !self.wire.is_empty()
    }

    /// As Go prints it: `v1.Container`.
    pub fn go_name(&self) -> String {
        let mut segments = self.name.rsplit('.');
        let (name, package) = (segments.next().unwrap_or_default(), segments.next().unwrap_or_default());
        // The one package whose Go name is not the last segment of its schema's name in a way that shows here.
        format!("{package}.{name}")
    }

    /// `PodSpec`.
    pub fn short_name(&self) -> &'static str {
        self.name.rsplit('.').next().unwrap_or_default()
    }
}

impl Shape {
    /// As Go prints it: `[]v1.Container`, `map[string]string`, `int32`.
    pub fn go_name(&self) -> String {
        match self {
            Self::String => "string".into(),
            Self::Int32 => "int32".into(),
            Self::Int64 => "int64".into(),
            Self::Number => "float64".into(),
            Self::Boolean => "bool".into(),
            Self::Time => "v1.Time".into(),
            Self::MicroTime => "v1.MicroTime".into(),
            Self::Quantity => "resource.Quantity".into(),
            Self::IntOrString => "intstr.IntOrString".into(),
            Self::Bytes => "[]uint8".into(),
            Self::Any => "interface {}".into(),
            Self::Object(of) => of.go_name(),
            Self::List(of) => format!("[]{}", of.go_name()),
            Self::Map(of) => format!("map[string]{}", of.go_name()),
        }
    }
}

impl fmt::Debug for Type {
    /// The name alone: types refer to themselves.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}
