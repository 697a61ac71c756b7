//! Commands in a guest: over one connection that is kept, because an emulated machine takes a second to agree on keys.

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

/// How to reach one guest.
pub(super) struct Ssh<'a> {
    pub(super) port: u16,
    pub(super) key: PathBuf,
    pub(super) dir: &'a Path,
}

impl Ssh<'_> {
    fn program(&self) -> Command {
        let mut command = Command::new("ssh");
        command.args(["-F", "none", "-p", &self.port.to_string(), "-i"]).arg(&self.key);
        for option in [
            // Another machine answers at this port another time.
            "StrictHostKeyChecking=no",
            "UserKnownHostsFile=/dev/null",
            "LogLevel=ERROR",
            "BatchMode=yes",
            "ConnectTimeout=10",
            // A machine that says nothing for five minutes hangs: what waits for it ends.
            "ServerAliveInterval=30",
            "ServerAliveCountMax=10",
            "KexAlgorithms=curve25519-sha256",
        ] {
            command.args(["-o", option]);
        }
        command.arg("-o").arg(format!("ControlPath={}", self.socket().display()));
        command
    }

    fn socket(&self) -> PathBuf {
        self.dir.join("ssh")
    }

    /// Makes the connection that the commands share. False where the guest does not answer.
    pub(super) fn connect(&self) -> bool {
        self.forget();
        let mut command = self.program();
        // In the background, once it stands.
        command.args(["-M", "-N", "-f", "root@127.0.0.1"]);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        command.status().is_ok_and(|it| it.success())
    }

    /// Ends the shared connection: what stood at its other end is gone.
    pub(super) fn forget(&self) {
        if self.socket().exists() {
            let mut command = self.program();
            command.args(["-O", "exit", "root@127.0.0.1"]).stdin(Stdio::null());
            let _ = command.stdout(Stdio::null()).stderr(Stdio::null()).status();
            let _ = fs::remove_file(self.socket());
        }
    }

    /// A command that bash runs in the guest.
    pub(super) fn command(&self, text: &str) -> Command {
        let mut command = self.program();
        command.args(["-o", "ControlMaster=no", "root@127.0.0.1", "--"]).arg(format!("bash -c {}", quoted(text)));
        command
    }
}

/// As one word of a shell.
pub(super) fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}
