//! What changes of a request, and of its answer, when the API server passes it on: paths, headers, and the links of a page.

pub mod headers;
mod links;
mod path;

pub use links::{Links, Page};
pub use path::cleaned;

#[cfg(test)]
mod tests;
