mod one_rule;
mod views;

use std::collections::BTreeSet;

use super::*;
use crate::protocol::guard::request::Notify;
use crate::protocol::guard::session::Session;
use crate::protocol::guard::testing::{World, name, process, session};

/// A task that is told of as `id`, or `id<parent`, or `id@owner`.
fn task(text: &str) -> Task {
    let (id, parent) = text.split_once('<').map_or((text, None), |(id, parent)| (id, Some(parent)));
    let (id, owner) = id.split_once('@').map_or((id, None), |(id, owner)| (id, Some(owner)));
    Task {
        task_id: name(id),
        kind: if owner.is_some() { TaskKind::Monitor } else { TaskKind::Agent },
        parent: parent.map(name),
        owner: owner.map(name),
        at: Timestamp::parse(crate::protocol::guard::testing::NOW).unwrap(),
        process: None,
        told_by_agent: true,
        extra: Extra::new(),
    }
}

fn begin(world: &mut World, session: &mut Session, text: &str) {
    let Task { task_id, kind, parent, owner, .. } = task(text);
    let start = Background::Start { task: task_id, kind, parent, owner, process: None, told_by_agent: true };
    world.work(session, |work| work.background(&start)).unwrap();
}

fn end(world: &mut World, session: &mut Session, id: &str) {
    world.work(session, |work| work.background(&Background::End(name(id)))).unwrap();
}

fn mark(world: &mut World, session: &mut Session, id: &str) -> MarkId {
    let said = world.work(session, |work| work.background(&Background::Mark(name(id), 1_000))).unwrap();
    MarkId::parse(said.facts["markId"].as_str().unwrap()).unwrap()
}

fn boundary(world: &mut World, session: &mut Session) {
    world.work(session, |work| {
        work.at_boundary();
    });
}

fn sweep(world: &mut World, session: &mut Session) {
    world.work(session, |work| {
        work.sweep_background();
    });
}

fn result(id: &str, from: &str) -> Notify {
    Notify::Put { id: Some(name(id)), task: name(from), kind: None, status: None, text: None }
}

/// Queues a result of the task and answers whether it counts as related.
fn result_is_related(world: &mut World, session: &mut Session, id: &str, from: &str) -> bool {
    world.work(session, |work| work.notify(&result(id, from))).unwrap().facts["related"] == true
}

#[test]
fn what_a_chain_starts_is_its_own_and_so_is_what_that_starts() {
    // O48: what lives, and which of it is related. `old` lived before the chain began.
    let table: &[(&[&str], &[&str])] = &[
        (&["a"], &["a"]),
        (&["a", "b<a", "c<b"], &["a", "b", "c"]),
        (&["c<b", "b<a", "a"], &["a", "b", "c"]),
        (&["a<gone"], &[]),
        (&["a<gone", "b<a"], &[]),
        (&["a<a"], &[]),
        (&["a<b", "b<a"], &[]),
        (&["a<b", "b<a", "c<a", "d"], &["d"]),
        (&["a<old", "b<a"], &[]),
    ];
    for (lives, related) in table {
        let (mut world, mut session) = (World::new(), session());
        begin(&mut world, &mut session, "old");
        boundary(&mut world, &mut session);
        for text in *lives {
            begin(&mut world, &mut session, text);
        }
        let found: BTreeSet<&str> = session
            .tasks
            .iter()
            .map(|task| &task.task_id)
            .filter(|id| session.is_related_task(id))
            .map(Name::as_str)
            .collect();
        assert_eq!(found, related.iter().copied().collect(), "{lives:?}");
        assert_eq!(session.has_related_background(), !related.is_empty(), "{lives:?}");
        assert!(!session.is_related_task(&name("unknown")), "{lives:?}");
    }
}

#[test]
fn every_kind_of_task_follows_the_same_rule() {
    for kind in TaskKind::ALL {
        let (mut world, mut session) = (World::new(), session());
        let start = |id: &str| Background::Start {
            task: name(id),
            kind,
            parent: None,
            owner: None,
            process: None,
            told_by_agent: false,
        };
        world.work(&mut session, |work| work.background(&start("old"))).unwrap();
        boundary(&mut world, &mut session);
        assert!(!session.has_related_background(), "{}", kind.as_str());
        world.work(&mut session, |work| work.background(&start("new"))).unwrap();
        assert!(session.is_related_task(&name("new")) && !session.is_related_task(&name("old")));
        assert!(session.has_related_background(), "{}", kind.as_str());
    }
}

#[test]
fn baseline_and_what_was_taken_up_are_reset_together_by_ids() {
    // O47
    let (mut world, mut session) = (World::new(), session());
    begin(&mut world, &mut session, "old");
    boundary(&mut world, &mut session);
    let lying = mark(&mut world, &mut session, "old");
    world.work(&mut session, |work| work.background(&Background::Commit(name("old"), lying))).unwrap();
    mark(&mut world, &mut session, "old");
    begin(&mut world, &mut session, "new");
    result_is_related(&mut world, &mut session, "n1", "new");
    assert_eq!(session.chain.related, BTreeSet::from(["old".to_owned()]));

    boundary(&mut world, &mut session);
    let ids = ["old", "new", "n1"].map(str::to_owned);
    assert_eq!(session.chain.baseline, BTreeSet::from(ids));
    assert_eq!(session.chain.related, BTreeSet::new());
    assert_eq!(session.marks, []);
    assert!(!session.has_related_background(), "what is queued is not the new chain's either");
}

#[test]
fn a_baseline_task_is_related_once_it_was_talked_to_with_success() {
    // O49, O50
    let (mut world, mut session) = (World::new(), session());
    begin(&mut world, &mut session, "old");
    begin(&mut world, &mut session, "child<old");
    boundary(&mut world, &mut session);
    assert!(!session.has_related_background());

    let lying = mark(&mut world, &mut session, "old");
    assert!(session.is_related_task(&name("old")), "provisionally");
    world.work(&mut session, |work| work.background(&Background::Commit(name("old"), lying))).unwrap();
    assert_eq!(session.marks, []);
    assert!(session.is_related_task(&name("old")));
    assert!(!session.is_related_task(&name("child")), "a baseline child was not talked to itself");
    begin(&mut world, &mut session, "grandchild<old");
    assert!(session.is_related_task(&name("grandchild")));
}

#[test]
fn an_end_notice_between_mark_and_commit_is_related() {
    // O50
    let (mut world, mut session) = (World::new(), session());
    begin(&mut world, &mut session, "old");
    boundary(&mut world, &mut session);
    let lying = mark(&mut world, &mut session, "old");
    end(&mut world, &mut session, "old");
    assert!(result_is_related(&mut world, &mut session, "n1", "old"));
    world.work(&mut session, |work| work.background(&Background::Commit(name("old"), lying))).unwrap();
    assert!(result_is_related(&mut world, &mut session, "n2", "old"));
}

#[test]
fn a_mark_that_is_rolled_back_takes_only_itself_away() {
    // O51
    let (mut world, mut session) = (World::new(), session());
    begin(&mut world, &mut session, "old");
    boundary(&mut world, &mut session);
    let first = mark(&mut world, &mut session, "old");
    let second = mark(&mut world, &mut session, "old");
    let back = |mark: &MarkId| Background::Rollback(name("old"), mark.clone());
    world.work(&mut session, |work| work.background(&back(&first))).unwrap();
    assert!(session.is_related_task(&name("old")));

    let before = session.clone();
    for wrong in [back(&first), Background::Commit(name("other"), second.clone())] {
        let refusal = world.work(&mut session, |work| work.background(&wrong)).unwrap_err();
        assert_eq!(refusal.code, Code::NoSuchMark);
        assert_eq!(session, before);
    }
    world.work(&mut session, |work| work.background(&back(&second))).unwrap();
    assert!(!session.is_related_task(&name("old")));
}

#[test]
fn a_task_that_ended_while_it_was_marked_is_not_related_after_the_rollback() {
    let (mut world, mut session) = (World::new(), session());
    begin(&mut world, &mut session, "old");
    boundary(&mut world, &mut session);
    let lying = mark(&mut world, &mut session, "old");
    end(&mut world, &mut session, "old");
    world.work(&mut session, |work| work.background(&Background::Rollback(name("old"), lying))).unwrap();
    assert!(!result_is_related(&mut world, &mut session, "n1", "old"));
}

#[test]
fn a_mark_whose_maker_died_is_rolled_back_at_its_deadline_and_after_a_reboot() {
    // O51
    for reboots in [false, true] {
        let (mut world, mut session) = (World::new(), session());
        begin(&mut world, &mut session, "old");
        boundary(&mut world, &mut session);
        let lying = mark(&mut world, &mut session, "old");
        world.passes(999);
        sweep(&mut world, &mut session);
        assert!(session.is_related_task(&name("old")), "before the deadline");
        if reboots {
            world.reboots();
        } else {
            world.passes(1);
        }
        sweep(&mut world, &mut session);
        assert!(!session.is_related_task(&name("old")));
        let late = Background::Commit(name("old"), lying);
        let refusal = world.work(&mut session, |work| work.background(&late)).unwrap_err();
        assert_eq!((refusal.code, session.chain.related.len()), (Code::NoSuchMark, 0));
    }
}

#[test]
fn several_marks_of_one_call_are_told_apart() {
    let (mut world, mut session) = (World::new(), session());
    world.work(&mut session, |work| {
        for id in ["a", "b", "a"] {
            work.background(&Background::Mark(name(id), 1_000)).unwrap();
        }
    });
    let ids: BTreeSet<&str> = session.marks.iter().map(|mark| mark.mark_id.as_str()).collect();
    assert_eq!(ids.len(), 3);
}

#[test]
fn a_monitor_is_what_its_owner_is() {
    // O53: whether the owner and the monitor lived before the chain, whether the owner was taken up since.
    let table = [
        // (owner is old, monitor is old, taken up, related)
        (false, false, false, true),
        (true, false, false, false),
        (true, true, false, false),
        (true, true, true, true),
        (true, false, true, true),
    ];
    for (owner_is_old, monitor_is_old, taken_up, related) in table {
        let (mut world, mut session) = (World::new(), session());
        if owner_is_old {
            begin(&mut world, &mut session, "owner");
        }
        if monitor_is_old {
            begin(&mut world, &mut session, "monitor@owner");
        }
        boundary(&mut world, &mut session);
        begin(&mut world, &mut session, "owner");
        begin(&mut world, &mut session, "monitor@owner");
        if taken_up {
            let lying = mark(&mut world, &mut session, "owner");
            let commit = Background::Commit(name("owner"), lying);
            world.work(&mut session, |work| work.background(&commit)).unwrap();
        }
        let found = session.is_related_task(&name("monitor"));
        assert_eq!(found, related, "{owner_is_old} {monitor_is_old} {taken_up}");
    }
    let (mut world, mut session) = (World::new(), session());
    for text in ["m1@gone", "m2@m2", "m3@m4", "m4@m3"] {
        begin(&mut world, &mut session, text);
    }
    assert!(!session.has_related_background(), "owners that are missing or in a circle");
}

#[test]
fn a_task_ends_when_its_process_is_proven_dead_and_not_before() {
    // O57
    let (mut world, mut session) = (World::new(), session());
    let start = Background::Start {
        task: name("a"),
        kind: TaskKind::Shell,
        parent: None,
        owner: None,
        process: Some(process(7)),
        told_by_agent: false,
    };
    world.work(&mut session, |work| work.background(&start)).unwrap();
    begin(&mut world, &mut session, "without-process");
    sweep(&mut world, &mut session);
    assert_eq!(session.tasks.len(), 2);
    world.dies(7);
    sweep(&mut world, &mut session);
    assert_eq!(
        session.tasks.iter().map(|task| task.task_id.as_str()).collect::<Vec<_>>(),
        ["without-process"]
    );
    assert!(result_is_related(&mut world, &mut session, "n1", "a"), "its result is still the chain's");
}

#[test]
fn what_ended_keeps_what_it_was_until_the_next_chain() {
    let (mut world, mut session) = (World::new(), session());
    begin(&mut world, &mut session, "a");
    begin(&mut world, &mut session, "b<a");
    end(&mut world, &mut session, "a");
    assert!(session.is_related_task(&name("b")), "its parent has ended, and is known");
    assert!(result_is_related(&mut world, &mut session, "n1", "a"));
    boundary(&mut world, &mut session);
    assert!(!result_is_related(&mut world, &mut session, "n2", "a"));
    assert!(!session.is_related_task(&name("b")));
    end(&mut world, &mut session, "a");
    assert_eq!(session.tasks.len(), 1, "ending what does not live changes nothing");
}

#[test]
fn a_task_does_not_change_sides_when_the_end_of_its_parent_is_forgotten() {
    let (mut world, mut session) = (World::new(), session());
    begin(&mut world, &mut session, "old");
    boundary(&mut world, &mut session);
    for text in ["mine", "mine-child<mine", "old-child<old"] {
        begin(&mut world, &mut session, text);
    }
    end(&mut world, &mut session, "mine");
    end(&mut world, &mut session, "old");
    for n in 0..2 * ENDED_TASKS_MAX {
        begin(&mut world, &mut session, &format!("t{n}"));
        end(&mut world, &mut session, &format!("t{n}"));
    }
    assert_eq!(session.ended_tasks.len(), ENDED_TASKS_MAX);
    assert!(session.is_related_task(&name("mine-child")));
    assert!(!session.is_related_task(&name("old-child")));
    assert_eq!(session.chain.related.len(), 1, "only what somebody asks for is kept");
}

#[test]
fn nothing_in_the_background_grows_without_bound() {
    let (mut world, mut session) = (World::new(), session());
    begin(&mut world, &mut session, "old");
    boundary(&mut world, &mut session);
    for n in 0..TASKS_MAX + 5 {
        begin(&mut world, &mut session, &format!("t{n}"));
        mark(&mut world, &mut session, &format!("m{n}"));
    }
    assert_eq!((session.tasks.len(), session.marks.len()), (TASKS_MAX, MARKS_MAX));
    assert!(session.tasks.iter().all(|task| task.task_id != name("old")), "an unrelated one goes first");
    assert!(session.tasks.iter().all(|task| task.task_id != name("t0")), "then the oldest");
    assert!(session.is_related_task(&name("t0")), "which is still known");

    for n in 0..450 {
        let id = format!("x{n}");
        let lying = mark(&mut world, &mut session, &id);
        let commit = Background::Commit(name(&id), lying);
        world.work(&mut session, |work| work.background(&commit)).unwrap();
    }
    assert!(session.chain.related.len() <= 400);
    session.state = SessionState::Restoring;
    for n in 0..450 {
        begin(&mut world, &mut session, &format!("y{n}"));
        end(&mut world, &mut session, &format!("y{n}"));
    }
    assert!(session.chain.baseline.len() <= 400);
}

#[test]
fn what_is_restored_belongs_to_no_chain() {
    // O66
    let (mut world, mut session) = (World::new(), session());
    session.state = SessionState::Restoring;
    begin(&mut world, &mut session, "restored");
    session.state = SessionState::Open;
    begin(&mut world, &mut session, "new");
    assert!(!session.is_related_task(&name("restored")) && session.is_related_task(&name("new")));
}
