//! Questions that are under way: many who ask the same at the same time ask once.

use std::{
    collections::HashMap,
    sync::{Arc, Weak},
};

use parking_lot::Mutex;
use tokio::sync::OnceCell;

use super::memory::Key;

pub(crate) struct UnderWay<T>(Mutex<HashMap<Key, Weak<OnceCell<T>>>>);

impl<T> Default for UnderWay<T> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<T: Clone> UnderWay<T> {
    /// What comes of the question of this key. Where who asks gives up, the next of those who wait asks.
    pub(crate) async fn once(&self, key: Key, asking: impl Future<Output = T>) -> T {
        let cell = {
            let mut under_way = self.0.lock();
            match under_way.get(&key).and_then(Weak::upgrade) {
                Some(cell) => cell,
                None => {
                    under_way.retain(|_, it| it.strong_count() > 0);
                    let cell = Arc::new(OnceCell::new());
                    under_way.insert(key, Arc::downgrade(&cell));
                    cell
                }
            }
        };
        cell.get_or_init(|| asking).await.clone()
    }
}
