//! A driver of devices for tests and scripts: it writes down what it is asked, and fails as a file says.
//!
//! In its folder: `fault`, one of [`FAULTS`]; `log`; and, where it is to make devices that a runtime finds, `cdi`, the folder of
//! the Container Device Interface in which it describes each claim it prepares.

use std::{
    fs, io,
    io::Write,
    path::{Path, PathBuf},
    pin::Pin,
    sync::Arc,
};

use bytes::Bytes;
use corten_grpc::{Answer, GET_INFO, NOTIFY, PluginInfo, RegistrationStatus, Service, Status, one, read};

use crate::{
    claims::messages::{Claim, Claims, Device, Prepared, PreparedClaims, UnpreparedClaims, VERSIONS},
    messages::Empty,
};

/// What goes wrong: it refuses to prepare; it refuses to take back; it never answers.
pub const FAULTS: [&str; 3] = ["prepare", "unprepare", "hang"];

/// See the module.
pub struct SampleDriver {
    name: String,
    folder: PathBuf,
}

impl SampleDriver {
    pub fn new(name: &str, folder: &Path) -> Self {
        Self { name: name.to_owned(), folder: folder.to_owned() }
    }

    /// Serves at a socket in the folder where plugins register, until it is dropped.
    ///
    /// # Errors
    /// The socket cannot be made.
    pub async fn serve(self, registry: &Path) -> io::Result<()> {
        let listener = corten_grpc::listen(&registry.join(format!("{}.sock", self.name)))?;
        corten_grpc::serve(listener, Arc::new(self)).await;
        Ok(())
    }

    fn says(&self, name: &str) -> String {
        fs::read_to_string(self.folder.join(name)).unwrap_or_default().trim().to_owned()
    }

    fn log(&self, line: &str) {
        let file = fs::File::options().create(true).append(true).open(self.folder.join("log"));
        // What cannot be written is not there to be compared.
        let _ = file.and_then(|mut it| writeln!(it, "{line}"));
    }

    fn description(&self, claim: &Claim) -> Option<PathBuf> {
        let folder = self.says("cdi");
        (!folder.is_empty()).then(|| Path::new(&folder).join(format!("{}-{}.json", self.name, claim.uid)))
    }

    fn prepare(&self, claim: &Claim) -> Prepared {
        self.log(&format!("prepare {}/{}", claim.namespace, claim.name));
        let id = format!("{}/claim={}", self.name, claim.uid);
        if let Some(path) = self.description(claim) {
            let env = format!("DRA_CLAIM={}", claim.name);
            let description = serde_json::json!({
                "cdiVersion": "0.5.0",
                "kind": format!("{}/claim", self.name),
                "devices": [{ "name": claim.uid, "containerEdits": { "env": [env] } }],
            });
            let folder = path.parent().map(fs::create_dir_all).unwrap_or(Ok(()));
            if let Err(error) = folder.and_then(|()| fs::write(&path, description.to_string())) {
                return Prepared { error: error.to_string(), ..Prepared::default() };
            }
        }
        Prepared { devices: vec![Device { cdi_device_ids: vec![id], ..Device::default() }], error: String::new() }
    }

    fn unprepare(&self, claim: &Claim) {
        self.log(&format!("unprepare {}/{}", claim.namespace, claim.name));
        if let Some(path) = self.description(claim) {
            // It may be gone already.
            let _ = fs::remove_file(path);
        }
    }

    fn info(&self) -> PluginInfo {
        PluginInfo {
            r#type: "DRAPlugin".into(),
            name: self.name.clone(),
            endpoint: String::new(),
            supported_versions: VERSIONS.iter().map(|it| it.name.to_owned()).collect(),
        }
    }
}

impl Service for SampleDriver {
    fn answer<'a>(
        &'a self,
        method: &'a str,
        question: Bytes,
    ) -> Pin<Box<dyn Future<Output = Result<Answer, Status>> + Send + 'a>> {
        Box::pin(async move {
            let fault = self.says("fault");
            let newest = &VERSIONS[0];
            match (method, &*fault) {
                (GET_INFO, _) => Ok(one(&self.info())),
                (NOTIFY, _) => {
                    let status: RegistrationStatus = read(question)?;
                    self.log(&format!("registered {} {}", status.plugin_registered, status.error));
                    Ok(one(&Empty {}))
                }
                (_, "hang") => std::future::pending().await,
                (it, _) if it == newest.prepare => {
                    let Claims { claims } = read(question)?;
                    let one_of = |it: &Claim| match fault.as_str() {
                        "prepare" => Prepared { error: "told to refuse".into(), ..Prepared::default() },
                        _ => self.prepare(it),
                    };
                    let claims = claims.iter().map(|it| (it.uid.clone(), one_of(it))).collect();
                    Ok(one(&PreparedClaims { claims }))
                }
                (it, "unprepare") if it == newest.unprepare => Err(Status::internal("told to refuse")),
                (it, _) if it == newest.unprepare => {
                    let Claims { claims } = read(question)?;
                    claims.iter().for_each(|it| self.unprepare(it));
                    let claims = claims.into_iter().map(|it| (it.uid, Default::default())).collect();
                    Ok(one(&UnpreparedClaims { claims }))
                }
                _ => Err(Status::unimplemented(method)),
            }
        })
    }
}
