//! The folders of a node: which are closed to the machine's other users, who owns them, and which is Corten's at all.

mod file_modes;
pub(crate) mod folder_modes;
pub(crate) mod own_folder;
pub(crate) mod owners;
