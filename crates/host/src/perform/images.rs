//! Images: looked for, brought back from an archive, pulled. One counts as there once a power cut takes nothing of it.

use std::collections::BTreeSet;

use corten_kubelet::{ContainerSpec, Credential, Failure, Image, MountSource};
use corten_machine::MachineError;

use super::{Inner, rpc};
use crate::{containerd, cri};

impl Inner {
    /// An image that was removed to make room, and that an archive of the node holds, is brought back.
    pub(super) async fn inspect(&self, image: &str) -> Result<Option<Image>, Failure> {
        if let Some(there) = self.present(image).await? {
            return Ok(Some(image_of(there)));
        }
        // One at a time: who waits finds what the one before has brought.
        let turn = self.images.turn().await.map_err(failed)?;
        let Some(archive) = containerd::holding(&self.layout, image) else { return Ok(None) };
        if let Some(there) = self.present(image).await? {
            return Ok(Some(image_of(there)));
        }
        containerd::import(&self.layout, &archive).await.map_err(failed)?;
        turn.keep().await.map_err(failed)?;
        tracing::info!(image, archive = %archive.display(), "an image that was removed is brought back");
        Ok(self.present(image).await?.map(image_of))
    }

    pub(super) async fn pull(&self, image: &str, credentials: Vec<Credential>) -> Result<Image, Failure> {
        // The registry is not named: it was chosen by the image's name, and containerd takes addresses with a scheme only.
        let auths = credentials.into_iter().map(|it| {
            let (username, password) = (it.username, it.password);
            Some(cri::AuthConfig { username, password, ..cri::AuthConfig::default() })
        });
        let mut auths: Vec<_> = auths.collect();
        if auths.is_empty() {
            auths.push(None);
        }
        let before = self.present(image).await?.map(|it| it.id);
        drop(self.images.turn().await.map_err(failed)?);
        let mut failure = None;
        for auth in auths {
            match self.cri.pull_image(image, auth, None).await {
                Ok(pulled) => return self.pulled(image, &pulled, before.as_deref()).await,
                Err(error) => failure = Some(rpc(&error)),
            }
        }
        Err(failure.expect("at least one try was made"))
    }

    /// What was pulled, made durable unless it was there and is.
    async fn pulled(&self, image: &str, pulled: &str, before: Option<&str>) -> Result<Image, Failure> {
        let Some(there) = self.present(pulled).await? else {
            return Err(Failure::new(format!("image {image:?} was pulled and is not there")));
        };
        if before != Some(&there.id) || !self.images.holds(&there.id).map_err(failed)? {
            self.images.turn().await.map_err(failed)?.keep().await.map_err(failed)?;
        }
        Ok(image_of(there))
    }

    /// An image that somebody loaded with the runtime's own tools is whole once a container was made of it.
    pub(super) async fn keep_used(&self, image: &str) {
        let keep = async {
            match self.images.free_turn() {
                Some(turn) if !self.images.holds(image)? => turn.keep_only(&BTreeSet::from([image.to_owned()])).await,
                _ => Ok(()),
            }
        };
        if let Err(error) = keep.await {
            tracing::warn!(%error, image, "an image may be lost where the power fails");
        }
    }

    /// Images that nobody uses yet and that somebody loaded: what was there at the look before is whole by now. Gives what
    /// may not be.
    pub(super) async fn keep_loaded(&self, before: &BTreeSet<String>) -> Result<BTreeSet<String>, MachineError> {
        let unnamed = self.images.unnamed().await?;
        let (whole, new): (BTreeSet<_>, BTreeSet<_>) = unnamed.into_iter().partition(|it| before.contains(it));
        match self.images.free_turn() {
            Some(turn) if !whole.is_empty() => turn.keep_only(&whole).await?,
            _ => {}
        }
        Ok(new)
    }

    async fn present(&self, image: &str) -> Result<Option<cri::Image>, Failure> {
        self.cri.image_status(image).await.map_err(|it| rpc(&it))
    }
}

impl Inner {
    /// A runtime that does not know parts of images mounts the whole, and one that knows them repeats what it was told.
    pub(super) async fn check_image_mounts(&self, id: &str, spec: &ContainerSpec) -> Result<(), String> {
        let parts = spec.mounts.iter().filter_map(|it| match &it.source {
            MountSource::Image { reference, sub_path, .. } if !sub_path.is_empty() => {
                Some((&it.container_path, reference, sub_path))
            }
            _ => None,
        });
        let parts: Vec<_> = parts.collect();
        if parts.is_empty() {
            return Ok(());
        }
        let made = self.cri.container_status(id).await.map_err(|it| rpc(&it).message)?;
        for (path, reference, sub_path) in parts {
            if !made.mounts.iter().any(|it| it.container_path == *path && it.image_sub_path == *sub_path) {
                return Err(format!(
                    "subPath {sub_path:?} of the image {reference:?}: the runtime mounts images only whole"
                ));
            }
        }
        Ok(())
    }
}

/// A runtime that does not know mounts of images takes them for mounts of a path without a name.
pub(super) fn explain(spec: &ContainerSpec, message: String) -> String {
    let mounts_images = spec.mounts.iter().any(|it| matches!(it.source, MountSource::Image { .. }));
    if mounts_images && NO_PATH.iter().any(|it| message.contains(it)) {
        return format!("the runtime does not mount images as volumes: {message}");
    }
    message
}

/// What containerd before 2.1 says of a path without a name.
const NO_PATH: [&str; 2] = ["failed to mkdir \"\"", "failed to stat \"\""];

#[expect(clippy::needless_pass_by_value, reason = "a function for map_err")]
fn failed(error: MachineError) -> Failure {
    Failure::new(error.to_string())
}

fn image_of(image: cri::Image) -> Image {
    Image { image_ref: image.id, size_bytes: image.size, uid: image.uid.map(|it| it.value), username: image.username }
}
