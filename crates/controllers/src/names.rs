//! Names for new pods: the set's name and five characters, as the server's `generateName` makes them.

use corten_api::resources;
use corten_meta::{Key, ObjectMeta, Time};
use corten_reconcile::View;

/// As in `utilrand`: no vowels and nothing that looks like another character, so that names do not spell words.
const ALPHABET: &[u8; 27] = b"bcdfghjklmnpqrstvwxz2456789";
const SUFFIX_LEN: usize = 5;
/// As the API server's name generator: what is longer than a label's 63 characters is cut.
const PREFIX_LEN_MAX: usize = 58;

pub(crate) fn prefix(set: &str) -> String {
    format!("{set}-")
}

/// An endless row of names that differ from those of any other set or time.
pub(crate) fn fresh(prefix: &str, uid: &str, now: Time) -> impl Iterator<Item = String> + use<> {
    let mut state = seed(uid, now);
    let prefix = prefix[..prefix.len().min(PREFIX_LEN_MAX)].to_owned();
    std::iter::from_fn(move || {
        state = mix(state);
        Some(format!("{prefix}{}", suffix(state)))
    })
}

/// As [`fresh`], for the pods of an owner, without the names that other pods have.
pub(crate) fn untaken<'a>(
    view: &'a View,
    owner: &'a ObjectMeta,
    prefix: &str,
    now: Time,
) -> impl Iterator<Item = String> + use<'a> {
    let is_taken = |name: &str| view.meta(&resources::PODS, &Key::new(&*owner.namespace, name)).is_some();
    fresh(prefix, &owner.uid, now).filter(move |it| !is_taken(it))
}

fn seed(uid: &str, now: Time) -> u64 {
    let bytes = uid.bytes().chain(now.unix_millis().to_le_bytes());
    bytes.fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3))
}

/// One step of splitmix64.
fn mix(state: u64) -> u64 {
    let state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let state = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let state = (state ^ (state >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    state ^ (state >> 31)
}

fn suffix(mut number: u64) -> String {
    let mut letter = || {
        let idx = usize::try_from(number % 27).expect("below 27");
        number /= 27;
        char::from(ALPHABET[idx])
    };
    (0..SUFFIX_LEN).map(|_| letter()).collect()
}
