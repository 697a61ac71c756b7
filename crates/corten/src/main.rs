//! The one binary: gives minds their hands. No logic lives here, only who is joined to whom.

mod control_plane;
mod in_process;
mod node_agent;
mod process;
mod verbs;

use std::process::ExitCode;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    corten_cli::main(&[verbs::node::VERB, verbs::server::VERB])
}
