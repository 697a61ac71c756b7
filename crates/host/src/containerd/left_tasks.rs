//! Tasks that containerd has of containers that it says have ended.
//!
//! A caller that dies amid StartContainer takes the start back. containerd 1.6 may then say of the container that it has ended, and keep
//! its task, which may run: it stops nothing any more, and removes neither the container nor its sandbox.

use std::collections::BTreeSet;

use corten_machine::{Layout, command};

/// The hexadecimal digits of an id of containerd's CRI.
const ID_LEN: usize = 64;

/// Where `message` says that such tasks are in the way: ends them, so that whoever asked can ask once more.
pub(crate) async fn end(layout: &Layout, message: &str) -> bool {
    let mut has_ended = false;
    for id in in_the_way(message) {
        let socket = layout.containerd_socket();
        let args = ["--address", &socket.to_string_lossy(), "--namespace", "k8s.io", "tasks", "delete", "--force", id];
        match command::run("ctr", &args, "").await {
            Ok(_) => {
                tracing::info!(container = id, "a task that containerd kept of a container that has ended is ended");
                has_ended = true;
            }
            Err(error) => {
                tracing::warn!(container = id, %error, "a task that is in the way of its container's removal stays")
            }
        }
    }
    has_ended
}

/// Of what is refused because of its state: the ids.
fn in_the_way(message: &str) -> BTreeSet<&str> {
    if !message.contains("failed precondition") {
        return BTreeSet::new();
    }
    let words = message.split(|it: char| !it.is_ascii_alphanumeric());
    words.filter(|it| it.len() == ID_LEN && it.bytes().all(|it| it.is_ascii_hexdigit())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_in_the_way_is_named_once() {
        let id = "0123456789abcdef".repeat(4);
        let refused =
            format!("failed to remove container \"{id}\": cannot delete running task {id}: failed precondition");
        assert_eq!(in_the_way(&refused), BTreeSet::from([&*id]));
        for other in [format!("container \"{id}\": not found"), "task abc: failed precondition".to_owned()] {
            assert!(in_the_way(&other).is_empty(), "{other}");
        }
    }
}
