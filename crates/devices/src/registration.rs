//! Where device plugins register: the kubelet's socket in the folder that plugins know.

use std::{fs, os::unix::fs::FileTypeExt, path::Path, pin::Pin};

use bytes::Bytes;
use corten_grpc::{Answer, Service, Status, one, read};
use tokio::sync::mpsc;

use crate::messages::{Empty, REGISTER, RegisterRequest, VERSION};

/// In the kubelet's folder.
pub(crate) const FOLDER: &str = "device-plugins";
pub(crate) const SOCKET: &str = "kubelet.sock";

/// Plugins that register at once, before the first of them is connected to.
pub(crate) const WAITING_MAX: usize = 64;

pub(crate) struct Registry(pub(crate) mpsc::Sender<RegisterRequest>);

impl Service for Registry {
    fn answer<'a>(
        &'a self,
        method: &'a str,
        question: Bytes,
    ) -> Pin<Box<dyn Future<Output = Result<Answer, Status>> + Send + 'a>> {
        Box::pin(async move {
            if method != REGISTER {
                return Err(Status::unimplemented(format!("unknown method {method}")));
            }
            let request: RegisterRequest = read(question)?;
            check(&request).map_err(Status::unknown)?;
            self.0.try_send(request).map_err(|_| Status::resource_exhausted("too many plugins register at once"))?;
            Ok(one(&Empty {}))
        })
    }
}

/// In the words of upstream's `server.Register`.
fn check(request: &RegisterRequest) -> Result<(), String> {
    if request.version != VERSION {
        let version = &request.version;
        return Err(format!(
            "requested API version {version:?} is not supported by kubelet. Supported versions are [{VERSION:?}]"
        ));
    }
    if !is_extended(&request.resource_name) {
        return Err(format!("the ResourceName {:?} is invalid", request.resource_name));
    }
    let endpoint = &request.endpoint;
    if endpoint.is_empty() || endpoint.starts_with('.') || endpoint.contains(['/', '\0']) || endpoint == SOCKET {
        return Err(format!("the endpoint {endpoint:?} is not the name of a socket in {FOLDER}"));
    }
    Ok(())
}

/// As `IsExtendedResourceName`: a name with a domain that is not Kubernetes's own.
fn is_extended(name: &str) -> bool {
    let is_native = !name.contains('/') || name.contains("kubernetes.io/");
    let quota = format!("requests.{name}");
    !is_native && !name.starts_with("requests.") && corten_meta::field::qualified_name(&quota).is_empty()
}

/// Sockets of plugins of an earlier run go (`removeContents`): so plugins learn that they are to register again.
pub(crate) fn remove_sockets(folder: &Path) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        if entry.file_type().is_ok_and(|it| it.is_socket())
            && let Err(error) = fs::remove_file(entry.path())
        {
            tracing::warn!(path = %entry.path().display(), %error, "cannot remove the socket of a device plugin");
        }
    }
}
