use super::*;
use crate::protocol::guard::queues::NOTIFICATIONS_MAX;
use crate::protocol::guard::testing::trusted;

/// The rule once more, as a set that grows until nothing can be added: nothing walks here, so nothing circles.
fn related_by_fixpoint(session: &Session) -> BTreeSet<String> {
    let mut related = session.chain.related.clone();
    related.extend(session.marks.iter().map(|mark| mark.task_id.as_str().to_owned()));
    loop {
        let before = related.len();
        for task in &session.tasks {
            let is_asked = |id: &Name| related.contains(id.as_str());
            let is_new = !session.chain.baseline.contains(task.task_id.as_str());
            let is_related = match (&task.owner, &task.parent) {
                (Some(owner), _) => is_asked(owner),
                (None, Some(parent)) => is_new && is_asked(parent),
                (None, None) => is_new,
            };
            if is_related {
                related.insert(task.task_id.as_str().to_owned());
            }
        }
        if related.len() == before {
            return related;
        }
    }
}

/// Every small world: three tasks with every choice of parents, an owner, a baseline, one taken up, one marked.
fn for_every_small_world(mut check: impl FnMut(usize, &Session)) {
    const PARENTS: [Option<&str>; 5] = [None, Some("a"), Some("b"), Some("c"), Some("gone")];
    for number in 0..125 * 3 * 8 * 4 {
        let (parents, code) = (number % 125, number / 125);
        let (owner, code) = (code % 3, code / 3);
        let (baseline, extra) = (code % 8, code / 8);
        let mut session = trusted();
        for (index, id) in ["a", "b", "c"].into_iter().enumerate() {
            let mut task = task(id);
            task.parent = PARENTS[parents / [1, 5, 25][index] % 5].map(name);
            if index == 2 {
                task.owner = [None, Some("a"), Some("gone")][owner].map(name);
            }
            session.tasks.push(task);
            if baseline >> index & 1 == 1 {
                session.chain.baseline.insert(id.to_owned());
            }
        }
        if extra & 1 == 1 {
            session.chain.related.insert("a".to_owned());
        }
        if extra & 2 == 2 {
            session.marks.push(Mark {
                mark_id: MarkId::parse("mrk_00000000000000aa").unwrap(),
                task_id: name("b"),
                deadline: BootTime { boot_id: Some("boot-1".to_owned()), ms: u64::MAX },
                extra: Extra::new(),
            });
        }
        check(number, &session);
    }
}

#[test]
fn live_work_priority_and_overflow_go_by_one_rule() {
    // O55
    let (mut world, take) = (World::new(), Notify::Take { for_ms: 1_000, process: None });
    let sources: Vec<&str> = ["a", "b", "c"].into_iter().cycle().take(NOTIFICATIONS_MAX).collect();
    for_every_small_world(|number, session| {
        let related = related_by_fixpoint(session);
        let is_related = |id: &str| related.contains(id);
        let shown = || serde_json::to_string(&(&session.tasks, &session.chain, &session.marks)).unwrap();
        for id in ["a", "b", "c"] {
            assert_eq!(session.is_related_task(&name(id)), is_related(id), "{id}: {}", shown());
        }
        // Live work.
        let lives = ["a", "b", "c"].into_iter().any(is_related);
        assert_eq!(session.has_related_background(), lives, "{}", shown());
        // The queues ask the same function: every seventh world is enough, and 7 is no divisor of any choice.
        if number % 7 != 0 {
            return;
        }
        world.work(&mut session.clone(), |work| {
            // Overflow: of a full queue the first unrelated one goes, else the one that comes.
            for (n, from) in sources.iter().chain([&"a"]).enumerate() {
                let put = result(&format!("n{n}"), from);
                assert_eq!(work.notify(&put).unwrap().facts["related"], is_related(from), "{}", shown());
            }
            let put_out = sources.iter().position(|from| !is_related(from)).unwrap_or(NOTIFICATIONS_MAX);
            assert_eq!(work.session.gaps[0].omitted[0].id, name(&format!("n{put_out}")), "{}", shown());
            // Priority: the first related one that is left.
            let first = sources.iter().position(|from| is_related(from)).map(|n| format!("n{n}"));
            let taken = work.notify(&take).ok().map(|said| said.facts["id"].as_str().unwrap().to_owned());
            assert_eq!(taken, first, "{}", shown());
        });
    });
}

#[test]
fn a_mark_that_is_rolled_back_after_the_end_of_its_task_leaves_nothing_behind() {
    // The task is in no baseline: its parent is missing, and only the mark makes it related.
    let (mut world, mut session) = (World::new(), session());
    begin(&mut world, &mut session, "a<gone");
    let lying = mark(&mut world, &mut session, "a");
    assert!(session.has_related_background());
    end(&mut world, &mut session, "a");
    assert!(session.is_related_task(&name("a")), "provisionally");
    world.work(&mut session, |work| work.background(&Background::Rollback(name("a"), lying))).unwrap();
    assert!(!session.is_related_task(&name("a")));
}

#[test]
fn a_task_that_ended_before_the_chain_began_starts_anew_in_it() {
    let (mut world, mut session) = (World::new(), session());
    begin(&mut world, &mut session, "a");
    end(&mut world, &mut session, "a");
    boundary(&mut world, &mut session);
    assert!(!session.is_related_task(&name("a")), "that one was another chain's");
    begin(&mut world, &mut session, "a");
    assert!(session.is_related_task(&name("a")));
}

#[test]
fn a_wakeup_is_what_it_was_when_it_was_scheduled() {
    let (mut world, mut session) = (World::new(), session());
    let schedule = |id: &str, parent: Option<&str>| Background::Start {
        task: name(id),
        kind: TaskKind::Wakeup,
        parent: parent.map(name),
        owner: None,
        told_by_agent: false,
        process: None,
    };
    world.work(&mut session, |work| work.background(&schedule("old", None))).unwrap();
    boundary(&mut world, &mut session);
    world.work(&mut session, |work| work.background(&schedule("mine", None))).unwrap();
    world.work(&mut session, |work| work.background(&schedule("strange", Some("old")))).unwrap();
    let related = |session: &Session| {
        ["old", "mine", "strange", "never-told-of"].map(|timer| session.is_related_wakeup(&name(timer)))
    };
    assert_eq!(related(&session), [false, true, false, true]);
    for id in ["old", "mine", "strange"] {
        end(&mut world, &mut session, id);
    }
    assert_eq!(related(&session), [false, true, false, true], "it has fired and is scheduled no more");
}
