//! What the check says.
