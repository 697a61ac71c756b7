//! What only functions look into: a URL, a version, a network, a format, a question to the authorizer.

pub(crate) mod authorizing;
mod cidr;
pub(crate) mod format;
pub(crate) mod semver;
pub(crate) mod url;

pub(crate) use authorizing::Authorizing;
pub(crate) use cidr::Cidr;
pub(crate) use format::Format;
pub(crate) use semver::Semver;
pub(crate) use url::Url;
