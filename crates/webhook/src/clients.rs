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
    known: Mutex<HashMap<ClientConfig, Weak<Client>>>,
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
        Self { caches, dial, known: Mutex::default() }
    }

    /// The client of a configuration: the same for all who hold it. Its connections end when the last of them drops it, as those who
    /// compile configurations do with one that has changed.
    ///
    /// # Errors
    /// The configuration cannot be used.
    pub fn client(&self, config: &ClientConfig) -> Result<Arc<Client>, ConfigError> {
        let mut known = self.known.lock();
        if let Some(client) = known.get(config).and_then(Weak::upgrade) {
            return Ok(client);
        }
        let client = Arc::new(Client::new(config, self.caches.clone(), self.dial.clone())?);
        known.retain(|_, it| it.strong_count() > 0);
        known.insert(config.clone(), Arc::downgrade(&client));
        Ok(client)
    }
}
