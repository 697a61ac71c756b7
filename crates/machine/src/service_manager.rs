//! Tells the service manager that started this process how it does, as `sd_notify(3)` describes.

use std::{
    env,
    ffi::OsStr,
    fs, io,
    os::{
        linux::net::SocketAddrExt as _,
        unix::{
            ffi::OsStrExt as _,
            fs::MetadataExt as _,
            net::{SocketAddr, UnixDatagram},
        },
    },
    path::Path,
};

/// Whoever has it in its environment may speak for the service: it is not for our children.
pub const NOTIFY_SOCKET: &str = "NOTIFY_SOCKET";

/// Is systemd in charge of this machine? It makes this folder first of all (`sd_booted(3)`). A chroot may show the folder,
/// and systemd does not look after what is in there.
pub fn systemd_is_in_charge() -> bool {
    let same = |one: &str, other: &str| match (fs::metadata(one), fs::metadata(other)) {
        (Ok(one), Ok(other)) => (one.dev(), one.ino()) == (other.dev(), other.ino()),
        _ => false,
    };
    Path::new("/run/systemd/system").is_dir() && same("/proc/1/root/.", "/")
}

/// `READY=1`, `STOPPING=1`, `STATUS=…`. Harmless where no service manager wants to know.
pub fn notify_service_manager(state: &str) {
    let Some(address) = env::var_os(NOTIFY_SOCKET) else { return };
    if let Err(error) = send(&address, state) {
        tracing::warn!(%error, "the service manager cannot be told {state:?}");
    }
}

fn send(address: &OsStr, state: &str) -> io::Result<()> {
    let socket = UnixDatagram::unbound()?;
    let address = match address.as_bytes().strip_prefix(b"@") {
        Some(name) => SocketAddr::from_abstract_name(name)?,
        None => SocketAddr::from_pathname(address)?,
    };
    socket.send_to_addr(state.as_bytes(), &address).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tells_at_a_path_and_at_an_abstract_name() {
        let dir = tempfile::tempdir().expect("a temporary folder");
        let path = dir.path().join("notify");
        let heard = |socket: &UnixDatagram| {
            let mut text = [0; 64];
            let length = socket.recv(&mut text).expect("received");
            String::from_utf8_lossy(&text[..length]).into_owned()
        };

        let socket = UnixDatagram::bind(&path).expect("bound");
        send(path.as_os_str(), "READY=1").expect("sent");
        assert_eq!(heard(&socket), "READY=1");

        let name = format!("@corten-test-{}", std::process::id());
        let address = SocketAddr::from_abstract_name(&name[1..]).expect("a name");
        let socket = UnixDatagram::bind_addr(&address).expect("bound");
        send(OsStr::new(&name), "STOPPING=1").expect("sent");
        assert_eq!(heard(&socket), "STOPPING=1");

        assert!(send(dir.path().join("absent").as_os_str(), "READY=1").is_err());
    }
}
