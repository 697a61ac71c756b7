//! How much an expression may cost, as kube-apiserver bounds it (apiserver/pkg/apis/cel; apiextensions' schema validation).

/// One evaluation of one expression.
pub const PER_CALL_LIMIT: u64 = 1_000_000;
/// All rules of one object, and all expressions of one policy on one request.
pub const RUNTIME_BUDGET: u64 = 10_000_000;
/// All match conditions of one webhook or policy on one request.
pub const RUNTIME_BUDGET_MATCH_CONDITIONS: u64 = RUNTIME_BUDGET / 4;
/// What the estimate of one rule of a custom resource may be at most.
pub const STATIC_ESTIMATE_LIMIT: u64 = 10_000_000;
/// What the estimates of all rules of one version of a custom resource may be together.
pub const STATIC_ESTIMATE_LIMIT_TOTAL: u64 = 100_000_000;
/// What a message that an expression makes may have.
pub const MESSAGE_BYTES_MAX: usize = 5 * 1024;
/// What upstream reckons a request to have at most, where a schema does not bound a size.
pub const REQUEST_BYTES_MAX: u64 = 3 * 1024 * 1024;

/// One unit for each node that is looked up.
pub(crate) const SELECT: u64 = 1;
pub(crate) const LIST: u64 = 10;
pub(crate) const MAP: u64 = 30;
pub(crate) const STRUCT: u64 = 40;
/// Of each character or byte that is read.
pub(crate) const TRAVERSAL: f64 = 0.1;
/// Of each character of a regular expression.
pub(crate) const REGEX: f64 = 0.25;
/// A question to the authorizer: one expression may ask two.
pub(crate) const AUTHORIZER_CHECK: u64 = 350_000;

/// `size` times `factor`, rounded up, without overflow.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    clippy::cast_precision_loss,
    reason = "upstream reckons in floats; a float that does not fit saturates"
)]
pub(crate) fn times(size: u64, factor: f64) -> u64 {
    (size as f64 * factor).ceil() as u64
}
