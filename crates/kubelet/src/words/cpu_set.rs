//! Sets of CPUs and of NUMA nodes, by the kernel's numbers.

use std::{collections::BTreeSet, fmt, str::FromStr};

/// No machine has more CPUs: what a list may name.
const CPUS_MAX: u32 = 1 << 16;

/// CPUs, as the kernel lists them: `0-3,8`.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct CpuSet(BTreeSet<u32>);

impl CpuSet {
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub fn len(&self) -> usize {
        self.0.len()
    }

    pub fn contains(&self, cpu: u32) -> bool {
        self.0.contains(&cpu)
    }

    pub fn iter(&self) -> impl Iterator<Item = u32> {
        self.0.iter().copied()
    }

    #[must_use]
    pub fn union(&self, other: &Self) -> Self {
        Self(self.0.union(&other.0).copied().collect())
    }

    #[must_use]
    pub fn difference(&self, other: &Self) -> Self {
        Self(self.0.difference(&other.0).copied().collect())
    }

    #[must_use]
    pub fn intersection(&self, other: &Self) -> Self {
        Self(self.0.intersection(&other.0).copied().collect())
    }

    pub fn is_subset(&self, other: &Self) -> bool {
        self.0.is_subset(&other.0)
    }
}

impl FromIterator<u32> for CpuSet {
    fn from_iter<T: IntoIterator<Item = u32>>(cpus: T) -> Self {
        Self(cpus.into_iter().collect())
    }
}

impl fmt::Display for CpuSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut spans: Vec<(u32, u32)> = Vec::new();
        for cpu in self.iter() {
            match spans.last_mut() {
                Some((_, last)) if *last + 1 == cpu => *last = cpu,
                _ => spans.push((cpu, cpu)),
            }
        }
        let text = |(first, last): &(u32, u32)| match first == last {
            true => first.to_string(),
            false => format!("{first}-{last}"),
        };
        f.write_str(&spans.iter().map(text).collect::<Vec<_>>().join(","))
    }
}

impl FromStr for CpuSet {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let mut cpus = BTreeSet::new();
        for span in text.trim().split(',').filter(|it| !it.is_empty()) {
            let (first, last) = span.split_once('-').unwrap_or((span, span));
            let number = |it: &str| it.trim().parse::<u32>().ok().filter(|it| *it < CPUS_MAX);
            let (Some(first), Some(last)) = (number(first), number(last)) else {
                return Err(format!("{span:?} is no CPU and no range of CPUs"));
            };
            if first > last {
                return Err(format!("invalid range {span:?} ({first} > {last})"));
            }
            cpus.extend(first..=last);
        }
        Ok(Self(cpus))
    }
}

/// NUMA nodes by their numbers, which are below [`NumaNodes::MAX`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct NumaNodes(u64);

impl NumaNodes {
    /// One more than the greatest number.
    pub const MAX: u32 = 64;

    /// With one more; what is beyond the greatest number is left out.
    #[must_use]
    pub fn with(self, node: u32) -> Self {
        Self(self.0 | 1_u64.checked_shl(node).unwrap_or(0))
    }

    pub fn contains(self, node: u32) -> bool {
        self.0 & 1_u64.checked_shl(node).unwrap_or(0) != 0
    }

    #[must_use]
    pub fn and(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }

    pub fn is_empty(self) -> bool {
        self.0 == 0
    }

    pub fn len(self) -> u32 {
        self.0.count_ones()
    }

    pub fn iter(self) -> impl Iterator<Item = u32> {
        (0..Self::MAX).filter(move |it| self.contains(*it))
    }
}

impl FromIterator<u32> for NumaNodes {
    fn from_iter<T: IntoIterator<Item = u32>>(nodes: T) -> Self {
        nodes.into_iter().fold(Self::default(), Self::with)
    }
}

impl fmt::Display for NumaNodes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.iter().collect::<CpuSet>().fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_as_the_kernel_writes_them() {
        for (text, cpus, written) in [
            ("", &[][..], ""),
            ("0-3,8", &[0, 1, 2, 3, 8], "0-3,8"),
            ("5,4,3", &[3, 4, 5], "3-5"),
            ("1,1", &[1], "1"),
            ("0,2\n", &[0, 2], "0,2"),
        ] {
            let set: CpuSet = text.parse().expect(text);
            assert_eq!((set.iter().collect::<Vec<_>>(), set.to_string()), (cpus.to_vec(), written.to_owned()));
        }
        for text in ["a", "3-1", "1-", "-1", "0-4294967295", "99999"] {
            assert!(text.parse::<CpuSet>().is_err(), "{text}");
        }
        assert_eq!(NumaNodes::from_iter([0, 1, 63, 64, 1000]).to_string(), "0-1,63");
    }
}
