use super::*;

const QUEUING: Queuing = Queuing { queues: 16, hand_size: 4, queue_length_limit: 50 };

fn at(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

/// The flow of a name.
fn flow(name: &str) -> u64 {
    corten_meta::stable_hash(name.as_bytes())
}

fn begun(arrival: Arrival) -> Ticket {
    match arrival {
        Arrival::Begun(ticket) => ticket,
        other => panic!("it did not begin: {other:?}"),
    }
}

#[test]
fn without_queues_what_finds_no_seat_is_refused() {
    let mut set: QueueSet<()> = QueueSet::new(2, None);
    let first = begun(set.arrive(1, 1, at(0), || ()));
    let _second = begun(set.arrive(1, 1, at(0), || ()));
    assert!(matches!(set.arrive(1, 1, at(0), || ()), Arrival::Refused(Refusal::ConcurrencyLimit)));
    assert!(set.end(first, at(1)).is_empty());
    let _third = begun(set.arrive(1, 1, at(1), || ()));
    assert_eq!((set.executing(), set.seats_in_use(), set.waiting()), (2, 2, 0));
}

#[test]
fn a_full_queue_refuses() {
    let short = Queuing { queues: 1, hand_size: 1, queue_length_limit: 2 };
    let mut set: QueueSet<u32> = QueueSet::new(1, Some(short));
    let _first = begun(set.arrive(1, 1, at(0), || 0));
    assert!(matches!(set.arrive(1, 1, at(0), || 1), Arrival::Queued(_)));
    assert!(matches!(set.arrive(1, 1, at(0), || 2), Arrival::Queued(_)));
    assert!(matches!(set.arrive(1, 1, at(0), || 3), Arrival::Refused(Refusal::QueueFull)));
}

#[test]
fn a_greedy_flow_leaves_another_its_turn() {
    let mut set: QueueSet<&str> = QueueSet::new(4, Some(QUEUING));
    let mut tickets: Vec<Ticket> = (0..4).map(|_| begun(set.arrive(flow("greedy"), 1, at(0), || "greedy"))).collect();
    for _ in 0..150 {
        set.arrive(flow("greedy"), 1, at(0), || "greedy");
    }
    assert!(matches!(set.arrive(flow("modest"), 1, at(5), || "modest"), Arrival::Queued(_)));
    // Each seat that comes free goes to one who waits; the modest one is among the first few.
    let mut order = Vec::new();
    for step in 1..=12_u64 {
        let next = set.end(tickets.remove(0), at(5 + 10 * step));
        for Dispatched { who, ticket } in next {
            order.push(who);
            tickets.push(ticket);
        }
    }
    let turn = order.iter().position(|it| *it == "modest").expect("it has begun");
    assert!(turn <= 4, "{order:?}");
}

#[test]
fn one_that_takes_more_than_all_begins_alone_and_is_not_passed_over() {
    let mut set: QueueSet<&str> = QueueSet::new(4, Some(QUEUING));
    let small = begun(set.arrive(flow("a"), 1, at(0), || "a"));
    assert!(matches!(set.arrive(flow("wide"), 10, at(1), || "wide"), Arrival::Queued(_)));
    assert!(matches!(set.arrive(flow("b"), 1, at(2), || "b"), Arrival::Queued(_)), "others wait behind it");
    let first: Vec<Dispatched<&str>> = set.end(small, at(3));
    // The narrow one ends sooner in virtual time, and may go first; the wide one comes as soon as it is alone.
    let names: Vec<&str> = first.iter().map(|it| it.who).collect();
    let mut all = names.clone();
    for one in first {
        all.extend(set.end(one.ticket, at(4)).into_iter().map(|it| it.who));
    }
    assert!(all.contains(&"wide") && all.contains(&"b"), "{names:?} {all:?}");
}

#[test]
fn who_leaves_gives_its_place_and_who_began_says_so() {
    let mut set: QueueSet<u32> = QueueSet::new(1, Some(QUEUING));
    let first = begun(set.arrive(1, 1, at(0), || 0));
    let Arrival::Queued(left) = set.arrive(1, 1, at(0), || 1) else { panic!("it waits") };
    let Arrival::Queued(begins) = set.arrive(1, 1, at(0), || 2) else { panic!("it waits") };
    assert!(set.leave(left, at(1)).is_some_and(|it| it.is_empty()));
    let next = set.end(first, at(2));
    assert_eq!(next.iter().map(|it| it.who).collect::<Vec<_>>(), [2]);
    assert!(set.leave(begins, at(3)).is_none(), "it has begun");
    assert_eq!((set.waiting(), set.executing(), set.demand()), (0, 1, 1));
}

#[test]
fn who_stood_behind_one_that_leaves_begins() {
    let one_queue = Queuing { queues: 1, hand_size: 1, queue_length_limit: 9 };
    let mut set: QueueSet<u32> = QueueSet::new(4, Some(one_queue));
    let _first = begun(set.arrive(1, 1, at(0), || 0));
    let Arrival::Queued(wide) = set.arrive(1, 4, at(0), || 1) else { panic!("it waits") };
    assert!(matches!(set.arrive(1, 1, at(0), || 2), Arrival::Queued(_)));
    let next = set.leave(wide, at(1)).expect("it waited");
    assert_eq!(next.iter().map(|it| it.who).collect::<Vec<_>>(), [2]);
}

#[test]
fn other_queues_keep_who_waits() {
    let mut set: QueueSet<u32> = QueueSet::new(1, Some(QUEUING));
    let first = begun(set.arrive(flow("a"), 1, at(0), || 0));
    for who in 1..=5 {
        assert!(matches!(set.arrive(flow("a"), 1, at(0), || who), Arrival::Queued(_)));
    }
    assert!(set.set_queuing(Some(Queuing { queues: 3, ..QUEUING }), at(1)).is_empty());
    assert_eq!((set.waiting(), set.executing()), (5, 1));
    let next = set.end(first, at(2));
    assert_eq!(next.iter().map(|it| it.who).collect::<Vec<_>>(), [1], "one of the old queues' gave its seat back");
    let more = set.set_seats(3, at(3));
    assert_eq!(more.len(), 2);
    assert_eq!(set.set_queuing(None, at(4)).len(), 2, "without queues nobody waits");
    assert_eq!(set.waiting(), 0);
}

/// Whatever happens in whichever order: no seat is lost, and nobody waits while one is free.
#[test]
fn the_books_are_right_after_anything() {
    let mut random = 0x5eed_u64;
    let mut next = move || {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        random >> 33
    };
    let mut set: QueueSet<u64> = QueueSet::new(7, Some(QUEUING));
    let (mut tickets, mut places, mut now) = (Vec::new(), Vec::new(), 0);
    for who in 0..50_000_u64 {
        now += next() % 3;
        let mut more = Vec::new();
        match next() % 8 {
            0..=3 => match set.arrive(next() % 20, 1 + u32::try_from(next() % 4).expect("small"), at(now), || who) {
                Arrival::Begun(ticket) => tickets.push(ticket),
                Arrival::Queued(place) => places.push(place),
                Arrival::Refused(_) => {}
            },
            4..=5 if !tickets.is_empty() => {
                let at_ticket = usize::try_from(next()).expect("small") % tickets.len();
                more = set.end(tickets.swap_remove(at_ticket), at(now));
            }
            6 if !places.is_empty() => {
                let at_place = usize::try_from(next()).expect("small") % places.len();
                more = set.leave(places.swap_remove(at_place), at(now)).unwrap_or_default();
            }
            7 if next() % 50 == 0 => more = set.set_seats(1 + u32::try_from(next() % 9).expect("small"), at(now)),
            _ => {}
        }
        tickets.extend(more.into_iter().map(|it| it.ticket));
        assert_eq!(set.executing() as usize, tickets.len());
        assert_eq!(set.seats_in_use(), tickets.iter().map(|it| it.width).sum::<u32>());
        assert_eq!(set.active as usize, set.queues.iter().filter(|it| it.is_active()).count());
        assert_eq!(set.waiting as usize, set.queues.iter().map(|it| it.waiting.len()).sum::<usize>());
    }
    while let Some(ticket) = tickets.pop() {
        tickets.extend(set.end(ticket, at(now)).into_iter().map(|it| it.ticket));
    }
    assert_eq!((set.demand(), set.waiting(), set.active), (0, 0, 0));
}

#[test]
fn what_begins_tells_how_its_queue_stood() {
    let one = Queuing { queues: 1, hand_size: 1, queue_length_limit: 5 };
    let mut set: QueueSet<u32> = QueueSet::new(1, Some(one));
    assert_eq!(set.last_dispatch(), None);
    let first = begun(set.arrive(1, 1, at(0), || 0));
    let times = set.last_dispatch().expect("one has begun");
    assert_eq!((times.now, times.start, times.starts, times.discounted), (0.0, 0.0, (0.0, 0.0), (0.0, 0.0)));
    assert!(matches!(set.arrive(1, 1, at(500), || 1), Arrival::Queued(_)));
    let queue = first.queue().expect("it had a queue");
    assert_eq!(set.index_of(queue), Some(0));
    let second = set.end(first, at(1000)).pop().expect("it begins").ticket;
    // The first has taken a second of the only seat, as the queue's share is all of it.
    let times = set.last_dispatch().expect("another has begun");
    assert!((times.now - 1.0).abs() < 1e-9 && (times.start - 1.0).abs() < 1e-9, "{times:?}");
    assert!((set.virtual_now() - 1.0).abs() < 1e-9);
    assert!(set.end(second, at(2000)).is_empty());
    set.set_queuing(None, at(2000));
    assert_eq!(set.index_of(queue), None, "that queue is gone");
    let exempt = set.begin_exempt(3, at(2000));
    assert_eq!((set.executing(), set.seats_in_use(), exempt.width()), (1, 3, 3));
    assert!(set.end(exempt, at(2000)).is_empty());
}
