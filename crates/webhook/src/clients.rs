//! All that is asked, each with its kept connections for as long as somebody holds it.

use std::{
    collections::HashMap,
    sync::{Arc, Weak},
};

use corten_cacher::watch_cache::Caches;
use parking_lot::Mutex;
use tokio::net::TcpStream;

use crate::{
    client::Client,
    client_config::{ClientConfig, ConfigError},
    connection::Dial,
};

pub struct Clients {
    caches: Arc<Caches>,
    dial: Dial,
    known: Arc<Known>,
}

type Known = Mutex<HashMap<ClientConfig, Weak<Client>>>;

/// Keeps a client findable by its configuration, which may hold keys, for as long as somebody has the client.
pub(crate) struct Entry {
    known: Arc<Known>,
    config: ClientConfig,
}

impl Drop for Entry {
    fn drop(&mut self) {
        let mut known = self.known.lock();
        // Another one may have taken its place already.
        if known.get(&self.config).is_some_and(|it| it.strong_count() == 0) {
            known.remove(&self.config);
        }
    }
}

impl Clients {
    /// Over the machine's network.
    pub fn new(caches: Arc<Caches>) -> Self {
        let dial: Dial = Arc::new(|address| {
            Box::pin(async move {
                let stream = TcpStream::connect(address).await?;
                stream.set_nodelay(true)?;
                Ok(stream)
            })
        });
        Self::dialling(caches, dial)
    }

    /// Over another network.
    pub fn dialling(caches: Arc<Caches>, dial: Dial) -> Self {
        Self { caches, dial, known: Arc::default() }
    }

    /// The client of a configuration: the same for all who hold it. Its connections end when the last of them drops it, as those who
    /// compile configurations do with one that has changed.
    ///
    /// # Errors
    /// The configuration cannot be used.
    pub fn client(&self, config: &ClientConfig) -> Result<Arc<Client>, ConfigError> {
        if let Some(client) = self.known.lock().get(config).and_then(Weak::upgrade) {
            return Ok(client);
        }
        let entry = Entry { known: self.known.clone(), config: config.clone() };
        let made = Arc::new(Client::new(config, self.caches.clone(), self.dial.clone(), entry)?);
        let mut known = self.known.lock();
        if let Some(client) = known.get(config).and_then(Weak::upgrade) {
            // Somebody else was faster. What was made in vain takes the lock when it goes.
            drop(known);
            return Ok(client);
        }
        known.insert(config.clone(), Arc::downgrade(&made));
        Ok(made)
    }

    #[cfg(test)]
    pub(crate) fn n_known(&self) -> usize {
        self.known.lock().len()
    }
}
