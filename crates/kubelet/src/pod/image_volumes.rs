//! Volumes that are images: got onto the machine before a container that mounts one begins, as the container's own image is.
//!
//! What is known of one is kept as of a container's image, under a name that no container has.

use std::collections::BTreeMap;

use corten_api::core::v1::Container;
use corten_reconcile::EventType::Warning;

use crate::{
    pod::{
        container_record::{ContainerContext, ContainerRecord},
        context::Context,
        image_state::{self, ImageState},
        machine::PodMachine,
    },
    spec::{
        image_volumes::{PREFIX, mounted_by},
        pod::spec_of,
    },
};

impl PodMachine {
    /// The ids of the images that are there, by volume.
    pub(crate) fn volume_images(&self) -> BTreeMap<String, String> {
        let present = |(name, record): (&String, &ContainerRecord)| match &record.image {
            ImageState::Present(image) => Some((name.clone(), image.image_ref.clone())),
            _ => None,
        };
        self.image_volumes.iter().filter_map(present).collect()
    }

    /// Brings what the container's mounts need one step nearer. As KEP-4639 has it, it is the container that says what is wrong.
    pub(crate) fn fetch_image_volumes(&mut self, container: &Container, cx: &mut Context<'_>) {
        let pod = self.pod.clone();
        let mut problem = None;
        for name in mounted_by(&pod, container) {
            let waiting = self.with_image_volume(name, cx, |record, context, cx| {
                if image_state::ensure(record, context, cx) {
                    record.waiting = None;
                }
                record.waiting.clone()
            });
            problem = waiting.flatten().or(problem);
        }
        let Some(problem) = problem else { return };
        self.with_container_record(container, cx, |record, context, cx| {
            if record.waiting.as_ref().is_none_or(|it| (it.reason, &it.message) != (problem.reason, &problem.message)) {
                cx.event(context.who, context.field, Warning, "Failed", format!("Error: {}", problem.message));
            }
            record.wait(problem.reason, problem.message, cx.now);
        });
    }

    /// A start takes the images as they are; for the next one they are looked for again.
    pub(crate) fn look_again_for_images(&mut self, container: &Container) {
        let pod = self.pod.clone();
        for name in mounted_by(&pod, container) {
            if let Some(record) = self.image_volumes.get_mut(name) {
                record.image = ImageState::Idle;
            }
        }
    }

    /// Calls `act` with what is known of a volume's image; nothing where the volume is none.
    pub(crate) fn with_image_volume<R>(
        &mut self,
        name: &str,
        cx: &mut Context<'_>,
        act: impl FnOnce(&mut ContainerRecord, &ContainerContext<'_>, &mut Context<'_>) -> R,
    ) -> Option<R> {
        let volume = spec_of(&self.pod).volumes.iter().flatten().find(|it| it.name == name)?;
        let source = volume.image.as_ref()?;
        let container = Container {
            name: format!("{PREFIX}{name}"),
            image: source.reference.clone(),
            image_pull_policy: source.pull_policy.clone(),
            ..Container::default()
        };
        let record = self.image_volumes.entry(name.to_owned()).or_default();
        let (images, persistent) = (BTreeMap::new(), BTreeMap::new());
        // Events about it are about the pod.
        let context = ContainerContext {
            who: &self.who,
            pod: &self.pod,
            container: &container,
            field: "",
            pod_ips: &[],
            target: None,
            images: &images,
            persistent: &persistent,
            prepared: &[],
        };
        Some(act(record, &context, cx))
    }
}
