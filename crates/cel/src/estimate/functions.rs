//! What a call costs, by its function and overload: Kubernetes' costs first, then those of the libraries, then the language's.

use super::{Call, Estimator, Expr, Node, Range};
use crate::{
    budget::{AUTHORIZER_CHECK, LIST, REGEX, STRUCT, TRAVERSAL},
    declared::{DeclType, Type},
    syntax::ast::{Kind, Literal},
};

/// A cost, and the size of the result where that is known.
type Estimate = (Range, Option<Range>);

/// What a named format's pattern has at most.
const FORMAT_PATTERN_MAX: f64 = 128.0;
/// What the name of a format has at most.
const FORMAT_MAX: u64 = 64;
/// An address has 4 or 16 bytes.
const ADDRESS: Range = Range::new(4, 16);
const ONE: Range = Range::fixed(1);

impl<'e> Estimator<'e> {
    /// The cost of a call with one overload, its arguments included.
    pub(super) fn function(&mut self, expr: &Expr, call: &Call, id: &str, costs: &[Range]) -> Estimate {
        let arguments = costs.iter().fold(Range::fixed(0), |sum, it| sum + *it);
        let target = call.target.as_ref().map(|it| self.node(it));
        let args: Vec<Node<'e, '_>> = call.args.iter().map(|it| self.node(it)).collect();
        if let Some((cost, size)) = self.of_library(id, target.as_ref(), &args) {
            return (cost + arguments, size);
        }
        if let Some((cost, size)) = self.of_kubernetes(&call.function, id, target.as_ref(), &args) {
            return (cost + arguments, size);
        }
        if let Some(estimate) = self.of_language(expr, id, target.as_ref(), &args, costs, arguments) {
            return estimate;
        }
        (ONE + arguments, None)
    }

    /// Overloads that bring a cost of their own.
    fn of_library(&mut self, id: &str, target: Option<&Node<'e, '_>>, args: &[Node<'e, '_>]) -> Option<Estimate> {
        let made = |factor: f64, size: Range| Some((size.times(factor) + ONE + Range::fixed(LIST), Some(size)));
        let size = |it: &Node<'e, '_>| declared_size(it);
        match (id, target, args) {
            ("list_slice", Some(target), [from, to]) => {
                let (from, to) = (number(from).unwrap_or(0), number(to).unwrap_or(size(target).max));
                made(1.0, Range::fixed(to.saturating_sub(from)))
            }
            ("list_flatten", Some(target), []) => made(1.0, size(target)),
            #[expect(clippy::cast_precision_loss, reason = "upstream reckons in floats")]
            ("list_flatten_int", Some(target), [depth]) => made(number(depth).unwrap_or(u64::MAX) as f64, size(target)),
            ("lists_range", None, [n]) => made(1.0, Range::fixed(number(n).unwrap_or(u64::MAX))),
            ("list_reverse", Some(target), []) => made(1.0, size(target)),
            ("list_distinct", Some(target), []) => made(2.0, size(target) * size(target)),
            ("list_sets_contains_list" | "list_sets_intersects_list", None, [a, b]) => {
                Some((size(a) * size(b) + ONE, None))
            }
            ("list_sets_equivalent_list", None, [a, b]) => Some(((size(a) * size(b)).times(2.0) + ONE, None)),
            _ => {
                let kind = id.strip_prefix("list_")?;
                let (of, sorted) = match (kind.strip_suffix("_sort"), target, args) {
                    (Some(of), Some(target), []) => (of, target),
                    _ => (kind.strip_suffix("_sortByAssociatedKeys")?, args.first()?),
                };
                let factor = if matches!(of, "string" | "bytes") { 2.0 + TRAVERSAL } else { 2.0 };
                made(factor, size(sorted) * size(sorted))
            }
        }
    }

    fn of_kubernetes(
        &mut self,
        function: &str,
        id: &str,
        target: Option<&Node<'e, '_>>,
        args: &[Node<'e, '_>],
    ) -> Option<Estimate> {
        let traversal = |it: &Node<'e, '_>| declared_size(it).times(TRAVERSAL);
        Some(match (function, target, args) {
            ("check", ..) => (Range::fixed(AUTHORIZER_CHECK), None),
            (
                "serviceAccount" | "path" | "group" | "resource" | "subresource" | "namespace" | "name" | "allowed"
                | "reason" | "error" | "errored",
                ..,
            ) => (ONE, None),
            ("fieldSelector" | "labelSelector", _, [selector]) => {
                let size = declared_size(selector);
                #[expect(clippy::cast_precision_loss, reason = "a small constant")]
                let requirements = size.times(0.5).times((LIST + STRUCT) as f64);
                (Range::fixed(LIST) + size.times(TRAVERSAL) + requirements, None)
            }
            ("isSorted" | "sum" | "max" | "min" | "indexOf" | "lastIndexOf", Some(target), _) => {
                let Some((of, item)) = item(target) else { return Some((traversal(target), None)) };
                let each = match of {
                    Type::String | Type::Bytes => ONE + item.times(TRAVERSAL),
                    _ => ONE,
                };
                (declared_size(target) * each, None)
            }
            ("url" | "jsonpatch.escapeKey", _, [text]) => (traversal(text), Some(declared_size(text))),
            ("lowerAscii" | "upperAscii" | "substring" | "trim", Some(target), _) => {
                (traversal(target), Some(declared_size(target)))
            }
            ("replace", Some(target), [old, new, ..]) => {
                let size = declared_size(target);
                (size.times(2.0 * TRAVERSAL), Some(replaced(size, declared_size(old), declared_size(new))))
            }
            ("split", Some(target), _) => {
                let size = declared_size(target);
                let most = args.get(1).and_then(number).unwrap_or(size.max);
                (size.times(2.0 * TRAVERSAL), Some(Range::new(0, most)))
            }
            ("join", Some(target), _) => {
                let n = declared_size(target);
                let mut size = item(target).map_or(Range::fixed(0), |it| n * it.1);
                if let Some(between) = args.first() {
                    size = size + declared_size(between) * Range::new(n.min.saturating_sub(1), n.max.saturating_sub(1));
                }
                (size.times(TRAVERSAL), Some(size))
            }
            ("find" | "findAll", Some(target), [pattern, ..]) => {
                let size = declared_size(target);
                let cost = (size + ONE).times(TRAVERSAL) * declared_size(pattern).times(REGEX);
                (cost, Some(Range::new(0, size.max)))
            }
            _ => return Self::of_opaque(function, id, target, args),
        })
    }

    /// Functions on what only functions look into.
    fn of_opaque(function: &str, id: &str, target: Option<&Node<'e, '_>>, args: &[Node<'e, '_>]) -> Option<Estimate> {
        let traversal = |it: &Node<'e, '_>| declared_size(it).times(TRAVERSAL);
        Some(match (function, target, args) {
            (
                "cidr" | "isIP" | "isCIDR" | "ip" | "quantity" | "isQuantity" | "semver" | "isSemver",
                None,
                [text, ..],
            ) => (traversal(text), None),
            ("ip.isCanonical", None, [text]) => (declared_size(text).times(2.0 * TRAVERSAL), None),
            ("ip", Some(_), _) => (ONE, None),
            (
                "masked"
                | "prefixLength"
                | "family"
                | "isUnspecified"
                | "isLoopback"
                | "isLinkLocalMulticast"
                | "isLinkLocalUnicast"
                | "isGlobalUnicast",
                ..,
            ) => (ONE, None),
            ("containsIP", Some(_), [other]) => {
                let mut cost = (ADDRESS + ADDRESS).times(TRAVERSAL);
                if id == "cidr_contains_ip_string" {
                    cost = cost + traversal(other);
                }
                (cost, None)
            }
            ("containsCIDR", Some(_), [other]) => {
                let mut cost = (ADDRESS + ADDRESS).times(TRAVERSAL) + ADDRESS.times(TRAVERSAL) + ONE;
                if id == "cidr_contains_cidr_string" {
                    cost = cost + traversal(other);
                }
                (cost, None)
            }
            ("validate", Some(_), [text]) => (traversal(text).times(FORMAT_PATTERN_MAX * REGEX), None),
            (
                "format.named" | "sign" | "asInteger" | "isInteger" | "asApproximateFloat" | "isGreaterThan"
                | "isLessThan" | "compareTo" | "add" | "sub" | "major" | "minor" | "patch" | "getScheme"
                | "getHostname" | "getHost" | "getPort" | "getEscapedPath" | "getQuery",
                ..,
            ) => (ONE, None),
            ("_==_", _, [a, b]) if a.of.is_exactly(b.of) => (equal_opaque(a.of, b)?, None),
            _ => return None,
        })
    }

    fn of_language(
        &mut self,
        expr: &Expr,
        id: &str,
        target: Option<&Node<'e, '_>>,
        args: &[Node<'e, '_>],
        costs: &[Range],
        arguments: Range,
    ) -> Option<Estimate> {
        let size = |it: &Node<'e, '_>| it.size.unwrap_or(Range::UNKNOWN);
        Some(match (id, target, args) {
            ("string_format", Some(target), [values]) => {
                (size(target).times(TRAVERSAL) + arguments, Some(size(target) + size(values)))
            }
            ("string_to_bytes", None, [text]) => {
                let of = size(text);
                (of.times(TRAVERSAL) + arguments, Some(Range::new(of.min, of.max.saturating_mul(4))))
            }
            ("bytes_to_string", None, [bytes]) => {
                let of = size(bytes);
                (of.times(TRAVERSAL) + arguments, Some(Range::new(of.min / 4, of.max)))
            }
            ("strings_quote", None, [text]) => {
                let of = size(text);
                let quoted = Range::new(of.min.saturating_add(2), of.max.saturating_mul(2).saturating_add(2));
                (of.times(TRAVERSAL) + arguments, Some(quoted))
            }
            ("starts_with_string" | "ends_with_string", Some(_), [text]) => {
                (size(text).times(TRAVERSAL) + arguments, None)
            }
            ("in_list", None, [_, list]) => (size(list) + arguments, None),
            ("matches_string", Some(target), [pattern]) => {
                ((size(target) + ONE).times(TRAVERSAL) * size(pattern).times(REGEX) + arguments, None)
            }
            ("contains_string", Some(target), [part]) => {
                (size(target).times(TRAVERSAL) * size(part).times(TRAVERSAL) + arguments, None)
            }
            ("logical_or" | "logical_and", ..) => {
                let both = costs.iter().fold(Range::fixed(0), |sum, it| sum + *it);
                (Range::new(costs.first().map_or(0, |it| it.min), both.max), None)
            }
            ("conditional", None, [_, yes, no]) => {
                if let (Some(yes), Some(no)) = (self.entries_of(yes.expr), self.entries_of(no.expr)) {
                    self.entries.insert(
                        expr.id,
                        super::Entries { is_list: yes.is_list, key: yes.key.or(no.key), value: yes.value.or(no.value) },
                    );
                }
                (costs[0] + costs[1].or(costs[2]), Some(size(yes).or(size(no))))
            }
            ("add_string" | "add_bytes" | "add_list", None, [a, b]) => {
                let sum = size(a) + size(b);
                if let (Some(a), Some(b)) = (self.entries_of(a.expr), self.entries_of(b.expr)) {
                    let entries =
                        super::Entries { is_list: a.is_list, key: a.key.or(b.key), value: a.value.or(b.value) };
                    self.entries.insert(expr.id, entries);
                }
                let cost = if id == "add_list" { ONE } else { sum.times(TRAVERSAL) };
                (cost + arguments, Some(sum))
            }
            ("equals" | "not_equals", None, [a, b]) => (smaller(size(a), size(b)) + arguments, None),
            (_, None, [a, b]) if is_text_comparison(id) => (smaller(size(a), size(b)) + arguments, None),
            _ => return None,
        })
    }
}

fn is_text_comparison(id: &str) -> bool {
    let kind = id.strip_suffix("_string").or_else(|| id.strip_suffix("_bytes"));
    matches!(kind, Some("less" | "less_equals" | "greater" | "greater_equals"))
}

/// What is compared is as long as the shorter one.
fn smaller(a: Range, b: Range) -> Range {
    let most = a.max.min(b.max);
    Range::new(u64::from(most > 0), most).times(TRAVERSAL)
}

/// What Kubernetes' own functions reckon with: the size that is known, or what is declared.
fn declared_size(node: &Node<'_, '_>) -> Range {
    node.size.or_else(|| node.declared.map(|it| Range::new(0, it.max_elements))).unwrap_or(Range::UNKNOWN)
}

/// Of the items of a list: their type and size.
fn item<'t>(list: &Node<'_, 't>) -> Option<(&'t Type, Range)> {
    let of = match list.of {
        Type::List(of) | Type::Optional(of) => &**of,
        Type::Map(of) => &of.0,
        _ => return None,
    };
    let size = list.declared.and_then(DeclType::inner).map(|it| Range::new(0, it.max_elements));
    Some((of, size.unwrap_or(Range::UNKNOWN)))
}

/// A whole number that is written out.
fn number(node: &Node<'_, '_>) -> Option<u64> {
    match &node.expr.kind {
        Kind::Literal(Literal::Int(it)) => u64::try_from(*it).ok(),
        Kind::Literal(Literal::Uint(it)) => Some(*it),
        _ => None,
    }
}

/// The size of a text in which one part is replaced by another.
fn replaced(size: Range, old: Range, new: Range) -> Range {
    let (mut count, mut kept) = (Range::fixed(0), Range::fixed(0));
    if old.min == 0 {
        // Nothing stands between all characters.
        count.max = size.max.saturating_add(1);
        kept.max = size.max;
    } else if new.max <= old.min {
        kept.max = size.max;
    } else {
        count.max = size.max.div_ceil(old.min);
    }
    if old.max == 0 {
        count.min = size.min.saturating_add(1);
        kept.min = size.min;
    } else if old.max <= new.min {
        kept.min = size.min;
    } else {
        count.min = size.min.div_ceil(old.max);
    }
    count * new + kept
}

fn equal_opaque(of: &Type, other: &Node<'_, '_>) -> Option<Range> {
    Some(match of {
        Type::Opaque("kubernetes.NamedFormat") => Range::new(1, FORMAT_MAX).times(TRAVERSAL),
        Type::Opaque("kubernetes.URL") => Range::new(1, other.size.map_or(1, |it| it.max)).times(TRAVERSAL),
        Type::Opaque(_) => ONE,
        _ => return None,
    })
}
