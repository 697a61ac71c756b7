//! Volumes that are images: which a container mounts, and what effects call them.

use corten_api::core::v1::{Container, Pod};

use crate::spec::pod::spec_of;

/// What effects call the image of a volume, where they name a container.
pub(crate) const PREFIX: &str = "volumes/";

/// The volume that an effect is about; `None`: it is about a container.
pub(crate) fn volume_of(container: &str) -> Option<&str> {
    container.strip_prefix(PREFIX)
}

/// The volumes that a container mounts and that are images, each once.
pub(crate) fn mounted_by<'a>(pod: &'a Pod, container: &'a Container) -> impl Iterator<Item = &'a str> {
    let is_mounted = |name: &str| container.volume_mounts.iter().flatten().any(|it| it.name == name);
    let volumes = spec_of(pod).volumes.iter().flatten().filter(|it| it.image.is_some());
    volumes.map(|it| it.name.as_str()).filter(move |it| is_mounted(it))
}
