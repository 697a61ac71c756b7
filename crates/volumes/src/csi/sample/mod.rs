//! A driver for tests, as others write them: its volumes are folders, or files that are disks; it has every capability that
//! it is not told to lack, and fails in the ways that a file tells it to.
//!
//! In its folder: `state.json`, `volumes/`, `snapshots/`; `calls`, a line for each request; and `faults`, read at each request:
//! lines of a method and one of [`faults::Fault`].

mod answer;
mod controller;
mod faults;
pub(super) mod messages;
mod node;
mod release;
mod state;

#[cfg(test)]
pub(super) use state::id_of;

use std::{
    collections::BTreeSet,
    io,
    path::{Path, PathBuf},
    sync::Arc,
};

use bytes::Bytes;
use parking_lot::Mutex;
use prost::Message;

use self::{
    answer::{Answers, Served, read},
    faults::Faults,
    state::State,
};
use super::{client, controller_messages as cm, messages as m};
use crate::{Code, Fault};

/// What a sample is, and what it lacks.
#[derive(Clone, Debug)]
pub struct SampleSettings {
    pub folder: PathBuf,
    pub socket: PathBuf,
    pub name: String,
    /// Its name for the node it runs on.
    pub node: String,
    /// Other nodes, on which others of it have the same folder.
    pub others: BTreeSet<String>,
    /// Where it is, with others: then its volumes are everywhere there, and not on its node alone.
    pub zone: Option<String>,
    /// Of `controller`, `attach`, `snapshot`, `clone`, `expand`, `capacity`, `modify`, `list`, `list-snapshots`, `stage`,
    /// `node-expand`, `stats`, `condition`, `group`, `topology`: what it does not offer.
    pub without: BTreeSet<String>,
    /// It has no more for all volumes together, in bytes.
    pub capacity: u64,
    /// Whether it mounts; else it makes folders where mounts would be.
    pub mounts: bool,
    /// It is of the time of CSI 1.5: it refuses whatever came later.
    pub is_old: bool,
}

pub struct SampleDriver {
    settings: SampleSettings,
    state: Mutex<State>,
}

impl SampleDriver {
    /// # Errors
    /// Its folder cannot be made or read.
    pub fn new(settings: SampleSettings) -> io::Result<Self> {
        let state = Mutex::new(State::open(&settings.folder)?);
        Ok(Self { settings, state })
    }

    /// Serves until it is dropped. A socket that one left which was killed gives way.
    ///
    /// # Errors
    /// The socket cannot be made.
    pub async fn serve(self: Arc<Self>) -> io::Result<()> {
        let listener = corten_grpc::listen(&self.settings.socket)?;
        corten_grpc::serve(listener, Arc::new(Answers(self))).await;
        Ok(())
    }

    fn folder(&self) -> &Path {
        &self.settings.folder
    }

    fn has(&self, what: &str) -> bool {
        let lacks = self.settings.without.contains(what) || (self.settings.is_old && what == "modify");
        !lacks
    }

    async fn answer(self: Arc<Self>, path: String, question: Bytes) -> Result<Vec<u8>, Fault> {
        let method = path.rsplit('/').next().unwrap_or_default().to_owned();
        let fault = Faults::read(self.folder()).of(&method);
        if fault.as_ref().is_some_and(|it| *it == faults::Fault::Hang) {
            self.note(&method, "hangs");
            return std::future::pending().await;
        }
        if let Some(faults::Fault::Refuse(code)) = &fault {
            self.note(&method, "refused");
            return Err(Fault::new(*code, "told to fail"));
        }
        if fault == Some(faults::Fault::Die) {
            self.note(&method, "dies");
            std::process::abort();
        }
        let worked = tokio::task::spawn_blocking({
            let (sample, fault) = (self.clone(), fault.clone());
            move || sample.work(&path, &question, fault.as_ref())
        });
        let served = worked.await.unwrap_or_else(|_| Err(Fault::internal("the sample broke")));
        self.note(&method, &served.as_ref().map_or_else(ToString::to_string, |it| it.about.clone()));
        match fault {
            Some(faults::Fault::DieAfter) => std::process::abort(),
            Some(faults::Fault::LoseAnswer) => Err(Fault::new(Code::Unavailable, "told to lose the answer")),
            _ => served.map(|it| it.message),
        }
    }

    fn note(&self, method: &str, about: &str) {
        use io::Write;
        let calls = std::fs::OpenOptions::new().append(true).create(true).open(self.folder().join("calls"));
        let _ = calls.and_then(|mut it| writeln!(it, "{method} {about}"));
    }

    fn work(&self, path: &str, question: &[u8], fault: Option<&faults::Fault>) -> Result<Served, Fault> {
        if !self.settings.others.is_empty() {
            *self.state.lock() = State::open(self.folder()).map_err(Fault::internal)?;
        }
        let service = path.split('/').nth(1).unwrap_or_default();
        if self.settings.is_old && service.starts_with("csi.") {
            release::check_1_5(path.rsplit('/').next().unwrap_or_default(), question)?;
        }
        match service {
            "pluginregistration.Registration" => self.registration(path, question),
            "csi.v1.Identity" => self.identity(path),
            "csi.v1.Controller" if self.has("controller") => self.controller(path, question, fault),
            "csi.v1.Node" => self.node(path, question, fault),
            _ => Err(Fault::new(Code::Unimplemented, format!("unknown method {path}"))),
        }
    }

    fn registration(&self, path: &str, question: &[u8]) -> Result<Served, Fault> {
        match path {
            corten_grpc::GET_INFO => Ok(Served::of(
                "",
                &corten_grpc::PluginInfo {
                    r#type: "CSIPlugin".into(),
                    name: self.settings.name.clone(),
                    endpoint: String::new(),
                    supported_versions: vec![if self.settings.is_old { "1.5.0" } else { "1.12.0" }.into()],
                },
            )),
            _ => {
                let status: corten_grpc::RegistrationStatus = read(question)?;
                Ok(Served::of(&format!("{} {}", status.plugin_registered, status.error), &m::Empty {}))
            }
        }
    }

    fn identity(&self, path: &str) -> Result<Served, Fault> {
        let message = match path {
            client::PLUGIN_INFO => {
                cm::GetPluginInfo { name: self.settings.name.clone(), vendor_version: "1".into() }.encode_to_vec()
            }
            client::PLUGIN_CAPABILITIES => {
                let service =
                    |it| cm::PluginCapability { service: Some(cm::Kind { r#type: it }), volume_expansion: None };
                let controller = self.has("controller").then(|| service(cm::HAS_CONTROLLER));
                let topology = self.has("topology").then(|| service(cm::HAS_TOPOLOGY));
                cm::PluginCapabilities { capabilities: controller.into_iter().chain(topology).collect() }
                    .encode_to_vec()
            }
            messages::PROBE => messages::Probed { ready: Some(messages::Bool { value: true }) }.encode_to_vec(),
            _ => return Err(Fault::new(Code::Unimplemented, format!("unknown method {path}"))),
        };
        Ok(Served { about: String::new(), message })
    }
}
