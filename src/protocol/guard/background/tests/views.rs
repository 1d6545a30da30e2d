//! What the agent tells of its own background, and what a closed session takes.

use super::*;

#[test]
fn an_agents_own_view_starts_and_ends_tasks_and_keeps_what_it_does_not_tell() {
    let (mut world, mut session) = (World::new(), session());
    begin(&mut world, &mut session, "a");
    begin(&mut world, &mut session, "b<a");
    let view = Background::View { tasks: Some(vec![task("b"), task("c")]), wakeups: None };
    world.work(&mut session, |work| work.background(&view)).unwrap();
    let lives: Vec<_> =
        session.tasks.iter().map(|task| (task.task_id.as_str(), task.parent.as_ref())).collect();
    assert_eq!(lives, [("b", Some(&name("a"))), ("c", None)]);
    assert!(session.is_related_task(&name("b")), "its parent ended in the same view");

    let before = session.clone();
    world.work(&mut session, |work| work.background(&view)).unwrap();
    assert_eq!(session, before, "the same view once more changes nothing");
    world
        .work(&mut session, |work| {
            work.background(&Background::View { tasks: Some(Vec::new()), wakeups: None })
        })
        .unwrap();
    assert!(!session.has_related_background());
}

#[test]
fn an_agents_own_view_does_not_end_what_a_script_told_of() {
    let (mut world, mut session) = (World::new(), session());
    let task = name("scripts-own");
    let start = Background::Start {
        task,
        kind: TaskKind::Shell,
        parent: None,
        owner: None,
        process: None,
        told_by_agent: false,
    };
    world.work(&mut session, |work| work.background(&start)).unwrap();
    let view = Background::View { tasks: Some(Vec::new()), wakeups: Some(Vec::new()) };
    world.work(&mut session, |work| work.background(&view)).unwrap();
    assert!(session.has_related_background());
}

#[test]
fn a_closed_session_takes_nothing_new() {
    // O64
    let (mut world, mut session) = (World::new(), session());
    session.state = SessionState::Closed;
    let before = session.clone();
    for request in [
        Background::End(name("a")),
        Background::Mark(name("a"), 1),
        Background::View { tasks: Some(Vec::new()), wakeups: None },
    ] {
        let refusal = world.work(&mut session, |work| work.background(&request)).unwrap_err();
        assert_eq!(refusal.code, Code::SessionOver);
    }
    assert_eq!(session, before);
}
