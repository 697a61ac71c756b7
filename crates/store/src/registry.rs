//! How Kubernetes names what it keeps in a store: how keys begin, and how values begin that it encrypts.

/// The first part of all keys, without `--etcd-prefix`, which stands in its place in etcd alone.
pub const PREFIX: &str = "/registry";

/// [`PREFIX`] as whole keys begin with it.
pub const ROOT: &str = "/registry/";

/// The first bytes of a value that is encrypted, as kube-apiserver's `EncryptionConfiguration` has them. No other begins so: JSON
/// begins with a brace, protobuf with `k8s` and a zero.
pub const ENCRYPTED: &[u8] = b"k8s:enc:";
