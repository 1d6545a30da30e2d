//! Controls: what the checker must reject. A harness that accepts everything would pass everywhere else.

use std::path::Path;

use super::checker::{Checker, Side};
use super::folder;
use super::points::{Fault, Point, strike, trace};
use super::prep::{Situation, prepare as prepare_in};
use super::situations;
use super::world::{Bench, Outcome};

fn situation(name: &str, dir: &Path) -> Situation {
    let (name, prepare) = situations::ALL.iter().find(|(known, _)| *known == name).unwrap();
    prepare_in(name, *prepare, dir)
}

/// Runs the call with one system call replaced, found by what an undisturbed run says about it.
fn struck(
    situation: &Situation,
    checker: &Checker,
    dir: &Path,
    line: &str,
    fault: Fault,
) -> (Bench, Outcome) {
    let (_, calls) = trace(&Bench::copy_of(&situation.bench, dir.join("traced")), &checker.call);
    let found = calls.iter().find(|call| call.line.contains(line)).unwrap();
    let bench = Bench::copy_of(&situation.bench, dir.join("struck"));
    let point = Point { syscall: found.syscall.clone(), n: found.n, fault };
    let outcome = strike(&bench, &checker.call, &point).unwrap();
    (bench, outcome)
}

fn edit(path: &Path, change: impl FnOnce(&str) -> String) {
    let text = std::fs::read_to_string(path).unwrap();
    std::fs::write(path, change(&text)).unwrap();
}

#[test]
fn a_rename_that_only_says_it_happened_is_caught_as_a_lie() {
    let Some(dir) = folder() else { return };
    let situation = situation("settle, the attempt", dir.path());
    let checker = Checker::new(&situation, dir.path());
    let (bench, outcome) = struck(&situation, &checker, dir.path(), "row.json\") = 0", Fault::Pretend);
    assert_eq!(outcome.exit, Some(0), "the call believes it: {outcome:?}");
    let lie = checker.truthful(&outcome, &bench, Side::Old, Side::Old).unwrap_err();
    assert!(lie.contains("it says that it was done"), "{lie}");
}

#[test]
fn an_answer_before_the_commit_and_a_commit_that_goes_away_are_caught() {
    let Some(dir) = folder() else { return };
    let situation = situation("settle, the attempt", dir.path());
    let checker = Checker::new(&situation, dir.path());
    let bench = Bench::copy_of(&situation.bench, dir.path().join("whole"));
    let done = bench.run(&checker.call);
    assert_eq!(checker.truthful(&done, &bench, Side::Old, Side::New), Ok(()));
    let killed = Outcome { exit: None, signal: Some(9), ..done.clone() };
    assert!(
        checker.truthful(&killed, &bench, Side::Old, Side::Old).is_err(),
        "answered, then killed, then old"
    );
    let silent = Outcome { stdout: String::new(), ..killed };
    assert_eq!(checker.truthful(&silent, &bench, Side::Old, Side::Old), Ok(()));
    assert!(checker.truthful(&silent, &bench, Side::New, Side::Old).is_err(), "seen, and then gone");
    for (exit, may_be_new) in [(10, false), (65, false), (70, false), (71, true), (74, false), (75, false)] {
        let failed = Outcome { exit: Some(exit), stdout: "{\"code\":\"io\"}\n".to_owned(), ..done.clone() };
        let truth = checker.truthful(&failed, &bench, Side::Old, Side::New);
        assert_eq!(truth.is_ok(), may_be_new, "{exit} {truth:?}");
    }
}

#[test]
fn a_third_state_made_by_hand_is_rejected() {
    let Some(dir) = folder() else { return };
    let situation = situation("reserve --replaces", dir.path());
    let checker = Checker::new(&situation, dir.path());
    let work = dir.path().join("work");
    let whole = Bench::copy_of(&situation.bench, dir.path().join("whole"));
    assert_eq!(whole.run(&checker.call).exit, Some(0));
    assert_eq!(checker.examine(&whole, &work), Ok(Side::New));

    // The new row without the claim it spends: one of two files renamed, and no record.
    let half = Bench::copy_of(&situation.bench, dir.path().join("half"));
    let row = |bench: &Bench, task: &str| bench.root().join("tasks").join(task).join("row.json");
    std::fs::create_dir(row(&half, "t2").parent().unwrap()).unwrap();
    std::fs::copy(row(&whole, "t2"), row(&half, "t2")).unwrap();
    let error = checker.examine(&half, &work).unwrap_err();
    assert!(error.contains("third state"), "{error}");

    // The old row of before, put back over the new one.
    let lost = Bench::copy_of(&whole, dir.path().join("lost"));
    std::fs::copy(row(&situation.bench, "t1"), row(&lost, "t1")).unwrap();
    assert!(checker.examine(&lost, &work).is_err());
}

type Damage<'a> = &'a dyn Fn(&Bench);

#[test]
fn damage_and_leftovers_made_by_hand_are_rejected() {
    let Some(dir) = folder() else { return };
    let situation = situation("stop, idle, three receipts", dir.path());
    let checker = Checker::new(&situation, dir.path());
    let work = dir.path().join("work");
    let whole = Bench::copy_of(&situation.bench, dir.path().join("whole"));
    assert_eq!(whole.run(&checker.call).exit, Some(0));
    assert_eq!(checker.examine(&whole, &work), Ok(Side::New));
    let receipts = |workspace: &str| {
        let attempts = format!("sessions/{workspace}/subagent-attempt-settlements/t1");
        let folder = |bench: &Bench| bench.root().join(&attempts);
        let file = std::fs::read_dir(folder(&whole)).unwrap().next().unwrap().unwrap().file_name();
        (attempts.clone(), file)
    };
    let (above, file) = receipts("up");
    let cases: [(&str, Damage<'_>); 5] = [
        ("a receipt says something else", &|bench| {
            edit(&bench.root().join(&above).join(&file), |text| {
                text.replace("idle-settled", "launch-failed")
            });
        }),
        ("an ancestor's receipt is missing", &|bench| {
            std::fs::remove_file(bench.root().join(&above).join(&file)).unwrap();
        }),
        ("a receipt nobody wrote", &|bench| {
            std::fs::write(bench.root().join(&above).join("att_0000000000000000.json"), "{}").unwrap();
        }),
        ("a row is damaged", &|bench| {
            edit(&bench.root().join("tasks/t1/row.json"), |text| text.replacen("\"t1\"", "\"t9\"", 1));
        }),
        ("a temporary file that no call removes", &|bench| {
            std::fs::write(bench.root().join("sessions/.lych-left"), "").unwrap();
        }),
    ];
    for (what, damage) in cases {
        let bench = Bench::copy_of(&whole, dir.path().join("damaged"));
        damage(&bench);
        assert!(checker.examine(&bench, &work).is_err(), "{what}");
    }
}

#[test]
fn a_fault_that_does_not_happen_is_an_error() {
    let Some(dir) = folder() else { return };
    let situation = situation("reserve", dir.path());
    for fault in [Fault::Kill, Fault::Error("EIO")] {
        let bench = Bench::copy_of(&situation.bench, dir.path().join("copy"));
        let point = Point { syscall: "fsync".to_owned(), n: 9999, fault };
        assert!(strike(&bench, &situation.call, &point).is_err());
    }
}
