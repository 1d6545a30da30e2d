use super::*;
use crate::protocol::guard::request::{CronRequest, Notify};
use crate::protocol::guard::session::Ticket;
use crate::protocol::guard::testing::{NOW, World, name, process, prompt, session, trusted};
use crate::protocol::verdict::Facts;

fn begin(to: &str) -> Relocate {
    Relocate::Begin { to: to.to_owned(), for_ms: 1_000, process: Some(process(7)) }
}

/// Asks, and gives the code with the facts.
fn ask(world: &mut World, session: &mut Session, request: &Relocate) -> (Code, Facts) {
    match world.work(session, |work| work.relocate(request)) {
        Ok(said) => (said.code, said.facts),
        Err(refusal) => (refusal.code, refusal.facts),
    }
}

fn code(world: &mut World, session: &mut Session, request: &Relocate) -> Code {
    ask(world, session, request).0
}

fn blockers(world: &mut World, session: &mut Session) -> Vec<String> {
    let (_, facts) = ask(world, session, &Relocate::Poll);
    facts["blockers"].as_array().unwrap().iter().map(|one| one["id"].as_str().unwrap().to_owned()).collect()
}

fn cause(session: &Session) -> Option<Cause> {
    session.chain.suspended.as_ref().map(|suspended| suspended.cause)
}

#[test]
fn a_move_to_the_same_directory_changes_nothing() {
    // O59
    let (mut world, mut session) = (World::new(), trusted());
    let before = session.clone();
    assert_eq!(code(&mut world, &mut session, &begin("/work/a")), Code::NoMove);
    assert_eq!(session, before);
}

#[test]
fn a_move_to_the_same_directory_does_not_overtake_another_move() {
    // O59: A to B is under way when A to A comes.
    let (mut world, mut session) = (World::new(), trusted());
    assert_eq!(code(&mut world, &mut session, &begin("/work/b")), Code::RelocationReady);
    let before = session.clone();
    for to in ["/work/a", "/work/c"] {
        let (code, facts) = ask(&mut world, &mut session, &begin(to));
        assert_eq!(code, Code::Relocating);
        assert_eq!((&facts["from"], &facts["to"]), (&"/work/a".into(), &"/work/b".into()));
        assert_eq!(facts["ownerPid"], 7);
        assert_eq!(session, before, "{to}");
    }
    assert_eq!(code(&mut world, &mut session, &Relocate::Commit), Code::Relocated);
    assert_eq!(session.cwd.as_deref(), Some("/work/b"));
    assert_eq!(code(&mut world, &mut session, &begin("/work/b")), Code::NoMove, "read anew under the lock");
}

#[test]
fn a_session_without_a_known_directory_can_move() {
    let (mut world, mut session) = (World::new(), session());
    session.cwd = None;
    assert_eq!(code(&mut world, &mut session, &begin("/work/a")), Code::RelocationReady);
    assert_eq!(code(&mut world, &mut session, &Relocate::Commit), Code::Relocated);
    assert_eq!(session.cwd.as_deref(), Some("/work/a"));
}

#[test]
fn a_real_move_suspends_the_guard_and_leaves_it_suspended_however_it_ends() {
    // O37, O60, O61
    for (end, expected, cwd) in [
        (Relocate::Commit, Code::Relocated, "/work/b"),
        (Relocate::Abort, Code::RelocationAborted, "/work/a"),
    ] {
        let (mut world, mut session) = (World::new(), trusted());
        ask(&mut world, &mut session, &begin("/work/b"));
        assert_eq!(cause(&session), Some(Cause::Relocated));
        // A prompt that was admitted before the gate has run meanwhile, and has begun a chain of its own.
        session.chain = trusted().chain;
        assert_eq!(code(&mut world, &mut session, &end), expected);
        assert_eq!((session.cwd.as_deref(), &session.gate), (Some(cwd), &None));
        assert_eq!(cause(&session), Some(Cause::Relocated));
        for over in [Relocate::Poll, Relocate::Commit, Relocate::Abort] {
            assert_eq!(code(&mut world, &mut session, &over), Code::NoRelocation);
        }
    }
}

#[test]
fn a_move_waits_for_everything_that_was_admitted_before_it() {
    // O60, O63
    let (mut world, mut session) = (World::new(), session());
    session.seq = 3;
    let (running, queued, removed) =
        (prompt(1, PromptState::Running), prompt(2, PromptState::Queued), prompt(3, PromptState::Removed));
    let ids = [&running, &queued].map(|prompt| prompt.prompt_id.as_str().to_owned());
    session.prompts = vec![running, queued, removed];
    assert_eq!(code(&mut world, &mut session, &begin("/work/b")), Code::Relocating);
    assert_eq!(blockers(&mut world, &mut session), ids);

    session.prompts.remove(0);
    session.prompts[0].state = PromptState::Running;
    assert_eq!(blockers(&mut world, &mut session), [ids[1].as_str()], "promoted during the move");
    let before = session.clone();
    let (refused, facts) = ask(&mut world, &mut session, &Relocate::Commit);
    assert_eq!((refused, facts["blockers"].as_array().unwrap().len()), (Code::Relocating, 1));
    assert_eq!(session, before);

    session.prompts.remove(0);
    assert_eq!(code(&mut world, &mut session, &Relocate::Poll), Code::RelocationReady);
    assert_eq!(code(&mut world, &mut session, &Relocate::Commit), Code::Relocated);
}

#[test]
fn a_prompt_that_was_queued_after_the_gate_is_not_waited_for_but_one_that_runs_is() {
    let (mut world, mut session) = (World::new(), session());
    ask(&mut world, &mut session, &begin("/work/b"));
    session.prompts.push(prompt(90, PromptState::Queued));
    assert_eq!(blockers(&mut world, &mut session), [""; 0]);
    session.prompts[0].state = PromptState::Running;
    assert_eq!(blockers(&mut world, &mut session).len(), 1);
}

#[test]
fn a_move_waits_for_what_is_being_sent_and_for_turns_that_are_about_to_begin() {
    // O60
    let (mut world, mut session) = (World::new(), session());
    let ticket: Ticket = serde_json::from_value(json!({
        "ticketId": "tkt_0000000000000001", "generation": 1, "chain": 0, "attempt": 1, "seq": 1, "at": NOW,
        "deadline": {"bootId": "boot-1", "ms": 60_000},
    }))
    .unwrap();
    session.tickets.push(ticket);
    let put =
        |id: &str| Notify::Put { id: Some(name(id)), task: name("t"), kind: None, status: None, text: None };
    let fire = |id: &str| CronRequest::Put { id: Some(name(id)), task: name(id), wakeup: false, text: None };
    world.work(&mut session, |work| {
        work.notify(&put("n1")).unwrap();
        work.notify(&put("n2")).unwrap();
        work.cron(&fire("c1")).unwrap();
        work.cron(&fire("c2")).unwrap();
        work.notify(&Notify::Take { for_ms: 60_000, process: None }).unwrap();
        work.cron(&CronRequest::Take { for_ms: 60_000, process: None }).unwrap();
    });
    ask(&mut world, &mut session, &begin("/work/b"));
    assert_eq!(blockers(&mut world, &mut session), ["tkt_0000000000000001", "n1", "c1"]);
    assert!(session.tickets[0].void.is_some(), "what is being sent may no longer be reported as sent");

    session.tickets.clear();
    world.work(&mut session, |work| {
        work.notify(&Notify::Ack(name("n1"))).unwrap();
        work.cron(&CronRequest::Ack(name("c1"))).unwrap();
    });
    assert_eq!(code(&mut world, &mut session, &Relocate::Poll), Code::RelocationReady);
}

#[test]
fn a_move_is_given_up_when_its_caller_dies_or_is_late() {
    // O61
    let changes: [fn(&mut World); 3] =
        [|world| world.passes(1_000), |world| world.dies(7), |world| world.reboots()];
    for change in changes {
        let (mut world, mut session) = (World::new(), trusted());
        ask(&mut world, &mut session, &begin("/work/b"));
        world.passes(999);
        world.work(&mut session, |work| {
            work.sweep_background();
        });
        assert!(session.gate.is_some());
        change(&mut world);
        world.work(&mut session, |work| {
            work.sweep_background();
        });
        assert_eq!((&session.gate, session.cwd.as_deref()), (&None, Some("/work/a")));
        assert_eq!(cause(&session), Some(Cause::Relocated));
        assert_eq!(code(&mut world, &mut session, &Relocate::Commit), Code::NoRelocation);
        assert_eq!(session.cwd.as_deref(), Some("/work/a"), "too late");
    }
}

#[test]
fn whoever_asks_keeps_the_move_and_seldom_writes() {
    let (mut world, mut session) = (World::new(), session());
    ask(&mut world, &mut session, &begin("/work/b"));
    world.passes(499);
    let before = session.clone();
    ask(&mut world, &mut session, &Relocate::Poll);
    assert_eq!(session, before);
    for again in [Relocate::Poll, begin("/work/b"), Relocate::Poll] {
        world.passes(501);
        assert_eq!(code(&mut world, &mut session, &again), Code::RelocationReady);
        world.work(&mut session, |work| {
            work.sweep_background();
        });
        assert!(session.gate.is_some());
    }
}

#[test]
fn a_session_that_is_closed_or_being_restored_does_not_move() {
    for (state, expected) in
        [(SessionState::Closed, Code::SessionOver), (SessionState::Restoring, Code::SessionRestoring)]
    {
        let (mut world, mut session) = (World::new(), session());
        session.state = state;
        let before = session.clone();
        assert_eq!(code(&mut world, &mut session, &begin("/work/b")), expected);
        assert_eq!(session, before);
    }
}
