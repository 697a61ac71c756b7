//! What a LimitRange gives containers that ask for nothing, and what it refuses. Shared by nobody but admission; here
//! because it is pure.

mod defaults;
mod rules;
#[cfg(test)]
mod tests;

pub use defaults::fill;
pub use rules::broken;
