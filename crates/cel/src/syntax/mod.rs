//! From text to a tree: words, grammar, macros.

pub(crate) mod ast;
mod lexer;
mod literal;
mod macros;
mod parser;

pub(crate) use parser::{Macros, parse};

/// As cel-go bounds an expression, in characters.
pub const SOURCE_CHARS_MAX: usize = 100_000;
/// So deep may the tree of an expression be, macros included: what walks it recurses, and must fit a small stack.
pub const DEPTH_MAX: u16 = 250;
/// So many brackets may be within each other: reading them takes more of the stack than walking a tree does.
pub const NESTED_MAX: u16 = 120;
/// So many nodes may it have, macros included. `optMap` in a chain doubles what it is applied to.
pub const NODES_MAX: u32 = 50_000;
