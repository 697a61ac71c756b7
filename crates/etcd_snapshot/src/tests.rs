//! What etcd itself makes of a snapshot is tried in `e2e/control-plane/etcd-api.e2e`.

use super::*;

#[test]
fn a_snapshot_has_whole_pages_and_a_checksum() {
    for n in [0_i64, 1, 10, 1_000, 30_000] {
        let keys = (0..n).map(|it| KeyValue {
            key: format!("/k/{it:06}").into(),
            value: vec![b'x'; usize::try_from(it % 50).expect("it is small") * 100].into(),
            create_revision: 2,
            mod_revision: 2 + it / 3,
            version: 1,
            lease: it % 2,
        });
        let mut out = Vec::new();
        let leases = [Lease { id: 1, ttl: 60 }];
        write(keys.collect(), &State { revision: 99_999, leases: &leases }, &mut out).expect("memory is written");
        let (database, checksum) = out.split_at(out.len() - 32);
        assert_eq!(database.len() % 4_096, 0);
        assert_eq!(digest::digest(&digest::SHA256, database).as_ref(), checksum);
        // The number of pages stands in both metas.
        for page in [0, 4_096] {
            let pages = u64::from_le_bytes(database[page + 56..page + 64].try_into().expect("eight bytes"));
            assert_eq!(pages, database.len() as u64 / 4_096);
        }
        // Each page says its own number.
        let mut at = 0;
        while at < database.len() {
            let number = u64::from_le_bytes(database[at..at + 8].try_into().expect("eight bytes"));
            let overflow = u32::from_le_bytes(database[at + 12..at + 16].try_into().expect("four bytes"));
            assert_eq!(number, at as u64 / 4_096);
            at += (overflow as usize + 1) * 4_096;
        }
    }
}
