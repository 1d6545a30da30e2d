//! `rotate` beside an owner or a turn: one table for every combination.

use std::fmt::Write as _;

use crate::common::{Outcome, Task, TestRoot};
use crate::owners::{Process, alive};

/// What is known about the owner of the attempt that is to be followed by another.
#[derive(Clone, Copy, PartialEq)]
enum Life {
    Alive,
    Dead,
    Unknown,
    None,
}

/// What the attempt is doing.
#[derive(Clone, Copy, PartialEq)]
enum Doing {
    /// Admission is open, nothing is in flight.
    Idle,
    /// Admission is open, its own turn is in flight.
    Turn,
    /// Stopped, its own turn is in flight.
    ClosingTurn,
    /// Stopped, only a cleanup is owed.
    ClosingCleanup,
    /// Stopped and settled, nothing is in flight.
    Settled,
    /// Stopped and settled, a turn of an earlier attempt is in flight.
    SettledEarlierTurn,
}

/// A task whose attempt has that owner and does that. A process that is to die dies at the end.
struct Scene<'a> {
    task: Task<'a>,
    life: Life,
    mortal: Option<Process>,
}

impl<'a> Scene<'a> {
    fn new(root: &'a TestRoot, id: &str, life: Life, doing: Doing, reported: bool) -> Self {
        let mortal = (life == Life::Dead).then(Process::start);
        let mut scene = Self { task: root.reserve_unknown(id).launched(), life, mortal };
        if doing == Doing::SettledEarlierTurn {
            let _ = scene.task.turn();
        }
        scene.hand_over();
        if reported {
            let turn = scene.turn();
            let report = ["report", id, "--attempt", &scene.task.attempt, "--token", &scene.task.token];
            let _ = root.json_with_stdin(&report, b"done").is(0, "report-accepted");
            if doing != Doing::Turn && doing != Doing::ClosingTurn {
                let _ = scene.task.settle(&turn).is(0, "turn-settled");
            }
        } else if matches!(doing, Doing::Turn | Doing::ClosingTurn) {
            let _ = scene.turn();
        }
        match doing {
            Doing::Idle | Doing::Turn => {}
            Doing::ClosingTurn => drop(root.json(&["stop", id]).is(0, "stopping")),
            Doing::ClosingCleanup => {
                let _ = root.json(&["stop", id, "--cleanup", "worktree"]).is(0, "stopping");
            }
            Doing::Settled => drop(root.json(&["stop", id]).is(0, "stopped")),
            Doing::SettledEarlierTurn => {
                let _ = root.json(&["stop", id]).is(0, "stopping");
                assert_eq!(root.json(&["inspect", id]).get("phase"), "settled");
            }
        }
        if let Some(process) = scene.mortal.take() {
            process.die();
        }
        scene
    }

    /// Gives the task the owner the scene is about, beside whatever turn is in flight.
    fn hand_over(&mut self) {
        let id = self.task.id.clone();
        let root = self.task.root;
        if self.life == Life::None {
            let out = root.json(&["rotate", &id, "--as", "startup", "--unproven"]).is(0, "rotated");
            self.task.attempt = out.get("attemptId");
            return;
        }
        let _ = root.json(&["stop", &id]);
        let pid = match (self.life, &self.mortal) {
            (Life::Alive, _) => Some(alive()),
            (Life::Dead, Some(process)) => Some(process.pid()),
            _ => None,
        };
        let mut args = vec!["rotate", &id, "--as", "reawaken", "--unproven"];
        args.extend(pid.iter().flat_map(|pid| ["--owner-pid", pid]));
        let out = root.json(&args).is(0, "rotated");
        self.task.attempt = out.get("attemptId");
        self.task.token = out.get("token");
    }

    fn turn(&self) -> String {
        self.task.turn()
    }
}

/// Rotates without and with `--unproven`, and asserts that what is not granted changes nothing at all.
fn tried(root: &TestRoot, make: &dyn Fn(&str) -> String, kind: &str) -> String {
    let mut cell = String::new();
    let mut id = make("plain");
    for flag in [&[][..], &["--unproven"]] {
        let before = root.bytes();
        let out: Outcome = root.json(&[&["rotate", &id, "--as", kind], flag].concat());
        if out.exit != 0 {
            // What was refused is as it was, so it can be asked again.
            assert_eq!(root.bytes(), before, "{out}");
        } else if flag.is_empty() {
            id = make("unproven");
        }
        write!(cell, "{:<20}", format!("{} {}", out.exit, out.code())).unwrap();
    }
    cell
}

const LIVES: [(Life, &str); 4] =
    [(Life::Alive, "alive"), (Life::Dead, "dead"), (Life::Unknown, "unknown"), (Life::None, "none")];

/// The table of one kind: a line for each thing the attempt may be doing and each owner.
fn table(kind: &str, reported: bool, doings: &[(Doing, &str)]) -> String {
    let root = TestRoot::new();
    let mut table = String::new();
    for (doing, doing_word) in doings {
        for (life, life_word) in LIVES {
            let make = |name: &str| {
                let id = format!("{doing_word}.{life_word}.{name}");
                Scene::new(&root, &id, life, *doing, reported).task.id
            };
            let cell = tried(&root, &make, kind);
            writeln!(table, "{doing_word:<22}{life_word:<9}{}", cell.trim_end()).unwrap();
        }
    }
    table
}

#[test]
fn a_reawakening_waits_for_what_is_owed_unless_its_owner_is_gone() {
    let doings = [
        (Doing::ClosingTurn, "closing-turn"),
        (Doing::ClosingCleanup, "closing-cleanup"),
        (Doing::Settled, "settled"),
        (Doing::SettledEarlierTurn, "settled-earlier-turn"),
    ];
    // Each line: what the attempt does, its owner, the answer without and the answer with --unproven.
    insta::assert_snapshot!(table("reawaken", false, &doings), @"
    closing-turn          alive    12 cleanup-pending  10 owner-alive
    closing-turn          dead     0 rotated           0 rotated
    closing-turn          unknown  12 cleanup-pending  0 rotated
    closing-turn          none     12 cleanup-pending  0 rotated
    closing-cleanup       alive    12 cleanup-pending  12 cleanup-pending
    closing-cleanup       dead     0 rotated           0 rotated
    closing-cleanup       unknown  12 cleanup-pending  0 rotated
    closing-cleanup       none     12 cleanup-pending  0 rotated
    settled               alive    0 rotated           0 rotated
    settled               dead     0 rotated           0 rotated
    settled               unknown  0 rotated           0 rotated
    settled               none     0 rotated           0 rotated
    settled-earlier-turn  alive    10 owner-alive      10 owner-alive
    settled-earlier-turn  dead     0 rotated           0 rotated
    settled-earlier-turn  unknown  0 rotated           0 rotated
    settled-earlier-turn  none     0 rotated           0 rotated
    ");
}

#[test]
fn a_reactivation_waits_for_what_is_owed_unless_its_owner_is_gone() {
    let doings = [
        (Doing::Idle, "idle"),
        (Doing::Turn, "turn"),
        (Doing::ClosingTurn, "closing-turn"),
        (Doing::ClosingCleanup, "closing-cleanup"),
        (Doing::Settled, "settled"),
        (Doing::SettledEarlierTurn, "settled-earlier-turn"),
    ];
    insta::assert_snapshot!(table("reactivate", true, &doings), @"
    idle                  alive    0 rotated           0 rotated
    idle                  dead     0 rotated           0 rotated
    idle                  unknown  0 rotated           0 rotated
    idle                  none     0 rotated           0 rotated
    turn                  alive    10 owner-alive      10 owner-alive
    turn                  dead     0 rotated           0 rotated
    turn                  unknown  0 rotated           0 rotated
    turn                  none     0 rotated           0 rotated
    closing-turn          alive    12 cleanup-pending  10 owner-alive
    closing-turn          dead     0 rotated           0 rotated
    closing-turn          unknown  12 cleanup-pending  0 rotated
    closing-turn          none     12 cleanup-pending  0 rotated
    closing-cleanup       alive    12 cleanup-pending  12 cleanup-pending
    closing-cleanup       dead     0 rotated           0 rotated
    closing-cleanup       unknown  12 cleanup-pending  0 rotated
    closing-cleanup       none     12 cleanup-pending  0 rotated
    settled               alive    0 rotated           0 rotated
    settled               dead     0 rotated           0 rotated
    settled               unknown  0 rotated           0 rotated
    settled               none     0 rotated           0 rotated
    settled-earlier-turn  alive    10 owner-alive      10 owner-alive
    settled-earlier-turn  dead     0 rotated           0 rotated
    settled-earlier-turn  unknown  0 rotated           0 rotated
    settled-earlier-turn  none     0 rotated           0 rotated
    ");
}

#[test]
fn a_startup_needs_an_owner_that_is_gone() {
    let doings = [(Doing::Idle, "idle"), (Doing::Turn, "turn")];
    insta::assert_snapshot!(table("startup", false, &doings), @"
    idle                  alive    10 owner-alive      10 owner-alive
    idle                  dead     0 rotated           0 rotated
    idle                  unknown  10 owner-unknown    0 rotated
    idle                  none     0 rotated           0 rotated
    turn                  alive    10 owner-alive      10 owner-alive
    turn                  dead     0 rotated           0 rotated
    turn                  unknown  10 owner-unknown    0 rotated
    turn                  none     10 owner-unknown    0 rotated
    ");
}

#[test]
fn a_closing_attempt_says_what_it_owes_and_asks_to_be_asked_again() {
    let root = TestRoot::new();
    let task = root.reserve_with("t1", &["--owner", "me", "--owner-pid", &alive()]).launched();
    let _turn = task.turn();
    let _ = root.json(&["stop", "t1", "--cleanup", "worktree"]).is(0, "stopping");
    insta::assert_snapshot!(root.run(&["rotate", "t1", "--as", "reawaken"]), @"
    exit 12
    --- stdout
    the attempt of task `t1` is closing under an owner that is alive; 1 turn and 1 cleanup are still owed
    taskId:     t1
    attemptId:  att_de15204e35ca515e
    taskStatus: interrupted
    ownerAlive: yes
    owed:
      kind: turn  turnId: turn_de15204e35ca515e0001  sendId: snd_de15204e35ca515e0001  attemptId: att_de15204e35ca515e  since: 2026-01-01T00:00:03.000Z  owner: me
      kind: cleanup  cleanupId: cln_f689a3a85894f1ed8b2a4a2e23e88eb3  name: worktree  since: 2026-01-01T00:00:04.000Z
    ");
    insta::assert_snapshot!(root.json(&["rotate", "t1", "--as", "reawaken"]), @r#"
    exit 12
    --- stdout
    {"ok":false,"command":"rotate","code":"cleanup-pending","root":"[DIR]/root","requestId":"req_1f668cb79ce77109","taskId":"t1","attemptId":"att_de15204e35ca515e","taskStatus":"interrupted","ownerAlive":"yes","owed":[{"kind":"turn","turnId":"turn_de15204e35ca515e0001","sendId":"snd_de15204e35ca515e0001","attemptId":"att_de15204e35ca515e","since":"2026-01-01T00:00:03.000Z","owner":"me"},{"kind":"cleanup","cleanupId":"cln_f689a3a85894f1ed8b2a4a2e23e88eb3","name":"worktree","ownerPid":null,"since":"2026-01-01T00:00:04.000Z"}],"message":"the attempt of task `t1` is closing under an owner that is alive; 1 turn and 1 cleanup are still owed"}
    "#);
    insta::assert_snapshot!(root.run(&["rotate", "t1", "--as", "reawaken", "--unproven"]), @"
    exit 10
    --- stderr
    lychgate rotate: refused (owner-alive): `me` is alive and 1 turn(s) of task `t1` are in flight
    hint: it is stopped; ask again when the owner has settled what is in flight
    ");
}

#[test]
fn a_startup_beside_somebody_says_who() {
    let root = TestRoot::new();
    let _ = root.reserve_with("known", &["--owner", "me", "--owner-pid", &alive()]).launched();
    let _ = root.reserve_with("unknown", &["--owner", "you"]).launched();
    insta::assert_snapshot!(root.run(&["rotate", "known", "--as", "startup", "--unproven"]), @"
    exit 10
    --- stderr
    lychgate rotate: refused (owner-alive): `me` of task `known` is alive: it can go on by itself
    ");
    insta::assert_snapshot!(root.run(&["rotate", "unknown", "--as", "startup"]), @"
    exit 10
    --- stderr
    lychgate rotate: refused (owner-unknown): `you` of task `unknown` cannot be proven dead, so its work may still be running
    hint: a person who knows that it is gone may pass --unproven; it stays unproven for good
    ");
}

#[test]
fn an_override_is_recorded_with_who_when_and_beside_which_turns() {
    let root = TestRoot::new();
    let mut task = root.reserve_unknown("t1").launched();
    let turn = task.turn();
    let first = (task.attempt.clone(), task.token.clone());
    let _ = root.json(&["stop", "t1"]).is(0, "stopping");
    let out = root.json(&["rotate", "t1", "--as", "reawaken", "--unproven", "--owner", "a person"]);
    let out = out.is(0, "rotated");
    assert_eq!(out.get("turnsOfEarlierAttempts.0.turnId"), turn);
    let row = root.row("t1");
    assert_eq!(
        row["attempt"]["unprovenOverride"],
        serde_json::json!({"by": "a person", "at": "2026-01-01T00:00:05.000Z", "besideTurns": [turn]})
    );
    assert_eq!(row["superseded"][0]["attemptId"], first.0, "{row}");
    (task.attempt, task.token) = (out.get("attemptId"), out.get("token"));
    let _second = task.turn();
    // The earlier turn is still its own attempt's to settle, and leaves no receipt.
    let settle = ["settle", "t1", "--turn", &turn, "--token"];
    let _ = root.json(&[&settle[..], &[&task.token]].concat()).is(10, "not-owner");
    let _ = root.json(&[&settle[..], &[&first.1]].concat()).is(0, "turn-settled");
    assert!(!root.tree().contains("settlements"), "{}", root.tree());

    // A rotation without the word takes none over from the attempt before.
    let dead = Process::start();
    let task = root.reserve_with("t2", &["--owner-pid", &dead.pid()]).launched();
    let _turn = task.turn();
    dead.die();
    let _ = root.json(&["rotate", "t2", "--as", "startup", "--unproven"]).is(0, "rotated");
    assert!(root.row("t2")["attempt"]["unprovenOverride"].is_object());
    let _ = root.json(&["rotate", "t2", "--as", "startup"]).is(10, "owner-unknown");
    let _ = root.json(&["stop", "t2"]).is(0, "stopping");
    let _ = root.json(&["rotate", "t2", "--as", "reawaken"]).is(0, "rotated");
    assert!(root.row("t2")["attempt"]["unprovenOverride"].is_null());
}
