//! Tests 9 to 12: the process that drives a workflow is killed, or lives on, and another one resumes its step.

use std::io::{BufRead as _, BufReader};
use std::os::unix::process::CommandExt as _;
use std::process::{Child, ChildStdout, Command, Stdio};

use rustix::process::{Pid, Signal, kill_process_group};
use serde_json::json;

use crate::actors::{AT_ONCE, Owner, PATIENT};
use crate::common::{BIN, Task, TestRoot};
use crate::kit::{
    ask, ask_as, asking, books, checkpoint, child, cut_short, dead_child, no_replacement, one_replacement,
    owned, rows, unresolved,
};

/// A runner of its own: a shell that drives the workflow, owns the children, and alone knows their tokens.
struct Runner {
    shell: Child,
    is_gone: bool,
    says: BufReader<ChildStdout>,
}

/// The words of a runner's script.
const WORDS: &str = r#"
set -eu
call() { eval "$("$LYCHGATE" "$@" --format sh)"; [ "$LYCHGATE_EXIT" = 0 ] || { echo "$1: $LYCHGATE_CODE"; exit 1; }; }
begin() {
    call reserve --run run --step "$1" --input-hash hash --parent ws --owner-pid $$
    task=$LYCHGATE_TASK attempt=$LYCHGATE_ATTEMPT token=$LYCHGATE_TOKEN
    call rotate "$task" --as launch --token "$token"
    call admit "$task" --attempt "$attempt" --start --token "$token"
    turn=$LYCHGATE_TURN
}
"#;

impl Runner {
    fn start(root: &TestRoot, script: &str) -> Self {
        let environment = root.command(&[]);
        let mut shell = Command::new("sh");
        shell.args(["-c", &[WORDS, script].concat()]).env_clear();
        shell.envs(environment.get_envs().filter_map(|(name, value)| Some((name, value?))));
        // Its many calls draw their ids at random, as every process does.
        shell.env_remove("LYCHGATE_TEST_SEED").env("LYCHGATE", BIN).current_dir(root.scratch());
        let mut shell = shell.process_group(0).stdin(Stdio::null()).stdout(Stdio::piped()).spawn().unwrap();
        let says = BufReader::new(shell.stdout.take().unwrap());
        Self { shell, is_gone: false, says }
    }

    /// The next line that it says.
    fn line(&mut self) -> String {
        let mut line = String::new();
        self.says.read_line(&mut line).unwrap();
        line.trim_end().to_owned()
    }

    /// Kills it with SIGKILL, and the call it is making, and waits until both are gone.
    fn kill(mut self) {
        self.end();
        // Whoever of its group still lives holds the other end of the pipe.
        std::io::copy(&mut self.says, &mut std::io::sink()).unwrap();
    }

    fn end(&mut self) {
        // Once it is reaped, its number may be somebody else's.
        if !self.is_gone {
            kill_process_group(Pid::from_child(&self.shell), Signal::KILL).unwrap();
            self.shell.wait().unwrap();
            self.is_gone = true;
        }
    }
}

impl Drop for Runner {
    fn drop(&mut self) {
        self.end();
    }
}

/// The first step is completed, the second one's child was stopped in the middle of its turn and settled, the third
/// one is being asked for when the runner dies, with the run's lock held.
const KILLED_RUNNER: &str = r#"
begin first
echo "done" | "$LYCHGATE" report "$task" --attempt "$attempt" --token "$token" >reported
call settle "$task" --turn "$turn" --close --token "$token"
call step complete --run run --step first --input-hash hash --parent ws
begin step
call stop "$task" --reason "somebody pressed Stop"
call settle "$task" --turn "$turn" --token "$token"
echo "$task $attempt $token"
export LYCHGATE_TEST_PAUSE=locked-step LYCHGATE_TEST_PAUSE_DIR="$PWD"
"$LYCHGATE" reserve --run run --step third --input-hash hash --parent ws --owner-pid $$ >third
"#;

/// Test 9; rules 5, 10, 65, 74, 75 and 101.
#[test]
fn test_9_after_the_runner_is_killed_finished_steps_are_reused_and_the_dead_child_is_replaced_once() {
    let root = TestRoot::new();
    let mut runner = Runner::start(&root, KILLED_RUNNER);
    let told = runner.line();
    let [task, attempt, token] =
        told.split(' ').collect::<Vec<_>>().try_into().unwrap_or_else(|_| panic!("{told}"));
    root.wait_reached("locked-step");
    let _ = ask(&root, &AT_ONCE).is(75, "busy");
    runner.kill();

    // What is on disk before anybody looks: the started record, the interrupted child, its receipt.
    let old = Task {
        root: &root,
        id: task.into(),
        attempt: attempt.into(),
        token: token.into(),
        worker: String::new(),
    };
    let run = root.json(&["inspect", "--run", "run"]).is(0, "ok").json();
    let steps: Vec<_> =
        run["steps"].as_array().unwrap().iter().map(|step| (&step["stepId"], &step["status"])).collect();
    assert_eq!(steps, [(&json!("first"), &json!("completed")), (&json!("step"), &json!("started"))], "{run}");
    let row = root.row(task);
    assert_eq!((&row["taskStatus"], &row["taskAttemptId"]), (&json!("interrupted"), &json!(attempt)));
    assert_eq!(root.receipts("ws", task), [attempt]);

    let before = books(&root);
    let _ = root.json(&["recover"]).is(0, "recovered");
    assert!(before == books(&root), "there is nothing to recover");
    let next = Owner::start();
    let resume = |step: &str| {
        let at = ["reserve", "--run", "run", "--step", step, "--input-hash", "hash", "--parent", "ws"];
        root.json(&[&at[..], &["--owner-pid", &next.pid()]].concat())
    };
    let first = resume("first").is(10, "completed");
    assert_eq!(first.get("taskId"), "run.first.1");
    assert!(before == books(&root), "the first step is reused as it is");
    let new = resume("step").is(0, "reserved");
    assert_eq!(one_replacement(&root, &old), new.get("taskId"));
    assert_eq!(root.row(task)["taskAttemptRetiredBy"]["mode"], "no-report");
    let of_step: Vec<String> =
        root.step_events().into_iter().filter(|event| event.starts_with("run.step.")).collect();
    let told = ["run.step.1 none -> started", "run.step.1 started -> failed", "run.step.2 failed -> started"];
    assert_eq!(of_step, told);
    assert_eq!(
        resume("third").is(0, "reserved").get("taskId"),
        "run.third.1",
        "the call that died had no effect"
    );

    // Whoever waits for the step waits for the new child, and the old one's owner gets nowhere.
    let wait = ["wait", "--run", "run", "--step", "step", "--timeout", "0"];
    assert_eq!(root.json(&wait).is(12, "not-yet").get("taskId"), new.get("taskId"));
    let _ = old.begin().is(10, "retired");
    let _ = root.json(&["rotate", task, "--as", "reawaken", "--token", token]).is(10, "retired");
    let again = resume("step").is(10, "reattach");
    assert_eq!(again.get("attemptId"), new.get("attemptId"));
    assert_eq!(rows(&root).len(), 4, "one child a step, and the retired one");
}

/// Test 10; rule 12. As the words are read here: the owner is known to live, or nobody can tell.
#[test]
fn test_10_while_a_foreign_owner_may_still_publish_its_step_gets_no_second_child() {
    for known in [true, false] {
        let root = TestRoot::new();
        let owner = Owner::start();
        let task = child(&root, Some(&owner).filter(|_| known));
        let turn = task.turn();
        let before = books(&root);
        // Another process looks, recovers and resumes, as often as it likes.
        assert_eq!(task.stands(), if known { "live" } else { "indeterminate/owner-unknown" });
        let pass = root.json(&["recover"]).is(0, "recovered");
        assert_eq!(pass.json()["recovered"], json!([]), "{pass}");
        if known {
            let _ = unresolved(&root, 10, "reattach", None);
        } else {
            let _ = unresolved(&root, 11, "unresolved", Some("owner-unknown"));
        }
        let code = if known { "owner-alive" } else { "owner-unknown" };
        let _ = root.json(&["rotate", &task.id, "--as", "startup"]).is(10, code);
        assert!(before == books(&root), "the attempt stays its owner's, unmarked");
        // The owner ends it at last. From then on there is proof, and it is used once.
        let _ = task.stop().is(0, "stopping");
        no_replacement(&root, &task, "started");
        let _ = task.settle(&turn).is(0, "turn-settled");
        assert_eq!(task.stands(), "terminal-no-report");
        let new = ask(&root, &[]).is(0, "reserved").get("taskId");
        assert_eq!(one_replacement(&root, &task), new);
        assert_eq!(ask(&root, &[]).is(10, "reattach").get("taskId"), new);
        let _ = task.begin().is(10, "retired");
        assert_eq!(rows(&root).len(), 2);
    }
}

/// A child that was stopped in its turn, and the call by which its owner would settle that turn.
fn stopped_at_work<'a>(root: &'a TestRoot, owner: &Owner) -> (Task<'a>, Vec<String>) {
    let task = child(root, Some(owner));
    let turn = task.turn();
    let _ = task.stop().is(0, "stopping");
    let settle = ["settle", &task.id, "--turn", &turn, "--token", &task.token].map(str::to_owned).to_vec();
    (task, settle)
}

/// Test 11; rules 12, 51 and 89. The one window there is here: between the Stop and the owner's last settle.
#[test]
fn test_11_an_owner_killed_between_the_stop_and_its_last_settle_leaves_the_step_unresolved_for_ever() {
    for point in [None, Some("looked"), Some("locked-task"), Some("before-rename")] {
        let root = TestRoot::new();
        let mut owner = Owner::start();
        let (task, settle) = stopped_at_work(&root, &owner);
        if let Some(point) = point {
            root.park(&settle.iter().map(String::as_str).collect::<Vec<_>>(), point).kill();
        }
        owner.kill();
        assert_eq!(root.row(&task.id)["taskStatus"], "interrupted");
        let before = books(&root);
        for _ in 0..2 {
            assert_eq!(task.stands(), "indeterminate/owner-dead-unsettled", "{point:?}");
            let pass = root.json(&["recover"]).is(0, "recovered");
            assert_eq!(pass.get("left.0.reasonCode"), "owner-dead-unsettled", "{pass}");
            let _ = unresolved(&root, 11, "unresolved", Some("owner-dead-unsettled"));
        }
        assert!(before == books(&root), "{point:?}: bytes unchanged");
        no_replacement(&root, &task, "started");
        assert_eq!(task.receipts(), Vec::<String>::new());
    }
}

/// Test 11; rule 51 and decision 3. The receipt is part of the settling commit, so there is no window behind it.
#[test]
fn test_11_an_owner_killed_in_its_last_settle_after_the_commit_has_left_a_receipt() {
    for point in ["after-rename", "after-commit-point"] {
        let root = TestRoot::new();
        let mut owner = Owner::start();
        let (task, settle) = stopped_at_work(&root, &owner);
        root.park(&settle.iter().map(String::as_str).collect::<Vec<_>>(), point).kill();
        owner.kill();
        assert_eq!(task.stands(), "terminal-no-report", "{point}");
        let new = ask(&root, &[]).is(0, "reserved").get("taskId");
        assert_eq!(task.receipts(), [task.attempt.as_str()], "{point}");
        assert_eq!(one_replacement(&root, &task), new);
        let _ = ask(&root, &[]).is(10, "reattach");
    }
}

/// Test 12, its first half; rules 10 and 75. Each owner is killed, and each time one more replacement is made.
#[test]
fn test_12_after_each_further_restart_the_latest_child_is_replaced_once_more() {
    let root = TestRoot::new();
    let mut owner = Owner::start();
    let mut past = vec![child(&root, Some(&owner))];
    for _ in 0..3 {
        let latest = past.last().unwrap();
        cut_short(latest);
        owner.kill();
        let _ = root.json(&["recover"]).is(0, "recovered");
        owner = Owner::start();
        let new = owned(&root, &ask_as(&root, &owner).is(0, "reserved"));
        assert_eq!(one_replacement(&root, latest), new.id);
        let again = ask(&root, &[]).is(10, "reattach");
        assert_eq!(again.get("attemptId"), new.attempt);
        past.push(new.launched());
    }
    let [retired @ .., latest] = &past[..] else { panic!() };
    for pair in past.windows(2) {
        assert_eq!(
            one_replacement(&root, &pair[0]),
            pair[1].id,
            "and none of the earlier claims has changed"
        );
    }
    // Whoever still holds a token of an earlier generation gets nowhere with it.
    for old in retired {
        let _ = old.begin().is(10, "retired");
        let prior = ask(&root, &["--prior-token", &old.token]).is(10, "reattach");
        assert_eq!(prior.get("taskId"), latest.id);
    }
    assert_eq!((rows(&root).len(), checkpoint(&root)), (4, ("started".into(), latest.id.clone())));
    let told: Vec<String> = root.step_events();
    assert_eq!(told.iter().filter(|event| event.ends_with("failed -> started")).count(), 3, "{told:?}");
}

/// Test 12: two processes resume after one restart; the one that looked first is held until the other is done.
#[test]
fn test_12_a_resume_that_looked_before_another_one_was_through_looks_again() {
    let root = TestRoot::new();
    let old = dead_child(&root);
    let (late, early) = (Owner::start(), Owner::start());
    let held = root.park(&asking(&["--owner-pid", &late.pid()]), "looked");
    let new = ask_as(&root, &early).is(0, "reserved").get("taskId");
    let told = held.go().is(10, "reattach");
    assert_eq!((told.get("taskId"), one_replacement(&root, &old)), (new.clone(), new));
    assert_eq!(rows(&root).len(), 2);
}

/// A child whose owner was killed when nothing was in flight, and nobody had stopped it.
fn left_idle(root: &TestRoot) -> Task<'_> {
    let mut owner = Owner::start();
    let task = child(root, Some(&owner));
    let turn = task.turn();
    let _ = task.settle(&turn).is(0, "turn-settled");
    owner.kill();
    task
}

/// Test 12; rules 1 and 10, decision 17. One process of the restart recovers and another one resumes: both settle
/// the child that the dead owner left, each held while the other comes, or killed there.
#[test]
fn test_12_a_recovery_and_a_resume_of_one_dead_child_leave_one_receipt_and_one_replacement() {
    let both = ["locked", "before-rename", "after-rename", "after-commit-point"];
    for (first, second) in [("recover", "reserve"), ("reserve", "recover")] {
        for point in both {
            for dies in [false, true] {
                let root = TestRoot::new();
                let old = left_idle(&root);
                let call = |verb: &str| if verb == "recover" { vec!["recover"] } else { asking(&[]) };
                let held = root.park(&call(first), point);
                let other = root.start(&[&call(second)[..], &PATIENT].concat());
                if dies {
                    held.kill();
                } else {
                    assert_eq!(held.go().exit, 0);
                }
                let other = root.finish(other);
                let what = format!("{first} at {point}, dies: {dies}: {other}");
                assert_eq!(other.exit, 0, "{what}");
                let last = ask(&root, &[]);
                assert!(["reserved", "reattach"].contains(&last.code().as_str()), "{what}\n{last}");
                assert_eq!(one_replacement(&root, &old), last.get("taskId"), "{what}");
                assert_eq!(old.receipts(), [old.attempt.as_str()], "{what}");
                assert_eq!((rows(&root).len(), root.step_events().len()), (2, 3), "{what}");
            }
        }
    }
}
