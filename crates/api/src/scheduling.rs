//! Rules that scheduler, kubelet, controllers and `corten why` must agree on, each once: k8s.io/component-helpers has them in
//! `scheduling/corev1` and `resource`. Each reader has its own projection of an object; here stand only the rules.

use std::{collections::BTreeMap, time::Duration};

use corten_meta::Quantity;

/// The reason of the cause by which the API server refuses a Binding, where the node has no room for the Pod.
pub const NODE_HAS_NO_ROOM: &str = "NodeHasNoRoom";

/// A taint of a node; what is absent is empty.
#[derive(Clone, Copy, Debug)]
pub struct Taint<'a> {
    pub key: &'a str,
    pub value: &'a str,
    pub effect: &'a str,
}

/// A toleration of a Pod; what is absent is empty.
#[derive(Clone, Copy, Debug)]
pub struct Toleration<'a> {
    pub key: &'a str,
    pub operator: &'a str,
    pub value: &'a str,
    pub effect: &'a str,
}

impl Toleration<'_> {
    /// `Toleration.ToleratesTaint` of core/v1. An empty key or effect stands for all; `Lt` and `Gt` compare integers (KEP-5471).
    pub fn tolerates(self, taint: Taint<'_>) -> bool {
        let numbers = || taint.value.parse::<i64>().ok().zip(self.value.parse::<i64>().ok());
        (self.effect.is_empty() || self.effect == taint.effect)
            && (self.key.is_empty() || self.key == taint.key)
            && match self.operator {
                "" | "Equal" => self.value == taint.value,
                "Exists" => true,
                "Lt" => numbers().is_some_and(|(value, bound)| value < bound),
                "Gt" => numbers().is_some_and(|(value, bound)| value > bound),
                _ => false,
            }
    }
}

/// How long a Pod stays where taints drive it away.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stay {
    Forever,
    /// From when the last of the taints was put there, or the Pod came.
    For(Duration),
    /// One of them it does not tolerate.
    Ended,
}

/// The shortest time for which a Pod tolerates all of the taints (`processPodOnNode` and `getMinTolerationTime` of the taint eviction
/// controller): of each toleration that it has, its `tolerationSeconds`. Less than none is none.
pub fn stay<'a>(
    taints: impl IntoIterator<Item = Taint<'a>>,
    tolerations: impl Iterator<Item = (Toleration<'a>, Option<i64>)> + Clone,
) -> Stay {
    let mut shortest: Option<i64> = None;
    for taint in taints {
        let Some((_, seconds)) = tolerations.clone().find(|it| it.0.tolerates(taint)) else { return Stay::Ended };
        shortest = shortest.into_iter().chain(seconds).min();
    }
    shortest.map_or(Stay::Forever, |it| Stay::For(Duration::from_secs(it.try_into().unwrap_or(0))))
}

/// Does a label or field of this value meet one requirement of a node selector? `None`: the node has no such label.
pub fn requirement_holds<'v>(operator: &str, values: impl IntoIterator<Item = &'v str>, value: Option<&str>) -> bool {
    let mut values = values.into_iter();
    match operator {
        "In" => value.is_some_and(|value| values.any(|it| it == value)),
        "NotIn" => value.is_none_or(|value| values.all(|it| it != value)),
        "Exists" => value.is_some(),
        "DoesNotExist" => value.is_none(),
        "Gt" | "Lt" => {
            let number = |it: Option<&str>| it?.parse::<i64>().ok();
            let numbers = number(value).zip(number(values.next()));
            numbers.is_some_and(|(value, bound)| if operator == "Gt" { value > bound } else { value < bound })
        }
        _ => false,
    }
}

/// Does a node meet a term, each of whose requirements holds or does not? A term without requirements matches no node
/// (`nodeaffinity.NodeSelector.Match`).
pub fn term_matches(requirements: impl IntoIterator<Item = bool>) -> bool {
    let mut is_empty = true;
    requirements.into_iter().all(|it| {
        is_empty = false;
        it
    }) && !is_empty
}

/// The field that a term's `matchFields` names: nodes have only `metadata.name`.
pub fn node_field<'n>(field: &str, name: &'n str) -> Option<&'n str> {
    (field == "metadata.name").then_some(name)
}

/// Amounts of resources by name.
pub trait Amounts: Clone + Default {
    fn add(&mut self, other: &Self);
    fn raise_to(&mut self, other: &Self);
    /// Adds what `other` has of the resources that are named here: the work goes with the names here.
    fn add_of_same_name(&mut self, other: &Self);
}

/// What the containers of a Pod take together: `resource.AggregateContainerRequests`. Init containers run one after another, so
/// only the largest counts; a sidecar (`true`) stays, and counts beside all that come after it.
pub fn aggregate<A: Amounts>(
    containers: impl IntoIterator<Item = A>,
    init_containers: impl IntoIterator<Item = (A, bool)>,
) -> A {
    let mut sum = A::default();
    containers.into_iter().for_each(|it| sum.add(&it));
    let (mut sidecars, mut init_most) = (A::default(), A::default());
    for (own, is_sidecar) in init_containers {
        let mut together = own.clone();
        together.add_of_same_name(&sidecars);
        if is_sidecar {
            sum.add(&own);
            sidecars.add(&own);
        }
        init_most.raise_to(&together);
    }
    sum.raise_to(&init_most);
    sum
}

/// An amount of one resource.
pub trait Amount: Copy + Ord {
    #[must_use]
    fn plus(self, other: Self) -> Self;
}

/// Sums stop at the end of all numbers.
impl Amount for i64 {
    fn plus(self, other: Self) -> Self {
        self.saturating_add(other)
    }
}

impl Amount for Quantity {
    fn plus(self, other: Self) -> Self {
        Self::plus(self, other)
    }
}

impl<V: Amount> Amounts for BTreeMap<String, V> {
    fn add(&mut self, other: &Self) {
        for (name, amount) in other {
            let sum = self.get(name).map_or(*amount, |it| it.plus(*amount));
            self.insert(name.clone(), sum);
        }
    }

    fn raise_to(&mut self, other: &Self) {
        for (name, amount) in other {
            let most = self.get(name).map_or(*amount, |it| (*it).max(*amount));
            self.insert(name.clone(), most);
        }
    }

    fn add_of_same_name(&mut self, other: &Self) {
        for (name, sum) in self {
            if let Some(amount) = other.get(name) {
                *sum = sum.plus(*amount);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tolerations_meet_taints() {
        // Toleration: key, operator, value, effect; taint: key, value, effect.
        for (toleration, taint, expected) in [
            (["", "Exists", "", ""], ["a", "b", "NoExecute"], true),
            (["a", "", "b", ""], ["a", "b", "NoSchedule"], true),
            (["a", "Equal", "c", ""], ["a", "b", "NoSchedule"], false),
            (["a", "Exists", "", "NoExecute"], ["a", "b", "NoExecute"], true),
            (["a", "Exists", "", "NoSchedule"], ["a", "b", "NoExecute"], false),
            (["c", "Exists", "", ""], ["a", "b", "NoSchedule"], false),
            (["a", "Gt", "5", ""], ["a", "7", "NoSchedule"], true),
            (["a", "Lt", "5", ""], ["a", "7", "NoSchedule"], false),
            (["a", "Lt", "9", ""], ["a", "7", "NoSchedule"], true),
            (["a", "Gt", "x", ""], ["a", "7", "NoSchedule"], false),
            (["a", "Like", "7", ""], ["a", "7", "NoSchedule"], false),
        ] {
            let [key, operator, value, effect] = toleration;
            let of = Toleration { key, operator, value, effect };
            let [key, value, effect] = taint;
            assert_eq!(of.tolerates(Taint { key, value, effect }), expected, "{toleration:?} {taint:?}");
        }
    }

    #[test]
    fn node_selectors_meet_nodes() {
        for (operator, values, value, expected) in [
            ("In", &["a", "b"][..], Some("b"), true),
            ("In", &["a"], None, false),
            ("NotIn", &["a"], Some("a"), false),
            ("NotIn", &["a"], None, true),
            ("Exists", &[], Some(""), true),
            ("DoesNotExist", &[], None, true),
            ("Gt", &["3"], Some("4"), true),
            ("Lt", &["3"], Some("4"), false),
            ("Gt", &["3"], Some("four"), false),
            ("Gt", &["3"], None, false),
            ("Like", &["a"], Some("a"), false),
        ] {
            let found = requirement_holds(operator, values.iter().copied(), value);
            assert_eq!(found, expected, "{operator} {values:?} {value:?}");
        }
        assert!(term_matches([true, true]) && !term_matches([true, false]) && !term_matches([]));
        assert_eq!((node_field("metadata.name", "n"), node_field("metadata.uid", "n")), (Some("n"), None));
    }

    #[test]
    fn sidecars_count_beside_what_comes_after_them() {
        let cpu = |it: i64| BTreeMap::from([("cpu".to_owned(), it)]);
        for (init, containers, expected) in [
            (vec![(cpu(3), false)], vec![cpu(1), cpu(1)], 3),
            (vec![(cpu(1), true), (cpu(1), false)], vec![cpu(2)], 3),
            (vec![(cpu(1), true), (cpu(5), false)], vec![cpu(2)], 6),
            (vec![(cpu(5), false), (cpu(1), true)], vec![cpu(2)], 5),
            (vec![(cpu(i64::MAX), true), (cpu(1), false)], vec![cpu(1)], i64::MAX),
        ] {
            assert_eq!(aggregate(containers, init)["cpu"], expected);
        }
    }
}
