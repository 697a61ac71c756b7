//! What a machine does while its plug is pulled.

use std::ops::Range;

use rand::{Rng, rngs::StdRng};

/// What goes on in the machine until it has no power any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, clap::ValueEnum)]
pub(crate) enum Work {
    /// The first `corten up` of a new machine, which loads the images of the demo.
    FirstUp,
    /// Pods are made and deleted.
    Starts,
    /// A Deployment is changed again and again.
    Rollouts,
    /// A running Pod is given more, and less.
    Resizes,
    /// Claims are made with their Pods, bound, grown and deleted.
    Claims,
    /// The same, and the plug is pulled three times more while what was mounted is found and mounted anew.
    Remounts,
    /// Images are pulled that the machine has never seen.
    Pulls,
    /// The store's log is filled until it is replaced by a checkpoint.
    Checkpoints,
    /// `corten down` and `corten up`.
    Restarts,
    /// Nothing but the writers.
    Quiet,
    /// Pods are started, and the plug is pulled again while the machine recovers.
    Recoveries,
    /// A Deployment is changed, and the plug is pulled twice within a second.
    Twice,
}

const OF_A_RUNNING_CLUSTER: [Work; 11] = [
    Work::Starts,
    Work::Rollouts,
    Work::Resizes,
    Work::Claims,
    Work::Remounts,
    Work::Pulls,
    Work::Checkpoints,
    Work::Restarts,
    Work::Quiet,
    Work::Recoveries,
    Work::Twice,
];
/// One round in so many begins with a new machine.
const NEW_MACHINE_EVERY: u32 = 6;

impl Work {
    pub(super) fn any(dice: &mut StdRng) -> Self {
        if dice.random_ratio(1, NEW_MACHINE_EVERY) {
            return Self::FirstUp;
        }
        OF_A_RUNNING_CLUSTER[dice.random_range(0..OF_A_RUNNING_CLUSTER.len())]
    }

    /// Within how many seconds of a real machine the plug is pulled: as long as there is something to be cut short.
    pub(super) fn seconds_max(self) -> f64 {
        match self {
            Self::FirstUp => 20.0,
            Self::Starts | Self::Rollouts | Self::Claims | Self::Pulls | Self::Restarts => 12.0,
            Self::Remounts => 3.0,
            Self::Resizes | Self::Checkpoints | Self::Quiet | Self::Recoveries | Self::Twice => 5.0,
        }
    }

    /// Within which seconds after each boot the plug is pulled again, before the machine is left alone.
    pub(super) fn further_lives(self) -> Vec<Range<f64>> {
        match self {
            Self::Recoveries => vec![1.0..15.0],
            Self::Remounts => vec![0.0..3.0; 3],
            Self::Twice => vec![0.0..1.0],
            _ => Vec::new(),
        }
    }

    /// Is the cluster started again by the work itself, and its containers, too?
    pub(super) fn restarts_by_itself(self) -> bool {
        self == Self::Restarts
    }

    /// What bash does in the machine. `number` is another for each round, and `image` mostly.
    pub(super) fn script(self, number: usize, image: usize, up: &str) -> String {
        match self {
            Self::FirstUp => up.to_owned(),
            Self::Starts | Self::Recoveries => format!(
                "while :; do for it in 1 2 3; do kubectl delete pod start-$it --now --ignore-not-found; \
                 kubectl run start-$it --image=busybox:1.35 --image-pull-policy=IfNotPresent --labels=round={number} \
                 --command -- sh -c 'trap \"exit 0\" TERM; while :; do sleep 0.5; done'; done; done"
            ),
            Self::Rollouts | Self::Twice => {
                format!("for ((i = 0; ; i++)); do kubectl set env deployment/kept ROUND={number}-$i; sleep 1; done")
            }
            Self::Resizes => "for ((i = 0; ; i++)); do kubectl patch pod grow --subresource resize -p \
                 '{\"spec\":{\"containers\":[{\"name\":\"main\",\"resources\":{\"limits\":{\"memory\":\"'$((48 + i % 16))'Mi\"}}}]}}'; done"
                .to_owned(),
            Self::Claims | Self::Remounts => "while :; do for it in 1 2; do kubectl delete pod made-$it --now --ignore-not-found; \
                 kubectl delete pvc made-$it --ignore-not-found; sed s/NAME/made-$it/ e2e/machine/made.yaml | kubectl create -f -; \
                 done; kubectl wait --for=condition=Ready pod/made-1; kubectl patch pvc made-1 -p \
                 '{\"spec\":{\"resources\":{\"requests\":{\"storage\":\"24Mi\"}}}}'; sleep 0.5; done"
                .to_owned(),
            Self::Pulls => format!(
                "kubectl delete pod pulled --now --ignore-not-found; kubectl run pulled --image=127.0.0.1:5000/pulled:{image}; sleep 1000"
            ),
            Self::Restarts => format!("while :; do corten down; {up}; done"),
            Self::Checkpoints | Self::Quiet => "sleep 1000".to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use rand::SeedableRng;

    use super::*;

    #[test]
    fn every_kind_of_work_comes_up() {
        let mut dice = StdRng::seed_from_u64(1);
        let seen: BTreeSet<Work> = (0..200).map(|_| Work::any(&mut dice)).collect();
        assert_eq!(seen.len(), OF_A_RUNNING_CLUSTER.len() + 1);
    }
}
