//! Pods as keys of an ordered map, by what an order looks at: those that it does not tell apart share an entry.

use std::{cmp::Ordering, marker::PhantomData, sync::Arc};

use crate::PodInfo;

pub(crate) trait PodOrder {
    fn compare(one: &PodInfo, other: &PodInfo) -> Ordering;
}

pub(crate) struct OrderedPod<By> {
    info: Arc<PodInfo>,
    order: PhantomData<By>,
}

impl<By> OrderedPod<By> {
    pub(crate) fn new(info: &Arc<PodInfo>) -> Self {
        Self { info: Arc::clone(info), order: PhantomData }
    }
}

impl<By: PodOrder> Ord for OrderedPod<By> {
    fn cmp(&self, other: &Self) -> Ordering {
        By::compare(&self.info, &other.info)
    }
}
impl<By: PodOrder> PartialOrd for OrderedPod<By> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}
impl<By: PodOrder> PartialEq for OrderedPod<By> {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}
impl<By: PodOrder> Eq for OrderedPod<By> {}
