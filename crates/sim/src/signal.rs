//! Values that are waited for, in an order that is the same each time: tokio's `watch` wakes those who wait in an order of chance.

use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::{Notify, watch};

/// Wakes those who wait for it in the order in which they came.
#[derive(Default)]
pub(crate) struct Signal<T> {
    value: Mutex<T>,
    changed: Notify,
}

impl<T: Copy> Signal<T> {
    pub(crate) fn get(&self) -> T {
        *self.value.lock()
    }

    pub(crate) fn set(&self, value: T) {
        self.modify(|it| *it = value);
    }

    pub(crate) fn modify(&self, change: impl FnOnce(&mut T)) {
        change(&mut self.value.lock());
        self.changed.notify_waiters();
    }

    pub(crate) async fn until(&self, is_so: impl Fn(T) -> bool) {
        loop {
            let mut changed = std::pin::pin!(self.changed.notified());
            // Before the look: what changes after it wakes.
            changed.as_mut().enable();
            if is_so(self.get()) {
                return;
            }
            changed.await;
        }
    }
}

/// A channel for each who listens, told one after the other.
#[derive(Clone)]
pub(crate) struct Fan<T>(Arc<Mutex<Told<T>>>);

struct Told<T> {
    value: T,
    listeners: Vec<watch::Sender<T>>,
}

impl<T: Copy> Fan<T> {
    pub(crate) fn new(value: T) -> Self {
        Self(Arc::new(Mutex::new(Told { value, listeners: Vec::new() })))
    }

    pub(crate) fn set(&self, value: T) {
        let mut told = self.0.lock();
        told.value = value;
        told.listeners.retain(|it| !it.is_closed());
        for listener in &told.listeners {
            listener.send_replace(value);
        }
    }

    pub(crate) fn listen(&self) -> watch::Receiver<T> {
        let mut told = self.0.lock();
        let listener = watch::Sender::new(told.value);
        let receiver = listener.subscribe();
        told.listeners.push(listener);
        receiver
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn who_came_first_is_woken_first() {
        let (signal, order) = (Arc::new(Signal::default()), Arc::new(Mutex::new(Vec::new())));
        let waiting: Vec<_> = (0..20)
            .map(|n| {
                let (signal, order) = (signal.clone(), order.clone());
                tokio::spawn(async move {
                    signal.until(|it| it > 1).await;
                    order.lock().push(n);
                })
            })
            .collect();
        for value in 0..3 {
            tokio::task::yield_now().await;
            signal.set(value);
        }
        futures_util::future::join_all(waiting).await;
        assert_eq!(*order.lock(), (0..20).collect::<Vec<_>>());
    }

    #[test]
    fn each_who_listens_is_told() {
        let fan = Fan::new(1);
        let (one, other) = (fan.listen(), fan.listen());
        drop(other);
        fan.set(2);
        assert_eq!((*one.borrow(), *fan.listen().borrow()), (2, 2));
        assert_eq!(fan.0.lock().listeners.len(), 2, "who left is not told any more");
    }
}
