use super::*;
use crate::protocol::guard::session::Wait;
use crate::protocol::guard::testing::{prompt, session, trusted};
use crate::protocol::ids::GapId;

/// A full queue of results of which those at `related` belong to the chain.
fn full(world: &mut World, session: Session, related: impl Fn(usize) -> bool) -> Session {
    let mut session = with_mine(session);
    for n in 0..NOTIFICATIONS_MAX {
        put(world, &mut session, &format!("n{n}"), if related(n) { "mine" } else { "other" });
    }
    assert_eq!((session.notifications.len(), session.gaps.len()), (NOTIFICATIONS_MAX, 0));
    session
}

fn waiting(mut session: Session) -> Session {
    let prompt = prompt(1, PromptState::Queued);
    session.wait = Some(Wait { prompt_id: prompt.prompt_id, seq: 1, at: prompt.at, extra: Extra::new() });
    session
}

#[test]
fn of_a_full_queue_of_results_the_least_needed_goes() {
    // O68: what holds, which of the 20 are related, what comes, and what is left out.
    type Which = fn(usize) -> bool;
    type Make = fn() -> Session;
    let (none, all, first_three): (Which, Which, Which) = (|_| false, |_| true, |n| n < 3);
    let table: [(&str, Make, Which, &str, &str); 11] = [
        ("idle", session, none, "other", "n0"),
        ("idle", session, all, "other", "n0"),
        ("idle", session, all, "mine", "n0"),
        ("trusted", trusted, none, "other", "n0"),
        ("trusted", trusted, first_three, "other", "n3"),
        ("trusted", trusted, first_three, "mine", "n3"),
        ("trusted", trusted, all, "other", "late"),
        ("trusted", trusted, all, "mine", "late"),
        ("waiting", || waiting(session()), first_three, "other", "n3"),
        ("waiting", || waiting(session()), all, "other", "late"),
        ("waiting", || waiting(session()), all, "mine", "late"),
    ];
    for (state, make, related, from, left_out) in table {
        let mut world = World::new();
        let mut session = full(&mut world, make(), related);
        let said = world.work(&mut session, |work| work.notify(&result("late", from))).unwrap();
        let is_in = left_out != "late";
        assert_eq!(said.code, if is_in { Code::Queued } else { Code::Omitted }, "{state} {from}");
        assert_eq!(session.notifications.len(), NOTIFICATIONS_MAX);
        assert_eq!(session.notifications.iter().any(|item| item.id == name("late")), is_in);
        assert_eq!(omitted(&session), [[left_out]], "{state} {from}");
        assert_eq!(said.facts["omitted"], serde_json::json!([left_out]));
        assert_eq!(said.facts["gapId"], session.gaps[0].gap_id.as_str());
    }
}

#[test]
fn what_was_taken_is_not_put_out() {
    let mut world = World::new();
    let mut session = full(&mut world, session(), |_| false);
    take(&mut world, &mut session).unwrap();
    put(&mut world, &mut session, "late", "other");
    assert_eq!(omitted(&session), [["n1"]]);
    for _ in 0..NOTIFICATIONS_MAX - 1 {
        take(&mut world, &mut session).unwrap();
    }
    put(&mut world, &mut session, "later", "other");
    assert_eq!(omitted(&session), [["n1"], ["later"]], "all are taken");
}

#[test]
fn a_related_result_without_a_place_leaves_a_notice_that_only_its_acknowledgement_ends() {
    // O69
    let mut world = World::new();
    let mut session = full(&mut world, trusted(), |_| true);
    put(&mut world, &mut session, "late", "mine");
    assert_eq!(session.notifications.len(), NOTIFICATIONS_MAX);
    let gap = session.gaps[0].clone();
    assert!(gap.related && gap.queue == "notifications");
    assert_eq!(gap.omitted[0].text.as_deref(), Some("text of late"), "nothing of it is lost");

    let before = session.clone();
    let said = world.work(&mut session, |work| work.notify(&result("late", "mine"))).unwrap();
    assert_eq!((said.code, &said.facts["gapId"]), (Code::Omitted, &gap.gap_id.as_str().into()));
    assert_eq!(session, before, "sent once more, it is named by the same notice");

    session.notifications.clear();
    world.work(&mut session, |work| {
        work.at_boundary();
    });
    world.work(&mut session, |work| work.suspend(Cause::Asked, None));
    session.state = SessionState::Closed;
    world.reboots();
    world.work(&mut session, |work| {
        work.sweep_background();
    });
    for _ in 0..2 {
        let said = world.work(&mut session, |work| work.gaps(&[])).unwrap();
        assert_eq!(said.facts["gaps"], serde_json::to_value(std::slice::from_ref(&gap)).unwrap());
    }
    let said = world.work(&mut session, |work| work.gaps(std::slice::from_ref(&gap.gap_id))).unwrap();
    assert_eq!((said.code, session.gaps.len()), (Code::Acknowledged, 0));
    let refusal = world.work(&mut session, |work| work.gaps(&[gap.gap_id])).unwrap_err();
    assert_eq!(refusal.code, Code::NoSuchItem);
}

#[test]
fn an_acknowledgement_forgets_the_notices_it_names_and_tells_which_it_did_not_find() {
    let mut world = World::new();
    let mut session = full(&mut world, session(), |_| false);
    for id in ["x", "y", "z"] {
        put(&mut world, &mut session, id, "other");
    }
    let (first, third) = (session.gaps[0].gap_id.clone(), session.gaps[2].gap_id.clone());
    let unknown = GapId::parse("gap_00000000000000ff").unwrap();
    let said = world.work(&mut session, |work| work.gaps(&[third, unknown.clone(), first])).unwrap();
    assert_eq!(said.facts["unknown"], serde_json::json!([unknown]));
    assert_eq!((omitted(&session), &said.facts["left"]), (vec![vec!["n1"]], &1.into()));
}

/// Fills the queue of timers while nothing is deferred, then begins to defer.
fn with_timers(world: &mut World, unrelated: usize, related: usize) -> Session {
    let mut session = session();
    for n in 0..unrelated.max(related) {
        if n < unrelated {
            fire(world, &mut session, &format!("c{n}"), &format!("timer{n}"), false);
        }
        if n < related {
            fire(world, &mut session, &format!("w{n}"), &format!("wakeup{n}"), true);
        }
    }
    assert_eq!((session.crons.len(), session.gaps.len()), (unrelated + related, 0));
    session.chain.observe(1);
    session
}

#[test]
fn of_timers_that_have_to_wait_the_oldest_unrelated_ones_go() {
    // O67: how many unrelated wait, and how many of them each arrival puts out.
    for related in [0, 3, 30] {
        for (unrelated, by_related, by_unrelated) in [(19, 0, 0), (20, 0, 1), (21, 1, 2), (25, 5, 6)] {
            for (wakeup, expected) in [(true, by_related), (false, by_unrelated)] {
                let mut world = World::new();
                let mut session = with_timers(&mut world, unrelated, related);
                let total = session.history.total;
                let facts = fire(&mut world, &mut session, "late", "another", wakeup);
                let put_out: Vec<String> = (0..expected).map(|n| format!("c{n}")).collect();
                let waiting = session.crons.iter().filter(|item| !item.related).count();
                assert_eq!(waiting, unrelated - expected + usize::from(!wakeup), "{unrelated} {wakeup}");
                assert_eq!(session.crons.len() - waiting, related + usize::from(wakeup), "never put out");
                assert_eq!(ids(&session.crons).last(), Some(&"late"));
                let diagnostics: Vec<_> =
                    session.history.events.iter().filter(|event| event.what == "omitted").collect();
                if expected == 0 {
                    assert!(diagnostics.is_empty() && session.gaps.is_empty());
                    continue;
                }
                assert_eq!(omitted(&session), [put_out.iter().map(String::as_str).collect::<Vec<_>>()]);
                assert_eq!(facts["omitted"], serde_json::json!(put_out));
                assert_eq!(diagnostics.len(), 1, "one diagnostic an arrival");
                let note = format!("crons: {}", put_out.join(", "));
                assert_eq!(diagnostics[0].note, Some(note), "which lists all of them");
                assert_eq!(session.history.total, total + 2);
            }
        }
    }
}

#[test]
fn a_later_firing_of_a_timer_that_waits_takes_its_place_and_puts_nothing_out() {
    // O67: also where more wait than may.
    for unrelated in [19, 20, 21, 25] {
        let mut world = World::new();
        let mut session = with_timers(&mut world, unrelated, 3);
        let (seq, before) = (session.crons[2].seq, session.crons.len());
        assert_eq!(session.crons[2].id, name("c1"));
        let facts = fire(&mut world, &mut session, "late", "timer1", false);
        assert_eq!((facts["replaced"].as_str(), session.crons.len()), (Some("c1"), before));
        assert_eq!((&session.crons[2].id, session.crons[2].seq), (&name("late"), seq));
        assert!(session.gaps.is_empty());
    }
}

#[test]
fn only_an_unrelated_firing_takes_the_place_of_an_unrelated_one_that_nobody_took() {
    let mut world = World::new();
    let mut session = with_timers(&mut world, 1, 1);
    fire(&mut world, &mut session, "r", "timer0", true);
    assert_eq!(ids(&session.crons), ["c0", "w0", "r"], "a wakeup takes nobody's place");
    fire(&mut world, &mut session, "u", "wakeup0", false);
    assert_eq!(ids(&session.crons), ["c0", "w0", "r", "u"], "nor is a wakeup's place taken");

    session.chain.clear_trust();
    assert_eq!(take_cron(&mut world, &mut session), Ok(("c0".to_owned(), false)));
    fire(&mut world, &mut session, "x", "wakeup0", false);
    assert_eq!(ids(&session.crons), ["c0", "w0", "r", "u", "x"], "plain appending where nothing is deferred");
    session.chain.observe(1);
    fire(&mut world, &mut session, "y", "timer0", false);
    assert_eq!(ids(&session.crons), ["c0", "w0", "r", "u", "x", "y"], "its turn is about to begin");
}

#[test]
fn a_taken_timer_is_not_put_out() {
    let mut world = World::new();
    let mut session = with_timers(&mut world, 21, 0);
    session.chain.clear_trust();
    take_cron(&mut world, &mut session).unwrap();
    session.chain.observe(1);
    fire(&mut world, &mut session, "late", "another", false);
    assert_eq!(omitted(&session), [["c1"]]);
}

#[test]
fn timers_never_grow_without_bound_and_none_vanishes_without_a_notice() {
    for wakeup in [false, true] {
        let mut world = World::new();
        let mut session = session();
        for n in 0..CRONS_MAX + 3 {
            fire(&mut world, &mut session, &format!("c{n}"), &format!("t{n}"), wakeup);
        }
        assert_eq!(session.crons.len(), CRONS_MAX);
        let left_out = if wakeup { [["c100"], ["c101"], ["c102"]] } else { [["c0"], ["c1"], ["c2"]] };
        assert_eq!(omitted(&session), left_out, "a related one never goes: what comes is left out");
    }
}

/// A full queue into which `count` more results come, each of which puts one out.
fn flooded(world: &mut World, count: usize) -> Session {
    let mut session = full(world, session(), |_| false);
    for n in NOTIFICATIONS_MAX..NOTIFICATIONS_MAX + count {
        put(world, &mut session, &format!("n{n}"), "other");
    }
    session
}

#[test]
fn of_too_many_notices_the_two_oldest_become_one_that_nobody_has_seen() {
    let mut world = World::new();
    let mut session = flooded(&mut world, GAPS_MAX);
    let seen = session.gaps[0].gap_id.clone();
    put(&mut world, &mut session, "late", "other");
    assert_eq!(session.gaps.len(), GAPS_MAX);
    assert_eq!(omitted(&session)[..2], [vec!["n0", "n1"], vec!["n2"]]);
    let refusal = world.work(&mut session, |work| work.gaps(&[seen])).unwrap_err();
    assert_eq!(refusal.code, Code::NoSuchItem, "who read the first notice has not read the second");
}

#[test]
fn what_was_left_out_is_named_up_to_a_bound_and_then_counted() {
    let mut world = World::new();
    let count = GAPS_MAX + GAP_IDS_MAX + 7;
    let session = flooded(&mut world, count);
    let named: usize = session.gaps.iter().map(|gap| gap.omitted.len()).sum();
    let more: u64 = session.gaps.iter().map(|gap| gap.more).sum();
    assert_eq!((session.gaps.len(), session.gaps[0].omitted.len()), (GAPS_MAX, GAP_IDS_MAX));
    assert_eq!(named + usize::try_from(more).unwrap(), count, "none vanishes without a notice");
}

#[test]
fn few_notices_that_name_many_items_are_bounded_too() {
    let (mut world, mut session) = (World::new(), session());
    let rounds = 40;
    for round in 0..rounds {
        session.chain.clear_trust();
        world.work(&mut session, |work| {
            for n in work.session.crons.len()..CRONS_MAX {
                work.cron(&firing(&format!("c{round}-{n}"), &format!("t{round}-{n}"), false)).unwrap();
            }
        });
        session.chain.observe(1);
        fire(&mut world, &mut session, &format!("late{round}"), &format!("t{round}"), false);
    }
    let named: usize = session.gaps.iter().map(|gap| gap.omitted.len()).sum();
    let more: u64 = session.gaps.iter().map(|gap| gap.more).sum();
    assert!(named <= 2_000 && session.gaps.len() < rounds, "{named}");
    let put_out = rounds * (CRONS_MAX - CRONS_UNRELATED_MAX + 1);
    assert_eq!(named + usize::try_from(more).unwrap(), put_out, "none vanishes without a notice");
}

#[test]
fn notices_of_different_queues_do_not_become_one() {
    let mut world = World::new();
    let mut session = with_timers(&mut world, 21, 0);
    fire(&mut world, &mut session, "late", "another", false);
    session.chain.clear_trust();
    for n in 0..NOTIFICATIONS_MAX + GAPS_MAX {
        put(&mut world, &mut session, &format!("n{n}"), "other");
    }
    assert_eq!(session.gaps.len(), GAPS_MAX);
    assert_eq!(omitted(&session)[..2], [["c0", "c1"], ["n0", "n1"]]);
    assert_eq!((session.gaps[0].queue.as_str(), session.gaps[1].queue.as_str()), ("crons", "notifications"));
}

#[test]
fn notices_keep_texts_as_long_as_there_is_room() {
    let (mut world, mut session) = (World::new(), with_mine(trusted()));
    let sizes = [GAP_TEXT_BYTES_MAX - 10, 11, 10, 1];
    for n in 0..NOTIFICATIONS_MAX {
        put(&mut world, &mut session, &format!("n{n}"), "mine");
    }
    for (n, size) in sizes.into_iter().enumerate() {
        let text = Some("x".repeat(size));
        let put = Notify::Put {
            id: Some(name(&format!("big{n}"))),
            task: name("mine"),
            kind: None,
            status: None,
            text,
        };
        world.work(&mut session, |work| work.notify(&put)).unwrap();
    }
    let kept: Vec<_> = session
        .gaps
        .iter()
        .flat_map(|gap| &gap.omitted)
        .map(|item| (item.text.as_ref().map(String::len), item.text_left_out))
        .collect();
    assert_eq!(kept, [(Some(sizes[0]), false), (None, true), (Some(10), false), (None, true)]);
}
