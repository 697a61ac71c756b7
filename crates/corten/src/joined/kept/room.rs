//! What there is room for on the disk. Where it is not enough, the largest goes first of whoever has the most, so that nobody takes
//! from others what they keep.

use std::collections::BTreeMap;

/// Lists of the cluster's: what packets and policies follow from.
const CLUSTER_BYTES_MAX: usize = 96 << 20;
/// ConfigMaps, Secrets and what was answered for single Pods.
const NAMESPACED_BYTES_MAX: usize = 128 << 20;

/// What shares a bound.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Share {
    /// The node's own Pods and Node: each has its own bound.
    Own,
    Cluster,
    Namespaced,
}

impl Share {
    pub(super) const BOUNDED: [Self; 2] = [Self::Cluster, Self::Namespaced];

    pub(super) fn bytes_max(self) -> usize {
        match self {
            Self::Own => usize::MAX,
            Self::Cluster => CLUSTER_BYTES_MAX,
            Self::Namespaced => NAMESPACED_BYTES_MAX,
        }
    }

    /// Of what is kept under this name, and whose it is: a namespace's, a Pod's, or its own.
    pub(super) fn of(name: &str) -> (Self, &str) {
        if let Some(owner) = name.strip_prefix(super::ANSWERS) {
            return (Self::Namespaced, owner);
        }
        let mut parts = name.split(' ');
        let (by, resource) = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
        match parts.next().unwrap_or_default() {
            "" if by == "kubelet:" && matches!(resource, "pods" | "nodes") => (Self::Own, name),
            "" => (Self::Cluster, name),
            namespace => (Self::Namespaced, namespace),
        }
    }
}

/// Which of these go, so that the rest is no more than that.
pub(super) fn over<'a, T>(all: impl Iterator<Item = (T, &'a str, usize)>, most: usize) -> Vec<T> {
    let (mut whose, mut sum) = (BTreeMap::<&str, (usize, Vec<(usize, T)>)>::new(), 0);
    for (it, owner, bytes) in all {
        let (total, items) = whose.entry(owner).or_default();
        items.push((bytes, it));
        (*total, sum) = (*total + bytes, sum + bytes);
    }
    if sum <= most {
        return Vec::new();
    }
    whose.values_mut().for_each(|it| it.1.sort_by_key(|it| it.0));
    let mut gone = Vec::new();
    while sum > most
        && let Some((total, items)) = whose.values_mut().max_by_key(|it| it.0)
        && let Some((bytes, it)) = items.pop()
    {
        (*total, sum) = (*total - bytes, sum - bytes);
        gone.push(it);
    }
    gone
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whoever_has_the_most_loses_the_largest() {
        let all = [("a", "shop", 10), ("b", "shop", 30), ("c", "shop", 20), ("d", "bank", 25), ("e", "yard", 1)];
        for (most, expected) in [(86, vec![]), (85, vec!["b"]), (55, vec!["b", "c"]), (30, vec!["b", "c", "d"])] {
            // Of 56 bytes `shop` has 30 and loses 20 of them; of 36 `bank` has the most.
            assert_eq!(over(all.into_iter(), most), expected, "{most}");
        }
    }

    #[test]
    fn names_say_whose_it_is() {
        for (name, expected) in [
            ("kubelet: pods   spec.nodeName=two", Share::Own),
            ("kubelet: nodes   metadata.name=two", Share::Own),
            ("netpolicy: pods   ", Share::Cluster),
            ("kubelet: services   ", Share::Cluster),
        ] {
            assert_eq!(Share::of(name), (expected, name));
        }
        assert_eq!(Share::of("kubelet: secrets shop  metadata.name=key"), (Share::Namespaced, "shop"));
        assert_eq!(Share::of("answers: u1"), (Share::Namespaced, "u1"));
    }
}
