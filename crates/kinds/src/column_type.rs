//! What the cells of a column can be, for built-in kinds and for `additionalPrinterColumns`.

/// What the cells of a column are. A definition's columns have these types and no other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ColumnType {
    Boolean,
    Date,
    Integer,
    Number,
    String,
}

impl ColumnType {
    /// As refusals name them.
    pub(crate) const NAMES: [&str; 5] = ["boolean", "date", "integer", "number", "string"];
    const ALL: [Self; 5] = [Self::Boolean, Self::Date, Self::Integer, Self::Number, Self::String];

    pub const fn name(self) -> &'static str {
        Self::NAMES[self as usize]
    }

    pub(crate) fn read(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|it| it.name() == name)
    }
}
