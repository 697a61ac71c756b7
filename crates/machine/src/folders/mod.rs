//! The folders of a node: which are closed to the machine's other users, who owns them, and which is Corten's at all.

mod file_modes;
pub mod folder_modes;
pub mod own_folder;
pub mod owners;
