use corten_etcd_api::{CompactionRequest, Compare, CompareWith, ResponseKind};

use super::*;

#[tokio::test]
async fn ranges_are_limited_sorted_filtered_and_counted() {
    let core = in_memory().await.core;
    puts(&core, &[("b", "1"), ("a", "3"), ("c", "2"), ("a", "4")]).await;
    let all = || get("\0", "\0");
    for (asked, expected, count) in [
        (all(), "a=4@2 b=1@1 c=2@1", 3),
        (get("b", ""), "b=1@1", 1),
        (get("x", ""), "", 0),
        (get("b", "\0"), "b=1@1 c=2@1", 2),
        (get("a", "c"), "a=4@2 b=1@1", 2),
        (get("c", "a"), "", 0),
        (RangeRequest { limit: 2, ..all() }, "a=4@2 b=1@1 +", 3),
        (RangeRequest { limit: 3, ..all() }, "a=4@2 b=1@1 c=2@1", 3),
        (RangeRequest { count_only: true, ..all() }, "", 3),
        (RangeRequest { keys_only: true, limit: 1, ..all() }, "a=@2 +", 3),
        (RangeRequest { sort_order: 2, limit: 1, ..all() }, "c=2@1 +", 3),
        (RangeRequest { sort_target: 4, ..all() }, "b=1@1 c=2@1 a=4@2", 3),
        (RangeRequest { sort_target: 1, sort_order: 2, ..all() }, "a=4@2 b=1@1 c=2@1", 3),
        (RangeRequest { sort_target: 2, ..all() }, "b=1@1 a=4@2 c=2@1", 3),
        (RangeRequest { sort_target: 3, sort_order: 2, ..all() }, "a=4@2 c=2@1 b=1@1", 3),
        (RangeRequest { min_mod_revision: 4, ..all() }, "a=4@2 c=2@1", 3),
        (RangeRequest { max_mod_revision: 4, limit: 1, ..all() }, "b=1@1 +", 3),
        (RangeRequest { max_create_revision: 2, ..all() }, "b=1@1", 3),
        (RangeRequest { revision: 3, ..all() }, "a=3@1 b=1@1", 2),
    ] {
        let answer = kv::range(&core, &asked).expect("it is read");
        assert_eq!((line(&answer).as_str(), answer.count), (expected, count), "{asked:?}");
        assert_eq!(answer.header.expect("it has one").revision, 5);
    }
    for (asked, refusal) in [
        (get("", ""), "etcdserver: key is not provided"),
        (RangeRequest { sort_target: 5, ..all() }, "etcdserver: invalid sort option"),
        (RangeRequest { revision: 9, ..all() }, "etcdserver: mvcc: required revision is a future revision"),
    ] {
        assert_eq!(kv::range(&core, &asked).expect_err("it is refused").message(), refusal);
    }
}

#[tokio::test]
async fn puts_and_deletions_tell_what_was_there() {
    let core = in_memory().await.core;
    let put_with = |asked: PutRequest| kv::put(core.clone(), PutRequest { prev_kv: true, ..asked });
    assert_eq!(put_with(put("a", "1")).await.expect("it is put").prev_kv, None);
    let answer = put_with(put("a", "2")).await.expect("it is put");
    let before = answer.prev_kv.expect("it was there");
    assert_eq!((&before.value[..], before.version, answer.header.expect("it has one").revision), (&b"1"[..], 1, 3));
    let kept = put_with(PutRequest { ignore_value: true, ..put("a", "") }).await.expect("it is put");
    assert_eq!(kept.header.expect("it has one").revision, 4);
    assert_eq!(line(&kv::range(&core, &get("a", "")).expect("it is read")), "a=2@3");
    for (asked, refusal) in [
        (put("", ""), "etcdserver: key is not provided"),
        (PutRequest { ignore_value: true, ..put("a", "1") }, "etcdserver: value is provided"),
        (PutRequest { ignore_value: true, ..put("b", "") }, "etcdserver: key not found"),
        (PutRequest { ignore_lease: true, lease: 1, ..put("a", "1") }, "etcdserver: lease is provided"),
        (PutRequest { lease: 7, ..put("a", "1") }, "etcdserver: requested lease not found"),
        (put("/reserved/a", "1"), "etcdserver: permission denied: it is another's"),
        (put("a", &"x".repeat(2 << 20)), "etcdserver: request is too large"),
    ] {
        assert_eq!(put_with(asked).await.expect_err("it is refused").message(), refusal);
    }
    puts(&core, &[("b", "1")]).await;
    let gone = kv::delete_range(core.clone(), delete("a", "z")).await.expect("it is deleted");
    assert_eq!((gone.deleted, gone.prev_kvs.len(), gone.header.expect("it has one").revision), (2, 2, 6));
    let nothing = kv::delete_range(core.clone(), delete("a", "z")).await.expect("nothing is deleted");
    assert_eq!((nothing.deleted, nothing.header.expect("it has one").revision), (0, 6));
}

fn compare(target: i32, result: i32, with: CompareWith) -> Compare {
    Compare { target, result, key: bytes("a"), with: Some(with), range_end: Bytes::new() }
}

#[tokio::test]
async fn transactions_compare_by_every_target() {
    let core = in_memory().await.core;
    puts(&core, &[("z", ""), ("a", "m"), ("a", "n")]).await;
    let on = |key: &str, it: Compare| Compare { key: bytes(key), ..it };
    let number = |it| CompareWith::Version(it);
    for (asked, holds) in [
        (compare(0, 0, number(2)), true),
        (compare(0, 1, number(1)), true),
        (compare(0, 2, number(2)), false),
        (compare(0, 3, number(2)), false),
        (compare(1, 0, CompareWith::CreateRevision(3)), true),
        (compare(2, 0, CompareWith::ModRevision(4)), true),
        (compare(2, 2, CompareWith::ModRevision(4)), false),
        (compare(3, 0, CompareWith::Value(bytes("n"))), true),
        (compare(3, 1, CompareWith::Value(bytes("m"))), true),
        (compare(4, 0, CompareWith::Lease(0)), true),
        (on("x", compare(1, 0, CompareWith::CreateRevision(0))), true),
        (on("x", compare(3, 0, CompareWith::Value(bytes("")))), false),
        (on("x", compare(3, 3, CompareWith::Value(bytes("")))), false),
        // Of a range, for each key.
        (Compare { range_end: bytes("\0"), ..compare(0, 1, number(0)) }, true),
        (Compare { range_end: bytes("\0"), ..compare(0, 0, number(2)) }, false),
    ] {
        let asked = TxnRequest { compare: vec![asked], ..TxnRequest::default() };
        let answer = txn(&core, asked.clone()).await.expect("it is answered");
        assert_eq!(answer.succeeded, holds, "{asked:?}");
        assert_eq!(answer.header.expect("it has one").revision, 4);
    }
}

#[tokio::test]
async fn operations_see_those_before_them_at_one_revision() {
    let core = in_memory().await.core;
    puts(&core, &[("a", "1")]).await;
    let nested = TxnRequest {
        // Chosen by what was there before.
        compare: vec![compare(0, 0, CompareWith::Version(1))],
        success: vec![operation(RequestKind::Put(put("n", "1")))],
        failure: vec![operation(RequestKind::Put(put("n", "2")))],
    };
    let asked = TxnRequest {
        compare: vec![compare(0, 0, CompareWith::Version(1))],
        success: vec![
            operation(RequestKind::Put(put("b", "1"))),
            operation(RequestKind::Range(get("\0", "\0"))),
            operation(RequestKind::DeleteRange(delete("a", ""))),
            operation(RequestKind::Txn(nested)),
            operation(RequestKind::Range(get("\0", "\0"))),
            operation(RequestKind::Range(RangeRequest { revision: 2, ..get("\0", "\0") })),
        ],
        failure: Vec::new(),
    };
    let answer = txn(&core, asked).await.expect("it is done");
    let read: Vec<String> = answer
        .responses
        .iter()
        .filter_map(|it| if let Some(ResponseKind::Range(it)) = &it.response { Some(line(it)) } else { None })
        .collect();
    assert_eq!(read, ["a=1@1 b=1@1", "b=1@1 n=1@1", "a=1@1"]);
    assert_eq!(answer.header.expect("it has one").revision, 3);
    let all = kv::range(&core, &get("\0", "\0")).expect("it is read");
    assert!(all.kvs.iter().all(|it| it.mod_revision == 3), "{all:?}");
    // What is refused amid it leaves nothing behind.
    let refused = TxnRequest {
        success: vec![
            operation(RequestKind::Put(put("c", "1"))),
            operation(RequestKind::Range(RangeRequest { revision: 99, ..get("c", "") })),
        ],
        ..TxnRequest::default()
    };
    txn(&core, refused).await.expect_err("the revision is not there");
    assert_eq!(line(&kv::range(&core, &get("c", "")).expect("it is read")), "");
}

#[tokio::test]
async fn a_transaction_that_writes_a_key_twice_is_refused() {
    let core = in_memory().await.core;
    let a = || operation(RequestKind::Put(put("a", "1")));
    let gone = |end: &str| operation(RequestKind::DeleteRange(delete("a", end)));
    let nested = |success: Vec<RequestOp>, failure: Vec<RequestOp>| {
        operation(RequestKind::Txn(TxnRequest { compare: Vec::new(), success, failure }))
    };
    for (success, is_refused) in [
        (vec![a(), a()], true),
        (vec![a(), gone("")], true),
        (vec![gone("c"), a()], true),
        (vec![gone(""), gone("c")], false),
        (vec![nested(vec![a()], vec![a()])], false),
        (vec![nested(vec![], vec![a()]), a()], true),
        (vec![nested(vec![gone("c")], vec![]), a()], true),
    ] {
        let asked = TxnRequest { success, ..TxnRequest::default() };
        let answer = txn(&core, asked.clone()).await;
        let said = answer.err().map(|it| it.message().to_owned());
        let refusal = "etcdserver: duplicate key given in txn request".to_owned();
        assert_eq!(said, is_refused.then_some(refusal), "{asked:?}");
    }
    let many = (0..1_025).map(|it| operation(RequestKind::Put(put(&it.to_string(), ""))));
    let refused = txn(&core, TxnRequest { success: many.collect(), ..TxnRequest::default() }).await;
    assert_eq!(refused.expect_err("they are too many").message(), "etcdserver: too many operations in txn request");
}

#[tokio::test]
async fn compaction_is_told_in_etcds_words() {
    let core = in_memory().await.core;
    puts(&core, &[("a", "1"), ("a", "2"), ("a", "3")]).await;
    let compact = |revision| kv::compact(core.clone(), CompactionRequest { revision, physical: true });
    compact(3).await.expect("the revision is there");
    let refused = |it: Result<_, Status>| it.map(|_| ()).expect_err("it is refused").message().to_owned();
    assert_eq!(refused(compact(3).await.map(|_| ())), "etcdserver: mvcc: required revision has been compacted");
    assert_eq!(refused(compact(9).await.map(|_| ())), "etcdserver: mvcc: required revision is a future revision");
    let at = |revision| kv::range(&core, &RangeRequest { revision, ..get("a", "") });
    assert_eq!(refused(at(2).map(|_| ())), "etcdserver: mvcc: required revision has been compacted");
    assert_eq!(line(&at(3).expect("it is kept")), "a=2@2");
}

#[tokio::test]
async fn racing_transactions_lose_no_count() {
    let core = in_memory().await.core;
    puts(&core, &[("n", "0")]).await;
    let mut tasks = JoinSet::new();
    for _ in 0..20 {
        let core = core.clone();
        tasks.spawn(async move {
            loop {
                let stands = kv::range(&core, &get("n", "")).expect("it is read").kvs.remove(0);
                let next = String::from_utf8_lossy(&stands.value).parse::<u64>().expect("a number") + 1;
                let compare = Compare::equal(bytes("n"), CompareWith::ModRevision(stands.mod_revision));
                let success = vec![operation(RequestKind::Put(put("n", &next.to_string())))];
                let asked = TxnRequest { compare: vec![compare], success, failure: Vec::new() };
                if txn(&core, asked).await.expect("it is answered").succeeded {
                    return;
                }
            }
        });
    }
    while let Some(ended) = tasks.join_next().await {
        ended.expect("a writer ends");
    }
    assert_eq!(line(&kv::range(&core, &get("n", "")).expect("it is read")), "n=20@21");
}

fn nested(n: usize, of: impl Fn(usize) -> TxnRequest) -> TxnRequest {
    let success = (0..n).map(|it| operation(RequestKind::Txn(of(it)))).collect();
    TxnRequest { success, ..TxnRequest::default() }
}

#[tokio::test]
async fn operations_are_counted_over_all_that_are_nested() {
    let core = in_memory().await.core;
    let puts = |n: usize, of: usize| TxnRequest {
        success: (0..n).map(|it| operation(RequestKind::Put(put(&format!("{of}-{it}"), "")))).collect(),
        ..TxnRequest::default()
    };
    let refused = txn(&core, nested(4, |it| puts(256, it))).await.expect_err("they are 1,028");
    assert_eq!(refused.message(), "etcdserver: too many operations in txn request");
    txn(&core, nested(4, |it| puts(255, it))).await.expect("they are 1,024");
}

#[tokio::test]
async fn what_stands_there_counts_where_it_is_written_again() {
    let core = in_memory().await.core;
    let value = "x".repeat(1 << 20);
    let names: Vec<String> = (0..17).map(|it| format!("{it:02}")).collect();
    for name in &names {
        puts(&core, &[(name, &value)]).await;
    }
    let again = |names: &[String]| TxnRequest {
        success: names
            .iter()
            .map(|it| operation(RequestKind::Put(PutRequest { ignore_value: true, ..put(it, "") })))
            .collect(),
        ..TxnRequest::default()
    };
    let revision = core.store.revision();
    let refused = txn(&core, again(&names)).await.expect_err("it is 17 MiB");
    assert_eq!(refused.message(), "etcdserver: request is too large");
    assert_eq!(core.store.revision(), revision, "nothing of it is written");
    txn(&core, again(&names[..15])).await.expect("it is 15 MiB");
}

#[tokio::test]
async fn what_others_count_on_is_not_deleted() {
    let core = in_memory().await.core;
    let deleted = |key: &'static str, end: &'static str| kv::delete_range(core.clone(), delete(key, end));
    for (key, end) in
        [("/reserved/lasting/a", ""), ("/reserved/", "/reserved0"), ("/", "\0"), ("/reserved/l", "/reserved/lasting/b")]
    {
        let refused = deleted(key, end).await.expect_err("it is refused");
        assert_eq!(refused.message(), "etcdserver: permission denied: another counts on it", "{key} {end}");
    }
    for (key, end) in [("/reserved/a", ""), ("/reserved/lasting0", "\0"), ("/", "/reserved/lasting/"), ("b", "a")] {
        deleted(key, end).await.unwrap_or_else(|error| panic!("{key} {end}: {error}"));
    }
}

#[tokio::test]
async fn there_is_one_snapshot_at_a_time_with_the_leases_of_its_keys() {
    let core = in_memory().await.core;
    puts(&core, &[("a", "1")]).await;
    let first = crate::snapshot::stream(core.clone()).await.expect("it is made");
    let refused = crate::snapshot::stream(core.clone()).await.map(|_| ()).expect_err("there is one");
    assert_eq!(refused.message(), "etcdserver: too many requests");
    drop(first);
    crate::snapshot::stream(core.clone()).await.map(|_| ()).expect("the first is gone");

    for id in [1, 2] {
        let asked = corten_etcd_api::LeaseGrantRequest { ttl: 60, id };
        crate::lease::grant(core.clone(), asked).await.expect("it is granted");
        kv::put(core.clone(), PutRequest { lease: id, ..put(&id.to_string(), "") }).await.expect("it is put");
    }
    let view = core.view(&corten_store::Range::prefix(""), 0).expect("it is read");
    assert!(core.leases.begin_end(1));
    core.leases.known.lock().remove(&2);
    let saved = crate::lease::saved(&core, &view);
    assert_eq!(saved.iter().map(|it| (it.id, it.ttl)).collect::<Vec<_>>(), [(1, 60), (2, 3_600)]);
}

#[tokio::test]
async fn without_an_order_the_first_keys_are_sorted() {
    let core = in_memory().await.core;
    puts(&core, &[("a", "3"), ("b", "2"), ("c", "1")]).await;
    let by_value = RangeRequest { sort_target: 4, limit: 1, ..get("a", "z") };
    for (asked, key) in [
        (by_value.clone(), "b"),
        (RangeRequest { sort_order: 1, ..by_value.clone() }, "c"),
        (RangeRequest { max_mod_revision: 9, ..by_value }, "c"),
    ] {
        let answer = kv::range(&core, &asked).expect("it is read");
        assert_eq!((&answer.kvs[0].key[..], answer.more, answer.count), (key.as_bytes(), true, 3), "{asked:?}");
    }
}

#[tokio::test]
async fn in_a_transaction_no_revision_is_negative() {
    let core = in_memory().await.core;
    puts(&core, &[("a", "1")]).await;
    let asked = RangeRequest { revision: -1, ..get("a", "") };
    assert_eq!(kv::range(&core, &asked).expect("it is the newest").count, 1);
    let success = vec![operation(RequestKind::Put(put("b", ""))), operation(RequestKind::Range(asked))];
    let refused = txn(&core, TxnRequest { success, ..TxnRequest::default() }).await.expect_err("it is compacted");
    assert_eq!(refused.message(), "etcdserver: mvcc: required revision has been compacted");
    assert_eq!(core.store.revision(), 2, "nothing of it is written");
}
