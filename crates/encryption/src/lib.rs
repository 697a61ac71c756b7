//! Encryption at rest: what an `EncryptionConfiguration` names is encrypted once when it is written, and decrypted once when it
//! is read from the store. Values have kube-apiserver's form, byte for byte.
//!
//! [`EncryptedStore`] lies between the store and all who use it. Everything above it sees objects as they were written;
//! everything below it (the log, checkpoints, compaction) what is encrypted.

mod changes;
mod configuration;
mod encrypted_store;
mod encryption;
mod envelope;
mod group_resource;
mod in_flight;
mod kms;
mod load;
mod local;
mod lost_key;
mod lost_keys;
mod metrics;
mod shared;
#[cfg(test)]
mod tests;
mod transformers;
mod validation;
mod wrong_keys;

pub use encrypted_store::EncryptedStore;
pub use encryption::Encryption;
#[cfg(any(test, feature = "plugin"))]
pub use kms::plugin;
pub use load::ConfigError;
