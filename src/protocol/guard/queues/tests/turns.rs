use serde_json::json;

use super::*;
use crate::protocol::guard::session::Question;
use crate::protocol::guard::testing::{NOW, prompt, session, trusted};

fn first(id: &str) -> (String, bool) {
    (id.to_owned(), false)
}

fn again(id: &str) -> (String, bool) {
    (id.to_owned(), true)
}

fn kept_back(reason: &str) -> Result<(String, bool), String> {
    Err(reason.to_owned())
}

/// One of everything: an unrelated and a related item in each queue.
fn queued(world: &mut World, session: Session) -> Session {
    let mut session = with_mine(session);
    put(world, &mut session, "n1", "other");
    put(world, &mut session, "n2", "mine");
    fire(world, &mut session, "c1", "timer", false);
    fire(world, &mut session, "c2", "wakeup", true);
    session
}

#[test]
fn whether_a_result_belongs_to_the_chain_is_decided_when_it_is_queued() {
    // O54
    let mut world = World::new();
    let mut session = queued(&mut world, session());
    session.tasks.clear();
    session.chain.related.insert("other".to_owned());
    let related: Vec<bool> = session.notifications.iter().map(|item| item.related).collect();
    assert_eq!(related, [false, true]);
    session.chain.observe(1);
    assert_eq!(take(&mut world, &mut session), Ok(first("n2")));
}

#[test]
fn a_new_chain_makes_everything_queued_unrelated() {
    // O56
    let mut world = World::new();
    let mut session = queued(&mut world, session());
    world.work(&mut session, |work| {
        work.at_boundary();
    });
    assert!(session.notifications.iter().all(|item| !item.related));
    assert!(session.crons.iter().all(|item| !item.related));
    fire(&mut world, &mut session, "c3", "wakeup", true);
    fire(&mut world, &mut session, "c4", "another", true);
    let related: Vec<bool> = session.crons.iter().map(|item| item.related).collect();
    assert_eq!(related, [false, false, false, true], "a wakeup that was queued then is in the baseline");
    assert!(
        !session.chain.baseline.contains("timer"),
        "a plain timer is never the chain's, and in no baseline"
    );
}

#[test]
fn without_trust_the_head_goes_and_with_trust_only_what_is_related() {
    // O70: nothing holds, the guard holds, a wait holds.
    let mut world = World::new();
    let mut idle = queued(&mut world, session());
    assert_eq!(take(&mut world, &mut idle), Ok(first("n1")));
    assert_eq!(take_cron(&mut world, &mut idle), Ok(first("c1")));

    let mut blocking = queued(&mut world, trusted());
    assert_eq!(take(&mut world, &mut blocking), Ok(first("n2")));
    assert_eq!(take_cron(&mut world, &mut blocking), Ok(first("c2")));
    assert_eq!(take(&mut world, &mut blocking), kept_back("unrelated"));
    assert_eq!(take_cron(&mut world, &mut blocking), kept_back("unrelated"));

    let mut waiting = queued(&mut world, trusted());
    waiting.wait =
        serde_json::from_value(json!({"promptId": "prm_0000000000000001", "seq": 9, "at": NOW})).unwrap();
    assert_eq!(take(&mut world, &mut waiting), kept_back("wait-held"));
    assert_eq!(take_cron(&mut world, &mut waiting), kept_back("wait-held"));
}

#[test]
fn a_guard_that_is_switched_off_keeps_nothing_back() {
    let mut world = World::new();
    let mut session = queued(&mut world, trusted());
    session.guard = false;
    assert_eq!(take(&mut world, &mut session), Ok(first("n1")));
}

#[test]
fn nothing_starts_a_turn_where_something_else_goes_first() {
    type Change = fn(&mut Session);
    // O66, O70
    let table: &[(&str, Change)] = &[
        ("session-closed", |session| session.state = SessionState::Closed),
        ("session-restoring", |session| session.state = SessionState::Restoring),
        ("prompt-queued", |session| session.prompts.push(prompt(1, PromptState::Queued))),
        ("question-open", |session| {
            session.question = Some(Question { id: None, at: session.created_at.clone() });
        }),
        ("relocating", |session| {
            session.gate = serde_json::from_value(json!({
                "to": "/work/b", "seq": 1, "at": NOW, "deadline": {"ms": 1}, "leaseMs": 1,
            }))
            .unwrap();
        }),
    ];
    for (reason, change) in table {
        let mut world = World::new();
        let mut session = queued(&mut world, trusted());
        change(&mut session);
        let before = session.clone();
        assert_eq!(take(&mut world, &mut session), kept_back(reason));
        assert_eq!(take_cron(&mut world, &mut session), kept_back(reason));
        assert_eq!(session, before, "{reason}: asking changes nothing");
    }
    let mut world = World::new();
    let mut session = queued(&mut world, trusted());
    session.prompts.push(prompt(1, PromptState::Removed));
    assert_eq!(take(&mut world, &mut session), Ok(first("n2")), "a removed prompt only keeps its place");
}

#[test]
fn an_empty_queue_says_so_whatever_holds() {
    let (mut world, mut session) = (World::new(), session());
    session.state = SessionState::Restoring;
    assert_eq!(take(&mut world, &mut session), Err("nothing-queued".to_owned()));
    assert_eq!(take_cron(&mut world, &mut session), Err("nothing-queued".to_owned()));
}

#[test]
fn two_takers_never_get_one_item_at_once() {
    let mut world = World::new();
    let mut session = queued(&mut world, session());
    assert_eq!(take(&mut world, &mut session), Ok(first("n1")));
    assert_eq!(take(&mut world, &mut session), Ok(first("n2")));
    assert_eq!(take(&mut world, &mut session), kept_back("taken"));
    assert_eq!(session.notifications.len(), 2, "it stays queued until its turn began");
}

#[test]
fn what_was_taken_and_not_acknowledged_is_offered_again() {
    // O69: past the deadline, after the taker's death, and after a reboot.
    let changes: [fn(&mut World); 3] =
        [|world| world.passes(1_000), |world| world.dies(7), |world| world.reboots()];
    for change in changes {
        let mut world = World::new();
        let mut session = queued(&mut world, session());
        assert_eq!(take(&mut world, &mut session), Ok(first("n1")));
        assert_eq!(take_cron(&mut world, &mut session), Ok(first("c1")));
        world.passes(999);
        world.work(&mut session, |work| {
            work.sweep_background();
        });
        assert!(session.notifications[0].taken.is_some() && session.crons[0].taken.is_some());
        change(&mut world);
        world.work(&mut session, |work| {
            work.sweep_background();
        });
        assert_eq!(take(&mut world, &mut session), Ok(again("n1")));
        assert_eq!(take_cron(&mut world, &mut session), Ok(again("c1")));
    }
}

#[test]
fn a_taken_item_tells_everything_and_authorises_one_turn() {
    let (mut world, mut session) = (World::new(), with_mine(session()));
    let put = Notify::Put {
        id: Some(name("n1")),
        task: name("mine"),
        kind: Some("agent".to_owned()),
        status: Some("completed".to_owned()),
        text: Some("42".to_owned()),
    };
    let take = Notify::Take { for_ms: 1_000, process: None };
    let (put, taken, authorises) = world.work(&mut session, |work| {
        let put = work.notify(&put).unwrap();
        assert!(!work.authorises);
        let taken = work.notify(&take).unwrap();
        (put, taken, work.authorises)
    });
    assert_eq!(json!(put.facts), json!({"id": "n1", "taskId": "mine", "related": true, "queued": 1}));
    assert_eq!((put.code, taken.code, authorises), (Code::Queued, Code::Taken, true));
    assert_eq!(
        json!(taken.facts),
        json!({"id": "n1", "taskId": "mine", "kind": "agent", "status": "completed", "text": "42",
            "related": true, "repeat": false})
    );
    assert!(world.work(&mut session, |work| work.notify(&take).is_err() && !work.authorises));
}

#[test]
fn an_item_is_acknowledged_once_and_never_comes_again() {
    let mut world = World::new();
    let mut session = queued(&mut world, session());
    assert_eq!(take(&mut world, &mut session), Ok(first("n1")));
    assert_eq!(acknowledge(&mut world, &mut session, "n1"), Ok(Code::Acknowledged));
    let before = session.clone();
    assert_eq!(acknowledge(&mut world, &mut session, "n1"), Err(Code::NoSuchItem));
    assert_eq!(acknowledge(&mut world, &mut session, "never"), Err(Code::NoSuchItem));
    for id in ["n1", "n2"] {
        let said = world.work(&mut session, |work| work.notify(&result(id, "mine"))).unwrap();
        assert_eq!(said.code, Code::AlreadyQueued);
    }
    for id in ["c1", "c2"] {
        let said = world.work(&mut session, |work| work.cron(&firing(id, "mine", true))).unwrap();
        assert_eq!(said.code, Code::AlreadyQueued);
    }
    assert_eq!(session, before);
}

#[test]
fn the_ids_of_what_was_delivered_are_bounded() {
    let (mut world, mut session) = (World::new(), session());
    for n in 0..DELIVERED_MAX + 3 {
        put(&mut world, &mut session, &format!("n{n}"), "other");
        acknowledge(&mut world, &mut session, &format!("n{n}")).unwrap();
    }
    assert_eq!(session.notified.len(), DELIVERED_MAX);
    assert_eq!(session.notified[0], name("n3"));
}

#[test]
fn items_without_an_id_get_one_each() {
    let (mut world, mut session) = (World::new(), session());
    let result = Notify::Put { id: None, task: name("a"), kind: None, status: None, text: None };
    let firing = CronRequest::Put { id: None, task: name("a"), wakeup: false, text: None };
    world.work(&mut session, |work| {
        for _ in 0..3 {
            work.notify(&result).unwrap();
            work.cron(&firing).unwrap();
        }
    });
    assert_eq!((session.notifications.len(), session.crons.len()), (3, 3));
    assert_ne!(session.notifications[1].id, session.notifications[2].id);
}

#[test]
fn a_closed_session_takes_no_item_and_starts_no_turn() {
    // O64
    let mut world = World::new();
    let mut session = queued(&mut world, session());
    session.state = SessionState::Closed;
    let before = session.clone();
    assert_eq!(acknowledge(&mut world, &mut session, "n1"), Err(Code::SessionOver));
    let put = world.work(&mut session, |work| work.notify(&result("n9", "mine")));
    assert_eq!(put.unwrap_err().code, Code::SessionOver);
    let fire = world.work(&mut session, |work| work.cron(&firing("c9", "mine", true)));
    assert_eq!(fire.unwrap_err().code, Code::SessionOver);
    assert_eq!(session, before);
}

fn suspended(mut session: Session) -> Session {
    World::new().work(&mut session, |work| work.suspend(Cause::Asked, None));
    session
}

fn retry_paused() -> Session {
    let mut session = trusted();
    session.chain.pause_for_retry();
    session
}

#[test]
fn what_the_start_of_an_automatic_turn_does_to_the_chain() {
    type Make = fn() -> Session;
    let states: [(&str, Make); 4] = [
        ("idle", session),
        ("trusted", trusted),
        ("retry-paused", retry_paused),
        ("suspended", || suspended(trusted())),
    ];
    for (state, make) in states {
        for related in [false, true] {
            let mut session = with_mine(make());
            session.chain.attempts = 1;
            let chain = session.chain.clone();
            World::new().work(&mut session, |work| work.automatic_turn_starts(related));
            let after = &session.chain;
            match (state, related) {
                // O41: nothing automatic lifts it.
                ("suspended", _) => assert_eq!(*after, chain),
                // O43: only the pause is lifted; budget, trust and baseline stay.
                ("trusted" | "retry-paused", true) => {
                    let mut resumed = chain;
                    resumed.retry_paused = false;
                    assert_eq!(*after, resumed);
                }
                _ => {
                    assert!(!after.armed && !after.retry_paused && after.suspended.is_none(), "{state}");
                    assert!(after.baseline.contains("mine") && after.id != chain.id, "{state}");
                    assert_eq!(after.attempts, 1, "{state}: only a person's prompt refills the budget");
                }
            }
        }
    }
}

#[test]
fn a_related_result_lifts_a_pause_and_no_suspension() {
    // O43, from outside.
    let mut world = World::new();
    let mut paused = queued(&mut world, retry_paused());
    assert_eq!(take(&mut world, &mut paused), Ok(first("n2")));
    assert!(paused.chain.retry_paused, "only its turn lifts it");
    acknowledge(&mut world, &mut paused, "n2").unwrap();
    assert!(paused.chain.needs_inspection());

    let mut held = suspended(queued(&mut world, trusted()));
    acknowledge(&mut world, &mut held, "n2").unwrap();
    assert_eq!(held.chain.suspended.map(|suspended| suspended.cause), Some(Cause::Asked));
}

#[test]
fn an_unrelated_turn_takes_the_trust_and_everything_queued_away_from_the_chain() {
    let mut world = World::new();
    let mut session = queued(&mut world, trusted());
    acknowledge(&mut world, &mut session, "n1").unwrap();
    assert!(!session.chain.is_trusted() && !session.has_related_background());
}

#[test]
fn in_plan_mode_an_automatic_turn_suspends_and_without_a_guard_it_does_nothing() {
    // O44
    let mut planning = trusted();
    planning.plan = true;
    World::new().work(&mut planning, |work| work.automatic_turn_starts(true));
    assert_eq!(planning.chain.suspended.map(|suspended| suspended.cause), Some(Cause::Plan));

    let mut off = trusted();
    off.guard = false;
    let before = off.clone();
    World::new().work(&mut off, |work| work.automatic_turn_starts(false));
    assert_eq!(off, before);
}
