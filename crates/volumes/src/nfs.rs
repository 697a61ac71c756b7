//! Folders of NFS servers, mounted by the kernel's own client.

use std::{ffi::CString, net::IpAddr, path::Path};

use corten_machine::mounts;
use rustix::{
    io::Errno,
    mount::{MountFlags, mount},
};

use crate::{Code, Fault, file_system::not_mounted, mount_options};

/// The server's address: the kernel asks no name server.
pub(crate) async fn address(server: &str) -> Result<IpAddr, Fault> {
    let server = server.trim_start_matches('[').trim_end_matches(']');
    if let Ok(address) = server.parse() {
        return Ok(address);
    }
    let found = tokio::net::lookup_host((server, 2049)).await;
    let mut found = found.map_err(|it| Fault::new(Code::Unavailable, format!("mount failed: {server}: {it}")))?;
    let first = found.next().map(|it| it.ip());
    first.ok_or_else(|| Fault::new(Code::Unavailable, format!("mount failed: {server} has no address")))
}

/// Those that are tried in turn, as `mount.nfs` does. Version 3 needs a daemon for its locks and is left to who asks for it.
const VERSIONS: [&str; 3] = ["vers=4.2,", "vers=4.1,", "vers=4.0,"];

/// Mounts it, as the newest version that the server speaks where its options name none; harmless where it is mounted there.
pub(crate) fn mount_folder(
    server: &str,
    address: IpAddr,
    path: &str,
    at: &Path,
    options: &[String],
    read_only: bool,
) -> Result<(), Fault> {
    if mounts::is_mount_point(at) {
        return Ok(());
    }
    if !path.starts_with('/') || path.contains('\0') || server.contains(['\0', '/']) {
        return Err(Fault::new(Code::InvalidArgument, "an NFS volume has a server and an absolute path"));
    }
    let parsed = mount_options::parse(options);
    let names_version = |it: &str| ["vers=", "nfsvers=", "v3", "v4"].iter().any(|word| it.starts_with(word));
    let versions: &[&str] = if parsed.data.split(',').any(names_version) { &[""] } else { &VERSIONS };
    let more = if parsed.data.is_empty() { String::new() } else { format!(",{}", parsed.data) };
    let flags = parsed.flags | MountFlags::NOSUID | MountFlags::NODEV;
    let flags = if read_only { flags | MountFlags::RDONLY } else { flags };
    let mut unspoken = Errno::PROTONOSUPPORT;
    for version in versions {
        // A server that is away is waited for (`hard`), as with `mount.nfs`, where the options say nothing else.
        let data = CString::new(format!("{version}addr={address}{more}"));
        let data = data.map_err(|_| Fault::new(Code::InvalidArgument, "a mount option holds a zero"))?;
        match mount(format!("{server}:{path}"), at, "nfs", flags, data.as_c_str()) {
            Err(error @ (Errno::PROTONOSUPPORT | Errno::INVAL)) => unspoken = error,
            other => return other.map_err(|it| not_mounted(it, "nfs")),
        }
    }
    Err(not_mounted(unspoken, "nfs"))
}
