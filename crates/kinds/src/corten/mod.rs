//! Corten's own kinds: `corten.dev`.

pub(crate) mod journal;
