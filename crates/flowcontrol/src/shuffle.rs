//! Shuffle sharding: which few of the queues a flow is dealt.
//!
//! Two flows seldom have the same hand, so that one which fills all queues of its own leaves others at least one.

use smallvec::SmallVec;

/// The numbers of the queues, in the order they were dealt.
pub(crate) type Hand = SmallVec<[usize; 8]>;

/// Deals `size` of `queues` queues without putting one back, by the digits of a flow's hash in a falling base.
pub(crate) fn deal(mut hash: u64, queues: usize, size: usize) -> Hand {
    let (mut hand, mut sorted) = (Hand::new(), Hand::new());
    for dealt in 0..size.min(queues) {
        let left = (queues - dealt) as u64;
        let mut card = usize::try_from(hash % left).expect("it is less than the number of queues");
        hash /= left;
        // The card counts only the queues that are still there: those dealt before it are stepped over.
        for before in &sorted {
            if *before <= card {
                card += 1;
            }
        }
        let at = sorted.partition_point(|it| *it < card);
        sorted.insert(at, card);
        hand.push(card);
    }
    hand
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn a_hand_holds_different_queues_and_each_queue_comes_as_often() {
        let mut dealt = [0_u32; 16];
        for flow in 0..20_000_u64 {
            let hand = deal(flow.wrapping_mul(0x9e37_79b9_7f4a_7c15), 16, 4);
            assert_eq!(hand.iter().collect::<BTreeSet<_>>().len(), 4);
            hand.iter().for_each(|it| dealt[*it] += 1);
        }
        assert!(dealt.iter().all(|it| (4_700..5_300).contains(it)), "{dealt:?}");
    }

    #[test]
    fn a_hand_of_all_queues_is_all_queues() {
        let hand: BTreeSet<usize> = deal(12_345, 6, 9).into_iter().collect();
        assert_eq!(hand, (0..6).collect());
    }
}
