//! Makers that die before they launched, and children that die in their turn.

use std::time::Duration;

use crate::books;
use crate::story::{Shell, Story};

/// Reserves the child of a step from a shell that is killed right after it.
fn reserved_by_the_dead(story: &Story, run: &str, step: &str) {
    let mut maker = std::process::Command::new("sleep").arg("600").spawn().unwrap();
    let maker_pid = maker.id().to_string();
    let args = ["reserve", "--run", run, "--step", step, "--input-hash", "h", "--parent", "ws"];
    let _ = story.root.json(&[&args[..], &["--owner-pid", &maker_pid]].concat()).is(0, "reserved");
    maker.kill().unwrap();
    maker.wait().unwrap();
}

fn until_ended(story: &mut Story, mut shell: Shell) -> Option<i32> {
    story.until("the end of a shell", |_| shell.ended()).code()
}

/// Rules 23 and 74.
#[test]
fn a_queued_child_whose_maker_died_is_launched_once_by_whoever_asks_also_when_several_ask_at_once() {
    let mut story = Story::new();
    for (round, n_shells) in [1, 2, 3, 2, 3].into_iter().enumerate() {
        let run = format!("r{round}");
        reserved_by_the_dead(&story, &run, "a");
        let shells: Vec<Shell> =
            (0..n_shells).map(|_| story.resume(&run, &["a"], Duration::from_millis(5))).collect();
        for shell in shells {
            assert_eq!(until_ended(&mut story, shell), Some(0), "{}", story.everything());
        }
        story.until_all_agents_are_gone();
        books::completed(&story, &run, &["a"]);
        let task = format!("{run}.a.1");
        assert_eq!(story.told(&["begin", &format!("{run}.a"), &task]).len(), 1, "{}", story.everything());
        let launched = story.root.json(&["inspect", &task, "--history"]).json();
        let launched =
            launched["history"].as_array().unwrap().iter().filter(|event| event["what"] == "launched");
        assert_eq!(launched.count(), 1, "{}", story.everything());
    }
    assert_eq!(books::leftovers(&story), Vec::<String>::new());
}

/// Rules 12 and 89; decision 4. Death alone proves nothing about a turn, which may go on in a process of its own. When
/// there is proof of the end of whatever an attempt has started, this test must tell that story as well.
#[test]
fn a_child_killed_in_its_turn_is_unresolved_and_stays_so_without_proof_that_its_work_is_over() {
    let mut story = Story::new();
    let shell = story.resume("r", &["a"], Duration::from_mins(10));
    let begun = story.until("the child's turn", |story| story.told(&["begin", "r.a"]).pop());
    let agent = story.told(&["agent"])[0][1].parse().unwrap();
    shell.kill();
    story.kill_agent(agent);

    let before = story.root.bytes();
    for _ in 0..3 {
        let shell = story.resume("r", &["a"], Duration::ZERO);
        let pid = shell.pid();
        assert_eq!(until_ended(&mut story, shell), Some(3), "{}", story.everything());
        let gave_up = story.told(&["gave-up", &pid]);
        assert_eq!(gave_up[0][3..], ["unresolved", "owner-dead-unsettled"], "{}", story.everything());
        let left = story.root.json(&["recover"]).is(0, "recovered");
        assert_eq!(left.get("left.0.reasonCode"), "owner-dead-unsettled");
    }
    assert_eq!(before, story.root.bytes(), "asking changes nothing");
    assert_eq!(story.told(&["begin"]), [begun], "nothing took its place");
    assert!(!story.root.path().join("tasks/r.a.2").exists());
}
