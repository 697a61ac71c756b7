//! The families of one kind, and how its objects are read for them.

use std::ops::Range;

use corten_meta::Resource;
use serde::de::DeserializeOwned;

use crate::exposition::{self, Samples};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FamilyType {
    Counter,
    Gauge,
}

impl FamilyType {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Counter => "counter",
            Self::Gauge => "gauge",
        }
    }
}

/// What a family is called, and what it says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Described {
    pub name: &'static str,
    pub of: FamilyType,
    pub help: &'static str,
    pub labels: Vec<&'static str>,
}

impl Described {
    /// What stands before its samples.
    pub fn head(&self) -> String {
        format!("# HELP {} {}\n# TYPE {} {}\n", self.name, self.help, self.name, self.of.as_str())
    }
}

/// A kind whose objects are told of.
pub trait StateMetrics: Sync {
    fn resource(&self) -> &'static Resource;

    fn families(&self) -> Vec<Described>;

    /// Writes the samples of some of the families, each into the text that stands for it in `out`. An object that cannot be read has none.
    fn write(&self, object: &[u8], families: Range<usize>, out: &mut [Vec<u8>]);
}

/// One kind, whose objects are read as `T`: the few of their fields that are told of.
pub(crate) struct KindMetrics<T: 'static> {
    pub(crate) resource: &'static Resource,
    /// Which object it is: labels of every family.
    pub(crate) labels: &'static [&'static str],
    pub(crate) identity: fn(&T) -> Vec<&str>,
    pub(crate) families: &'static [Family<T>],
}

pub(crate) struct Family<T> {
    name: &'static str,
    of: FamilyType,
    help: &'static str,
    /// Beside those of the kind.
    labels: &'static [&'static str],
    samples: fn(&T, &mut Samples<'_>),
}

impl<T> Family<T> {
    pub(crate) const fn gauge(
        name: &'static str,
        help: &'static str,
        labels: &'static [&'static str],
        samples: fn(&T, &mut Samples<'_>),
    ) -> Self {
        Self { name, of: FamilyType::Gauge, help, labels, samples }
    }

    pub(crate) const fn counter(
        name: &'static str,
        help: &'static str,
        labels: &'static [&'static str],
        samples: fn(&T, &mut Samples<'_>),
    ) -> Self {
        Self { name, of: FamilyType::Counter, help, labels, samples }
    }
}

impl<T: DeserializeOwned> StateMetrics for KindMetrics<T> {
    fn resource(&self) -> &'static Resource {
        self.resource
    }

    fn families(&self) -> Vec<Described> {
        let described = self.families.iter().map(|it| Described {
            name: it.name,
            of: it.of,
            help: it.help,
            labels: [self.labels, it.labels].concat(),
        });
        described.collect()
    }

    fn write(&self, object: &[u8], families: Range<usize>, out: &mut [Vec<u8>]) {
        let Ok(object) = serde_json::from_slice::<T>(object) else { return };
        let identity = exposition::labels(self.labels, &(self.identity)(&object));
        for (family, out) in self.families[families].iter().zip(out) {
            (family.samples)(&object, &mut Samples::new(family.name, &identity, family.labels, out));
        }
    }
}
