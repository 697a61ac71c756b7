//! What a server and a node can be told on the command line: the options of `corten server`, `node` and `up`, which pass them on to
//! each other. What becomes of them is known to whoever reads them.

pub mod node_options;
pub mod server_options;
