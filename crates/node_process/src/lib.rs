//! The node of this machine as a process: where it keeps its things, who holds it, what it was started with, what became of it, and
//! who starts it again.

pub mod command_line;
pub mod node_folders;
pub mod node_lock;
pub mod node_name;
pub mod node_process;
pub mod node_record;
pub mod supervision;
