//! The drivers of a node.

use std::{collections::BTreeMap, sync::Arc};

use tokio::sync::watch;

use crate::Driver;

/// The drivers of this node by name. Cheap to clone; all clones are one.
#[derive(Clone)]
pub struct Drivers(watch::Sender<BTreeMap<String, Arc<dyn Driver>>>);

impl Default for Drivers {
    fn default() -> Self {
        Self(watch::Sender::new(BTreeMap::new()))
    }
}

impl Drivers {
    pub fn add(&self, driver: Arc<dyn Driver>) {
        self.0.send_modify(|it| {
            it.insert(driver.name().to_owned(), driver);
        });
    }

    pub fn remove(&self, name: &str) {
        self.0.send_if_modified(|it| it.remove(name).is_some());
    }

    /// Has the driver, where it is here, say again how many of its volumes this node takes; who follows is told of another number.
    pub async fn ask_limit(&self, name: &str) {
        let Some(driver) = self.get(name) else { return };
        match driver.ask_limit().await {
            Ok(is_news) => {
                self.0.send_if_modified(|_| is_news);
            }
            // It stays as it was, until it is asked again.
            Err(error) => {
                tracing::warn!(%error, driver = name, "a driver does not say how many volumes this node takes")
            }
        }
    }

    pub fn get(&self, name: &str) -> Option<Arc<dyn Driver>> {
        self.0.borrow().get(name).cloned()
    }

    /// All drivers, each time one comes or goes.
    pub fn follow(&self) -> watch::Receiver<BTreeMap<String, Arc<dyn Driver>>> {
        self.0.subscribe()
    }
}
