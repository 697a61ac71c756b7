//! Names of shares: each time that a device is given which several may have has an id of its own (KEP-5075).

use corten_allocator::{Allocation, Inventory};
use corten_meta::Time;

/// Names the shares of an allocation that is made now, for the claim with this uid.
pub(super) fn name(allocation: &mut Allocation, uid: &str, now: Time, inventory: &Inventory) {
    let results = allocation.devices.iter_mut().flat_map(|it| it.results.iter_mut().flatten());
    for (idx, it) in results.enumerate() {
        if inventory.is_shareable(&it.driver, &it.pool, &it.device) {
            it.share_id = Some(share_id(&format!("{uid}/{}/{idx}", now.0.as_nanosecond())));
        }
    }
}

/// A UUID of its own for each text (version 8 of RFC 9562): a hash (FNV-1a), as a mind draws no random numbers.
fn share_id(of: &str) -> String {
    const OFFSET: u128 = 0x6c62_272e_07bb_0142_62b8_2175_6295_c58d;
    const PRIME: u128 = 0x0000_0000_0100_0000_0000_0000_0000_013b;
    const VERSION: u128 = 0xf << 76;
    const VARIANT: u128 = 0b11 << 62;
    let hash = of.bytes().fold(OFFSET, |hash, it| (hash ^ u128::from(it)).wrapping_mul(PRIME));
    let id = format!("{:032x}", hash & !VERSION & !VARIANT | 8 << 76 | 0b10 << 62);
    [&id[..8], &id[8..12], &id[12..16], &id[16..20], &id[20..]].join("-")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_share_has_an_id_of_its_own() {
        let ids = ["uid/1/0", "uid/1/1", "uid/2/0", "other/1/0"].map(share_id);
        for (at, id) in ids.iter().enumerate() {
            let parts: Vec<&str> = id.split('-').collect();
            assert_eq!(parts.iter().map(|it| it.len()).collect::<Vec<_>>(), [8, 4, 4, 4, 12], "{id}");
            assert!(parts[2].starts_with('8') && parts[3].starts_with(['8', '9', 'a', 'b']), "{id}");
            assert!(!ids[..at].contains(id), "{id}");
        }
        assert_eq!(share_id("uid/1/0"), ids[0], "the same each time");
    }
}
