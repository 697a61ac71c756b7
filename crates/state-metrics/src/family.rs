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
    /// What says which object it is, where upstream calls that otherwise in this family than in those of the kind.
    identity: Option<Identity<T>>,
    samples: fn(&T, &mut Samples<'_>),
}

/// The labels that say which object it is, and their values.
pub(crate) type Identity<T> = (&'static [&'static str], fn(&T) -> Vec<&str>);

impl<T> Family<T> {
    pub(crate) const fn gauge(
        name: &'static str,
        help: &'static str,
        labels: &'static [&'static str],
        samples: fn(&T, &mut Samples<'_>),
    ) -> Self {
        Self { name, of: FamilyType::Gauge, help, labels, identity: None, samples }
    }

    pub(crate) const fn counter(
        name: &'static str,
        help: &'static str,
        labels: &'static [&'static str],
        samples: fn(&T, &mut Samples<'_>),
    ) -> Self {
        Self { name, of: FamilyType::Counter, help, labels, identity: None, samples }
    }
}

impl<T> Family<T> {
    pub(crate) const fn identified_by(self, identity: Identity<T>) -> Self {
        Self { identity: Some(identity), ..self }
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
            labels: [it.identity.map_or(self.labels, |it| it.0), it.labels].concat(),
        });
        described.collect()
    }

    fn write(&self, object: &[u8], families: Range<usize>, out: &mut [Vec<u8>]) {
        let Ok(object) = serde_json::from_slice::<T>(object) else { return };
        let identity = exposition::labels(self.labels, &(self.identity)(&object));
        for (family, out) in self.families[families].iter().zip(out) {
            let own = family.identity.map(|(labels, values)| exposition::labels(labels, &values(&object)));
            let identity = own.as_ref().unwrap_or(&identity);
            (family.samples)(&object, &mut Samples::new(family.name, identity, family.labels, out));
        }
    }
}
