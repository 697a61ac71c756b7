//! The columns of the table that `kubectl get` prints.

use corten_meta::Time;
use serde_json::Value;

use crate::{ColumnType, PathColumn};

/// A column of a built-in kind.
pub struct Column {
    pub name: &'static str,
    pub column_type: ColumnType,
    pub format: &'static str,
    pub description: &'static str,
    /// 0: always; 1: with `-o wide`.
    pub priority: u8,
    pub cell: Cell,
}

/// Computes a cell from the whole object. Ages are relative to the given time.
pub type Cell = fn(&Value, Time) -> Value;

/// The columns after Name; Age is a column like others. A kind that has a column called Name (events have) places it there
/// instead of first.
pub enum Columns {
    Constant(&'static [Column]),
    Paths(Vec<PathColumn>),
}

/// One of them, whoever describes it.
#[derive(Clone, Copy)]
pub enum ColumnRef<'k> {
    Constant(&'static Column),
    Path(&'k PathColumn),
}

impl Columns {
    pub fn iter(&self) -> impl Iterator<Item = ColumnRef<'_>> {
        let (constant, paths) = match self {
            Self::Constant(columns) => (*columns, &[][..]),
            Self::Paths(columns) => (&[][..], &columns[..]),
        };
        constant.iter().map(ColumnRef::Constant).chain(paths.iter().map(ColumnRef::Path))
    }
}

impl<'k> ColumnRef<'k> {
    pub fn name(self) -> &'k str {
        match self {
            Self::Constant(it) => it.name,
            Self::Path(it) => &it.name,
        }
    }

    pub fn column_type(self) -> &'k str {
        match self {
            Self::Constant(it) => it.column_type.name(),
            Self::Path(it) => &it.column_type,
        }
    }

    pub fn format(self) -> &'k str {
        match self {
            Self::Constant(it) => it.format,
            Self::Path(it) => &it.format,
        }
    }

    pub fn description(self) -> &'k str {
        match self {
            Self::Constant(it) => it.description,
            Self::Path(it) => &it.description,
        }
    }

    pub fn priority(self) -> i64 {
        match self {
            Self::Constant(it) => it.priority.into(),
            Self::Path(it) => it.priority,
        }
    }

    pub fn cell(self, object: &Value, now: Time) -> Value {
        match self {
            Self::Constant(it) => (it.cell)(object, now),
            Self::Path(it) => it.cell(object, now),
        }
    }
}
